"""How far the crawl is: a live panel on a terminal, one log line a minute elsewhere (WEBCRAWL_PROGRESS).

Nothing is counted here and nothing happens per page: a timer reads the frontier's counters, four times a second for the
panel. Log lines appear above the panel, because the log's handlers write through the panel's console while it is shown.
Where standard error is no terminal there is no panel and not one escape sequence.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import deque
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from scrapy import signals

from webcrawl.core.frontier import Counts
from webcrawl.core.reasons import Reason
from webcrawl.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from webcrawl.core.config import Limits

logger = logging.getLogger(__name__)

PANEL_SECONDS = 0.25
LINE_SECONDS = 60.0
WINDOW_SECONDS = 10.0  # "now" is the average of this time: hosts are asked every few seconds only
HOSTS_A_SECOND = 10_000  # active hosts are counted by walking them all: the more there are, the more seldom


# ------------------------------------------------------------------------------------------------ what is shown


class Sample(NamedTuple):
    """The counters that change all the time."""

    now: float
    stored: int
    owed: int
    bytes: int


class Pace:
    """How fast the counters have changed in the last seconds."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque()

    def note(self, sample: Sample) -> None:
        """Take a sample in and forget those that are too old; two are always kept."""
        self._samples.append(sample)
        while len(self._samples) > 2 and self._samples[1].now <= sample.now - WINDOW_SECONDS:
            self._samples.popleft()

    def per_second(self, counter: str) -> float:
        """The change of one counter; 0 while there is only one sample."""
        if not self._samples:
            return 0.0
        first, last = self._samples[0], self._samples[-1]
        seconds = last.now - first.now
        return (getattr(last, counter) - getattr(first, counter)) / seconds if seconds > 0 else 0.0


