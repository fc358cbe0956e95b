"""When a host may be asked again, and when a failed page.

The pause counts from the end of the last answer, not from its start: a slow server is asked less often. With politeness
off (for webs you own) there is no pause and a host may serve several connections at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """How one host is treated."""

    delay_seconds: float
    connections: int = 1

    def next_at(self, ended_at: float) -> float:
        """The earliest instant of the next request after an answer that ended at `ended_at`."""
        return ended_at + self.delay_seconds


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a failed page is tried again, and after what pause."""

    times: int
    delay_seconds: float

    def due_at(self, failures: int, ended_at: float) -> float | None:
        """When to try again after so many failures in a row, each pause twice the last; None: give up.

        >>> RetryPolicy(times=2, delay_seconds=60).due_at(failures=2, ended_at=1000.0)
        1120.0
        """
        if failures > self.times:
            return None
        return ended_at + self.delay_seconds * 2.0 ** (failures - 1)
