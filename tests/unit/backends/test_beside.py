"""Requests beside the frontier take turns with its pages: pauses, one connection, robots.txt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.backends.polite import START, PoliteCrawl, Said, site, urls
from webcrawl.core.frontier import ROBOTS_KIND, Lease, Report, RobotsAnswer, Visit, Wait
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason

IMAGE = "http://a.test/image.png"


@pytest.fixture
def crawl(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", own=["mine.test"])
    yield crawl
    crawl.close()


def leased(answer: object) -> Lease:
    assert isinstance(answer, Lease), answer
    return answer


def fetch_robots(crawl: PoliteCrawl, body: bytes, now: float) -> None:
    """The robots.txt that stands before the first image."""
    lease = leased(crawl.frontier.ask_beside(IMAGE, now))
    assert (lease.kind, lease.url) == (ROBOTS_KIND, "http://a.test/robots.txt")
    assert isinstance(crawl.frontier.ask_beside(IMAGE, now), Wait)  # once, however many wait for it
    robots = RobotsAnswer(200, body)
    crawl.frontier.report(Report(lease, Visit(now + 1.0, 200), Event.STORE, robots=robots), now + 1.0)


def test_the_file_comes_first_then_one_request_at_a_time_with_the_pause(crawl: PoliteCrawl):
    fetch_robots(crawl, b"", START)
    assert crawl.frontier.ask_beside(IMAGE, START + 1.0) == Wait(START + 11.0)
    lease = leased(crawl.frontier.ask_beside(IMAGE, START + 11.0))
    assert isinstance(crawl.frontier.ask_beside(IMAGE, START + 11.0), Wait)
    crawl.frontier.end_beside(lease, Visit(START + 12.0, 200), Reason.NONE, START + 12.0)
    crawl.frontier.end_beside(lease, Visit(START + 90.0, 200), Reason.NONE, START + 90.0)  # a second end is none
    assert crawl.frontier.ask_beside(IMAGE, START + 12.0) == Wait(START + 22.0)


def test_what_the_file_forbids_is_refused(crawl: PoliteCrawl):
    fetch_robots(crawl, b"User-agent: *\nDisallow: /image", START)
    assert crawl.frontier.ask_beside(IMAGE, START + 11.0) is Reason.ROBOTS


def test_pages_wait_for_it_and_it_waits_for_pages(crawl: PoliteCrawl):
    fetch_robots(crawl, b"", START)
    crawl.offer("http://a.test/0", "http://a.test/1")
    lease = leased(crawl.frontier.ask_beside(IMAGE, START + 11.0))
    assert isinstance(crawl.frontier.next(START + 11.0), Wait)
    crawl.frontier.end_beside(lease, Visit(START + 12.0, 200), Reason.NONE, START + 12.0)
    crawl.now = START + 12.0
    web = site({"http://a.test/0": Said(), "http://a.test/1": Said()})
    asked = crawl.work(web, visits=1)
    assert (urls(asked), asked[0].start) == (["http://a.test/0"], START + 22.0)
    assert crawl.frontier.ask_beside(IMAGE, crawl.now) == Wait(crawl.now + 10.0)


def test_a_push_back_rests_the_host_for_pages_too(crawl: PoliteCrawl):
    fetch_robots(crawl, b"", START)
    lease = leased(crawl.frontier.ask_beside(IMAGE, START + 11.0))
    visit = Visit(START + 12.0, 429, retry_after=500.0)
    crawl.frontier.end_beside(lease, visit, Reason.NONE, START + 12.0)
    crawl.offer("http://a.test/0")
    crawl.now = START + 12.0
    assert crawl.work(site({"http://a.test/0": Said()}))[0].start == START + 512.0


def test_own_hosts_need_no_turn(crawl: PoliteCrawl):
    leases = [leased(crawl.frontier.ask_beside("http://mine.test/x", START)) for _ in range(20)]
    for lease in leases:
        crawl.frontier.end_beside(lease, Visit(START, 200), Reason.NONE, START)


def test_a_kill_while_one_is_under_way_costs_a_pause(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    fetch_robots(crawl, b"", START)
    leased(crawl.frontier.ask_beside(IMAGE, START + 11.0))
    crawl.commit()
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", START + 12.0)
    answer = crawl.frontier.ask_beside(IMAGE, START + 12.0)
    assert isinstance(answer, Wait) and answer.until >= START + 21.0
    crawl.close()


def test_a_page_that_is_worked_on_leaves_its_host_free(crawl: PoliteCrawl):
    """A callback that waits for an image of its own host would wait for ever otherwise."""
    fetch_robots(crawl, b"", START)
    crawl.offer("http://a.test/0", "http://a.test/1")
    page = crawl.frontier.next(START + 11.0)
    assert isinstance(page, list)
    assert isinstance(crawl.frontier.ask_beside(IMAGE, START + 11.5), Wait)
    crawl.frontier.note_answer_ended(page[0], START + 12.0)
    assert crawl.frontier.ask_beside(IMAGE, START + 12.0) == Wait(START + 22.0)
    lease = leased(crawl.frontier.ask_beside(IMAGE, START + 22.0))
    crawl.frontier.report(Report(page[0], Visit(START + 12.0, 200), Event.STORE), START + 23.0)
    assert isinstance(crawl.frontier.next(START + 23.0), Wait)  # the image is under way
    crawl.frontier.end_beside(lease, Visit(START + 24.0, 200), Reason.NONE, START + 24.0)
    assert crawl.frontier.next(START + 24.0) == Wait(START + 34.0)
    assert isinstance(crawl.frontier.next(START + 34.0), list)
