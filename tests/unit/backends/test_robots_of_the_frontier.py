"""robots.txt before every page: once per origin, through the same queue, durable, and believed for a day."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.unit.backends.polite import DAY, START, PoliteCrawl, Said, Web, site, urls
from webcrawl.core.reasons import Reason

ROBOTS = "http://a.test/robots.txt"
DENY = Said(200, b"User-agent: *\nDisallow: /\n")


def pages(count: int, host: str = "http://a.test") -> list[str]:
    return [f"{host}/{number}" for number in range(count)]


@pytest.fixture
def crawl(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    yield crawl
    crawl.close()


def test_the_file_comes_first_once_and_keeps_the_pause(crawl: PoliteCrawl):
    crawl.offer(*pages(3))
    asked = crawl.work(site({url: Said() for url in pages(3)}))
    assert urls(asked) == [ROBOTS, *pages(3)]
    assert [late.start - early.end for early, late in pairwise(asked)] == [10.0] * 3


def test_fifty_pages_of_a_host_that_forbids_all_are_never_asked_for(crawl: PoliteCrawl):
    crawl.offer(*pages(50))
    assert urls(crawl.work(site({ROBOTS: DENY}))) == [ROBOTS]
    counts = crawl.frontier.counts()
    assert counts.reasons[Reason.ROBOTS] == counts.refused == 50
    assert counts.pages == 0


def test_what_is_forbidden_costs_the_others_no_time(crawl: PoliteCrawl):
    crawl.offer(*[f"http://a.test/no/{number}" for number in range(300)], "http://a.test/yes")
    asked = crawl.work(site({ROBOTS: Said(200, b"User-agent: webcrawl\nDisallow: /no/"), "http://a.test/yes": Said()}))
    assert urls(asked) == [ROBOTS, "http://a.test/yes"]
    assert asked[1].start == asked[0].end + 10.0


def test_what_the_file_says_of_uses_is_known_when_a_page_is_leased(crawl: PoliteCrawl):
    file = b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"
    said: dict[str, tuple[str, ...]] = {}

    def web(url: str, now: float) -> Said:
        lease = next(lease for lease in crawl.frontier._leases.values() if lease.url == url)
        said[url] = crawl.frontier.signals_of(lease)
        return {ROBOTS: Said(200, file), "http://b.test/robots.txt": Said(404)}.get(url, Said())

    crawl.offer("http://a.test/1", "http://b.test/1")
    crawl.work(web)
    assert said["http://a.test/1"] == ("content-signal: search=yes, ai-train=no",)
    assert said["http://b.test/1"] == ()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_missing_file_allows_everything(crawl: PoliteCrawl, status: int):
    crawl.offer(*pages(2))
    assert urls(crawl.work(site({ROBOTS: Said(status), **dict.fromkeys(pages(2), Said())}))) == [ROBOTS, *pages(2)]


@pytest.mark.parametrize("said", [Said(500), Said(503), Said(429), Said(0), Said(0, reason=Reason.TIMEOUT)])
def test_a_file_that_cannot_be_had_forbids_everything_until_it_can(crawl: PoliteCrawl, said: Said):
    tries: list[float] = []

    def web(url: str, now: float) -> Said:
        if url == ROBOTS:
            tries.append(now)
            return said if len(tries) < 3 else Said(404)
        return Said()

    crawl.offer(*pages(2))
    asked = crawl.work(web)
    assert urls(asked) == [ROBOTS] * 3 + pages(2)
    assert tries[1] - tries[0] >= 600.0
    assert tries[2] - tries[1] >= 1200.0
    assert crawl.frontier.counts().pages == 2


def test_after_thirty_days_an_unreachable_file_counts_as_none(crawl: PoliteCrawl):
    """The host answers, but never with its robots.txt (RFC 9309 §2.3.1.4)."""
    crawl.offer(*pages(1))
    asked = crawl.work(lambda url, now: Said(500) if url == ROBOTS else Said())
    assert urls(asked)[-1] == pages(1)[0]
    assert asked[-1].start - START >= 30 * DAY
    assert set(urls(asked)[:-1]) == {ROBOTS}


def test_pages_are_asked_again_about_a_file_that_is_a_day_old(crawl: PoliteCrawl):
    files = {ROBOTS: Said(200, b"User-agent: *\nDisallow: /1\n"), **dict.fromkeys(pages(3), Said())}
    crawl.offer(pages(3)[0], pages(3)[1])
    assert urls(crawl.work(site(files))) == [ROBOTS, pages(3)[0]]
    crawl.now += DAY
    files[ROBOTS] = Said(200, b"User-agent: *\nDisallow: /2\n")  # the other way round
    crawl.offer(pages(3)[2])
    assert urls(crawl.work(site(files))) == [ROBOTS, pages(3)[1]]
    assert crawl.frontier.counts().reasons[Reason.ROBOTS] == 1


def test_cache_control_is_heeded_within_bounds(crawl: PoliteCrawl):
    def web(url: str, now: float) -> Said:
        return Said(200, b"", cache_control="max-age=7200") if url == ROBOTS else Said()

    for hours, files in ((0, 1), (1.5, 0), (1, 1)):
        crawl.now += hours * 3600.0
        crawl.offer(f"http://a.test/{crawl.now}")
        assert urls(crawl.work(web)).count(ROBOTS) == files


def test_an_old_copy_is_used_while_the_file_is_unreachable(crawl: PoliteCrawl):
    files = {ROBOTS: Said(200, b"User-agent: *\nDisallow: /no\n"), "http://a.test/": Said()}
    crawl.offer("http://a.test/")
    crawl.work(site(files))
    crawl.now += DAY
    files |= {ROBOTS: Said(500), "http://a.test/yes": Said()}
    crawl.offer("http://a.test/no", "http://a.test/yes")
    assert urls(crawl.work(site(files), until=crawl.now + 60.0)) == [ROBOTS, "http://a.test/yes"]


def test_each_origin_has_its_own_file(crawl: PoliteCrawl):
    files = {ROBOTS: DENY, "https://a.test/": Said(), "http://a.test:8080/robots.txt": DENY}
    crawl.offer("http://a.test/", "https://a.test/", "http://a.test:8080/")
    asked = crawl.work(site(files))
    origins = [ROBOTS, "https://a.test/robots.txt", "http://a.test:8080/robots.txt"]
    assert sorted(urls(asked)) == sorted([*origins, "https://a.test/"])
    assert all(late.start >= early.end + 10.0 for early, late in pairwise(asked))  # one host


def test_a_dead_origin_does_not_stop_another_of_its_host(crawl: PoliteCrawl):
    def web(url: str, now: float) -> Said:
        return Said(0) if url.startswith("http:") else Said(404 if "robots" in url else 200)

    crawl.offer("http://a.test/", "https://a.test/")
    asked = crawl.work(web, until=START + 3600.0)
    assert ("https://a.test/", 200) in [(one.url, one.status) for one in asked]
    assert "http://a.test/" not in urls(asked)


# ------------------------------------------------------------------------------------------------ redirects


def redirects(hops: int, last: Said) -> Web:
    """A file that is `hops` redirects away, over other hosts."""
    files = {
        f"http://r{hop}.test/robots.txt": Said(301, location=f"http://r{hop + 1}.test/robots.txt") for hop in range(9)
    }
    files[ROBOTS] = Said(302, location="http://r1.test/robots.txt")
    files[f"http://r{hops}.test/robots.txt"] = last
    files["http://a.test/"] = Said()
    return site(files)


def test_five_redirects_are_followed_also_to_other_hosts(crawl: PoliteCrawl):
    crawl.offer("http://a.test/")
    asked = crawl.work(redirects(5, DENY))
    assert urls(asked) == [ROBOTS, *(f"http://r{hop}.test/robots.txt" for hop in range(1, 6))]
    assert crawl.frontier.counts().reasons[Reason.ROBOTS] == 1


def test_the_sixth_is_not_and_the_file_counts_as_missing(crawl: PoliteCrawl):
    crawl.offer("http://a.test/")
    assert urls(crawl.work(redirects(6, DENY)))[-1] == "http://a.test/"


def test_a_redirect_to_itself_ends(crawl: PoliteCrawl):
    crawl.offer("http://a.test/")
    asked = crawl.work(site({ROBOTS: Said(301, location=ROBOTS), "http://a.test/": Said()}))
    assert urls(asked).count("http://a.test/") == 1
    assert len(asked) <= 7


def test_pages_wait_while_the_file_is_fetched_from_a_slow_host(crawl: PoliteCrawl):
    slow = Said(200, b"User-agent: *\nDisallow: /1", seconds=100.0)
    files = {ROBOTS: Said(301, location="http://slow.test/robots.txt"), "http://slow.test/robots.txt": slow}
    crawl.offer(*pages(3))
    asked = crawl.work(site(files | dict.fromkeys(pages(3), Said())))
    assert urls(asked) == [ROBOTS, "http://slow.test/robots.txt", pages(3)[0], pages(3)[2]]


def test_a_redirect_to_where_we_may_not_go_forbids_everything(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", may_go=lambda url: "10.0.0.1" not in url)
    crawl.offer("http://a.test/")
    asked = crawl.work(site({ROBOTS: Said(301, location="http://10.0.0.1/robots.txt")}), until=START + 60.0)
    assert urls(asked) == [ROBOTS]
    crawl.close()


# ------------------------------------------------------------------------------------------------ over restarts


def test_the_file_is_remembered_by_the_next_process(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(4))
    files = {ROBOTS: Said(200, b"User-agent: *\nCrawl-delay: 30\nDisallow: /3"), **dict.fromkeys(pages(4), Said())}
    assert urls(crawl.work(site(files), visits=2)) == [ROBOTS, pages(4)[0]]
    crawl.commit()
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 1.0)
    asked = crawl.work(site(files))
    assert urls(asked) == pages(4)[1:3]  # no second robots.txt
    assert asked[0].start >= START + 30.0
    assert asked[1].start - asked[0].end == 30.0  # the Crawl-delay is remembered, too
    crawl.close()


def test_a_kill_while_the_file_is_under_way_costs_a_pause_and_nothing_else(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(2))
    crawl.commit()
    files = {ROBOTS: DENY}
    crawl.work(site({ROBOTS: DENY._replace(seconds=50.0)}), until=START + 5.0)
    crawl.commit()
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", START + 6.0)
    asked = crawl.work(site(files))
    assert urls(asked) == [ROBOTS]
    assert asked[0].start >= START + 16.0
    crawl.close()


def test_own_hosts_are_not_asked_for_a_file(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", own=["mine.test"])
    mine = pages(4, "http://mine.test")
    crawl.offer(*mine, "http://a.test/")
    asked = crawl.work(site(dict.fromkeys([*mine, "http://a.test/"], Said())))
    assert sorted(urls(asked)) == sorted([*mine, ROBOTS, "http://a.test/"])
    assert [one.start for one in asked if "mine" in one.url] == [START] * 4
    crawl.close()


def test_many_origins_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("webcrawl.backends.embedded.robotsfiles.KEPT_ORIGINS", 20)
    crawl = PoliteCrawl(tmp_path / "run")
    hosts = [f"http://h{number}.test" for number in range(100)]
    crawl.offer(*[f"{host}/{number}" for host in hosts for number in range(3)])

    def web(url: str, now: float) -> Said:
        return Said(200, b"User-agent: *\nDisallow: /2") if url.endswith("robots.txt") else Said()

    asked = urls(crawl.work(web))
    assert sum(url.endswith("robots.txt") for url in asked) == 100  # read back from the store, not asked for again
    assert sorted(url for url in asked if "robots" not in url) == sorted(
        f"{host}/{number}" for host in hosts for number in range(2)
    )
    crawl.close()


def test_a_refresh_that_was_under_way_at_a_kill_knows_what_the_old_file_said(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/", "http://a.test/secret")
    files = {ROBOTS: Said(200, b"User-agent: *\nDisallow: /secret"), "http://a.test/": Said()}
    crawl.work(site(files))
    crawl.now += DAY
    crawl.offer("http://a.test/new")
    crawl.commit()
    crawl.work(site({ROBOTS: Said(200, seconds=100.0)}), until=crawl.now + 50.0)
    crawl.commit()
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 1.0)
    every = ["http://a.test/new", "http://a.test/secret"]
    asked = crawl.work(site({ROBOTS: Said(200, b""), **dict.fromkeys(every, Said())}))
    assert sorted(urls(asked)) == sorted([ROBOTS, *every])
    crawl.close()


def test_the_longest_crawl_delay_of_all_origins_counts_also_after_a_restart(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer("http://a.test/1", "https://a.test/1", "http://a.test/2")
    files = {ROBOTS: Said(200, b"User-agent: *\nCrawl-delay: 100"), "http://a.test/1": Said()}
    crawl.work(site(files), visits=2)
    crawl.close()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now)
    asked = crawl.work(lambda url, now: Said(404) if url.endswith("robots.txt") else Said())
    assert {late.start - early.end for early, late in pairwise(asked)} == {100.0}
    crawl.close()
