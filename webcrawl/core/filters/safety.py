"""Safety: hosts that may be crawled at all, and whether our polite manners may be switched off for them.

Until robots.txt is understood the crawler keeps to hosts the operator has named: WEBCRAWL_SAFETY_ALLOW lists host
names, suffixes (".example") and networks ("127.0.0.0/8"). What counts is the peer we connect to: behind a proxy that is
the proxy, so a proxy inside the list makes every host behind it allowed.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, resolve

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class AllowedPeers:
    """Refuses hosts whose peer is not in the list."""

    allow: tuple[str, ...]
    proxy_for: Callable[[str, str], str | None] = lambda scheme, host: None  # the host of the proxy that is used
    by_host: ClassVar[bool] = True

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse every host whose peer the operator has not named."""
        proxy = self.proxy_for(url.partition(":")[0], host)
        return None if self.contains(proxy or host) else Reason.NOT_ALLOWED

    def refuse_url(self, url: str) -> Reason | None:
        """The same for a URL as it comes, e.g. of a request beside the frontier; schemes without a host pass."""
        resolved = resolve(url, [url])[0] if url.startswith(("http:", "https:")) else None
        return None if resolved is None else self.refuse(resolved, host_of(resolved))

    def contains(self, host: str) -> bool:
        """Whether this host, or the address it is written as, is in the list."""
        names, networks = _split(self.allow)
        if host in names or any(host.endswith(name) for name in names if name.startswith(".")):
            return True
        address = _address("127.0.0.1" if host == "localhost" else host)
        return address is not None and any(address in network for network in networks)


def _split(allow: tuple[str, ...]) -> tuple[frozenset[str], list[Network]]:
    networks = [(entry, _network(entry)) for entry in allow]
    names = frozenset(entry.lower() for entry, network in networks if network is None)
    return names, [network for _, network in networks if network is not None]


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
