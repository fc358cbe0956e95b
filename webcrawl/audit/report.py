"""What an audit found, counted and told: tables and sentences for people, one object for programs.

Only the first violations of each kind are kept (`--show`), so memory does not grow with a bad log; all are counted.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from webcrawl.audit.files import Tally
from webcrawl.audit.judging import MEANINGS, Judge, Kind, Violation
from webcrawl.audit.records import Record, Unread

if TYPE_CHECKING:
    from webcrawl.audit.judging import Host, Peer

WORST_HOSTS = 5
MOST_AGENTS = 5
MOST_LETTERS = 100
_UNPRINTABLE = re.compile(r"[^ -~]")


class Table(NamedTuple):
    """Rows under headings; a number column is set to the right."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: frozenset[int] = frozenset()


@dataclass(slots=True)
class Findings:
    """Counts while the records go by."""

    show: int
    requests: int = 0
    first_at: float | None = None
    last_at: float = 0.0
    coarsest_seconds: float = 0.0
    without_duration: int = 0
    without_retry_after: int = 0
    agents: set[str] = field(default_factory=set)
    counts: Counter[Kind] = field(default_factory=Counter)
    shown: dict[Kind, list[Violation]] = field(default_factory=lambda: {kind: [] for kind in Kind})

    def note_record(self, record: Record) -> None:
        """Count a request."""
        self.requests += 1
        started_at = record.started_at
        if self.first_at is None or started_at < self.first_at:
            self.first_at = started_at
        if started_at > self.last_at:
            self.last_at = started_at
        if record.resolution_seconds > self.coarsest_seconds:
            self.coarsest_seconds = record.resolution_seconds
        if record.duration_seconds is None:
            self.without_duration += 1
        if record.retry_after_seconds is None:
            self.without_retry_after += 1
        if len(self.agents) <= MOST_AGENTS:
            self.agents.add(record.agent)

    def note_violations(self, violations: Iterable[Violation]) -> None:
        """Count violations and keep the first of each kind."""
        for violation in violations:
            self.counts[violation.kind] += 1
            kept = self.shown[violation.kind]
            if len(kept) < self.show:
                kept.append(violation)

    @property
    def total(self) -> int:
        """All violations."""
        return self.counts.total()


@dataclass(frozen=True, slots=True)
class Audit:
    """A finished audit."""

    findings: Findings
    judge: Judge
    tally: Tally

    @property
    def is_polite(self) -> bool:
        """Whether no violation was found."""
        return self.findings.total == 0


def run_audit(records: Iterable[Record], judge: Judge, tally: Tally, show: int) -> Audit:
    """Judge all records."""
    findings = Findings(show)
    for record in records:
        findings.note_record(record)
        violations = judge.judge(record)
        if violations:
            findings.note_violations(violations)
    findings.note_violations(judge.finish())
    return Audit(findings, judge, tally)


# ---------------------------------------------------------------------------------------------------------- for people


def verdict(audit: Audit) -> str:
    """The one sentence."""
    findings = audit.findings
    judged = f"{counted(findings.requests, 'request')} to {counted(len(audit.judge.hosts), 'host')}"
    if audit.is_polite:
        return f"Polite: {judged} and no violation."
    kinds = ", ".join(f"{findings.counts[kind]:,} {kind}" for kind in Kind if findings.counts[kind])
    return f"Not polite: {judged} and {counted(findings.total, 'violation')} ({kinds})."


def tables(audit: Audit) -> list[Table]:
    """Everything there is to show, the kinds of violations first."""
    rules = audit.judge.rules
    found = [_kinds(audit)]
    found += [_offences(kind, audit.findings.shown[kind]) for kind in Kind if audit.findings.shown[kind]]
    found.append(_worst_hosts(audit))
    shared = {name: peer for name, peer in audit.judge.addresses.items() if peer.has_several_hosts}
    addresses = audit.judge.addresses if rules.address_delay_seconds else shared
    found.append(_peers("Server addresses with the smallest gaps", addresses))
    found.append(_peers("Client addresses with the smallest gaps, over all hosts", audit.judge.clients))
    return [table for table in found if table.rows]


