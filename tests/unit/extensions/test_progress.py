"""What the panel and the log line say, when there is an end in sight, and that nothing is counted too often."""

from __future__ import annotations

import asyncio
import doctest
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from webcrawl.core.config import Limits
from webcrawl.core.frontier import Counts
from webcrawl.core.reasons import Reason
from webcrawl.extensions import progress
from webcrawl.extensions.progress import Pace, Progress, Sample, Snapshot, eta_seconds, line, rows
from webcrawl.scheduler import FrontierScheduler

REASONS = {Reason.OUT_OF_SCOPE: 5, Reason.TOO_DEEP: 2, Reason.NOT_FOUND: 9}
LINKS = {Reason.OUT_OF_SCOPE: 5}
COUNTS = Counts(
    5000, ready=1200, leased=64, resting=3, stored=3722, refused=2, gone=9, hosts=20, reasons=REASONS, links=LINKS
)
SHOT = Snapshot(COUNTS, 50_000_000, 12.34, 10.0, 16, 4, 83.0, None)


def test_the_panel() -> None:
    assert rows(SHOT) == [
        ("pages", "3,722 stored, 12.3 pages/s now, 10.0 pages/s on average, 50.0 MB"),
        ("queue", "1,200 queued, 64 under way, 3 resting"),
        ("hosts", "20 known, 16 active, 4 waiting"),
        ("errors", "12, and 7 refused"),
        ("time", "1 min 23 s"),
    ]


def test_the_log_line() -> None:
    assert line(SHOT) == (
        "pages=3722 pages_per_second=12.3 average=10.0 queued=1200 under_way=64 resting=3 hosts=20 hosts_active=16 "
        "hosts_waiting=4 errors=12 refused=7 bytes=50000000 elapsed_seconds=83"
    )


def pace(*samples: Sample) -> Pace:
    found = Pace()
    for sample in samples:
        found.note(sample)
    return found


def test_the_pace_is_that_of_the_last_seconds() -> None:
    samples = [Sample(float(now), 10 * now, 100 - now, 1000 * now) for now in range(30)]
    still = [Sample(float(now), 290, 71, 29_000) for now in range(30, 60)]
    assert pace(*samples).per_second("stored") == 10.0
    assert pace(*samples).per_second("owed") == -1.0
    assert pace(*samples, *still).per_second("bytes") == 0.0
    assert pace(samples[0], samples[29]).per_second("stored") == 10.0
    assert pace().per_second("stored") == pace(samples[0]).per_second("stored") == 0.0


GROWING = pace(Sample(0.0, 0, 10, 0), Sample(10.0, 100, 500, 10_000))
SHRINKING = pace(Sample(0.0, 0, 600, 0), Sample(10.0, 100, 500, 10_000))
STANDING = pace(Sample(0.0, 100, 500, 0))
NOW = Sample(10.0, 100, 500, 10_000)


@pytest.mark.parametrize(
    ("limits", "speed", "left"),
    [
        (Limits(), GROWING, None),
        (Limits(), STANDING, None),
        (Limits(), SHRINKING, 50.0),
        (Limits(pages=200), GROWING, 10.0),
        (Limits(pages=200), STANDING, None),
        (Limits(bytes=30_000), GROWING, 20.0),
        (Limits(seconds=60.0), STANDING, 50.0),
        (Limits(seconds=5.0), STANDING, 0.0),
        (Limits(seconds=60.0, pages=10_000), SHRINKING, 50.0),
    ],
)
def test_an_end_is_foretold_only_where_there_is_one(limits: Limits, speed: Pace, left: float | None) -> None:
    assert eta_seconds(limits, NOW, speed, elapsed_seconds=10.0) == left


class Loop:
    """Remembers what is to be called."""

    def call_later(self, seconds: float, call: Any) -> SimpleNamespace:
        self.seconds, self.call = seconds, call
        return SimpleNamespace(cancel=lambda: None)


class Watched:
    """A crawl that stands still, and a clock to be set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mode: str = "auto", hosts: int = 20) -> None:
        self.now, self.walks, self.loop = 0.0, 0, Loop()
        counts = Counts(stored=7, hosts=hosts)
        frontier = SimpleNamespace(counts=lambda: counts, body_bytes=70, hosts_active=self.walk)
        scheduler: Any = FrontierScheduler.__new__(FrontierScheduler)
        scheduler.choices = SimpleNamespace(run=SimpleNamespace(progress=mode), limits=Limits())
        scheduler.crawl = SimpleNamespace(frontier=frontier)
        scheduler.clock = SimpleNamespace(now=lambda: self.now)
        scheduler.started_at, scheduler.pages_at_start = 0.0, 7
        signals = SimpleNamespace(connect=lambda *arguments: None)
        monkeypatch.setattr(asyncio, "get_running_loop", lambda: self.loop)
        crawler: Any = SimpleNamespace(engine=SimpleNamespace(scheduler=scheduler), signals=signals)
        self.progress = Progress(crawler)
        self.progress.engine_started()

    def walk(self) -> tuple[int, int]:
        self.walks += 1
        return 1, 2

    def wait(self) -> None:
        self.now += self.loop.seconds
        self.loop.call()


def test_one_line_a_minute(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = Watched(monkeypatch)
    assert caplog.messages == []
    for _ in range(2):
        watched.wait()
    assert watched.now == 120.0
    assert [message.split()[:2] for message in caplog.messages] == [["Crawling", "pages=7"]] * 2
    watched.progress.spider_closed()


def test_off_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not hasattr(Watched(monkeypatch, mode="off").loop, "call")


@pytest.mark.parametrize(("hosts", "walks"), [(100, 8), (10_000, 2), (100_000, 1)])
def test_the_more_hosts_the_less_often_they_are_counted(
    monkeypatch: pytest.MonkeyPatch, hosts: int, walks: int
) -> None:
    watched = Watched(monkeypatch, hosts=hosts)
    watched.loop.seconds = progress.PANEL_SECONDS
    for _ in range(7):
        watched.now += progress.PANEL_SECONDS
        watched.progress._snapshot(watched.now)
    assert watched.walks == walks


def test_examples_run() -> None:
    assert doctest.testmod(progress).failed == 0
