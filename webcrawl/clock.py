"""The crawl's clock: runs with the monotonic clock, so that gaps between requests hold when the wall clock is set."""

from __future__ import annotations

import time


class Clock:
    """Epoch seconds as of the start, counted on by the monotonic clock."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """The crawl's present."""
        return time.monotonic() + self._offset

    def drift(self) -> float:
        """By how much the wall clock has been set since the start; add it to what is stored."""
        drift = time.time() - self.now()
        return drift if abs(drift) > 1.0 else 0.0
