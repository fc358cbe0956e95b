"""Safety: which hosts may be crawled at all, and which addresses may be connected to.

Rules kept:
- Own hosts, those the operator has named in WEBCRAWL_SAFETY_ALLOW (names, suffixes as in ".example", networks as in
  "127.0.0.0/8"), may be crawled. Behind a proxy that is in the list every host is an own one.
- Private hosts, those that the public internet does not know by this address or name, may not: a link from outside must
  not lead to the router or the database next door. The one exception is an origin (scheme, host and port) that the
  operator gave as a seed.
- Public hosts may be crawled by whoever says whom their webmasters can reach (WEBCRAWL_CONTACT).
- What a name resolves to is judged again before the connection is made (`check_address`): anybody may let a public name
  point to a private address (DNS rebinding). A seed with a public name does not change that, since the owner of the
  name decides where it points, not the operator. Behind a proxy the proxy resolves names, so there only addresses
  that stand in a URL are judged.

Sources: IANA's registries of special-purpose addresses (RFC 6890), of IPv6 unicast (2000::/3) and of special-use names.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable

from webcrawl.core.filters import REMEMBERED_HOSTS
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, origin_of, resolve

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
ProxyFor = Callable[[str, str], str | None]

LOOPBACK = "127.0.0.1"

_PRIVATE_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network, unspecified (RFC 791 §3.2)
        "10.0.0.0/8",  # RFC 1918, with 172.16.0.0/12 and 192.168.0.0/16
        "100.64.0.0/10",  # shared by the customers of a provider (RFC 6598)
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local (RFC 3927); where clouds tell machines their secrets
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.0.2.0/24",  # documentation (RFC 5737), with 198.51.100.0/24 and 203.0.113.0/24
        "192.88.99.0/24",  # relays from 6to4, given up (RFC 7526)
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks (RFC 2544)
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
)
# Of IPv6 only this is public, without the networks below it.
_UNICAST_V6 = ipaddress.IPv6Network("2000::/3")
_PRIVATE_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation (RFC 3849), with 3fff::/20 (RFC 9637)
        "3fff::/20",
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # an IPv4 address in its last 32 bits (RFC 6052 §2.2)

# RFC 6761 §6.3, RFC 6762, RFC 8375 and ICANN's reservation of .internal (2024).
_PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".home.arpa")


class AllowedPeers:
    """Refuses hosts by the module's rules.

    `allow` is WEBCRAWL_SAFETY_ALLOW, `proxy_for` answers the host of the proxy that is used for a scheme and host,
    `origins` are those of the seeds, and `has_contact` says whether WEBCRAWL_CONTACT is set.
    """

    def __init__(
        self,
        allow: Iterable[str],
        proxy_for: ProxyFor = lambda scheme, host: None,
        origins: frozenset[str] = frozenset(),
        has_contact: bool = False,
    ) -> None:
        networks = [(entry, _network(entry)) for entry in allow]
        names = [_spelled(entry) for entry, network in networks if network is None]
        self._networks = tuple(network for _, network in networks if network is not None)
        self._names = frozenset(names)
        self._suffixes = tuple(name for name in names if name.startswith("."))
        self._proxy_for = proxy_for
        self._has_contact = has_contact
        self._origins: frozenset[str] = frozenset()
        self._seed_hosts: frozenset[str] = frozenset()
        self._verdicts: dict[tuple[str, str], Reason | None] = {}
        self.except_origins(origins)

    def except_origins(self, origins: Iterable[str]) -> None:
        """The operator has given seeds of these origins."""
        hosts = {origin: host_of(origin + "/") for origin in origins}
        excepted = {origin: host for origin, host in hosts.items() if is_private_host(host) and not self.contains(host)}
        self._origins |= frozenset(excepted)
        self._seed_hosts |= frozenset(map(_spelled, excepted.values()))

    @property
    def by_host(self) -> bool:
        """Whether the host alone decides; where a private origin is a seed, scheme and port count too."""
        return not self._origins

    def refuse(self, url: str, host: str) -> Reason | None:
        """Why this URL is not taken, or None."""
        verdict = self._verdict(url.partition(":")[0], host)
        if verdict is Reason.NOT_ALLOWED and self._origins and origin_of(url) in self._origins:
            return None
        return verdict

    def refuse_url(self, url: str) -> Reason | None:
        """The same for a URL as it comes, e.g. of a request beside the frontier; schemes without a host pass."""
        resolved = resolve(url, [url])[0] if url[:6].lower().startswith(("http:", "https:")) else None
        return None if resolved is None else self.refuse(resolved, host_of(resolved))

    def check_address(self, host: str, ip: str) -> str | None:
        """Why a host must not be connected to at this address, which its name resolved to; None when it may be."""
        if not is_private_address(_address(ip)) or self.contains(host) or self.contains(ip):
            return None
        if _spelled(host) in self._seed_hosts:
            return None
        return (
            f"{host} resolves to {ip}, a private address, and a page must not lead the crawl into a private network. "
            f"For a host you own, add it: -s WEBCRAWL_SAFETY_ALLOW={_spelled(host)}"
        )

    def is_own(self, url: str, host: str) -> bool:
        """Whether the operator has named this host, or the proxy that leads to it: only there manners may be off."""
        if self.contains(host):
            return True
        proxy = self._proxy_for(url.partition(":")[0], host)
        return proxy is not None and self.contains(proxy)

    def contains(self, host: str) -> bool:
        """Whether this host, or the address it is written as, is in the list."""
        name = _spelled(host)
        if name in self._names or name.endswith(self._suffixes):
            return True
        address = _address(LOOPBACK if _is_localhost(name) else name)
        return address is not None and any(address in network for network in self._networks)

    def _verdict(self, scheme: str, host: str) -> Reason | None:
        """By host, remembered: looking for a proxy takes longer than all the rest."""
        memory = (scheme, host)
        if memory not in self._verdicts:
            if len(self._verdicts) >= REMEMBERED_HOSTS:
                self._verdicts.clear()
            self._verdicts[memory] = self._judged(scheme, host)
        return self._verdicts[memory]

    def _judged(self, scheme: str, host: str) -> Reason | None:
        if self.is_own(f"{scheme}:", host):
            return None
        if is_private_host(host):
            return Reason.NOT_ALLOWED
        return None if self._has_contact else Reason.NO_CONTACT


def is_private_host(host: str) -> bool:
    """Whether a host is private by the looks of it: a private address, or a name that only its own network knows.

    >>> [is_private_host(host) for host in ("[::1]", "printer.local", "intranet", "example.org")]
    [True, True, True, False]
    """
    name = _spelled(host)
    address = _address(name)
    if address is not None:
        return is_private_address(address)
    return "." not in name or name.endswith(_PRIVATE_SUFFIXES)


def is_private_address(address: Address | None) -> bool:
    """Whether an address is not one of the public internet; what is no address at all is not public either.

    IPv4 inside IPv6: a mapped address (::ffff:192.0.2.1) belongs into no URL and no DNS; what NAT64 and 6to4 carry is
    judged as what it is.
    """
    if address is None:
        return True
    if isinstance(address, ipaddress.IPv4Address):
        return any(address in network for network in _PRIVATE_V4)
    carried = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address.sixtofour
    if carried is not None:
        return is_private_address(carried)
    return address not in _UNICAST_V6 or any(address in network for network in _PRIVATE_V6)


def _is_localhost(name: str) -> bool:
    return name == "localhost" or name.endswith(".localhost")


def _spelled(host: str) -> str:
    """A host as it is compared: lower case, in ASCII as in a URL, without the root's dot and the brackets of IPv6."""
    name = host.lower().rstrip(".").strip("[]")
    if name.isascii():
        return name
    url = resolve("http://host.invalid/", [f"http://{name.lstrip('.')}/"])[0]
    return name if url is None else "." * name.startswith(".") + host_of(url)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text.strip("[]"), strict=False)
    except ValueError:
        return None


def _address(host: str) -> Address | None:
    if not host[-1:].isdigit() and ":" not in host:
        return None  # most hosts are names, and an exception costs more than all the rest
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
