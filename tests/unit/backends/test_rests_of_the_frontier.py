"""Pauses and back-off as the frontier keeps them: due to the instant, durable, the host's and not the page's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.backends.polite import DAY, START, Asked, PoliteCrawl, Said, urls
from webcrawl.core.backoff import BackoffPolicy
from webcrawl.core.politeness import HostPolicy, hours
from webcrawl.core.reasons import Reason

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


def test_nobody_is_asked_in_quiet_hours(tmp_path: Path):
    midnight = START - START % DAY
    crawl = PoliteCrawl(tmp_path / "run", midnight + 7 * 3600.0, quiet=(hours("06:00-08:00"),))
    crawl.offer("http://a.test/")
    assert crawl.work(fine)[0].start == midnight + 8 * 3600.0
    crawl.close()


# ------------------------------------------------------------------------------------------------ back-off


@pytest.mark.parametrize("status", [429, 503, 301, 500])
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