def eta_seconds(limits: Limits, sample: Sample, pace: Pace, elapsed_seconds: float) -> float | None:
    """When the crawl ends if it goes on like this; None where nobody can say, e.g. while the queue still grows."""
    ends = []
    pages, body_bytes = pace.per_second("stored"), pace.per_second("bytes")
    if limits.seconds:
        ends.append(limits.seconds - elapsed_seconds)
    if limits.pages and pages > 0:
        ends.append((limits.pages - sample.stored) / pages)
    if limits.bytes and body_bytes > 0:
        ends.append((limits.bytes - sample.bytes) / body_bytes)
    if pages > 0 and pace.per_second("owed") < 0:
        ends.append(sample.owed / pages)
    return max(0.0, min(ends)) if ends else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The crawl at one moment; pages and bytes are those of the whole run, pace and time those of this session."""

    counts: Counts
    bytes: int
    pages_per_second: float
    average: float
    hosts_active: int
    hosts_waiting: int
    elapsed_seconds: float
    eta_seconds: float | None

    @property
    def errors(self) -> int:
        """Pages that failed: they rest and are tried again, or were given up."""
        return self.counts.resting + self.counts.gone

    @property
    def refused(self) -> int:
        """Pages that were refused, and links that were not taken."""
        return self.counts.refused + sum(links_not_taken(self.counts).values())


def links_not_taken(counts: Counts) -> dict[Reason, int]:
    """Links that got no row of their own, by reason."""
    return counts.links


def rows(shot: Snapshot) -> list[tuple[str, str]]:
    """The lines of the panel."""
    counts = shot.counts
    now, average = pace_in_words(shot.pages_per_second), pace_in_words(shot.average)
    left = "" if shot.eta_seconds is None else f", about {seconds_in_words(shot.eta_seconds)} left"
    return [
        ("pages", f"{counts.pages:,} stored, {now} now, {average} on average, {bytes_in_words(shot.bytes)}"),
        ("queue", f"{counts.ready:,} queued, {counts.leased:,} under way, {counts.resting:,} resting"),
        ("hosts", f"{counts.hosts:,} known, {shot.hosts_active:,} active, {shot.hosts_waiting:,} waiting"),
        ("errors", f"{shot.errors:,}, and {shot.refused:,} refused"),
        ("time", f"{seconds_in_words(shot.elapsed_seconds)}{left}"),
    ]


def line(shot: Snapshot) -> str:
    """The facts of the log line."""
    counts = shot.counts
    facts: dict[str, object] = {
        "pages": counts.pages,
        "pages_per_second": f"{shot.pages_per_second:.1f}",
        "average": f"{shot.average:.1f}",
        "queued": counts.ready,
        "under_way": counts.leased,
        "resting": counts.resting,
        "hosts": counts.hosts,
        "hosts_active": shot.hosts_active,
        "hosts_waiting": shot.hosts_waiting,
        "errors": shot.errors,
        "refused": shot.refused,
        "bytes": shot.bytes,
        "elapsed_seconds": f"{shot.elapsed_seconds:.0f}",
    }
    if shot.eta_seconds is not None:
        facts["eta_seconds"] = f"{shot.eta_seconds:.0f}"
    return " ".join(f"{name}={value}" for name, value in facts.items())


def bytes_in_words(count: float) -> str:
    """Short enough for a column.

    >>> bytes_in_words(999), bytes_in_words(1_234_567)
    ('999 B', '1.2 MB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:,.1f} TB"


def seconds_in_words(seconds: float) -> str:
    """Short enough for a column.

    >>> seconds_in_words(4.25), seconds_in_words(83), seconds_in_words(90_000)
    ('4.2 s', '1 min 23 s', '1 d 1 h')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def pace_in_words(pages_per_second: float) -> str:
    """A polite crawl of one host makes four pages a minute, so a decimal is needed."""
    return f"{pages_per_second:,.1f} pages/s"


# ---------------------------------------------------------------------------------------------- the terminal


def terminal(mode: str) -> IO[str] | None:
    """Standard error, if somebody looks at it and a panel is wanted there."""
    stream = sys.stderr
    wanted = mode in ("auto", "panel") and stream is not None and stream.isatty()
    return stream if wanted and not Console(file=stream).is_dumb_terminal else None


def _log_handlers(stream: IO[str]) -> list[logging.StreamHandler[Any]]:
    handlers = [one for one in logging.root.handlers if isinstance(one, logging.StreamHandler)]
    return [handler for handler in handlers if handler.stream is stream]


def log_goes_to(stream: IO[str]) -> bool:
    """Whether the log is shown on this terminal."""
    return bool(_log_handlers(stream))


class AbovePanel:
    """What a log handler writes to while the panel is shown."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, text: str) -> None:
        """Whole records, as logging writes them; colours are kept, other escape sequences are not."""
        self._console.print(Text.from_ansi(text.removesuffix("\n")), soft_wrap=True)

    def flush(self) -> None:
        """The console does not hold anything back."""


class LivePanel:
    """The panel on a terminal, and the log above it."""

    def __init__(self, stream: IO[str], title: str) -> None:
        self._stream = stream
        self._title = title
        self._console = Console(file=stream)
        self._live = Live(console=self._console, auto_refresh=False, transient=True, redirect_stdout=False)
        self._handlers = _log_handlers(stream)

    def start(self) -> None:
        """Take the lower edge of the terminal."""
        self._live.start()
        self._console.show_cursor(True)  # a process that is killed cannot bring it back
        for handler in self._handlers:
            handler.setStream(AbovePanel(self._console))

    def show(self, shot: Snapshot) -> None:
        """Draw it anew."""
        grid = Table.grid(padding=(0, 2))
        for name, text in rows(shot):
            grid.add_row(Text(name, style="bold"), Text(text))
        self._live.update(Panel(grid, title=Text(self._title), title_align="left", expand=False), refresh=True)

    def stop(self) -> None:
        """Leave the terminal as it was."""
        for handler in self._handlers:
            handler.setStream(self._stream)
        self._live.stop()


# --------------------------------------------------------------------------------------------- the extension


class Progress:
    """Extension: shows how far the crawl is; see the module."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Begin when the engine does: by then the run is open, or there is nothing to show."""
        progress = cls(crawler)
        crawler.signals.connect(progress.engine_started, signals.engine_started)
        return progress

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._pace = Pace()
        self._panel: LivePanel | None = None
        self._hosts = (0, 0)
        self._hosts_after = 0.0

    def engine_started(self) -> None:
        """Decide what is shown where, and begin."""
        scheduler = self._crawler.engine.scheduler
        if not isinstance(scheduler, FrontierScheduler) or scheduler.choices.run.progress == "off":
            return
        self._scheduler, self._frontier = scheduler, scheduler.crawl.frontier
        self._loop = asyncio.get_running_loop()
        stream = terminal(scheduler.choices.run.progress)
        if stream is not None:
            self._panel = LivePanel(stream, f"webcrawl, {scheduler.crawl.run.directory}")
        self._writes_lines = stream is None or not log_goes_to(stream)
        self._line_at = scheduler.started_at + LINE_SECONDS
        self._crawler.signals.connect(self.spider_closed, signals.spider_closed)
        if self._panel is not None:
            self._panel.start()
        self._tick()

    def spider_closed(self) -> None:
        """Make room for the summary."""
        self._timer.cancel()
        if self._panel is not None:
            self._panel.stop()

    def _tick(self) -> None:
        now = self._scheduler.clock.now()
        shot = self._snapshot(now)
        if self._panel is not None:
            self._panel.show(shot)
        if self._writes_lines and now >= self._line_at:
            self._line_at = now + LINE_SECONDS
            logger.info("Crawling %s", line(shot))
        pause = PANEL_SECONDS if self._panel is not None else self._line_at - now
        self._timer = self._loop.call_later(pause, self._tick)

    def _snapshot(self, now: float) -> Snapshot:
        scheduler, frontier = self._scheduler, self._frontier
        counts = frontier.counts()
        elapsed = now - scheduler.started_at
        sample = Sample(now, counts.pages, counts.ready + counts.leased, frontier.body_bytes)
        self._pace.note(sample)
        active, waiting = self._count_hosts(now, counts.hosts)
        return Snapshot(
            counts,
            frontier.body_bytes,
            max(0.0, self._pace.per_second("stored")),
            max(0, counts.pages - scheduler.pages_at_start) / elapsed if elapsed > 0 else 0.0,
            active,
            waiting,
            elapsed,
            eta_seconds(scheduler.choices.limits, sample, self._pace, elapsed),
        )

    def _count_hosts(self, now: float, hosts: int) -> tuple[int, int]:
        if now >= self._hosts_after:
            self._hosts = self._frontier.hosts_active()
            self._hosts_after = now + hosts / HOSTS_A_SECOND
        return self._hosts
