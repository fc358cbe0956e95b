"""The end of a crawl in words: what was fetched, what was not and why, where the results are, how to go on.

`Facts` is everything there is to say, `paragraphs` says it for people and `as_json` for programs; both only compute.
The extension gathers the facts when everything is written, tells them (on a terminal as a table, else as one log
message) and leaves them in DIR/summary.json. docs/operating.md describes the keys.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text
from scrapy import signals

from webcrawl.core.frontier import Counts
from webcrawl.core.lifecycle import State
from webcrawl.core.reasons import Reason
from webcrawl.extensions.progress import (
    bytes_in_words,
    links_not_taken,
    log_goes_to,
    pace_in_words,
    seconds_in_words,
    terminal,
)
from webcrawl.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from webcrawl.core.pagetable import PageTable

logger = logging.getLogger(__name__)

FILE_NAME = "summary.json"
PAGES_AT_ONCE = 1_000_000

# How a crawl can end: in words, by the reason Scrapy closes it with.
ENDINGS = {
    "finished": "The crawl is finished: every page that it knows and may fetch was asked for.",
    "waiting": "The crawl has paused: nothing falls due for a while (WEBCRAWL_END_WAIT_SECONDS).",
    "page_limit": "The crawl has reached its number of pages (WEBCRAWL_LIMIT_PAGES).",
    "time_limit": "The crawl has reached its time (WEBCRAWL_LIMIT_SECONDS).",
    "byte_limit": "The crawl has reached its number of bytes (WEBCRAWL_LIMIT_BYTES).",
    "shutdown": "The crawl was stopped from outside (Ctrl-C or a signal).",
    "cancelled": "The spider ended the crawl.",
    "memusage_exceeded": "The crawl was stopped because it took too much memory (MEMUSAGE_LIMIT_MB).",
    "disk_low": "The crawl was stopped because the disk is nearly full (WEBCRAWL_MIN_FREE_DISK_BYTES).",
    "store_failed": "The crawl was stopped because its results could not be written. The figures count pages that were "
    "fetched but not written; these will be fetched again.",
    "start_error": "The spider failed in its start method, so some of its requests were never made.",
}
# What has to be done before the same command goes on; where nothing is said, nothing has to be.
FIRST = {
    "page_limit": "With a higher WEBCRAWL_LIMIT_PAGES the same command goes on where this one ended",
    "byte_limit": "With a higher WEBCRAWL_LIMIT_BYTES the same command goes on where this one ended",
    "disk_low": "Free some space; then the same command goes on where this one ended",
    "store_failed": "Look at the disk; then the same command goes on where this one ended",
}
SEED_REMEDY = "Allow the hosts of the seeds, or choose others; then use the same command"
COMMAND_VARIABLE = "WEBCRAWL_COMMAND"  # who starts crawls for others says here what those others typed
FAILURES = frozenset({"store_failed", "disk_low", "start_error", "feed_failed"})
REFUSED = "Nothing was fetched: every seed was refused."

LOST = ": they cannot be written down and end with this process"

# Pages that were not fetched, by state.
STATES = {State.REFUSED: "pages refused", State.GONE: "pages gone", State.RESTING: "pages resting, to be tried again"}


@dataclass(frozen=True, slots=True)
class Share:
    """What was fetched in a session, or in all sessions of a run together."""

    pages: int
    bytes: int
    seconds: float

    @property
    def pages_per_second(self) -> float:
        """The average."""
        return self.pages / self.seconds if self.seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Feed:
    """One output, and how many bytes of it are settled; None: not known, e.g. in a remote place."""

    uri: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything there is to say about the end of a session."""

    reason: str
    counts: Counts
    session: Share
    run: Share
    directory: str
    command: str  # that was given, and that resumes the run
    sessions: int = 1
    links_not_taken: dict[Reason, int] = field(default_factory=dict)
    pages: dict[State, dict[Reason, int]] = field(default_factory=dict)  # why pages are in this state
    requests_lost: int = 0  # could not be written down, and were not made
    next_at: float | None = None  # when the next page may be fetched
    feeds: tuple[Feed, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Whether there was nothing to crawl, because nothing was let in."""
        return not self.counts.known and bool(self.links_not_taken)

    @property
    def has_failed(self) -> bool:
        """Whether somebody has to do something before the crawl can go on."""
        return self.reason in FAILURES or self.is_refused

    @property
    def owed(self) -> int:
        """Pages that are known, may be fetched, and were not."""
        return self.counts.ready + self.counts.leased

    @property
    def is_complete(self) -> bool:
        """Whether the same command would find nothing to do."""
        return not (self.owed or self.counts.resting or self.has_failed)

    @property
    def ending(self) -> str:
        """How the crawl ended, in words."""
        return REFUSED if self.is_refused else ENDINGS.get(self.reason, f"The crawl was closed: {self.reason}.")


# ---------------------------------------------------------------------------------------------- for people


Row = tuple[str, str]
Paragraph = tuple[str, list[Row]]


def paragraphs(facts: Facts) -> list[Paragraph]:
    """The summary as headings with rows of two columns; the first heading is the ending and has no rows."""
    return [
        (facts.ending, []),
        ("Fetched", _fetched(facts)),
        ("Not fetched", _not_fetched(facts)),
        ("Results", _results(facts)),
        ("Next", [("", line) for line in _next(facts)]),
    ]


def plain(facts: Facts) -> str:
    """The summary as text for a log."""
    lines = []
    for heading, rows in paragraphs(facts):
        lines.append(heading)
        width = max((len(name) for name, _ in rows), default=0)
        lines += [f"  {name:{width}}  {text}".rstrip() if name else f"  {text}" for name, text in rows]
    return "\n".join(lines)


def show(facts: Facts, console: Console) -> None:
    """The summary on a terminal: a table, then what to do next on lines that can be copied whole."""
    (ending, _), *middle, (heading, lines) = paragraphs(facts)
    grid = Table.grid(padding=(0, 2))
    for name, rows in middle:
        grid.add_row(Text(name, style="bold"), "")
        for label, text in rows:
            grid.add_row(Text(f"  {label}"), Text(text))
    console.print(Text(ending, style="bold red" if facts.has_failed else "bold green"))
    console.print(grid)
    console.print(Text(heading, style="bold"))
    for _, line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _fetched(facts: Facts) -> list[Row]:
    session = f"{_share(facts.session)}, {pace_in_words(facts.session.pages_per_second)}"
    run = f"{_share(facts.run)}, {_plural(facts.counts.hosts, 'host')}, {_plural(facts.sessions, 'session')}"
    rows = [("this session", session), ("the whole run", run)]
    return rows + [
        (f"of it, {reason.key}", f"{count:,}: {reason.sentence}")
        for reason, count in facts.pages.get(State.STORED, {}).items()
    ]


def _share(share: Share) -> str:
    return f"{_plural(share.pages, 'page')}, {bytes_in_words(share.bytes)}, {seconds_in_words(share.seconds)}"


def _not_fetched(facts: Facts) -> list[Row]:
    rows = _counted("links not taken", sum(facts.links_not_taken.values()), facts.links_not_taken)
    for state, name in STATES.items():
        rows += _counted(name, getattr(facts.counts, state.name.lower()), facts.pages.get(state, {}))
    rows += _counted("pages still to fetch", facts.owed)
    rows += _counted("requests lost", facts.requests_lost, text=LOST)
    return rows or [("", "nothing that was found")]


def _counted(name: str, count: int, reasons: Mapping[Reason, int] = {}, text: str = "") -> list[Row]:
    """A row and those of its reasons, the most frequent first; none for nothing."""
    ordered = sorted(reasons.items(), key=lambda found: (-found[1], found[0]))
    details = [(f"  {reason.key}", f"{number:,}: {reason.sentence}") for reason, number in ordered]
    return [(name, f"{count:,}{text}"), *details] if count else []


def _results(facts: Facts) -> list[Row]:
    rows = [("feed", f"{feed.uri}{_size(feed)}") for feed in facts.feeds]
    return [*rows, ("run directory", facts.directory)]


def _size(feed: Feed) -> str:
    return "" if feed.bytes is None else f" ({bytes_in_words(feed.bytes)})"


def _next(facts: Facts) -> list[str]:
    if facts.is_complete:
        return ["Nothing is left to do; the same command again changes nothing. More seeds: -a add=true."]
    lines = []
    if facts.next_at is not None and not facts.owed and facts.counts.resting:
        lines.append(f"{_plural(facts.counts.resting, 'page')} must wait, the first until {_instant(facts.next_at)}.")
    first = FIRST.get(facts.reason, "The same command goes on where this one ended")
    return [*lines, f"{SEED_REMEDY if facts.is_refused else first}:", facts.command]


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _instant(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# -------------------------------------------------------------------------------------------- for programs


def as_json(facts: Facts) -> dict[str, Any]:
    """The summary for programs; numbers are not rounded, instants are epoch seconds."""
    counts = asdict(facts.counts)
    hosts = counts.pop("hosts")
    del counts["reasons"], counts["links"]
    return {
        "reason": facts.reason,
        "ending": facts.ending,
        "failed": facts.has_failed,
        "complete": facts.is_complete,
        "session": {**asdict(facts.session), "pages_per_second": facts.session.pages_per_second},
        "run": {**asdict(facts.run), "hosts": hosts, "sessions": facts.sessions, "directory": facts.directory},
        "pages": counts,
        "links_not_taken": _keys(facts.links_not_taken),
        "pages_by_reason": {state.name.lower(): _keys(reasons) for state, reasons in sorted(facts.pages.items())},
        "requests_lost": facts.requests_lost,
        "next_at": facts.next_at,
        "feeds": [asdict(feed) for feed in facts.feeds],
        "resume": None if facts.is_complete else facts.command,
    }


def _keys(reasons: dict[Reason, int]) -> dict[str, int]:
    return {reason.key: count for reason, count in reasons.items()}


# ---------------------------------------------------------------------------------------------- gathering


def command_line(arguments: list[str]) -> str:
    """What was typed, quoted for a shell; `arguments` is `sys.orig_argv`, because Scrapy takes words off `sys.argv`.

    >>> command_line(["/bin/python", "/bin/scrapy", "crawl", "web", "-a", "seeds=http://me:pw@a.example/ b.txt"])
    "scrapy crawl web -a 'seeds=http://***@a.example/ b.txt'"
    """
    words = arguments[1:] if len(arguments) > 1 and Path(arguments[1]).name == "scrapy" else arguments
    program = Path(words[0]).name if words else "scrapy"
    return shlex.join([program, *(masked(word) for word in words[1:])])


def masked(text: str) -> str:
    """Without the names and passwords in its URLs."""
    return re.sub(r"(\w+://)[^/?#@\s]+@", r"\1***@", text)


def reasons_by_state(pages: PageTable) -> dict[State, dict[Reason, int]]:
    """How many pages of each state have which reason: 3 ms a million pages, a million at a time."""
    count = pages.pages.count + 1
    totals = np.zeros(1 << 16, np.int64)
    for start in range(0, count, PAGES_AT_ONCE):
        part = slice(start, min(start + PAGES_AT_ONCE, count))
        both = pages.pages.state[part].astype(np.uint16) << 8 | pages.pages.reason[part]
        totals += np.bincount(both, minlength=1 << 16)
    found: dict[State, dict[Reason, int]] = {}
    for number in np.flatnonzero(totals).tolist():
        state, reason = number >> 8, number & 255
        if state and reason:
            found.setdefault(State(state), {})[Reason(reason)] = int(totals[number])
    return found


class Summary:
    """Extension: tells the end of a crawl; see the module."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Listen for the start; if there is none, there is no end to tell."""
        summary = cls(crawler)
        crawler.signals.connect(summary.engine_started, signals.engine_started)
        return summary

    def __init__(self, crawler: Crawler) -> None:
        self.facts: Facts | None = None
        self._crawler = crawler
        self._reason = ""

    def engine_started(self) -> None:
        """Remember what can no longer be asked when the store is closed; the last summary is no longer true."""
        scheduler = self._crawler.engine.scheduler
        if not isinstance(scheduler, FrontierScheduler):
            return
        self._scheduler = scheduler
        self._run = scheduler.crawl.run
        (self._run.directory / FILE_NAME).unlink(missing_ok=True)
        self._bytes_at_start = scheduler.crawl.frontier.body_bytes
        earlier = "SELECT count(*), ifnull(sum(ended_at - started_at), 0) FROM starts"
        ((self._sessions, self._earlier_seconds),) = self._run.store.rows(earlier)
        self._uris = dict(self._run.store.rows("SELECT path, uri FROM feeds"))
        self._crawler.signals.connect(self.spider_closed, signals.spider_closed)
        self._crawler.signals.connect(self.engine_stopped, signals.engine_stopped)

    def spider_closed(self, reason: str) -> None:
        """Remember why; other extensions are still writing."""
        self._reason = reason

    def engine_stopped(self) -> None:
        """Gather, tell and leave the facts."""
        self.facts = self._gather()
        self._tell(self.facts)
        self._leave(self.facts)

    def _gather(self) -> Facts:
        scheduler, frontier = self._scheduler, self._scheduler.crawl.frontier
        now = scheduler.clock.now()
        counts = frontier.counts()
        next_at = frontier.next_instant(now)
        seconds = now - scheduler.started_at
        pages = max(0, counts.pages - scheduler.pages_at_start)
        return Facts(
            reason=self._reason if self._run.writer.failure is None else "store_failed",  # perhaps only while closing
            counts=counts,
            session=Share(pages, frontier.body_bytes - self._bytes_at_start, seconds),
            run=Share(counts.pages, frontier.body_bytes, self._earlier_seconds + seconds),
            directory=str(self._run.directory),
            command=os.environ.get(COMMAND_VARIABLE) or command_line(sys.orig_argv),
            sessions=self._sessions,
            links_not_taken=links_not_taken(counts),
            pages=reasons_by_state(frontier.table),
            requests_lost=scheduler.requests_in_memory,
            next_at=next_at if next_at < math.inf else None,
            feeds=tuple(self._feeds()),
        )

    def _feeds(self) -> list[Feed]:
        """The files of the run; items that only wait in it to become a feed are named by that feed."""
        found = []
        for feed in self._run.writer.feeds.values():
            uri = self._uris.get(str(feed.path), str(feed.path))
            is_spool = feed.path.parent == self._run.directory / "items"
            found.append(Feed(masked(uri), None) if is_spool else Feed(str(feed.path), feed.settled_bytes))
        return found

    def _tell(self, facts: Facts) -> None:
        stream = terminal(self._scheduler.choices.run.progress)
        if stream is not None:
            show(facts, Console(file=stream))
        if stream is None or not log_goes_to(stream):
            logger.info("%s", plain(facts))

    def _leave(self, facts: Facts) -> None:
        path = self._run.directory / FILE_NAME
        draft = path.with_suffix(".new")
        try:
            draft.write_text(json.dumps(as_json(facts), indent=2) + "\n", encoding="utf-8")
            os.replace(draft, path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            logger.warning("%s could not be written: %s. Nothing else depends on it.", path, error.strerror)
