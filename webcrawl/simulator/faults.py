"""Hosts that are busy, down or slow: which request of which host fails, and how.

    busy:429 | busy:503      an error, with Retry-After if `retry` says so (see retryafter.py); pages only
    refuse                   closes the connection without an answer
    reset                    breaks it (TCP RST)
    silent                   takes the request and never answers
    tls                      breaks the TLS handshake; plain http is not touched
    latency:SECONDS          answers late
    latency:castillo         late as servers were found to be: 90 % in 1.5 s, 95 % in 3 s (Castillo 2004, section 4.2.1)

Options: `first=K` or `window=N-M` for some of the requests of each host, counted from 1; `chance=P` for a share of
them; `on=pages|robots|all` for the kind of request; `factor=F` to make the latencies shorter.  Everything follows from
the seed and the number of the request, so the same requests in the same order meet the same faults.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING

from webcrawl.simulator.answers import (
    BAD_TLS,
    FAILURES,
    REFUSED,
    Answer,
    CannotServeError,
    failure,
    message,
)
from webcrawl.simulator.mixing import fraction, salted
from webcrawl.simulator.retryafter import is_form, retry_after
from webcrawl.simulator.rules import Rule, chooser, not_negative, read_rule

if TYPE_CHECKING:
    from collections.abc import Callable

_KEYS = ("first", "window", "chance", "on", "retry", "factor")
_NAMES = ("busy", "latency", *sorted(FAILURES))
_WINDOW = re.compile(r"(\d+)-(\d*)")
_SCOPES = {"pages": (True, False), "robots": (False, True), "all": (True, True)}
# The log-normal distribution with these two quantiles: 90 % below 1.5 s and 95 % below 3 s.
_QUANTILE_90, _QUANTILE_95 = NormalDist().inv_cdf(0.90), NormalDist().inv_cdf(0.95)
_SIGMA = math.log(3 / 1.5) / (_QUANTILE_95 - _QUANTILE_90)
_MU = math.log(1.5) - _SIGMA * _QUANTILE_90
LONGEST_LATENCY_SECONDS = 60.0


def castillo_latency_seconds(chance: float) -> float:
    """The latency below which this share of the answers lies, at most a minute.

    >>> [round(castillo_latency_seconds(share), 2) for share in (0.5, 0.9, 0.95)]
    [0.13, 1.5, 3.0]
    """
    quantile = NormalDist().inv_cdf(min(max(chance, 1e-9), 1 - 1e-9))
    return min(math.exp(_MU + _SIGMA * quantile), LONGEST_LATENCY_SECONDS)


@dataclass(frozen=True)
class Fault:
    """One rule, read."""

    rule: Rule
    first: int
    last: float
    chance: float
    on_pages: bool
    on_robots: bool
    seed: int

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def is_permanent(self) -> bool:
        """Whether a host with this fault never gives a page."""
        is_failing = self.name in FAILURES and self.name != BAD_TLS
        return self.first <= 1 and math.isinf(self.last) and self.chance >= 1 and self.on_pages and is_failing

    def hits(self, host: int, number: int) -> bool:
        """Whether the n-th request of a host (from 1) meets this fault."""
        is_inside = self.first <= number <= self.last
        return is_inside and (self.chance >= 1 or fraction(self.seed, host, number) < self.chance)

    def latency_seconds(self, host: int, number: int) -> float:
        """How late the n-th request of a host is answered."""
        factor = self.rule.number("factor", 1.0)
        if self.rule.argument != "castillo":
            return factor * float(self.rule.argument)
        return factor * castillo_latency_seconds(fraction(self.seed + 1, host, number))

    def answer(self, number: int, now: float) -> Answer:
        """What the client gets instead of a page."""
        if self.name in FAILURES:
            return failure(self.name)
        busy = message(int(self.rule.argument or 503), "This host has too much to do. Please come back later.")
        form = self.rule.options.get("retry")
        if form is None:
            return busy
        sent = retry_after(form, now, number - 1)
        return Answer(busy.status, busy.body, retry_after_text=sent.text, retry_after_seconds=sent.seconds)


@dataclass(frozen=True)
class Faults:
    """The faults of all hosts.  A host may have several; the first that hits decides, latencies add up."""

    texts: tuple[str, ...]
    seed: int
    hosts: int
    host_number: Callable[[str], int | None]

    @cached_property
    def _chosen(self) -> tuple[tuple[Fault, Callable[[int], int | None]], ...]:
        faults = [_read(text, salted(self.seed, f"fault {place}")) for place, text in enumerate(self.texts)]
        return tuple((fault, chooser((fault.rule,), fault.seed, self.hosts, self.host_number)) for fault in faults)

    def check(self) -> None:
        """Raises if a rule is no rule or names no host."""
        self.of(0)

    def of(self, host: int) -> tuple[Fault, ...]:
        """The faults of a host."""
        return tuple(fault for fault, choose in self._chosen if choose(host) is not None)

    def is_down(self, host: int) -> bool:
        """Whether a host never gives a page."""
        return any(fault.is_permanent for fault in self.of(host))

    def is_refusing(self, host: int) -> bool:
        """Whether a host always refuses connections, so that nobody needs to listen at its address."""
        return any(fault.is_permanent and fault.on_robots and fault.name == REFUSED for fault in self.of(host))

    @cached_property
    def has_refusing_hosts(self) -> bool:
        return any(fault.is_permanent and fault.name == REFUSED for fault, _ in self._chosen)


def _read(text: str, seed: int) -> Fault:
    rule = read_rule(text, _NAMES, _KEYS)
    _check_argument(rule)
    if "retry" in rule.options and not is_form(rule.options["retry"]):
        raise CannotServeError(f"The rule {text!r} needs retry=SECONDS, date+SECONDS, past or absurd.")
    scope = rule.options.get("on", "pages" if rule.name == "busy" else "all")
    if scope not in _SCOPES:
        raise CannotServeError(f"The rule {text!r} is for {scope!r}. Choose on=pages, on=robots or on=all.")
    on_pages, on_robots = _SCOPES[scope]
    first, last = _window(rule)
    return Fault(rule, first, last, rule.number("chance", 1.0), on_pages, on_robots, seed)


def _check_argument(rule: Rule) -> None:
    if rule.name == "busy" and rule.argument not in {"", "429", "503"}:
        raise CannotServeError(f"The rule {rule.text!r} needs the status 429 or 503, such as busy:429.")
    if rule.name == "latency" and rule.argument != "castillo":
        not_negative(rule.argument, rule)
    if rule.name in FAILURES and rule.argument:
        raise CannotServeError(f"The rule {rule.text!r} has {rule.argument!r} after {rule.name}, which takes nothing.")


def _window(rule: Rule) -> tuple[int, float]:
    if "window" not in rule.options:
        return 1, rule.number("first", math.inf)
    match = _WINDOW.fullmatch(rule.options["window"])
    if match is None:
        raise CannotServeError(f"The rule {rule.text!r} needs window=N-M, the numbers of two requests from 1.")
    return int(match[1]), float(match[2] or math.inf)
