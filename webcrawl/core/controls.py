"""What an operator may change while a crawl runs: commands, and the rules that stay in force.

A command is what was typed (`scrapy control block .example.org`), checked and in one spelling. Some commands leave a
rule behind, which is stored and holds until it is taken back:

    delay     a host's own pause                      by the host's name
    block     pages that are not asked for            by target
    boost     pages whose scores are changed          by target, in the order in which they were set
    paused    nobody is asked                         there is only one

A target is a host, a site or pages, written as in the opt-out list (see `filters.optout`): `www.example.org`,
`.example.org`, `example.org/private/*`. It counts for http, https and every port.

Rules kept here:
1. Commands can be repeated: whoever is killed between doing and acknowledging does it again, and nothing is different.
   So a boost says what the score is to be made of, not by how much to change it, and a second one replaces the first.
2. `Rules` is a value; a change makes a new one.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from webcrawl.core.errors import ControlError
from webcrawl.core.filters.optout import OptOut, spelled
from webcrawl.core.reasons import Reason

LONGEST_DELAY_SECONDS = 30 * 86_400.0
LARGEST_FACTOR = 1e6
LARGEST_AMOUNT = 1e9

# Every command and what follows it.
SYNTAX = {
    "delay": "HOST SECONDS|default",
    "block": "TARGET",
    "unblock": "TARGET",
    "boost": "TARGET xFACTOR|+AMOUNT|-AMOUNT|default",
    "drop": "TARGET",
    "pause": "",
    "resume": "",
    "seeds": "URL ... | FILE",
    "retry": "REASON",
    "status": "",
    "list": "",
}
DEFAULT = "default"  # takes a delay or a boost back

# What a page may be put back for: reasons of pages, and of answers. Links that were not taken have no row, and what is
# settled all the same was not refused.
RETRIED = {reason.key: reason for reason in Reason if Reason.TOO_DEEP <= reason < Reason.ALIAS}


# ------------------------------------------------------------------------------------------------ commands


@dataclass(frozen=True, slots=True)
class Command:
    """One thing the operator wants; made by `parse`, or read back by `from_facts`."""

    name: str
    target: str = ""  # host, site, pages or reason, in its one spelling
    value: str = ""
    urls: tuple[str, ...] = ()

    def facts(self) -> dict[str, Any]:
        """As it is written down."""
        facts: dict[str, Any] = {"command": self.name, "target": self.target, "value": self.value}
        return {**facts, "urls": list(self.urls)} if self.urls else facts

    def sentence(self) -> str:
        """As it was typed.

        >>> parse(["delay", "Example.ORG", "30"]).sentence()
        'delay example.org 30'
        """
        urls = f"{len(self.urls)} URLs" if len(self.urls) > 1 else "".join(self.urls)
        return " ".join(filter(None, (self.name, self.target, self.value, urls)))


def parse(words: list[str], urls: Iterable[str] = ()) -> Command:
    """What was typed, checked; `urls` are those that follow `seeds`.

    >>> parse(["boost", ".Example.org", "x2"])
    Command(name='boost', target='.example.org', value='x2', urls=())
    """
    name, *others = words or [""]
    if name not in SYNTAX:
        near = difflib.get_close_matches(name, SYNTAX, n=1)
        raise ControlError(
            f"{name!r} is no command." if name else "No command was given.",
            "",
            f"{f'Did you mean {near[0]}? ' if near else ''}There are: {', '.join(SYNTAX)}.",
        )
    if name == "seeds":
        return _seeds(tuple(urls))
    wanted = len(SYNTAX[name].split())
    if len(others) != wanted:
        raise ControlError(
            f"{name} takes {wanted or 'no'} word{'' if wanted == 1 else 's'} and was given {len(others)}.",
            "",
            f"Write: scrapy control {name} {SYNTAX[name]}".rstrip() + ".",
        )
    return _PARSERS[name](name, *others) if others else Command(name)


def from_facts(facts: Any) -> Command:
    """A command that was written down; ControlError for what is none, e.g. of a newer version."""
    if not isinstance(facts, dict):
        raise ControlError("What was written down is no command.", "", "Give it again with scrapy control.")
    words = [str(facts.get(part) or "") for part in ("command", "target", "value")]
    urls = facts.get("urls") or ()
    return parse([words[0], *filter(None, words[1:])], map(str, urls if isinstance(urls, list) else ()))


def _seeds(urls: tuple[str, ...]) -> Command:
    if not urls:
        raise ControlError("No URL was given.", "", "Write: scrapy control seeds URL ... or scrapy control seeds FILE.")
    return Command("seeds", urls=urls)


def _target(text: str) -> str:
    try:
        return spelled(text)
    except ValueError:
        raise ControlError(
            f"{text!r} is neither a host, nor a site, nor pages of them.",
            "",
            "Write a host (www.example.org), a site (.example.org) or pages (example.org/private/*), without port.",
        ) from None


def _with_target(name: str, text: str) -> Command:
    return Command(name, _target(text))


def _delay(name: str, host: str, seconds: str) -> Command:
    target = _target(host)
    if target.startswith(".") or "/" in target:
        raise ControlError(f"{host} is not one host.", "A pause is that of a host.", "Name it: www.example.org.")
    if seconds == DEFAULT:
        return Command(name, target, DEFAULT)
    number = _number(seconds)
    if number is None or not 0 <= number <= LONGEST_DELAY_SECONDS:
        raise ControlError(
            f"A delay of {seconds!r} cannot be kept.",
            "",
            f"Give seconds, {LONGEST_DELAY_SECONDS:,.0f} at most, or `default` to take the host's own delay back. For "
            "never, use block.",
        )
    return Command(name, target, f"{number:g}")


def _boost(name: str, target: str, value: str) -> Command:
    if value != DEFAULT:
        Boost.parse(value)
    return Command(name, _target(target), value)


def _retry(name: str, key: str) -> Command:
    if key not in RETRIED:
        near = difflib.get_close_matches(key, RETRIED, n=1)
        raise ControlError(
            f"{key!r} is no reason for which pages can be put back.",
            "",
            f"{f'Did you mean {near[0]}? ' if near else ''}There are: {', '.join(RETRIED)}.",
        )
    return Command(name, key)


_PARSERS: Mapping[str, Any] = {
    "delay": _delay,
    "block": _with_target,
    "unblock": _with_target,
    "boost": _boost,
    "drop": _with_target,
    "retry": _retry,
}


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# ------------------------------------------------------------------------------------------------ rules


class Boost(NamedTuple):
    """What becomes of a score: a factor raises it if it is above 1, an amount is added."""

    factor: float = 1.0
    amount: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Boost:
        """`x2` is a factor, `+10` and `-10` are amounts; a bare number could be either and is refused."""
        number = _number(text[1:]) if text[1:2].isdigit() or text[1:2] == "." else None
        if number is not None and text[0] == "x" and 1 / LARGEST_FACTOR <= number <= LARGEST_FACTOR:
            return cls(factor=number)
        if number is not None and text[0] in "+-" and number <= LARGEST_AMOUNT:
            return cls(amount=number if text[0] == "+" else -number)
        raise ControlError(
            f"{text!r} does not say how scores are to change.",
            "",
            "Write a factor (x2 raises, x0.5 lowers), an amount (+10 or -10), or `default` to take a boost back.",
        )

    def apply(self, score: float) -> float:
        """The new score. A negative one is divided, so that a factor above 1 always raises.

        >>> Boost.parse("x2").apply(3.0), Boost.parse("x2").apply(-3.0), Boost.parse("-1").apply(3.0)
        (6.0, -1.5, 2.0)
        """
        return (score * self.factor if score > 0 else score / self.factor) + self.amount


class Row(NamedTuple):
    """A rule as it is stored; no value: it was taken back."""

    kind: str
    target: str
    value: str | None


@dataclass(frozen=True)
class Rules:
    """Every rule in force."""

    delays: Mapping[str, float] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    boosts: Mapping[str, str] = field(default_factory=dict)
    is_paused: bool = False

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[str, str, str | None]]) -> Rules:
        """The rules of stored rows, in the order in which they were set."""
        rules = cls()
        for row in rows:
            rules = rules.after(Row(*row))
        return rules

    def after(self, row: Row) -> Rules:
        """The rules when this one is set or taken back; one that is set again comes last."""
        kind, target, value = row
        if kind == "paused":
            return replace(self, is_paused=value is not None)
        if kind == "block":
            others = tuple(one for one in self.blocks if one != target)
            return replace(self, blocks=others if value is None else (*others, target))
        if kind == "delay":
            delays = {name: seconds for name, seconds in self.delays.items() if name != target}
            return replace(self, delays=delays if value is None else {**delays, target: float(value)})
        assert kind == "boost", f"{kind} is no rule"
        boosts = {name: text for name, text in self.boosts.items() if name != target}
        return replace(self, boosts=boosts if value is None else {**boosts, target: value})

    @cached_property
    def block_list(self) -> OptOut:
        """The blocks, to be asked about URLs."""
        return OptOut(self.blocks, Reason.BLOCKED)

    @cached_property
    def _boosts(self) -> list[tuple[OptOut, Boost]]:
        return [(OptOut([target]), Boost.parse(value)) for target, value in self.boosts.items()]

    def boosted(self, url: str, host: str, score: float) -> float:
        """What the rules make of a page's score."""
        for target, boost in self._boosts:
            if target.covers(url, host):
                score = boost.apply(score)
        return score

    def facts(self) -> dict[str, Any]:
        """For people and programs."""
        return {
            "paused": self.is_paused,
            "delays": dict(self.delays),
            "blocks": list(self.blocks),
            "boosts": dict(self.boosts),
        }


