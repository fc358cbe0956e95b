"""Pauses and back-off as the frontier keeps them: due to the instant, durable, the host's and not the page's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.backends.polite import DAY, START, Asked, PoliteCrawl, Said, urls
from webcrawl.core.backoff import BackoffPolicy
from webcrawl.core.frontier import Offer, Wait
from webcrawl.core.politeness import HostPolicy, hours
from webcrawl.core.reasons import Reason
from webcrawl.core.turns import Sharing, group_rule

MERCATOR = HostPolicy(15.0, large_delay_seconds=5.0, large_pages=3, factor=10.0, factor_most_seconds=120.0)


def fine(url: str, now: float) -> Said:
    return Said(404) if url.endswith("robots.txt") else Said()


def gaps(asked: list[Asked]) -> list[float]:
    return [late.start - early.end for early, late in pairwise(asked)]


def test_every_claim_is_handed_out_at_its_due_instant(tmp_path: Path):
    """Not before and not after: a hundred hosts, answers of all lengths, the pause counted from their ends."""
    crawl = PoliteCrawl(tmp_path / "run", policy=HostPolicy(7.0))
    crawl.offer(*[f"http://h{host}.test/{number}" for number in range(10) for host in range(100)])

    def web(url: str, now: float) -> Said:
        return Said(404 if url.endswith("robots.txt") else 200, seconds=0.125 * (len(url) * 7 % 5 + 1))

    crawl.work(web, at_once=1000)
    by_host: dict[str, list[Asked]] = {}
    for one in crawl.asked:
        by_host.setdefault(one.url.split("/")[2], []).append(one)
    assert len(by_host) == 100
    assert {len(asked) for asked in by_host.values()} == {11}
    assert {gap for asked in by_host.values() for gap in gaps(asked)} == {7.0}
    crawl.close()


def test_the_pause_follows_the_host(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", policy=MERCATOR)
    crawl.offer(*[f"http://a.test/{number}" for number in range(7)])
    lengths = iter([1.0, 1.0, 2.5, 60.0, 0.1, 1.0, 1.0, 0.1])

    def web(url: str, now: float) -> Said:
        return Said(404 if url.endswith("robots.txt") else 200, seconds=next(lengths))

    # The third length is over the base, the fourth at the cap; then the host is large, and its answers still count.
    assert gaps(crawl.work(web)) == [15.0, 15.0, 25.0, 120.0, 5.0, 10.0, 10.0]
    crawl.close()


def test_a_crawl_delay_holds_from_the_first_page_on(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0", "http://a.test/1")
    robots = Said(200, b"User-agent: *\nCrawl-delay: 100000\n")
    asked = crawl.work(lambda url, now: robots if "robots" in url else Said())
    assert set(gaps(asked)) == {100_000.0}  # also where that is longer than a robots.txt is believed
    assert [one.url.rpartition("/")[2] for one in asked] == ["robots.txt", "0", "robots.txt", "1"]
    crawl.close()


def test_listed_hosts_may_be_asked_several_times_in_a_row(tmp_path: Path):
    names = ("a.test", "b.test", "c.test")
    crawl = PoliteCrawl(tmp_path / "run", pages_per_visit={"a.test": 3, "b.test": 3})
    crawl.offer(*[f"http://{name}/{number}" for number in range(5) for name in names])

    def web(url: str, now: float) -> Said:
        if url.endswith("robots.txt"):
            return Said(200, b"User-agent: *\nCrawl-delay: 2" if "b.test" in url else b"")
        return Said()

    crawl.work(web)
    found = [gaps([one for one in crawl.asked if name in one.url]) for name in names]
    assert found == [[0.0, 0.0, 10.0, 0.0, 0.0], [2.0, 2.0, 10.0, 2.0, 2.0], [10.0] * 5]
    crawl.close()


def test_nobody_is_asked_in_quiet_hours(tmp_path: Path):
    midnight = START - START % DAY
    crawl = PoliteCrawl(tmp_path / "run", midnight + 7 * 3600.0, quiet=(hours("06:00-08:00"),))
    crawl.offer("http://a.test/")
    assert crawl.work(fine)[0].start == midnight + 8 * 3600.0
    crawl.close()


# ------------------------------------------------------------------------------------------------ back-off


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_rests_the_host_not_the_page_alone(tmp_path: Path, status: int):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0", "http://a.test/1", "http://b.test/0")
    pushed: list[float] = []

    def web(url: str, now: float) -> Said:
        if url == "http://a.test/0" and not pushed:
            pushed.append(now + 1.0)
            return Said(status, retry_after=300.0)
        return fine(url, now)

    asked = crawl.work(web)
    after = [one for one in asked if "a.test" in one.url and one.start >= pushed[0]]
    assert after[0].start == pushed[0] + 300.0
    assert all(one.start < START + 60.0 for one in asked if "b.test" in one.url)
    crawl.close()


def test_a_retry_after_of_days_survives_kills(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0", "http://a.test/1")
    crawl.work(lambda url, now: Said(503, retry_after=2 * DAY) if url.endswith("/0") else fine(url, now), visits=2)
    crawl.commit()
    rests_until = crawl.now + 2 * DAY
    for _ in range(3):
        crawl.kill()
        crawl = PoliteCrawl(tmp_path / "run", crawl.now + 1.0)
    asked = crawl.work(fine)
    assert asked[0].start == pytest.approx(rests_until, abs=1.0)
    crawl.close()


def test_a_host_that_is_down_keeps_its_pages(tmp_path: Path):
    """An hour without an answer: every page is fetched afterwards, none was given up."""
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*[f"http://a.test/{number}" for number in range(20)])

    def web(url: str, now: float) -> Said:
        return Said(0, reason=Reason.TIMEOUT) if START + 60.0 < now < START + 3660.0 else fine(url, now)

    asked = crawl.work(web)
    failed = [one for one in asked if not one.status]
    assert len(failed) <= 8  # a minute, two, four, ...
    assert crawl.frontier.counts().pages == 20
    assert len({one.url for one in asked if one.status == 200}) == 20
    crawl.close()


def test_a_page_that_always_fails_is_given_up_while_its_host_goes_on(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*[f"http://a.test/{number}" for number in range(200)])
    asked = crawl.work(lambda url, now: Said(503) if url.endswith("/7") else fine(url, now))
    tries = [one.start for one in asked if one.url.endswith("/7")]
    assert len(tries) == 3
    assert all(late - early >= 60.0 for early, late in pairwise(tries))
    assert crawl.frontier.counts().pages == 199
    assert crawl.frontier.counts().reasons[Reason.HTTP_ERROR] == 1
    crawl.close()


def test_a_host_that_never_answers_is_given_up_with_a_reason(tmp_path: Path):
    quick = BackoffPolicy(first_seconds=10.0, jitter=0.0, tries=2, sleep_seconds=1000.0, sleeps=2)
    crawl = PoliteCrawl(tmp_path / "run", backoff=quick)
    crawl.offer(*[f"http://a.test/{number}" for number in range(5)], "http://b.test/")
    asked = crawl.work(lambda url, now: Said(0) if "a.test" in url else fine(url, now))
    assert sum("a.test" in url for url in urls(asked)) == 5
    counts = crawl.frontier.counts()
    assert counts.reasons[Reason.HOST_GIVEN_UP] == 5
    assert counts.pages == 1
    crawl.close()


def test_a_name_without_an_address_is_asked_for_again_after_a_week(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0")
    begun = crawl.now
    asked = crawl.work(lambda url, now: Said(0, reason=Reason.NO_SUCH_HOST) if now < begun + DAY else fine(url, now))
    assert asked[1].start >= asked[0].end + 7 * DAY
    assert crawl.frontier.counts().pages == 1
    crawl.close()


def test_a_clock_that_was_set_back_does_not_stop_a_host(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0", "http://a.test/1")
    crawl.work(fine, visits=2)
    crawl.close()
    crawl = PoliteCrawl(tmp_path / "run", START - 30 * DAY)
    assert crawl.work(fine)[-1].start <= START - 30 * DAY + DAY  # robots.txt is asked for anew, and one pause
    crawl.close()


# ------------------------------------------------------------------------------------------------ shared owners


class FixedAddresses:
    """Two hosts an address; names are looked up when the test says so."""

    def __init__(self) -> None:
        self.wanted: list[str] = []
        self.found: set[str] = set()

    def known(self, url: str) -> str | None:
        host = url.split("/")[2]
        return f"192.0.2.{int(host[1:].split('.')[0]) // 2}" if host in self.found else None

    def look_up(self, url: str) -> None:
        self.wanted.append(url.split("/")[2])


def check_turns(asked: list[Asked], owner_of: Callable[[str], str], pause: float) -> None:
    by_owner: dict[str, list[Asked]] = {}
    for one in sorted(asked, key=lambda one: one.start):
        by_owner.setdefault(owner_of(one.url), []).append(one)
    assert all(gap >= pause for asked in by_owner.values() for gap in gaps(asked))


def test_hosts_of_one_address_are_asked_one_at_a_time(tmp_path: Path):
    addresses = FixedAddresses()
    addresses.found = {f"h{number}.test" for number in range(6)}
    crawl = PoliteCrawl(tmp_path / "run", sharing=Sharing(address_seconds=4.0), addresses=addresses)
    crawl.offer(*[f"http://h{host}.test/{number}" for number in range(3) for host in range(6)])
    asked = crawl.work(fine)
    assert len(asked) == 6 * 4
    check_turns(asked, lambda url: addresses.known(url) or "", 4.0)
    check_turns(asked, lambda url: url.split("/")[2], 10.0)
    crawl.close()


def test_hosts_of_a_site_and_of_a_group_too(tmp_path: Path):
    sharing = Sharing(site_seconds=3.0, groups=(group_rule("two 5 .a.example b.example"),))
    crawl = PoliteCrawl(tmp_path / "run", sharing=sharing)
    names = ["x.a.example", "y.a.example", "b.example", "x.c.example", "y.c.example"]
    crawl.offer(*[f"http://{name}/{number}" for number in range(3) for name in names])
    asked = crawl.work(fine)
    assert len(asked) == 5 * 4
    check_turns(asked, lambda url: "group" if ".c." not in url else "c", 3.0)
    check_turns([one for one in asked if ".c." not in one.url], lambda url: "group", 5.0)
    crawl.close()


def test_no_page_is_leased_before_its_hosts_address_is_known(tmp_path: Path):
    addresses = FixedAddresses()
    crawl = PoliteCrawl(tmp_path / "run", sharing=Sharing(address_seconds=1.0), addresses=addresses)
    crawl.offer("http://h1.test/", "http://h2.test/")
    assert isinstance(crawl.frontier.next(START, 10), Wait)
    assert sorted(addresses.wanted) == ["h1.test", "h2.test"]
    addresses.found = {"h1.test"}
    crawl.frontier.note_resolved("h1.test", Reason.NONE, START)
    crawl.frontier.note_resolved("h2.test", Reason.NO_SUCH_HOST, START)
    asked = crawl.work(fine, until=START + DAY)
    assert urls(asked) == ["http://h1.test/robots.txt", "http://h1.test/"]
    assert crawl.frontier.trouble_of(2) == 1
    assert isinstance(crawl.frontier.next(START + 8 * DAY), Wait)
    assert addresses.wanted.count("h2.test") == 2  # after a week, once more
    crawl.close()


def test_where_hosts_lived_is_kept(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/")
    for at, addresses in ((1.0, ["192.0.2.1"]), (2.0, ["192.0.2.1", "2001:db8::1"])):
        crawl.frontier.note_addresses("a.test", addresses, START + at)
    crawl.frontier.note_addresses("proxy.test", ["192.0.2.9"], START)  # no host of this crawl
    crawl.commit()
    rows = crawl.run.store.rows("SELECT host, seen_at, addresses FROM addresses ORDER BY seen_at")
    assert rows == [(1, START + 1.0, "192.0.2.1"), (1, START + 2.0, "192.0.2.1 2001:db8::1")]
    crawl.close()


def test_a_large_table_is_scanned_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("webcrawl.backends.embedded.duepages.SCANNED_AT_ONCE", 0)
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*[f"http://h{number}.test/" for number in range(20)])
    failed: set[str] = set()

    def web(url: str, now: float) -> Said:
        if url in failed or url.endswith("robots.txt"):
            return fine(url, now)
        failed.add(url)
        return Said(500)

    asked = crawl.work(web)
    assert len(asked) == 20 * 3
    assert crawl.frontier.counts().pages == 20
    crawl.close()


def test_a_redirect_that_says_retry_after_is_followed_and_rests_the_host(tmp_path: Path):
    """Some servers say `Retry-After: 0` to every redirect."""
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/0", "http://a.test/1")

    def web(url: str, now: float) -> Said:
        return Said(301, retry_after=100.0) if url.endswith("/0") else fine(url, now)

    assert gaps(crawl.work(web)) == [10.0, 100.0]
    assert crawl.frontier.trouble_of(1) == 0
    crawl.close()


def test_a_better_page_does_not_cost_a_host_its_turn(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", policy=HostPolicy(1.0), sharing=Sharing(groups=(group_rule("g 30 .test"),)))
    crawl.offer("http://b.test/0")
    crawl.work(fine)
    crawl.offer("http://b.test/1")
    crawl.frontier.next(crawl.now)
    crawl.frontier.offer([Offer("http://b.test/2", priority=5.0)], crawl.now)
    assert [one.url for one in crawl.work(fine)] == ["http://b.test/2", "http://b.test/1"]
    crawl.close()


def test_a_crawl_that_starts_in_quiet_hours_waits_for_their_end(tmp_path: Path):
    midnight = START - START % DAY
    crawl = PoliteCrawl(tmp_path / "run", midnight + 7 * 3600.0, quiet=(hours("06:00-08:00"),))
    crawl.offer("http://a.test/")
    assert crawl.frontier.next(crawl.now) == Wait(midnight + 8 * 3600.0)
    assert crawl.frontier.next_instant(crawl.now) == midnight + 8 * 3600.0
    assert crawl.frontier.ask_beside("http://a.test/x", crawl.now) == Wait(midnight + 8 * 3600.0)
    crawl.close()
