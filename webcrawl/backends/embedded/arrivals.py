"""New pages on their way into the frontier, as parallel lists: no object per link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from webcrawl.core.frontier import IN_MEMORY


class Arrivals:
    """Pages found together, by one parent, at one moment."""

    __slots__ = ("_per_host", "depths", "hosts", "keys", "kind", "now", "parent", "priorities", "requests", "urls")

    def __init__(self, parent: int, now: float, kind: int | None = None) -> None:
        self.parent = parent
        self.now = now
        self.kind = kind  # None: as the URLs say
        self.urls: list[str] = []
        self.keys: list[int] = []
        self.hosts: list[int] = []
        self.depths: list[int] = []
        self.requests: list[bytes | None] = []
        self.priorities: list[float] = []
        self._per_host: dict[int, int] = {}

    def add(
        self, url: str, key: int, host: int, depth: int, request: bytes | None = None, priority: float = 0.0
    ) -> None:
        """One more page."""
        self.urls.append(url)
        self.keys.append(key)
        self.hosts.append(host)
        self.depths.append(depth)
        self.requests.append(request)
        self.priorities.append(priority)
        self._per_host[host] = self._per_host.get(host, 0) + 1

    def of_host(self, host: int) -> int:
        """How many of them belong to this host."""
        return self._per_host.get(host, 0)

    def rows(self, first: int, kinds: list[int], clock_offset: float) -> Iterator[tuple[Any, ...]]:
        """Rows of the table `pages`, for those that can be written down."""
        found_at = self.now + clock_offset
        columns = zip(self.urls, self.keys, self.hosts, self.depths, kinds, self.requests, strict=True)
        for page, (url, key, host, depth, kind, request) in enumerate(columns, first):
            if request is None:
                yield page, url, signed(key), host, self.parent, depth, kind, found_at, None
            elif request != IN_MEMORY:
                yield page, url, signed(key), host, self.parent, depth, kind, found_at, request.decode()


def signed(key: int) -> int:
    """SQLite's integers are signed."""
    return key - (1 << 64) if key >> 63 else key
