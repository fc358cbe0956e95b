"""The resolver in virtual time: asked once, remembered as long as it holds, never too many at a time."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading

import pytest
from scrapy.exceptions import CannotResolveHostError

from webcrawl import lookups
from webcrawl.core.names import Answer, Dns, Resolution
from webcrawl.lookups import CaresLookup, LookupUnavailable, ThreadLookup, best_lookup
from webcrawl.resolver import CachingResolver

SITE = Answer(("192.0.2.1", "2001:db8::1"), 300)
GONE = Answer(error="nxdomain", ttl_seconds=900)


class ScriptedLookup:
    """Answers from a table; names that are not in it do not exist. Holds everything back while `gate` is closed."""

    def __init__(self, answers=None):
        self.answers = answers or {}
        self.asked = []
        self.under_way = self.most_under_way = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_closed = False

    async def look_up(self, name):
        self.asked.append(name)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
        finally:
            self.under_way -= 1
        answer = self.answers.get(name, GONE)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self):
        self.is_closed = True


class Scene:
    """A resolver with a scripted look-up and a clock that is set by hand."""

    def __init__(self, answers=None, **settings):
        self.now = 1000.0
        self.lookup = ScriptedLookup(answers)
        self.changed: list[Resolution] = []
        self.broken: list[str] = []
        self.resolver = CachingResolver(
            Dns(**settings),
            clock=lambda: self.now,
            make_lookup=lambda dns: self.lookup,
            hosts={"here": ("127.0.0.1",)},
            on_change=self.changed.append,
            on_broken=self.broken.append,
        )


async def turns(count=10):
    """Let everything that can go on go on."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_one_look_up_for_all_who_ask():
    async def scene():
        one = Scene({"site.test": SITE})
        one.lookup.gate.clear()
        askers = [asyncio.ensure_future(one.resolver.resolve("site.test")) for _ in range(100)]
        await turns()
        one.lookup.gate.set()
        answers = await asyncio.gather(*askers)
        assert set(answers) == {Resolution("site.test", SITE.addresses, 1300.0)}
        assert one.lookup.asked == ["site.test"]

    asyncio.run(scene())


def test_never_more_at_a_time_than_allowed():
    async def scene():
        one = Scene(concurrent_lookups=7)
        one.lookup.gate.clear()
        askers = [asyncio.ensure_future(one.resolver.resolve(f"host{n}.test")) for n in range(100)]
        await turns()
        assert one.lookup.under_way == 7
        one.lookup.gate.set()
        await asyncio.gather(*askers)
        assert (one.lookup.most_under_way, len(one.lookup.asked)) == (7, 100)
        assert one.lookup.asked == [f"host{n}.test" for n in range(100)]  # in the order they came

    asyncio.run(scene())


def test_an_answer_holds_as_long_as_it_says():
    async def scene():
        one = Scene({"site.test": SITE})
        await one.resolver.resolve("site.test")
        one.now = 1299.0
        assert one.resolver.cached("site.test", one.now) == await one.resolver.resolve("site.test")
        assert one.lookup.asked == ["site.test"]
        one.now = 1300.0
        assert one.resolver.cached("site.test", one.now) is None
        assert (await one.resolver.resolve("site.test")).expires_at == 1600.0
        assert one.lookup.asked == ["site.test"] * 2

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("answer", "seconds"), [(GONE, 900), (Answer(error="servfail"), 30), (Answer(error="timeout"), 30)]
)
def test_failures_are_remembered_too(answer, seconds):
    async def scene():
        one = Scene({"site.test": answer})
        first = await one.resolver.resolve("site.test")
        assert first == Resolution("site.test", (), 1000.0 + seconds, answer.error)
        one.now += seconds - 1
        assert await one.resolver.resolve("site.test") is first
        one.now += 1
        await one.resolver.resolve("site.test")
        assert len(one.lookup.asked) == 2

    asyncio.run(scene())


