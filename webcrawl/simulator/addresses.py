"""Which server address a host has: several hosts share one, as on the real web, where one machine serves many names.

Addresses are those of this machine's loopback network, 127.0.0.1 and the following.  Linux answers at all of them; a
system that has only 127.0.0.1 gets only that one.  Hosts that always refuse connections have an address of their own
at which nobody listens.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.mixing import mixed, salted

if TYPE_CHECKING:
    from webcrawl.simulator.faults import Faults

MOST_ADDRESSES = 200


@cache
def has_further_loopback() -> bool:
    """Whether this system has loopback addresses beside 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            return False
    return True


@dataclass(frozen=True)
class Addresses:
    """The addresses of a web with `count` of them."""

    seed: int
    count: int = 1
    faults: Faults | None = None

    def check(self) -> None:
        if not 1 <= self.count <= MOST_ADDRESSES:
            raise CannotServeError(
                f"A web cannot have {self.count} server addresses. Choose 1 to {MOST_ADDRESSES} with --address-count."
            )

    def of(self, host: int) -> str:
        """The address of a host, by its number."""
        if not has_further_loopback():
            return _loopback(0)
        if self.faults is not None and self.faults.is_refusing(host):
            return _loopback(self.count)
        return _loopback(mixed(salted(self.seed, "address"), host, 0) % self.count)

    @property
    def listening(self) -> tuple[str, ...]:
        """Where the server listens, 127.0.0.1 first."""
        return tuple(map(_loopback, range(self.count if has_further_loopback() else 1)))

    @property
    def closed(self) -> tuple[str, ...]:
        """Where nobody may listen."""
        is_needed = self.faults is not None and self.faults.has_refusing_hosts and has_further_loopback()
        return (_loopback(self.count),) if is_needed else ()


def _loopback(number: int) -> str:
    return f"127.0.0.{number + 1}"
