"""Each record held against the rules of politeness, with one small state for each host and address.

Rules kept:

- Nothing is claimed that the log does not prove.  Times count as known to their resolution (`lanes`), and a request is
  late, early or blind only if it is so for every instant that the logged time allows.
- A pause runs from the end of a request to the start of the next one of that host, where the log has durations.
- A record is judged when it arrives, in the order of logged times; nothing is kept but the last requests of each host.
  Memory therefore grows with hosts, addresses and clients, never with lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from webcrawl.audit.lanes import Lanes
from webcrawl.audit.records import Record, literal_address
from webcrawl.audit.robots import Policy, policy_for, token_of_agent

RobotsTexts = Callable[[str], str | None]  # host to robots.txt; None: not known
MOST_WAITS = 8  # Retry-After of one host that do not overlap and are still remembered


class Kind(StrEnum):
    """What can be wrong."""

    GAP = "gap"
    CRAWL_DELAY = "crawl-delay"
    ADDRESS = "address"
    OVERLAP = "overlap"
    ROBOTS = "robots"
    BLIND = "blind"
    RETRY = "retry-after"


MEANINGS = {
    Kind.GAP: "a request too soon after the one before, of the same host",
    Kind.CRAWL_DELAY: "a request sooner than the host's Crawl-delay",
    Kind.ADDRESS: "a request too soon after the one before, to the same server address",
    Kind.OVERLAP: "more requests under way to one host than it allows",
    Kind.ROBOTS: "a path that robots.txt forbids",
    Kind.BLIND: "a page asked for before robots.txt was answered, or while it only gave errors",
    Kind.RETRY: "a request before a Retry-After was over",
}


class Violation(NamedTuple):
    """One broken rule: the request that broke it, and the one that made it wrong."""

    kind: Kind
    record: Record
    note: str
    earlier: Record | None = None


@dataclass(frozen=True, slots=True)
class Allowances:
    """Numbers for hosts by name; `.example` means every host below and `*` every host."""

    numbers: Mapping[str, int] = field(default_factory=dict)

    def of(self, host: str) -> int:
        """The number of the longest name that fits, else 1.

        >>> Allowances({".example": 4, "a.example": 2}).of("b.example")
        4
        """
        if host in self.numbers:
            return self.numbers[host]
        name = host.partition(":")[0]
        fitting = [key for key in self.numbers if key.startswith(".") and ("." + name).endswith(key)]
        return self.numbers[max(fitting, key=len)] if fitting else self.numbers.get("*", 1)


@dataclass(frozen=True, slots=True)
class Rules:
    """What counts as polite."""

    delay_seconds: float = 1.0
    address_delay_seconds: float = 0.0
    tolerance_seconds: float = 0.005
    connections: Allowances = Allowances()
    visit_pages: Allowances = Allowances()
    agent: str = ""  # whose robots rules count; empty: each line's own
    is_robots_first: bool = True
    is_robots_exempt: bool = False  # robots.txt itself may be fetched without a pause
    is_gap_from_start: bool = False
    assumed_retry_after_seconds: float = 0.0  # after 429 and 503 in logs that do not tell Retry-After
    addresses: Mapping[str, str] = field(
        default_factory=dict
    )  # of servers, by host, whatever the log says; `*`: others

    def address_of(self, host: str) -> str:
        """The address where the operator tells it, or nothing."""
        return self.addresses.get(host) or self.addresses.get("*", "")


class Wait(NamedTuple):
    """From the end of an answer until its Retry-After is over."""

    since: float
    until: float
    answer: Record


class Host:
    """What is remembered of one host."""

    __slots__ = ("address", "connections", "gaps", "min_gap_seconds", "overlaps", "requests", "robots_answer",
                 "robots_text", "told_at", "undecided", "visit_pages", "waits", "wanted_seconds")  # fmt: skip

    def __init__(self, name: str, rules: Rules, robots_text: str | None) -> None:
        self.requests = 0
        self.address = rules.address_of(name)
        self.min_gap_seconds: float | None = None
        self.wanted_seconds = rules.delay_seconds
        self.connections = rules.connections.of(name)
        self.visit_pages = rules.visit_pages.of(name)
        self.gaps = Lanes(self.connections)
        self.overlaps = Lanes(self.connections)
        self.robots_text = robots_text
        self.robots_answer: Record | None = None  # the last
        self.told_at: float | None = None  # when robots.txt was first answered usefully
        self.undecided: list[Record] = []  # asked for in the same instant, as far as the log says, as robots.txt
        self.waits: list[Wait] = []


class Peer:
    """What is remembered of one address, a server's or a client's."""

    __slots__ = ("ended_at", "has_several_hosts", "lanes", "last_host", "min_gap_seconds", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.min_gap_seconds: float | None = None
        self.ended_at = 0.0
        self.last_host = ""
        self.has_several_hosts = False
        self.lanes = Lanes()

    def note(self, record: Record, duration_seconds: float) -> None:
        """Count a request and the gap before it."""
        if self.requests:
            gap_seconds = record.started_at - self.ended_at
            if self.min_gap_seconds is None or gap_seconds < self.min_gap_seconds:
                self.min_gap_seconds = gap_seconds
            self.has_several_hosts = self.has_several_hosts or self.last_host != record.host
        self.requests += 1
        self.ended_at = max(self.ended_at, record.started_at + duration_seconds)
        self.last_host = record.host


NO_POLICY = Policy()


class Judge:
    """Takes records in the order of their logged times and gives the violations."""

    def __init__(self, rules: Rules, robots_texts: RobotsTexts = lambda host: None) -> None:
        self.rules = rules
        self.hosts: dict[str, Host] = {}
        self.addresses: dict[str, Peer] = {}
        self.clients: dict[str, Peer] = {}
        self._robots_texts = robots_texts

    def judge(self, record: Record) -> list[Violation]:
        """The violations that this request shows; sometimes one of an earlier request, decided only now."""
        rules = self.rules
        host = self.hosts.get(record.host)
        if host is None:
            host = self.hosts[record.host] = Host(record.host, rules, self._robots_texts(record.host))
        host.requests += 1
        policy = NO_POLICY if host.robots_text is None else self._policy(host.robots_text, record)
        found = self._blind(host, record) if rules.is_robots_first else []
        if policy.rules and (violation := _forbidden(policy, record)):
            found.append(violation)
        if record.duration_seconds is not None and (violation := _overlapping(host, record, record.duration_seconds)):
            found.append(violation)
        if not (rules.is_robots_exempt and record.is_robots):
            found += self._pauses(host, record, policy.crawl_delay_seconds)
        if record.retry_after_seconds or record.status in (429, 503):
            self._note_retry_after(host, record)
        return found

    def _pauses(self, host: Host, record: Record, crawl_delay_seconds: float) -> list[Violation]:
        """Everything that came too soon: for the host, for its Retry-After, for its address."""
        duration_seconds = 0.0 if self.rules.is_gap_from_start else record.duration_seconds or 0.0
        found = []
        if host.waits and (violation := self._too_early(host, record)):
            found.append(violation)
        if violation := self._too_soon(host, record, duration_seconds, crawl_delay_seconds):
            found.append(violation)
        name = host.address or record.address or literal_address(record.host)
        if name and (violation := self._too_soon_for_address(name, host, record, duration_seconds)):
            found.append(violation)
        self._note_client(record, duration_seconds)
        return found

    def finish(self) -> list[Violation]:
        """What can only be decided when no more records come."""
        return [violation for host in self.hosts.values() for violation in _decide_blind(host, float("inf"))]

    def _policy(self, robots_text: str, record: Record) -> Policy:
        return policy_for(robots_text, self.rules.agent or token_of_agent(record.agent))

    # ------------------------------------------------------------------------------------------------ robots first

    def _blind(self, host: Host, record: Record) -> list[Violation]:
        """Pages asked for before robots.txt was answered (RFC 9309, section 2.3.1).

        An answer below 500 tells; 429 and 499 (the client had left) do not.  Who was told once may go on with that copy
        while later answers are errors (section 2.4).
        """
        found = _decide_blind(host, record.logged_at) if host.undecided else []
        if record.is_robots:
            _note_robots_answer(host, record)
        elif host.told_at is None:
            host.undecided.append(record)
        elif record.before <= host.told_at:
            found.append(_blind_violation(host, record))
        return found

    # ------------------------------------------------------------------------------------------------- Retry-After

    def _too_early(self, host: Host, record: Record) -> Violation | None:
        """A request after an answer with Retry-After (RFC 9110, section 10.2.3) and before it was over."""
        # On one connection the order of the lines tells which came first; on several only the times do.
        doubt_seconds = record.resolution_seconds if host.connections > 1 else 0.0
        for wait in host.waits:
            ends_at = wait.until - self.rules.tolerance_seconds
            if wait.since + doubt_seconds <= record.started_at and record.before <= ends_at:
                left_seconds = wait.until - record.started_at
                note = f"{left_seconds:.3f} s before the Retry-After of a {wait.answer.status} ended"
                return Violation(Kind.RETRY, record, note, wait.answer)
        return None

    def _note_retry_after(self, host: Host, record: Record) -> None:
        seconds = record.retry_after_seconds
        if seconds is None and record.status in (429, 503):
            seconds = self.rules.assumed_retry_after_seconds
        if seconds:
            _add_wait(host, Wait(record.ended_at, record.ended_at + seconds, record))

    # ------------------------------------------------------------------------------------------------------ pauses

    def _too_soon(
        self, host: Host, record: Record, duration_seconds: float, crawl_delay_seconds: float
    ) -> Violation | None:
        wanted_seconds, kind, visit_pages = self.rules.delay_seconds, Kind.GAP, host.visit_pages
        if crawl_delay_seconds > 0:
            visit_pages = 1  # the host's own word counts for more than the operator's list
            if crawl_delay_seconds > wanted_seconds:
                wanted_seconds, kind = crawl_delay_seconds, Kind.CRAWL_DELAY
                host.wanted_seconds = max(host.wanted_seconds, wanted_seconds)
        pause_seconds = max(0.0, wanted_seconds - self.rules.tolerance_seconds)
        step = host.gaps.follow(record, duration_seconds, pause_seconds, visit_pages)
        gap_seconds = step.gap_seconds
        if gap_seconds is None or step.is_same_visit:
            return None
        if host.min_gap_seconds is None or gap_seconds < host.min_gap_seconds:
            host.min_gap_seconds = gap_seconds
        if step.is_possible or pause_seconds == 0:
            return None
        return Violation(kind, record, _gap_note(gap_seconds, wanted_seconds), step.previous)

    def _too_soon_for_address(self, name: str, host: Host, record: Record, duration_seconds: float) -> Violation | None:
        """Two requests in a row to a host that allows more than others are that host's own matter."""
        address = self.addresses.get(name)
        if address is None:
            address = self.addresses[name] = Peer()
        is_exempt = address.last_host == record.host and (host.connections > 1 or host.visit_pages > 1)
        address.note(record, duration_seconds)
        wanted_seconds = self.rules.address_delay_seconds
        pause_seconds = 0.0 if is_exempt else max(0.0, wanted_seconds - self.rules.tolerance_seconds)
        step = address.lanes.follow(record, duration_seconds, pause_seconds)
        if step.gap_seconds is None or step.is_possible or pause_seconds == 0:
            return None
        return Violation(
            Kind.ADDRESS, record, f"{_gap_note(step.gap_seconds, wanted_seconds)} for {name}", step.previous
        )

    def _note_client(self, record: Record, duration_seconds: float) -> None:
        client = self.clients.get(record.client)
        if client is None:
            client = self.clients[record.client] = Peer()
        client.note(record, duration_seconds)