def test_some_names_need_no_question():
    async def scene():
        one = Scene()
        resolved = {}
        for host in ("192.0.2.7", "[2001:DB8::7]", "127.1", "here", "localhost", "x.invalid", "a..b", "ä" * 70):
            assert one.resolver.cached(host, one.now) == await one.resolver.resolve(host)
            resolution = await one.resolver.resolve(host)
            resolved[host] = resolution.error or resolution.addresses
        assert one.lookup.asked == []
        return list(resolved.values())

    assert asyncio.run(scene()) == [
        ("192.0.2.7",),
        ("2001:db8::7",),
        ("127.0.0.1",),
        ("127.0.0.1",),
        ("127.0.0.1", "::1"),
        "nxdomain",
        "nxdomain",
        "nxdomain",
    ]


def test_spellings_of_one_name_share_one_look_up():
    async def scene():
        one = Scene({"site.test": SITE, "xn--bcher-kva.test": SITE})
        for host in ("site.test", "Site.TEST", "site.test.", "bücher.test", "xn--bcher-kva.test"):
            assert (await one.resolver.resolve(host)).addresses == SITE.addresses
        assert one.lookup.asked == ["site.test", "xn--bcher-kva.test"]

    asyncio.run(scene())


def test_memory_is_bounded():
    async def scene():
        one = Scene(cache_names=2)
        for name in ("a.test", "b.test", "c.test"):
            await one.resolver.resolve(name)
        assert [bool(one.resolver.cached(name, one.now)) for name in ("a.test", "b.test", "c.test")] == [
            False,
            True,
            True,
        ]

    asyncio.run(scene())


def test_one_who_gives_up_does_not_take_the_answer_from_the_others():
    async def scene():
        one = Scene({"site.test": SITE})
        one.lookup.gate.clear()
        impatient, patient = (asyncio.ensure_future(one.resolver.resolve("site.test")) for _ in range(2))
        await turns()
        impatient.cancel()
        await turns()
        one.lookup.gate.set()
        assert (await patient).addresses == SITE.addresses
        assert impatient.cancelled()

    asyncio.run(scene())


def test_a_look_up_nobody_waits_for_any_more_is_remembered():
    async def scene():
        one = Scene({"site.test": SITE})
        one.lookup.gate.clear()
        asker = asyncio.ensure_future(one.resolver.resolve("site.test"))
        await turns()
        asker.cancel()
        one.lookup.gate.set()
        await turns()
        assert one.resolver.cached("site.test", one.now) is not None

    asyncio.run(scene())


def test_closing_tells_those_who_wait():
    async def scene():
        one = Scene({"site.test": SITE}, concurrent_lookups=2)
        known = await one.resolver.resolve("site.test")
        one.lookup.gate.clear()
        askers = [asyncio.ensure_future(one.resolver.resolve(f"host{n}.test")) for n in range(5)]
        await turns()
        late = asyncio.ensure_future(one.resolver.resolve("late.test"))
        await asyncio.sleep(0)  # its look-up has not begun
        one.resolver.close()
        one.resolver.close()
        assert {answer.error for answer in await asyncio.gather(*askers, late)} == {"timeout"}
        await turns()
        assert (one.lookup.under_way, one.lookup.is_closed) == (0, True)
        assert await one.resolver.resolve("site.test") is known
        assert (await one.resolver.resolve("new.test")).error == "timeout"
        assert one.resolver.cached("host0.test", one.now) is None

    asyncio.run(scene())


def test_a_look_up_that_breaks_is_an_answer_too(caplog):
    async def scene():
        one = Scene({"site.test": ZeroDivisionError("a bug")})
        assert (await one.resolver.resolve("site.test")).error == "servfail"

    asyncio.run(scene())
    assert "a bug" in caplog.text


def test_addresses_or_scrapys_error():
    async def scene():
        one = Scene({"site.test": SITE})
        assert await one.resolver.addresses("site.test") == list(SITE.addresses)
        with pytest.raises(CannotResolveHostError, match=r"'gone\.test' failed: the name does not exist"):
            await one.resolver.addresses("gone.test")

    asyncio.run(scene())


def test_changes_of_address_are_told_and_kept():
    async def scene():
        one = Scene({"site.test": SITE})
        await one.resolver.resolve("site.test")
        one.now += 300
        await one.resolver.resolve("site.test")
        one.lookup.answers["site.test"] = Answer(("192.0.2.9",), 300)
        one.now += 300
        await one.resolver.resolve("site.test")
        await one.resolver.resolve("gone.test")
        assert [change.addresses for change in one.changed] == [SITE.addresses, ("192.0.2.9",)]
        assert [seen.first_at for seen in one.resolver.history.of("site.test")] == [1000.0, 1600.0]

    asyncio.run(scene())