def notes(audit: Audit) -> list[str]:
    """How it was judged, and what could not be."""
    rules, findings, tally = audit.judge.rules, audit.findings, audit.tally
    begin = "start" if rules.is_gap_from_start or findings.without_duration == findings.requests else "end"
    pause = (
        f"Judged with a pause of {rules.delay_seconds:g} s from the {begin} of a request to the start of the next one "
        f"of its host, and a tolerance of {rules.tolerance_seconds:g} s."
    )
    said = [pause]
    said += _notes_on_times(findings)
    said += _notes_on_robots(audit)
    if findings.without_retry_after and not rules.assumed_retry_after_seconds:
        said.append(
            f"Retry-After is not in {_share(findings.without_retry_after, findings)}: it was not judged there "
            "(--assume-retry-after says what to expect after 429 and 503)."
        )
    if rules.address_delay_seconds:
        unknown = findings.requests - sum(address.requests for address in audit.judge.addresses.values())
        if unknown:
            said.append(f"The server address is not known of {_share(unknown, findings)}: give it with --address.")
    if not rules.agent and len(findings.agents) > 1:
        number = f"{len(findings.agents)}" if len(findings.agents) <= MOST_AGENTS else f"more than {MOST_AGENTS}"
        said.append(f"Lines of {number} user agents were judged as one crawler; --agent chooses one.")
    return said + _notes_on_lines(tally)


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "host"), counted(2000, "host")
    ('1 host', '2,000 hosts')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str) -> str:
    """Text of strangers, safe for a terminal and not endless."""
    text = _UNPRINTABLE.sub("?", text)
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 3] + "..."


def _notes_on_times(findings: Findings) -> list[str]:
    said = []
    if findings.coarsest_seconds >= 0.01:
        said.append(
            f"Times are logged to {findings.coarsest_seconds:g} s: a gap counts as too short only if it is so for "
            "every instant that the logged times allow."
        )
    if findings.without_duration:
        said.append(
            f"Durations are not in {_share(findings.without_duration, findings)}: there gaps run from start to start "
            "and overlaps were not judged."
        )
    return said


def _notes_on_robots(audit: Audit) -> list[str]:
    said = []
    missing = sum(host.robots_text is None for host in audit.judge.hosts.values())
    if missing == len(audit.judge.hosts):
        said.append("No robots files were given (--robots): robots rules and Crawl-delay were not judged.")
    elif missing:
        said.append(
            f"{counted(missing, 'host')} of {len(audit.judge.hosts):,} had no robots file: robots rules and "
            "Crawl-delay were not judged there."
        )
    if not audit.judge.rules.is_robots_first:
        said.append("Whether robots.txt was answered before the first page was not judged (--no-robots-first).")
    return said


def _notes_on_lines(tally: Tally) -> list[str]:
    said = [f"{where} ends in the middle of a line and was left out." for where in tally.torn]
    if tally.unread[Unread.UNREADABLE]:
        number = counted(tally.unread[Unread.UNREADABLE], "line")
        said.append(f"Left out: {number} that could not be read, the first is {tally.first_unreadable}.")
    if tally.unread[Unread.NO_HOST]:
        said.append(f"Left out: {counted(tally.unread[Unread.NO_HOST], 'line')} without a host (--host names it).")
    for reason, words in (
        (Unread.OTHER_AGENT, "of other user agents"),
        (Unread.IGNORED, "of paths that are ignored"),
        (Unread.NO_REQUEST, "without a request for a page (broken, or CONNECT)"),
    ):
        if tally.unread[reason]:
            said.append(f"Not judged: {counted(tally.unread[reason], 'line')} {words}.")
    return said


def _share(number: int, findings: Findings) -> str:
    return "the log" if number == findings.requests else f"{number:,} of {counted(findings.requests, 'line')}"


def _kinds(audit: Audit) -> Table:
    rows = [(kind.value, f"{audit.findings.counts[kind]:,}", MEANINGS[kind]) for kind in Kind]
    return Table("Violations", ("kind", "number", "what it is"), rows, frozenset({1}))


