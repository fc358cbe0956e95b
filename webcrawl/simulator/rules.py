"""Rules as text: what is the case, with which numbers, on which hosts.

    NAME[:ARGUMENT][,KEY=VALUE ...][@WHERE]

WHERE is the name of a host or a share of the hosts (0 to 1); without it a rule holds for all of them.  A share means
exactly that many hosts, rounded; which ones follows from the seed.  The first host, where the crawl begins, is the last
one that a share takes, so that a crawl gets somewhere.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.mixing import mixed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SHARE = re.compile(r"\d+(\.\d*)?|\.\d+")


@dataclass(frozen=True)
class Rule:
    """One rule, taken apart.  `share` is None where the rule names a host."""

    text: str
    name: str
    argument: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    host: str = ""
    share: float | None = 1.0

    def number(self, key: str, default: float) -> float:
        """The option as a number that is not negative."""
        value = self.options.get(key)
        return default if value is None else not_negative(value, self)


def read_rule(text: str, names: Iterable[str], keys: Iterable[str]) -> Rule:
    """Takes a rule apart; names and keys that do not exist are refused."""
    what, _, where = text.partition("@")
    head, *pairs = what.split(",")
    name, _, argument = head.partition(":")
    if name not in names:
        raise CannotServeError(f"The rule {text!r} begins with an unknown name. Choose one of {', '.join(names)}.")
    options = dict(pair.partition("=")[::2] for pair in pairs)
    unknown = [key for key in options if key not in keys]
    if unknown:
        raise CannotServeError(f"The rule {text!r} has an unknown option {unknown[0]!r}. Choose of {', '.join(keys)}.")
    host, share = (where, None) if where and not _SHARE.fullmatch(where) else ("", float(where or 1))
    if share is not None and share > 1:
        raise CannotServeError(f"The rule {text!r} is for a share of the hosts, which {where} is not. Choose 0 to 1.")
    return Rule(text, name, argument, options, host, share)


def not_negative(value: str, rule: Rule) -> float:
    if not _SHARE.fullmatch(value):
        raise CannotServeError(f"The rule {rule.text!r} needs a number of 0 or more where it has {value!r}.")
    return float(value)


@lru_cache(maxsize=16)
def _ranks(seed: int, hosts: int) -> array[int]:
    """For each host its place in an order of all hosts that the seed decides; host 0 comes last."""
    order = sorted(range(1, hosts), key=lambda host: mixed(seed, host, 0))
    ranks = array("L", bytes(array("L").itemsize * hosts))
    for rank, host in enumerate((*order, 0)):
        ranks[host] = rank
    return ranks


def chooser(
    rules: Iterable[Rule], seed: int, hosts: int, host_number: Callable[[str], int | None]
) -> Callable[[int], int | None]:
    """A function from the number of a host to the place of the rule that holds for it, or None.

    A rule that names the host wins; the others share the hosts among them, in their order.
    """
    named: dict[int, int] = {}
    upto, share = [], 0.0
    for place, rule in enumerate(rules):
        if rule.share is None:
            named[_existing(rule, host_number)] = place
        else:
            share += rule.share
            upto.append((round(share * hosts), place))
    if share > 1 + 1e-9:
        raise CannotServeError(f"The rules are for {share:g} of the hosts together. Lower their shares to 1 in all.")

    def choose(host: int) -> int | None:
        if host in named or not upto:
            return named.get(host)
        rank = 0 if upto[0][0] == hosts else _ranks(seed, hosts)[host]
        return next((place for end, place in upto if rank < end), None)

    return choose


def _existing(rule: Rule, host_number: Callable[[str], int | None]) -> int:
    number = host_number(rule.host)
    if number is None:
        raise CannotServeError(f"The rule {rule.text!r} is for {rule.host}, which is no host of this web.")
    return number
