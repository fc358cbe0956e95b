"""One run directory, opened: lock, store, journal, writer and frontier, in the order that makes recovery safe.

frontier.sqlite   the store (see `store`)
claims.bin        the claim journal; present only while a crawl runs or after an unclean end (see `journal`)
lock              held by the process that works on the run
control/          commands for the crawl, and its answers (see `controls`)
"""

from __future__ import annotations

import fcntl
import os
import random
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from webcrawl.backends.embedded.controls import Wishes
from webcrawl.backends.embedded.frontier import EmbeddedFrontier
from webcrawl.backends.embedded.hosts import Hosts
from webcrawl.backends.embedded.journal import ClaimJournal
from webcrawl.backends.embedded.recovery import Recovered, recover
from webcrawl.backends.embedded.robotsfiles import RobotsPolicy
from webcrawl.backends.embedded.rules import Rules
from webcrawl.backends.embedded.store import Store, check_mode, explain
from webcrawl.backends.embedded.writer import FeedFile, Writer
from webcrawl.core.backoff import BackoffPolicy
from webcrawl.core.errors import RunError, StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.names import Addresses, NoAddresses
from webcrawl.core.politeness import HostPolicy, Hours
from webcrawl.core.strategies import Scorer
from webcrawl.core.turns import Sharing
from webcrawl.core.urls import CANONICAL_VERSION

SWITCH_SECONDS = 0.0005  # how long a thread of ours may keep the event loop waiting for the interpreter


@dataclass(slots=True)
class Plugs:
    """What differs from crawl to crawl."""

    rules: Rules
    scorer: Scorer
    admission: Admission
    policy: HostPolicy
    sync: str = "full"
    own: HostPolicy = field(default_factory=lambda: HostPolicy(0.0))
    is_own: Callable[[str], bool] = lambda name: False  # whether politeness is off for a host
    backoff: BackoffPolicy = field(default_factory=BackoffPolicy)
    pages_per_visit: Mapping[str, int] = field(default_factory=dict)
    robots: RobotsPolicy | None = None  # None: nobody is asked for a robots.txt
    quiet: tuple[Hours, ...] = ()
    sharing: Sharing = field(default_factory=Sharing)
    addresses: Addresses = field(default_factory=NoAddresses)
    wishes: Wishes = field(default_factory=Wishes)
    on_ready: Callable[[], None] = lambda: None
    on_failure: Callable[[StoreError], None] = lambda error: None


class EmbeddedRun:
    """An open run; `close` ends it cleanly."""

    def __init__(self, directory: Path) -> None:
        """Lock the directory and open its store; nothing is changed yet apart from what SQLite itself recovers."""
        check_mode(directory)
        self.directory = directory
        self._lock = _lock(directory)
        try:
            self.store = Store(directory)
            self._check_canonical_version()
        except BaseException:
            os.close(self._lock)
            raise
        self.frontier: EmbeddedFrontier
        self.recovered: Recovered
        self.writer: Writer

    def start(self, plugs: Plugs, now: float) -> None:
        """Recover what the last process left and make the frontier."""
        if self.store.meta("hash_seed") is None:
            self.store.set_meta(hash_seed=str(secrets.randbits(63) | 1), canonical_version=str(CANONICAL_VERSION))
        self.store.set_sync(plugs.sync)
        journal = ClaimJournal(self.directory / "claims.bin")
        seed = plugs.rules.random_seed
        try:
            self.recovered = recover(self.store, journal, plugs.scorer, seed, plugs.policy, plugs.is_own, now)
        except (apsw.Error, OSError) as error:
            raise explain(self.store.path, error) from error
        self.writer = Writer(self.store, plugs.sync, plugs.on_failure)
        self.writer.settled_page = self.recovered.table.pages.count
        for number, path, settled in self.store.rows("SELECT id, path, settled_bytes FROM feeds"):
            self.writer.feeds[number] = FeedFile(number, Path(path), settled)
        rng = random.Random(seed)
        hosts = Hosts(self.recovered, plugs.policy, plugs.own, plugs.is_own, plugs.backoff, plugs.pages_per_visit, rng)
        self.frontier = EmbeddedFrontier(
            self.store,
            journal,
            self.writer,
            plugs.rules,
            plugs.scorer,
            plugs.admission,
            hosts,
            self.recovered,
            plugs.robots,
            plugs.quiet,
            plugs.sharing,
            plugs.addresses,
            now if self.recovered.table.pages.count else 0.0,
            plugs.on_ready,
            plugs.wishes,
        )
        self._note_start(now)
        sys.setswitchinterval(SWITCH_SECONDS)

    def feed(self, uri: str, path: Path, form: str, overwrite: bool) -> FeedFile:
        """The output file of `uri`: continued if it is this run's, else begun at `path` (emptied if `overwrite`)."""
        path = path.resolve()
        for number, known, known_path in self.store.rows("SELECT id, uri, path FROM feeds"):
            if known == uri or Path(known_path).resolve() == path:
                self.writer.feeds[number].is_used = True
                return self.writer.feeds[number]
        number = 1 + max(self.writer.feeds, default=0)
        path.parent.mkdir(parents=True, exist_ok=True)
        if overwrite:
            path.unlink(missing_ok=True)
        settled = path.stat().st_size if path.exists() else 0
        with self.store.writer:
            self.store.writer.execute(
                "INSERT INTO feeds VALUES(?, ?, ?, ?, ?, NULL)", (number, uri, str(path), form, settled)
            )
        feed = self.writer.feeds[number] = FeedFile(number, path, settled)
        feed.is_used = True
        return feed

    def feed_header(self, number: int) -> str | None:
        """What was remembered about a feed, e.g. the columns of a CSV file."""
        rows = self.store.rows("SELECT header FROM feeds WHERE id = ?", number)
        return rows[0][0] if rows else None

    def close(self, reason: str, now: float) -> None:
        """A clean end."""
        ledger = self.frontier.counts().sentence()
        self.frontier.stop(now)
        if self.writer.failure is None:
            with self.store.writer:
                self.store.writer.execute(
                    "UPDATE starts SET ended_at = ?, reason = ?, ledger = ? WHERE id = (SELECT max(id) FROM starts)",
                    (time.time(), reason, ledger),
                )
        self.store.close()
        os.close(self._lock)

    def abandon(self) -> None:
        """Let go without writing anything, because the start failed."""
        os.close(self._lock)

    def _note_start(self, now: float) -> None:
        with self.store.writer:
            self.store.writer.execute(
                "INSERT INTO starts(started_at, ledger) VALUES(?, ?)", (now, self.recovered.sentence())
            )

    def _check_canonical_version(self) -> None:
        found = self.store.meta("canonical_version")
        if found is not None and int(found) != CANONICAL_VERSION:
            raise RunError(
                f"{self.directory} was begun with other rules for comparing URLs (version {found}, now "
                f"{CANONICAL_VERSION}).",
                "Known pages would be taken for new ones.",
                "Finish it with the webcrawl it was begun with, or start a new run with -s WEBCRAWL_DIR=DIR.",
            )


def _lock(directory: Path) -> int:
    file = os.open(directory / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(file, 32).decode(errors="replace").strip() or "unknown"
        os.close(file)
        raise RunError(
            f"{directory} is in use by another process (pid {holder}).",
            "Two crawls in one run would fetch pages twice.",
            "Wait for it to end, stop it, or give this crawl its own directory with -s WEBCRAWL_DIR=DIR.",
        ) from error
    os.ftruncate(file, 0)
    os.write(file, str(os.getpid()).encode())
    return file