def _offences(kind: Kind, violations: list[Violation]) -> Table:
    rows = []
    for one in violations:
        earlier = f" ({one.earlier.where})" if one.earlier else ""
        rows.append((one.record.where, printable(one.record.host + one.record.path), one.note + earlier))
    return Table(f"First of kind {kind}", ("line", "request", "what is wrong (line of the earlier request)"), rows)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def worst_hosts(audit: Audit, number: int = WORST_HOSTS) -> list[tuple[str, Host]]:
    """The hosts whose smallest gap is furthest below, or least above, what they want."""
    with_gaps = ((name, host) for name, host in audit.judge.hosts.items() if host.min_gap_seconds is not None)
    return heapq.nsmallest(number, with_gaps, key=lambda one: (one[1].min_gap_seconds or 0.0) - one[1].wanted_seconds)


def _worst_hosts(audit: Audit) -> Table:
    rows = [
        (printable(name), f"{host.requests:,}", _seconds(host.min_gap_seconds), f"{host.wanted_seconds:g}")
        for name, host in worst_hosts(audit)
    ]
    headings = ("host", "requests", "smallest gap, s", "wanted, s")
    return Table("Hosts with the smallest gaps", headings, rows, frozenset({1, 2, 3}))


def worst_peers(peers: Mapping[str, Peer], number: int = WORST_HOSTS) -> list[tuple[str, Peer]]:
    """The addresses with the smallest gaps."""
    with_gaps = ((name, peer) for name, peer in peers.items() if peer.min_gap_seconds is not None)
    return heapq.nsmallest(number, with_gaps, key=lambda one: one[1].min_gap_seconds or 0.0)


def _peers(title: str, peers: Mapping[str, Peer]) -> Table:
    rows = [
        (printable(name or "-"), f"{peer.requests:,}", _seconds(peer.min_gap_seconds))
        for name, peer in worst_peers(peers)
    ]
    return Table(title, ("address", "requests", "smallest gap, s"), rows, frozenset({1, 2}))


def plain_text(audit: Audit) -> str:
    """All of it without a terminal."""
    blocks = ["\n".join([table.title, *_aligned(table)]) for table in tables(audit)]
    return "\n\n".join([*blocks, "\n".join(notes(audit)), verdict(audit)])


def _aligned(table: Table) -> list[str]:
    lines = [table.headings, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.headings))]
    return [
        "  " + "  ".join(
            cell.rjust(width) if column in table.right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------------- for programs


def as_json(audit: Audit) -> dict[str, Any]:
    """The same for programs; docs/audit.md describes the keys."""
    findings, judge = audit.findings, audit.judge
    return {
        "is_polite": audit.is_polite,
        "requests": findings.requests,
        "hosts": len(judge.hosts),
        "lines": audit.tally.lines,
        "not_judged": {reason.value: number for reason, number in audit.tally.unread.items()},
        "first_at": findings.first_at,
        "last_at": findings.last_at,
        "total": findings.total,
        "violations": {kind.value: findings.counts[kind] for kind in Kind},
        "min_gap_seconds": min(
            (host.min_gap_seconds for host in judge.hosts.values() if host.min_gap_seconds is not None), default=None
        ),
        "found": [_offence(one) for kind in Kind for one in findings.shown[kind]],
        "worst_hosts": [
            {"host": name, "requests": host.requests, "min_gap_seconds": host.min_gap_seconds,
             "wanted_seconds": host.wanted_seconds}
            for name, host in worst_hosts(audit)
        ],
        "server_addresses": _peer_objects(judge.addresses),
        "client_addresses": _peer_objects(judge.clients),
        "notes": notes(audit),
    }  # fmt: skip


def _offence(one: Violation) -> dict[str, Any]:
    record = one.record
    return {
        "kind": one.kind.value,
        "file": record.file,
        "line": record.line,
        "host": record.host,
        "path": record.path,
        "started_at": record.started_at,
        "status": record.status,
        "agent": record.agent,
        "note": one.note,
        "earlier": one.earlier.where if one.earlier else None,
    }


def _peer_objects(peers: Mapping[str, Peer]) -> list[dict[str, Any]]:
    return [
        {"address": name, "requests": peer.requests, "min_gap_seconds": peer.min_gap_seconds}
        for name, peer in worst_peers(peers)
    ]
