"""Names that only a name server on loopback knows: by c-ares, by our own question, and through the HTTP handler."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import CannotResolveHostError
from scrapy.utils.test import get_crawler

from webcrawl.core.names import Answer, Dns, Resolution
from webcrawl.handlers.http import LeanHttpHandler
from webcrawl.lookups import CaresLookup, ask_server
from webcrawl.resolver import CachingResolver
from webcrawl.testing.dns import AAAA, A, Damage, FakeDns, Name

pytest.importorskip("pycares")

NAMES = {
    "four.test": Name(a=("192.0.2.1", "192.0.2.2"), ttl_seconds=120),
    "six.test": Name(aaaa=("2001:db8::1",)),
    "both.test": Name(a=("192.0.2.1",), aaaa=("2001:db8::1",)),
    "alias.test": Name(a=("192.0.2.1",), aliases=("one.test", "two.test", "three.test"), ttl_seconds=90),
    "long.test": Name(a=tuple(f"192.0.2.{n}" for n in range(1, 101)), is_truncated=True),
    "empty.test": Name(negative_ttl_seconds=700),
    "alias-to-nothing.test": Name(aliases=("nothing.test",), negative_ttl_seconds=600),
    "no-soa.test": Name(outcome="nxdomain", negative_ttl_seconds=None),
    "failing.test": Name(outcome="servfail"),
    "refusing.test": Name(outcome="refused"),
    "silent.test": Name(outcome="silence"),
    **{f"{kind.replace('_', '-')}.test": Name(a=("192.0.2.1",), damage=kind) for kind in get_args(Damage) if kind},
}


def settings(server, **others):
    return Dns(servers=(server.address,), **{"timeout_seconds": 20.0, "tries": 1, **others})


def looked_up(name, names=NAMES, **others):
    """The answer to one look-up, and the server afterwards."""
    with FakeDns(names) as server:

        async def scene():
            lookup = CaresLookup(settings(server, **others))
            try:
                return await lookup.look_up(name)
            finally:
                lookup.close()

        return asyncio.run(scene()), server


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("four.test", Answer(("192.0.2.1", "192.0.2.2"), 120)),
        ("six.test", Answer(("2001:db8::1",), 300)),
        ("both.test", Answer(("192.0.2.1", "2001:db8::1"), 300)),
        ("alias.test", Answer(("192.0.2.1",), 90)),
        ("empty.test", Answer((), 700, "nodata")),
        ("alias-to-nothing.test", Answer((), 600, "nodata")),
        ("gone.test", Answer((), 900, "nxdomain")),
        ("no-soa.test", Answer((), None, "nxdomain")),
        ("failing.test", Answer((), None, "servfail")),
        ("refusing.test", Answer((), None, "servfail")),
    ],
)
def test_what_servers_say(name, answer):
    assert looked_up(name)[0] == answer


def test_no_answer():
    assert looked_up("silent.test", timeout_seconds=0.1)[0] == Answer(error="timeout")


def test_both_families_are_asked_for_once():
    _, server = looked_up("both.test")
    assert sorted(question.type for question in server.asked) == [A, AAAA]


def test_long_answers_come_by_tcp():
    answer, server = looked_up("long.test")
    assert len(answer.addresses) == 100
    assert {question.transport for question in server.asked} == {"udp", "tcp"}


@pytest.mark.parametrize("kind", ["bad_alias", "short_address", "too_few_records", "bad_authority", "cut"])
def test_addresses_are_taken_from_damaged_answers(kind):
    assert looked_up(f"{kind.replace('_', '-')}.test")[0] == Answer(("192.0.2.1",), 300)


def test_noise_is_no_answer():
    assert looked_up("noise.test")[0].error == "malformed"


def test_a_damaged_answer_does_no_harm_to_look_ups_beside_it():
    names = {f"held{n}.test": Name(a=("192.0.2.1",), is_held=True) for n in range(5)}
    names |= {f"cut{n}.test": Name(a=("192.0.2.2",), damage="cut") for n in range(5)}
    with FakeDns(names) as server:

        async def scene():
            lookup = CaresLookup(settings(server, tries=2))
            held = [asyncio.ensure_future(lookup.look_up(f"held{n}.test")) for n in range(5)]
            await asyncio.to_thread(server.wait_for_held, 10)
            for n in range(5):
                assert (await lookup.look_up(f"cut{n}.test")).addresses == ("192.0.2.2",)
            server.stop_holding()
            assert {answer.addresses for answer in await asyncio.gather(*held)} == {("192.0.2.1",)}
            lookup.close()

        asyncio.run(scene())


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("four.test", Answer(("192.0.2.1", "192.0.2.2"), 120)),
        ("alias.test", Answer(("192.0.2.1",), 90)),
        ("gone.test", Answer((), 900, "nxdomain")),
        ("failing.test", Answer((), None, "servfail")),
    ],
)
def test_one_question_of_our_own(name, answer):
    with FakeDns(NAMES) as server:
        host, port = server.address.split(":")
        assert asyncio.run(ask_server((host, int(port)), name, A, 20.0)) == answer


def test_our_own_question_turns_to_tcp_and_gives_up_in_time():
    with FakeDns(NAMES) as server:
        host, port = server.address.split(":")
        assert len(asyncio.run(ask_server((host, int(port)), "long.test", A, 20.0)).addresses) == 100
        assert asyncio.run(ask_server((host, int(port)), "silent.test", A, 0.05)).error == "timeout"
    assert asyncio.run(ask_server((host, int(port)), "four.test", A, 20.0)).error == "timeout"  # nobody is there


def test_one_question_for_a_hundred_askers_and_a_bound_on_questions_under_way():
    names = {f"host{n}.test": Name(a=("192.0.2.1",), aaaa=("2001:db8::1",), is_held=True) for n in range(40)}
    with FakeDns(names) as server:

        async def scene():
            resolver = CachingResolver(settings(server, concurrent_lookups=4), hosts={})
            askers = [asyncio.ensure_future(resolver.resolve(f"host{n % 40}.test")) for n in range(4000)]
            await asyncio.to_thread(server.wait_for_held, 8)
            assert not any(asker.done() for asker in askers)  # and the loop goes on meanwhile
            server.stop_holding()
            answers = await asyncio.gather(*askers)
            resolver.close()
            return answers

        answers = asyncio.run(scene())
    assert {answer.addresses for answer in answers} == {("192.0.2.1", "2001:db8::1")}
    assert len(server.asked) == 2 * 40
    assert server.most_unanswered <= 2 * 4


def test_closing_while_questions_are_under_way():
    names = {f"host{n}.test": Name(a=("192.0.2.1",), is_held=True) for n in range(8)}
    with FakeDns(names) as server:

        async def scene():
            resolver = CachingResolver(settings(server), hosts={})
            askers = [asyncio.ensure_future(resolver.resolve(name)) for name in names]
            await asyncio.to_thread(server.wait_for_held, 16)
            resolver.close()
            return await asyncio.gather(*askers)

        assert {answer.error for answer in asyncio.run(scene())} == {"timeout"}


def test_a_dead_server_is_called_broken():
    names = {f"host{n}.test": Name(outcome="servfail") for n in range(50)}
    broken: list[str] = []
    with FakeDns(names) as server:

        async def scene():
            resolver = CachingResolver(settings(server), hosts={}, on_broken=broken.append)
            await asyncio.gather(*(resolver.resolve(name) for name in names))
            resolver.close()

        asyncio.run(scene())
    assert [sentence.split(" (")[0] for sentence in broken] == ["50 of 50 name look-ups in 5 minutes failed"]


# ---------------------------------------------------------------------------------------------- through the handler


class Site(asyncio.Protocol):
    """Answers every request with the name it was asked for."""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        host = data.partition(b"Host: ")[2].partition(b"\r\n")[0]
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(host), host))


async def site():
    """A site on all loopback addresses, and its port."""
    server = await asyncio.get_running_loop().create_server(Site, "0.0.0.0", 0)
    return server, server.sockets[0].getsockname()[1]


def test_the_handler_finds_what_only_our_name_server_knows():
    with FakeDns({"site.test": Name(a=("127.0.0.1",))}) as server:

        async def scene():
            listener, port = await site()
            crawler = get_crawler(Spider, {"WEBCRAWL_DNS_SERVERS": server.address, "WEBCRAWL_DNS_TIMEOUT_SECONDS": 20})
            handler = LeanHttpHandler(crawler)
            response = await handler.download_request(Request(f"http://site.test:{port}/"))
            with pytest.raises(CannotResolveHostError, match=r"'gone\.test' failed: the name does not exist"):
                await handler.download_request(Request(f"http://gone.test:{port}/"))
            await handler.close()
            listener.close()
            return response.body, str(response.ip_address), port

        body, ip, port = asyncio.run(scene())
    assert (body, ip) == (b"site.test:%d" % port, "127.0.0.1")
    assert server.count("site.test", A) == 1


def test_the_handler_asks_the_crawls_resolver_and_leaves_it_open():
    with FakeDns({"site.test": Name(a=("127.0.0.1",))}) as server:

        async def scene():
            listener, port = await site()
            crawler = get_crawler(Spider)
            resolver = CachingResolver(settings(server), clock=lambda: 1000.0, hosts={})
            setattr(crawler, "webcrawl_resolver", resolver)  # noqa: B010  an attribute of ours
            first = await resolver.resolve("site.test")
            handler = LeanHttpHandler(crawler)
            response = await handler.download_request(Request(f"http://site.test:{port}/"))
            await handler.close()
            assert await resolver.resolve("site.test") is first
            assert first == Resolution("site.test", ("127.0.0.1",), 1300.0)
            resolver.close()
            listener.close()
            return response.status

        assert asyncio.run(scene()) == 200
    assert server.count("site.test", A) == 1


def test_a_pinned_address_is_the_one_connected_to():
    with FakeDns({"site.test": Name(a=("127.0.0.1",))}) as server:

        async def scene():
            listener, port = await site()
            handler = LeanHttpHandler(get_crawler(Spider, {"WEBCRAWL_DNS_SERVERS": server.address}))
            found = []
            for pinned in ("127.0.0.2", "127.0.0.3", "127.0.0.3"):
                request = Request(f"http://site.test:{port}/", meta={"webcrawl_address": pinned})
                response = await handler.download_request(request)
                found.append((str(response.ip_address), request.meta["webcrawl_times"][0] > 0))
            await handler.close()
            listener.close()
            return found

        assert asyncio.run(scene()) == [("127.0.0.2", True), ("127.0.0.3", True), ("127.0.0.3", False)]
    assert server.asked == []
