"""A web in time, with clocks that the test holds."""

from __future__ import annotations

from webcrawl.simulator.answers import CachedWeb
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.stage import Stage

HOST, OTHER = "harbour-1.example", "garden-2.example"


class Play:
    """A stage whose clock is an attribute."""

    def __init__(self, **rules):
        web = GeneratedWeb(pages=60, hosts=5, page_bytes=2000, **rules)
        self.now = 1000.0
        self.stage = Stage(web, CachedWeb(web), clock=lambda: self.now, wall_clock=lambda: self.now)

    def get(self, target="/", host=HOST):
        answer = self.stage.answer(host, target)
        assert answer is not None
        return answer

    def statuses(self, count, target="/", host=HOST):
        return [self.get(target, host).status for _ in range(count)]


def test_a_host_is_overloaded_for_a_window_of_its_own_requests():
    play = Play(faults=(f"busy:503,retry=30,window=2-3@{HOST}",))
    assert play.statuses(5) == [200, 503, 503, 200, 200]
    assert play.statuses(5, host=OTHER) == [200] * 5


def test_robots_files_are_not_busy_unless_it_is_asked_for():
    assert Play(faults=("busy",)).statuses(3, "/robots.txt") == [200] * 3
    assert Play(faults=("busy,on=all",)).statuses(3, "/robots.txt") == [503] * 3
    play = Play(faults=("busy,window=2-2",))
    assert [play.get(target).status for target in ("/robots.txt", "/", "/robots.txt", "/")] == [200, 200, 200, 503]


def test_a_host_that_is_down_at_first_answers_later():
    play = Play(faults=("reset,first=2",))
    assert [play.get(target).ending for target in ("/robots.txt", "/", "/robots.txt", "/")] == [
        "reset",
        "reset",
        "",
        "",
    ]


def test_robots_files_change_with_fetches_and_are_not_cached():
    play = Play(robots=("allow-all,fetches=2,then=disallow-all",))
    bodies = [play.get("/robots.txt").body.split()[-2] for _ in range(4)]
    assert bodies == [b"Allow:", b"Allow:", b"Disallow:", b"Disallow:"]


def test_robots_files_change_with_time_since_their_first_fetch():
    play = Play(robots=("status:503,retry=date+60,seconds=10",))
    statuses = []
    for play.now in (2000.0, 2009.9, 2010.0):
        statuses.append(play.get("/robots.txt").status)
    assert statuses == [503, 503, 200]
    first = Play(robots=("status:503,retry=date+60,seconds=10",)).get("/robots.txt")
    assert first.retry_after_text == "Thu, 01 Jan 1970 00:17:40 GMT" and first.retry_after_seconds == 60


def test_latencies_add_up_and_come_before_failures():
    play = Play(faults=("latency:0.5", "latency:0.25", "busy,first=1"), robots=("private,latency=1",))
    assert [play.get().delay_seconds for _ in range(2)] == [0.75, 0.75]
    assert play.get("/robots.txt").delay_seconds == 1.75


def test_tunnels_fail_and_plain_http_does_not_know_tls():
    play = Play(faults=("tls,first=1",))
    assert play.get().status == 200
    play = Play(faults=("tls,first=1", "latency:1"))
    failed = play.stage.tunnel_answer(HOST)
    assert failed is not None and failed.ending == "tls"
    assert play.stage.tunnel_answer(HOST) is None
    assert play.stage.tunnel_answer("no.example") is None


def test_hosts_that_do_not_exist_are_not_counted():
    assert Play(faults=("reset",)).stage.answer("no.example", "/") is None
