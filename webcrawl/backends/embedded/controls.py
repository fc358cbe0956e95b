"""Live control: what an operator changes while the crawl runs (see `core.controls`), applied to the frontier.

How it works:
- A rule is in force the moment `apply` returns, and is written with the current group, as everything else is. `done` is
  called when everything the command does is on disk; whoever gave the command keeps it until then. A kill before that
  applies it again, which changes nothing more.
- Commands that change known pages (block, drop, unblock, boost, retry) are jobs: the group there is must be on disk, so
  that the store knows every host and page; then the refill's thread finds the pages; then the event loop changes
  them, a thousand in a turn; then they are written.
- The gate asks `_veto` about every page before its lease, but only while something is blocked or there is an opt-out
  list: without either the claim costs one comparison more. A page that is blocked is refused once and then costs
  nothing.
- Boosts are rules, not changes: the store keeps scores without them, and every start applies them to the pages there
  are, before the first lease.
- The opt-out list may be replaced at any time; pages that it refused and refuses no longer come back, also at a start.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw
import numpy as np

from webcrawl.backends.embedded.gate import Gate
from webcrawl.backends.embedded.hosts import Hosts
from webcrawl.backends.embedded.ready import SOON_SECONDS, ReadyPages
from webcrawl.backends.embedded.robotsfiles import RobotsFiles
from webcrawl.backends.embedded.rules import Rules as FrontierRules
from webcrawl.backends.embedded.store import FILE_NAME, Store
from webcrawl.backends.embedded.writer import Group
from webcrawl.core.columns import Array
from webcrawl.core.controls import DEFAULT, Answer, Command, Rules, rows_of, unknown_target, why_too_short
from webcrawl.core.filters.optout import CurrentOptOut, OptOut
from webcrawl.core.frontier import ROBOTS_KIND, Counts
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.pagetable import GIVEN_UP, PageTable
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of

AT_ONCE = 1_000  # pages changed in one turn of the event loop
READ_AT_ONCE = 4_000
LOOKED_AT_ONCE = 1_000_000  # cells of a column
FEW = 1_000  # so many pages that come back are fetched in at once; more wait for their turn

WAITING = (State.READY, State.RESTING)
ENDED = (State.REFUSED, State.GONE, State.RESTING)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a crawl's settings say about control."""

    optout: CurrentOptOut | None = None
    may_hurry: Callable[[str], bool] = lambda host: False  # whether a host may be asked more often than others


class Frontier(Protocol):
    """What is needed of the frontier that is controlled."""

    table: PageTable
    rules: FrontierRules
    clock_offset: float

    @property
    def group(self) -> Group:
        """What will be written together next."""

    def note_change(self, page: int) -> None:
        """A page was changed without a visit."""

    def can_be_read(self, page: int) -> bool:
        """Whether the URL of a page is on disk, or kept."""

    def note_controls(self) -> None:
        """The rules have changed."""

    def flush(self, now: float, done: Callable[[], None] | None = None) -> None:
        """Have everything so far written."""

    def counts(self) -> Counts:
        """Where every known page is."""


@dataclass(slots=True)
class Found:
    """What a job's thread has found: pages, and what else it needs."""

    pages: Array
    scores: Array | None = None
    has_hosts: bool = True
    origins: Sequence[str] = ()


class Job:
    """Pages are looked for in the thread and changed on the event loop, a part in each turn."""

    def __init__(
        self,
        call: Callable[[Callable[[], None]], None],
        find: Callable[[], Found],
        change: Callable[[Found, slice], int],
        end: Callable[[Found, int, float], None],
    ) -> None:
        self.is_written = False  # whether what the thread looks at is on disk
        self._call, self._find, self._change, self._end = call, find, change, end
        self._is_called = False
        self._found: Found | None = None
        self._at = self._changed = 0

    def note_written(self) -> None:
        """May come from the writer's thread."""
        self.is_written = True

    def __call__(self, now: float) -> bool:
        """One turn; True when there is nothing left to do."""
        if not self._is_called:
            if self.is_written:
                self._is_called = True
                self._call(self._look)
            return False
        found = self._found
        if found is None:
            return False
        if self._at < len(found.pages):
            part = slice(self._at, self._at + AT_ONCE)
            self._changed += self._change(found, part)
            self._at += AT_ONCE
        if self._at < len(found.pages):
            return False
        self._end(found, self._changed, now)
        return True

    def _look(self) -> None:
        self._found = self._find()


