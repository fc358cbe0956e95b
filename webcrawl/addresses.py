"""AddressBook: where hosts live, for the frontier, from the crawl's one resolver.

The frontier hands out no page before its host's address is known, because hosts at one address share its turns. What
it is told is what the connection will use: both ask the same resolver, and an answer holds for its time to live. For a
host behind a proxy nobody here can know the address; the proxy resolves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from webcrawl.core.names import Resolution
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of
from webcrawl.resolver import CachingResolver

ProxyFor = Callable[[str, str], str | None]


class AddressBook:
    """Answers at once from what the resolver remembers; `on_resolved(host, reason)` hears of look-ups."""

    def __init__(self, proxy_for: ProxyFor, clock: Callable[[], float]) -> None:
        self._proxy_for, self._clock = proxy_for, clock
        self._resolver: CachingResolver | None = None
        self._on_resolved: Callable[[str, Reason], None] = lambda host, reason: None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, resolver: CachingResolver, on_resolved: Callable[[str, Reason], None]) -> None:
        """The crawl has started."""
        self._resolver, self._on_resolved = resolver, on_resolved

    def known(self, url: str) -> str | None:
        """See `core.names.Addresses`."""
        assert self._resolver is not None, "asked before the crawl has started"
        host = host_of(url)
        if self._proxy_for(url.partition(":")[0], host):
            return ""
        found = self._resolver.cached(host, self._clock())
        return found.addresses[0] if found is not None and found.addresses else None

    def look_up(self, url: str) -> None:
        """See `core.names.Addresses`."""
        task = asyncio.get_running_loop().create_task(self._resolve(host_of(url)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resolve(self, host: str) -> None:
        assert self._resolver is not None
        self._on_resolved(host, _failure(await self._resolver.resolve(host)))


def _failure(resolution: Resolution) -> Reason:
    if resolution.addresses:
        return Reason.NONE
    return Reason.TIMEOUT if resolution.is_temporary else Reason.NO_SUCH_HOST