def test_a_broken_resolver_is_told_once(caplog):
    async def scene():
        one = Scene({f"host{n}.test": Answer(error="timeout") for n in range(60)})
        for n in range(60):
            await one.resolver.resolve(f"host{n}.test")
            await one.resolver.resolve(f"host{n}.test")  # from memory: counts once
            assert bool(one.broken) == (n >= 49)
        return one.broken

    (sentence,) = asyncio.run(scene())
    assert sentence.startswith("50 of 50 name look-ups in 5 minutes failed (50 timeout).")
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


# ---------------------------------------------------------------------------------------------- the system in threads


@pytest.fixture
def without_cares(monkeypatch):
    def unavailable(dns):
        raise LookupUnavailable("pycares is not installed")

    monkeypatch.setattr(lookups, "CaresLookup", unavailable)


def test_without_c_ares_the_system_is_asked(without_cares, monkeypatch, caplog):
    def getaddrinfo(host, *_, **__):
        if host == "site.test":
            six, four = ("2001:db8::1", 0, 0, 0), ("192.0.2.1", 0)
            return [(0, 0, 0, "", six), (0, 0, 0, "", four), (0, 0, 0, "", four)]
        if host == "bad.test":
            raise UnicodeError("label too long")
        number = {"gone.test": socket.EAI_NONAME, "no.test": socket.EAI_NODATA}.get(host, socket.EAI_AGAIN)
        raise socket.gaierror(number, "as the system says")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def scene():
        resolver = CachingResolver(Dns(servers=("192.0.2.53",)), clock=lambda: 1000.0, hosts={})
        assert await resolver.resolve("site.test") == Resolution("site.test", ("192.0.2.1", "2001:db8::1"), 1300.0)
        names = ("gone.test", "no.test", "bad.test", "slow.test")
        errors = [(await resolver.resolve(name)).error for name in names]
        resolver.close()
        return errors

    assert asyncio.run(scene()) == ["nxdomain", "nodata", "nxdomain", "servfail"]
    assert "WEBCRAWL_DNS_SERVERS has no effect" in caplog.text


def test_threads_do_not_stop_the_loop(without_cares, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def getaddrinfo(host, *_, **__):
        if host == "slow.test":
            begun.set()
            assert go_on.wait(60)
        return [(0, 0, 0, "", ("192.0.2.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def scene():
        resolver = CachingResolver(Dns(), hosts={})
        slow = asyncio.ensure_future(resolver.resolve("slow.test"))
        await asyncio.to_thread(begun.wait, 60)
        assert (await resolver.resolve("site.test")).addresses == ("192.0.2.1",)
        assert not slow.done()
        go_on.set()
        assert (await slow).addresses == ("192.0.2.1",)
        resolver.close()

    asyncio.run(scene())


def test_threads_are_closed_while_busy(without_cares, monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: go_on.wait(60) and [])

    async def scene():
        resolver = CachingResolver(Dns(concurrent_lookups=2), hosts={})
        askers = [asyncio.ensure_future(resolver.resolve(f"host{n}.test")) for n in range(10)]
        await turns()
        resolver.close()
        assert {answer.error for answer in await asyncio.gather(*askers)} == {"timeout"}
        go_on.set()

    asyncio.run(scene())


def test_c_ares_is_not_used_without_a_name_server(tmp_path):
    pytest.importorskip("pycares")
    empty = tmp_path / "resolv.conf"
    empty.write_text("")

    async def scene():
        with pytest.raises(LookupUnavailable, match="no name server"):
            CaresLookup(Dns(), resolv_conf=str(empty))

    asyncio.run(scene())


def test_the_best_way_is_c_ares():
    pytest.importorskip("pycares")

    async def scene():
        lookup = best_lookup(Dns(servers=("127.0.0.1",)))
        assert isinstance(lookup, CaresLookup)
        lookup.close()
        lookup.close()
        assert (await lookup.look_up("site.test")).error == "timeout"
        threads = ThreadLookup(Dns())
        threads.close()
        assert (await threads.look_up("site.test")).error == "timeout"

    asyncio.run(scene())