def _gap_note(gap_seconds: float, wanted_seconds: float) -> str:
    if gap_seconds < 0:
        return f"{-gap_seconds:.3f} s before the end of the one before, {wanted_seconds:g} s after it wanted"
    return f"{gap_seconds:.3f} s after the one before, {wanted_seconds:g} s wanted"


def _forbidden(policy: Policy, record: Record) -> Violation | None:
    rule = policy.forbidding(record.path)
    return None if rule is None else Violation(Kind.ROBOTS, record, f"forbidden by Disallow: {rule.pattern}")


def _overlapping(host: Host, record: Record, duration_seconds: float) -> Violation | None:
    """More under way than the host has lanes, in logs that have durations."""
    step = host.overlaps.follow(record, duration_seconds, 0.0)
    if step.is_possible:
        return None
    number = "another" if host.connections == 1 else f"{host.connections} others"
    return Violation(Kind.OVERLAP, record, f"while {number} of this host had not ended", step.previous)


def _note_robots_answer(host: Host, record: Record) -> None:
    host.robots_answer = record
    if not 200 <= record.status < 500 or record.status in (429, 499):
        return
    host.told_at = record.ended_at if host.told_at is None else min(host.told_at, record.ended_at)
    host.undecided = [page for page in host.undecided if page.before <= host.told_at]


def _decide_blind(host: Host, now: float) -> list[Violation]:
    """Pages of which it is certain, by this instant, that no answer came before them."""
    decided = [page for page in host.undecided if page.before <= now]
    if decided:
        host.undecided = [page for page in host.undecided if page.before > now]
    return [_blind_violation(host, page) for page in decided]


def _blind_violation(host: Host, record: Record) -> Violation:
    if host.robots_answer is None:
        note = "robots.txt had not been asked for"
    elif host.told_at is None:
        note = f"robots.txt had answered {host.robots_answer.status}"
    else:
        note = f"robots.txt was answered {host.told_at - record.started_at:.3f} s later"
    return Violation(Kind.BLIND, record, note, host.robots_answer)


def _add_wait(host: Host, wait: Wait) -> None:
    """Waits that touch become one, so a host that answers nothing else costs no more memory."""
    apart = []
    for other in host.waits:
        if wait.since <= other.until and other.since <= wait.until:
            answer = max(wait, other, key=lambda one: one.until).answer
            wait = Wait(min(wait.since, other.since), max(wait.until, other.until), answer)
        else:
            apart.append(other)
    host.waits = [*apart[1 - MOST_WAITS :], wait]
