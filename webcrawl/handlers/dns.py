"""Names to addresses, with a memory.

Rules kept: an answer is believed for TTL_SECONDS and at most NAMES_REMEMBERED are kept, oldest dropped first; one
question per name is under way at a time, whoever asks; failures are not remembered, the retry policy decides on them.
`getaddrinfo` gives no TTL, so a fixed one well below common DNS TTLs stands in.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from time import monotonic

from scrapy.exceptions import CannotResolveHostError

TTL_SECONDS = 60.0
NAMES_REMEMBERED = 10_000


def is_address(host: str) -> bool:
    """Whether a host is an IP literal already.

    >>> is_address("127.0.0.1"), is_address("::1"), is_address("example.org")
    (True, True, False)
    """
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Resolver:
    """Addresses of hosts, in the system's order of preference."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._asking: dict[str, asyncio.Task[list[str] | OSError | UnicodeError]] = {}

    async def addresses(self, host: str) -> list[str]:
        """IP addresses of a host; CannotResolveHostError if there are none."""
        known = self._known.get(host)
        if known is not None and known[0] > monotonic():
            return known[1]
        if is_address(host):
            return [host]
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.get_running_loop().create_task(self._ask(host))
        # Shielded: one impatient request must not take the answer from the others.
        answer = await asyncio.shield(task)
        if isinstance(answer, Exception):
            raise CannotResolveHostError(f"DNS lookup of {host!r} failed: {answer}") from answer
        return answer

    def close(self) -> None:
        """Give up on questions under way."""
        for task in self._asking.values():
            task.cancel()

    async def _ask(self, host: str) -> list[str] | OSError | UnicodeError:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            # As a value: an exception nobody waits for any more would be logged by the loop.
            return error
        finally:
            self._asking.pop(host, None)
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        self._remember(host, addresses)
        return addresses

    def _remember(self, host: str, addresses: list[str]) -> None:
        self._known.pop(host, None)
        if len(self._known) >= NAMES_REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[host] = (monotonic() + TTL_SECONDS, addresses)