def rows_of(command: Command) -> list[Row]:
    """The rules that a command sets or takes back."""
    name, target, value = command.name, command.target, command.value
    if name in ("pause", "resume"):
        return [Row("paused", "", "yes" if name == "pause" else None)]
    if name in ("block", "unblock"):
        return [Row("block", target, "yes" if name == "block" else None)]
    if name in ("delay", "boost"):
        return [Row(name, target, None if value == DEFAULT else value)]
    return []


def why_too_short(command: Command, least_seconds: float, may_hurry: bool) -> str | None:
    """Why a delay is refused: only who owns a host may make its pauses shorter."""
    if command.value == DEFAULT or may_hurry or float(command.value) >= least_seconds:
        return None
    return (
        f"A delay of {command.value} s for {command.target} is below "
        f"WEBCRAWL_POLITENESS_DELAY_SECONDS={least_seconds:g}. "
        "A host of somebody else may only be asked less often. Give a longer delay; for a host you own, list it in "
        "WEBCRAWL_SAFETY_ALLOW."
    )


# ------------------------------------------------------------------------------------------------ answers


@dataclass(slots=True)
class Answer:
    """What became of a command."""

    text: str
    is_applied: bool = True
    warnings: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"applied": self.is_applied, "text": self.text, "warnings": self.warnings, **self.facts}


def unknown_target(target: str) -> str:
    """The warning for a target that matches nothing, most often a typing error."""
    if target.startswith("."):
        return f"No page of a host of {target} is known."
    host, slash, _ = target.partition("/")
    return f"No page of that host is known: {host}." if not slash else f"No known page is changed by this: {target}."