class Controls:
    """The operator's rules and commands, for one frontier."""

    def __init__(
        self,
        frontier: Frontier,
        store: Store,
        hosts: Hosts,
        ready: ReadyPages,
        gate: Gate,
        files: RobotsFiles | None,
        wishes: Wishes,
    ) -> None:
        self._frontier, self._store, self._hosts = frontier, store, hosts
        self._ready, self._gate, self._files, self._wishes = ready, gate, files, wishes
        self._table = frontier.table
        self._held: set[int] = set()  # pages that were refused while they were held: they come to the gate once more
        self._starting = 0  # jobs that must end before anybody is asked
        self.rules = Rules()
        self.is_paused = self.has_boosts = False
        self._take_rules(stored_rules(store.rows))
        # What a start has to do waits for the first turn: before it others read the store.
        self._is_fresh = self.has_boosts or bool(self._table.by_reason[Reason.OPTED_OUT])

    # ------------------------------------------------------------------------------------------------ the hot path

    @property
    def is_needed_first(self) -> bool:
        """Whether `silent_until` must be asked before anybody is asked for a page."""
        return self.is_paused or self._is_fresh or bool(self._starting)

    def silent_until(self, now: float) -> float:
        """Until when nobody is asked; 0: nothing speaks against it."""
        if self._is_fresh:
            self._is_fresh = False
            self._begin_start()
            self._frontier.note_controls()
        if self._starting:
            return now + SOON_SECONDS
        return math.inf if self.is_paused else 0.0

    def _veto(self, page: int, url: str, kind: int) -> Reason | None:
        """Why a page must not be asked for. A robots.txt is not asked for if its whole host is not."""
        if page in self._held:
            self._held.remove(page)
            return Reason.BLOCKED
        host = host_of(url)
        lists = (self.rules.block_list, self._wishes.optout.rule if self._wishes.optout is not None else None)
        for one in lists:
            if one is not None:
                reason = one.refuse_host(host) if kind == ROBOTS_KIND else one.refuse(url, host)
                if reason is not None:
                    return reason
        return None

    def boost_new(self, first: int, urls: Sequence[str], scores: Array) -> Array:
        """The scores of new pages, whose ids begin with `first`, with boosts."""
        boosted = [
            self.rules.boosted(url, host_of(url), score) for url, score in zip(urls, scores.tolist(), strict=True)
        ]
        for page, (score, own) in enumerate(zip(boosted, scores.tolist(), strict=True), first):
            if score != own:
                self._table.boost(page, score)
        return np.array(boosted, np.float32)

    # ------------------------------------------------------------------------------------------------ rules

    def _take_rules(self, rules: Rules) -> None:
        self.rules, self.is_paused, self.has_boosts = rules, rules.is_paused, bool(rules.boosts)
        self._hosts.set_delays({host: self._kept_delay(host, seconds) for host, seconds in rules.delays.items()})
        self._arrange()

    def _arrange(self) -> None:
        needs_veto = self.rules.blocks or self._wishes.optout is not None or self._held
        self._gate.veto = self._veto if needs_veto else None

    def _kept_delay(self, host: str, seconds: float) -> float:
        """Settings may have changed since: what was long enough then need not be now."""
        return seconds if self._wishes.may_hurry(host) else max(seconds, self._hosts.delay_seconds)

    def _set(self, command: Command, now: float) -> None:
        """Put the rules of a command in force and have them written."""
        rules = self.rules
        for row in rows_of(command):
            rules = rules.after(row)
            self._frontier.group.controls.append((*row, now + self._frontier.clock_offset))
        if rules is not self.rules:
            self._take_rules(rules)
            self._frontier.note_controls()

    # ------------------------------------------------------------------------------------------------ commands

    def apply(self, command: Command, now: float, done: Callable[[Answer], None]) -> None:
        """Do what a command says; `done` is called when it is on disk, perhaps by another thread."""
        if command.name == "delay" and (why := self._too_short(command)):
            done(Answer(why, is_applied=False))
            return
        had = command.target in self.rules.blocks
        self._set(command, now)
        if command.name in ("block", "drop"):
            self._refuse(command, now, done)
        elif command.name == "unblock":
            self._unblock(command, had, now, done)
        elif command.name == "boost":
            self._boost(command, now, done)
        elif command.name == "retry":
            self._retry(command, now, done)
        else:
            answer = self._delay(command, now) if command.name == "delay" else self._status(command)
            self._frontier.flush(now, lambda: done(answer))

    def _too_short(self, command: Command) -> str | None:
        return why_too_short(command, self._hosts.delay_seconds, self._wishes.may_hurry(command.target))

    def _delay(self, command: Command, now: float) -> Answer:
        host = self._hosts.known_id(command.target)
        warnings = [] if host else [unknown_target(command.target)]
        if command.value == DEFAULT:
            return Answer(f"{command.target} has no delay of its own any more.", warnings=warnings)
        if host:
            self._hosts.lengthen(host, float(command.value))
            self._ready.wake(host, now, now)
        text = f"{command.target} rests {command.value} s after each answer, or longer if it asks for that."
        return Answer(text, warnings=warnings)

    def _status(self, command: Command) -> Answer:
        texts = {
            "pause": "The crawl is paused: what is under way comes back, nothing else is asked for until `resume`.",
            "resume": "The crawl goes on.",
        }
        counts = self._frontier.counts()
        waits = "The crawl is paused." if self.is_paused else "The crawl is running."
        reasons = {reason.key: count for reason, count in counts.reasons.items()}
        facts = {"rules": self.rules.facts(), "counts": counts.sentence(), "reasons": reasons}
        return Answer(texts.get(command.name, waits), facts=facts if command.name == "status" else {})

    # ------------------------------------------------------------------------------------------------ jobs

    def _begin(
        self,
        find: Callable[[], Found],
        change: Callable[[Found, slice], int],
        end: Callable[[Found, int, float], None],
        now: float | None,
    ) -> None:
        """Begin a job; without a moment everything it looks for is on disk already."""
        job = Job(self._ready.refill.call, find, change, end)
        self._gate.begin(job)
        if now is None:
            job.note_written()
        else:
            self._frontier.flush(now, job.note_written)

    def _answering(
        self, said: Callable[[str], str], done: Callable[[Answer], None], target: str = "", warning: str = ""
    ) -> Callable[[Found, int, float], None]:
        """What ends a job: write, then answer; a target of which nothing is known is told."""

        def end(found: Found, changed: int, now: float) -> None:
            warnings = [warning] if warning else []
            if target and (not found.has_hosts or ("/" in target and not len(found.pages))):
                warnings.append(unknown_target(target))
            answer = Answer(said(f"{changed:,} page{'' if changed == 1 else 's'}"), warnings=warnings)
            answer.facts["pages"] = changed
            self._frontier.flush(now, lambda: done(answer))

        return end

    def _refuse(self, command: Command, now: float, done: Callable[[Answer], None]) -> None:
        later = "what is found later will be, too" if command.name == "block" else "what is found later is not affected"
        end = self._answering(
            lambda pages: f"{command.target}: of what waited, {pages} refused; {later}.", done, command.target
        )
        self._begin(self._finder(command.target, WAITING), self._refuse_part, end, now)

    def _refuse_part(self, found: Found, part: slice) -> int:
        at, table = self._table.pages.at, self._table
        pages = [page for page in found.pages[part].tolist() if at.state[page] in WAITING]
        held = self._ready.take_out(page for page in pages if at.state[page] == State.READY)
        for page in pages:
            if at.state[page] == State.RESTING:
                at.due[page] = 0
                table.move(page, Event.FALL_DUE)
            table.move(page, Event.REFUSE, Reason.BLOCKED)
            self._frontier.note_change(page)
        self._held |= held
        self._arrange()
        return len(pages)

    def _unblock(self, command: Command, had: bool, now: float, done: Callable[[Answer], None]) -> None:
        warning = "" if had else f"{command.target} was not blocked; see `scrapy control list`."
        find = self._finder(command.target, (State.REFUSED,), Reason.BLOCKED)
        target = command.target
        end = self._answering(lambda pages: f"{target}: {pages} may be asked for again.", done, target, warning)
        self._begin(find, lambda found, part: self._bring_back(found, part, Reason.BLOCKED), end, now)

    def _boost(self, command: Command, now: float, done: Callable[[Answer], None]) -> None:
        find = self._finder(command.target, tuple(state for state in State if state is not State.STORED))
        target = command.target
        end = self._answering(lambda pages: f"{target}: the scores of {pages} were made anew.", done, target)
        self._begin(lambda: self._scored(find()), self._boost_part, end, now)

    def _scored(self, found: Found) -> Found:
        """With what the boosts make of their scores; for the thread."""
        rules, own_score = self.rules, self._table.own_score
        scores = {page: own_score(page) for page in found.pages.tolist()}
        for page, url in self._urls(found.pages):
            scores[page] = rules.boosted(url, host_of(url), own_score(page))
        found.scores = np.fromiter(scores.values(), np.float64, len(scores))
        return found

    def _boost_part(self, found: Found, part: slice) -> int:
        assert found.scores is not None
        at, changed = self._table.pages.at, []
        for page, score in zip(found.pages[part].tolist(), found.scores[part].tolist(), strict=True):
            if score != at.score[page]:
                self._table.boost(page, score)
                if at.state[page] == State.READY:
                    changed.append(page)
        if changed:
            self._ready.reorder(changed)
        return len(found.pages[part])

    def _retry(self, command: Command, now: float, done: Callable[[Answer], None]) -> None:
        reason = Reason[command.target.upper()]
        if reason is Reason.HOST_GIVEN_UP:
            flags = self._table.hosts.flags[: self._table.hosts.count + 1]
            for host in np.flatnonzero(flags & GIVEN_UP).tolist():
                self._hosts.forgive(host)
                self._ready.wake(host, now, now)

        def change(found: Found, part: slice) -> int:
            self._ask_again(found.origins)
            return self._bring_back(found, part, reason)

        end = self._answering(lambda pages: f"{command.target}: {pages} will be asked for again.", done)
        self._begin(lambda: self._with_origins(self._all(ENDED, reason), reason), change, end, now)

    def _with_origins(self, found: Found, reason: Reason) -> Found:
        """With the robots.txt files that must be asked for again, or the same pages would be refused again."""
        robots = (Reason.ROBOTS, Reason.ROBOTS_UNREACHABLE, Reason.HOST_GIVEN_UP)
        if self._files is not None and reason in robots and len(found.pages):
            ids = np.unique(self._table.pages.host[found.pages]).astype(np.int64)
            query = "SELECT h.name FROM carray(?) c CROSS JOIN hosts h ON h.id = c.value"
            names = {name for (name,) in self._store.rows(query, apsw.carray(ids))}
            found.origins = self._files.origins_of(names)
        return found

    def _ask_again(self, origins: Iterable[str]) -> None:
        for origin in origins:
            assert self._files is not None
            self._files.ask_again(origin)
            self._frontier.group.asked_again.append((origin,))

    def _bring_back(self, found: Found, part: slice, reason: Reason) -> int:
        """Refused, gone and resting pages are ready again, with all their attempts."""
        at, limit = self._table.pages.at, self._frontier.rules.depth
        is_wanted, count = len(found.pages) <= FEW, 0
        for page in found.pages[part].tolist():
            if at.state[page] not in ENDED or at.reason[page] != reason or not self._frontier.can_be_read(page):
                continue
            if reason is Reason.TOO_DEEP and limit and at.depth[page] > limit:
                continue
            at.due[page] = at.failures[page] = 0
            self._table.move(page, Event.FALL_DUE)
            self._frontier.note_change(page)
            count += 1
            if page in self._held:  # it never left
                self._held.remove(page)
            else:
                self._ready.put_outside(page, at.host[page], is_wanted)
        if not is_wanted:
            self._ready.plan_anew()
        return count

    # ------------------------------------------------------------------------------------------------ opt-out, starts

    def replace_optout(self, rule: OptOut, done: Callable[[Answer], None], now: float) -> None:
        """Go by a new list; what the old one refused and this one does not comes back."""
        assert self._wishes.optout is not None, "a list can be replaced only where there was one at the start"
        self._wishes.optout.rule = rule
        end = self._answering(lambda pages: f"The opt-out list was read again; {pages} may be asked for again.", done)
        self._begin(self._opted_in, lambda found, part: self._bring_back(found, part, Reason.OPTED_OUT), end, now)

    def _opted_in(self) -> Found:
        """Pages that were refused for the opt-out list and are not on it any more; for the thread."""
        found = self._all((State.REFUSED,), Reason.OPTED_OUT)
        optout = self._wishes.optout
        if optout is not None:
            allowed = [page for page, url in self._urls(found.pages) if not optout.rule.covers(url, host_of(url))]
            found.pages = np.array(allowed, np.uint32)
        return found

    def _begin_start(self) -> None:
        def end(found: Found, changed: int, now: float) -> None:
            self._starting -= 1
            self._frontier.note_controls()

        if self._table.by_reason[Reason.OPTED_OUT]:
            self._starting += 1
            self._begin(self._opted_in, lambda found, part: self._bring_back(found, part, Reason.OPTED_OUT), end, None)
        for target in self.rules.boosts:
            self._starting += 1
            find = self._finder(target, tuple(state for state in State if state is not State.STORED))
            self._begin(lambda find=find: self._scored(find()), self._boost_part, end, None)  # type: ignore[misc]

    # ------------------------------------------------------------------------------------------------ for the thread

    def _finder(self, target: str, states: Sequence[State], reason: Reason | None = None) -> Callable[[], Found]:
        """Finds the pages of a target that are in one of these states now; pages that come later are not looked at."""
        last = self._table.pages.count
        matcher = OptOut([target])

        def find() -> Found:
            hosts = self._hosts_of(target)
            is_host = np.zeros(self._table.hosts.count + 1, np.bool_)
            is_host[hosts] = True
            found = self._all(states, reason, is_host, last)
            found.has_hosts = bool(hosts)
            if "/" in target:
                matching = [page for page, url in self._urls(found.pages) if matcher.covers(url, host_of(url))]
                found.pages = np.array(matching, np.uint32)
            return found

        return find

    def _hosts_of(self, target: str) -> list[int]:
        """Hosts by name; a name may be written with the root's dot."""
        name = target.lstrip(".").partition("/")[0]
        if not target.startswith("."):
            return [host for host in map(self._hosts.known_id, (name, f"{name}.")) if host]
        query = "SELECT id FROM hosts WHERE rtrim(name, '.') = ?1 OR substr(rtrim(name, '.'), -length(?2)) = ?2"
        return [host for (host,) in self._store.rows(query, name, f".{name}")]

    def _all(
        self, states: Sequence[State], reason: Reason | None, is_host: Array | None = None, last: int | None = None
    ) -> Found:
        """Pages by state, reason and host; no robots.txt, which belong to whoever needs them."""
        columns = self._table.pages
        count = (columns.count if last is None else last) + 1
        is_state = np.zeros(256, np.bool_)
        is_state[list(states)] = True
        parts = []
        for start in range(0, count, LOOKED_AT_ONCE):
            part = slice(start, min(start + LOOKED_AT_ONCE, count))
            chosen = is_state[columns.state[part]] & (columns.kind[part] != ROBOTS_KIND)
            if reason is not None:
                chosen &= columns.reason[part] == int(reason)
            if is_host is not None:
                hosts = columns.host[part]
                chosen &= (hosts < len(is_host)) & is_host[np.minimum(hosts, len(is_host) - 1)]
            parts.append(np.flatnonzero(chosen) + start)
        return Found(np.concatenate(parts).astype(np.uint32))

    def _urls(self, pages: Array) -> Iterable[tuple[int, str]]:
        for start in range(0, len(pages), READ_AT_ONCE):
            part = pages[start : start + READ_AT_ONCE]
            found = {page: url for page, url, _ in self._store.urls(part)}
            for page in part.tolist():
                if page in found:
                    yield page, found[page]
                elif (text := self._ready.text_in_memory(page)) is not None:
                    yield page, text[0]


def stored_rules(rows: Callable[..., list[Any]]) -> Rules:
    """The rules that a store holds, asked through `rows`."""
    return Rules.from_rows(rows("SELECT kind, target, value FROM controls WHERE value IS NOT NULL ORDER BY set_at"))


def read_rules(directory: Path) -> Rules:
    """The rules of a run that may be at work in another process, or at rest."""
    connection = apsw.Connection(str(directory / FILE_NAME), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(1_000)
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'controls'").fetchone():
            return Rules()  # of an older version
        return stored_rules(lambda query: connection.execute(query).fetchall())
    finally:
        connection.close()
