"""Host names and their addresses: what an answer is worth, for how long, and when the resolver itself is broken.

Rules kept:
- An answer is believed for its TTL, within bounds: not shorter than a crawl needs to be polite to an address, not
  longer than a day. A name that does not exist is believed for as long as its zone says (RFC 2308 §5), a look-up that
  failed for a short while (RFC 9520 §3.2).
- IPv4 addresses come before IPv6 ones, each in the order received: every host is asked the same way on every machine.
- What needs no question is not asked: addresses, the hosts file, `localhost` (RFC 6761 §6.3), names no server has.
- When nearly all look-ups of the last minutes failed, it is the resolver that is broken, not the web (Castillo 2004,
  §A.2.1): `LookupWindow` says so, and the crawl should stop before it writes off every host.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol

from webcrawl.core.config import declare, setting

DNS_PORT = 53
NAME_BYTES = 253
LABEL_BYTES = 63

Failure = Literal["", "nxdomain", "nodata", "servfail", "timeout", "malformed"]

FAILURE_WORDS: dict[str, str] = {
    "nxdomain": "the name does not exist",
    "nodata": "the name has no address",
    "servfail": "the name server could not answer",
    "timeout": "no name server answered in time",
    "malformed": "the answer could not be read",
}

# Failures that may pass: another answer could have held addresses.
_TEMPORARY: tuple[Failure, ...] = ("timeout", "servfail", "malformed")
_BY_WEIGHT: tuple[Failure, ...] = (*_TEMPORARY, "nxdomain", "nodata")


# ---------------------------------------------------------------------------------------------- settings


def server_address(text: str) -> tuple[str, int]:
    """Address and port of a name server.

    >>> server_address("192.0.2.53"), server_address("[2001:db8::53]:5353"), server_address("2001:db8::53")
    (('192.0.2.53', 53), ('2001:db8::53', 5353), ('2001:db8::53', 53))
    """
    host, port = text, str(DNS_PORT)
    if text.startswith("[") or text.count(":") == 1:
        host, _, port = text.rpartition(":") if not text.endswith("]") else (text, "", port)
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
    except ValueError:
        address, number = None, 0
    if address is None or not 0 < number < 65_536:
        raise ValueError("Name the address of a server, with a port if it is not 53: 192.0.2.53, [2001:db8::53]:5353")
    return str(address), number


def _server(text: str) -> str:
    server_address(text)
    return text


@declare
@dataclass(frozen=True)
class Dns:
    """How host names become addresses, and when the crawl stops because they no longer do."""

    servers: tuple[str, ...] = setting(
        "WEBCRAWL_DNS_SERVERS",
        (),
        each=_server,
        doc="Name servers to ask, with a port if it is not 53; empty = those of /etc/resolv.conf.",
        why="The system knows its name servers. A large crawl deserves one of its own on the same machine.",
    )
    timeout_seconds: float = setting(
        "WEBCRAWL_DNS_TIMEOUT_SECONDS",
        2.0,
        at_least=0.1,
        at_most=60.0,
        unit="seconds",
        doc="How long one question waits for its answer the first time; each further try waits longer.",
        why="The default of c-ares: a lost packet is repeated soon, a slow server gets 14 seconds in three tries.",
    )
    tries: int = setting(
        "WEBCRAWL_DNS_TRIES",
        3,
        at_least=1,
        at_most=10,
        unit="tries",
        doc="How often a question is sent to each server before the look-up has failed.",
        why="The default of c-ares.",
    )
    concurrent_lookups: int = setting(
        "WEBCRAWL_DNS_CONCURRENT_LOOKUPS",
        64,
        at_least=1,
        at_most=10_000,
        unit="look-ups",
        doc="Most look-ups under way at the same time; each asks two questions, one for IPv4 and one for IPv6.",
        why="Small name servers break under load (Castillo 2004, §A.2.1): dnsmasq, in many routers, takes 150 "
        "questions at once.",
    )
    min_ttl_seconds: float = setting(
        "WEBCRAWL_DNS_MIN_TTL_SECONDS",
        60.0,
        at_least=0.0,
        at_most=86_400.0,
        unit="seconds",
        doc="Addresses, and the news that a name does not exist, are kept for at least this time.",
        why="Some sites say 0 to steer browsers; a crawler that returns every 15 seconds would ask before every page.",
    )
    max_ttl_seconds: float = setting(
        "WEBCRAWL_DNS_MAX_TTL_SECONDS",
        86_400.0,
        at_least=1.0,
        at_most=604_800.0,
        unit="seconds",
        doc="Addresses are kept for at most this time.",
        why="A site that moves is found again within a day, whatever its old record said.",
    )
    default_ttl_seconds: float = setting(
        "WEBCRAWL_DNS_DEFAULT_TTL_SECONDS",
        300.0,
        at_least=1.0,
        at_most=86_400.0,
        unit="seconds",
        doc="How long an answer is kept that does not say for how long it holds: the system's own look-up never does.",
        why="Five minutes is a common TTL of sites that expect to move.",
    )
    negative_ttl_seconds: float = setting(
        "WEBCRAWL_DNS_NEGATIVE_TTL_SECONDS",
        3600.0,
        at_least=1.0,
        at_most=86_400.0,
        unit="seconds",
        doc="The news that a name does not exist is kept as long as its zone says, and at most this time.",
        why="RFC 2308 (§5) found one to three hours to work well.",
    )
    failure_ttl_seconds: float = setting(
        "WEBCRAWL_DNS_FAILURE_TTL_SECONDS",
        30.0,
        at_least=1.0,
        at_most=300.0,
        unit="seconds",
        doc="A look-up that failed (server failure, no answer, unreadable answer) is not repeated for this time.",
        why="RFC 9520 (§3.2) asks for 1 second to 5 minutes: long enough to spare a server in trouble.",
    )
    cache_names: int = setting(
        "WEBCRAWL_DNS_CACHE_NAMES",
        100_000,
        at_least=1,
        at_most=100_000_000,
        unit="names",
        doc="Most names remembered; the one looked up longest ago is forgotten first.",
        why="About 50 MB; a name that was forgotten is asked for again.",
    )
    stop_share: float = setting(
        "WEBCRAWL_DNS_STOP_SHARE",
        0.9,
        at_least=0.0,
        at_most=1.0,
        unit="of the look-ups",
        doc="The crawl stops when at least this share of the look-ups in the window failed; 0 = never.",
        why="Castillo 2004, §A.2.1: 90 %. Name servers crash under load, and then every site looks non-existent.",
    )
    stop_lookups: int = setting(
        "WEBCRAWL_DNS_STOP_LOOKUPS",
        50,
        at_least=1,
        at_most=1_000_000,
        unit="look-ups",
        doc="Fewer look-ups than this in the window prove nothing.",
        why="A list of seeds may start with a few dead hosts.",
    )
    stop_window_seconds: float = setting(
        "WEBCRAWL_DNS_STOP_WINDOW_SECONDS",
        300.0,
        at_least=1.0,
        at_most=86_400.0,
        unit="seconds",
        doc="Length of the window in which look-ups are counted.",
        why="Long enough for a server that restarts, short enough that few hosts are written off.",
    )


# ---------------------------------------------------------------------------------------------- answers


@dataclass(frozen=True, slots=True)
class Answer:
    """What one look-up brought: addresses, or why there are none, and for how long that holds (None: not said)."""

    addresses: tuple[str, ...] = ()
    ttl_seconds: float | None = None
    error: Failure = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What is known about a host until `expires_at`: its addresses, or why it has none."""

    host: str
    addresses: tuple[str, ...]
    expires_at: float
    error: Failure = ""

    @property
    def is_temporary(self) -> bool:
        """Whether asking again later may bring addresses."""
        return self.error in _TEMPORARY

    @property
    def why(self) -> str:
        """The error in words; empty if there are addresses."""
        return FAILURE_WORDS.get(self.error, "")


def both_families(ipv4: Answer, ipv6: Answer) -> Answer:
    """One answer from the two questions of a look-up.

    A family that failed does not matter if the other has addresses. If neither has, a failure that may pass outweighs
    one that may not: the name could have had addresses.

    >>> both_families(Answer(("192.0.2.1",), 300), Answer(error="timeout"))
    Answer(addresses=('192.0.2.1',), ttl_seconds=300, error='')
    >>> both_families(Answer(error="nodata"), Answer(error="timeout")).error
    'timeout'
    """
    with_addresses = [one for one in (ipv4, ipv6) if one.addresses]
    if with_addresses:
        addresses = tuple(dict.fromkeys(ipv4.addresses + ipv6.addresses))
        return Answer(addresses, _least(one.ttl_seconds for one in with_addresses))
    heaviest: Failure = next((error for error in _BY_WEIGHT if error in (ipv4.error, ipv6.error)), "nodata")
    return Answer((), _least(one.ttl_seconds for one in (ipv4, ipv6)), heaviest)


def _least(ttls: Iterable[float | None]) -> float | None:
    return min((ttl for ttl in ttls if ttl is not None), default=None)


def in_order(addresses: Iterable[str]) -> tuple[str, ...]:
    """IPv4 first, each once.

    >>> in_order(["::1", "127.0.0.1", "::1"])
    ('127.0.0.1', '::1')
    """
    return tuple(sorted(dict.fromkeys(addresses), key=lambda address: ":" in address))


def lifetime_seconds(answer: Answer, dns: Dns) -> float:
    """How long an answer is believed.

    >>> lifetime_seconds(Answer(("192.0.2.1",), 0), Dns()), lifetime_seconds(Answer(("192.0.2.1",), 1e9), Dns())
    (60.0, 86400.0)
    >>> lifetime_seconds(Answer(ttl_seconds=900, error="nxdomain"), Dns())
    900
    """
    if answer.error in _TEMPORARY:
        return dns.failure_ttl_seconds
    ttl = dns.default_ttl_seconds if answer.ttl_seconds is None else answer.ttl_seconds
    longest = dns.negative_ttl_seconds if answer.error else dns.max_ttl_seconds
    return max(min(ttl, longest), min(dns.min_ttl_seconds, longest))


# ---------------------------------------------------------------------------------------------- no question needed


def spelled(host: str) -> str:
    """A host as it is remembered: lower case, without the dot of the root and the brackets of IPv6."""
    return host.lower().removesuffix(".").strip("[]")


def literal(host: str) -> str | None:
    """The address a host is written as; None for a name.

    Also numbers that browsers take for IPv4 addresses: `127.1`, `0x7f.0.0.1`, `2130706433` (WHATWG URL §3.5).

    >>> literal("192.0.2.7"), literal("2001:DB8::1"), literal("127.1"), literal("example.org")
    ('192.0.2.7', '2001:db8::1', '127.0.0.1', None)
    """
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return _number(host)


def _number(host: str) -> str | None:
    if not host[-1:].isdigit() and "0x" not in host:
        return None
    try:
        *head, last = (_part(part) for part in host.split("."))
    except ValueError:
        return None
    if len(head) > 3 or any(part > 255 for part in head) or last >= 256 ** (4 - len(head)):
        return None
    return str(ipaddress.IPv4Address(sum(part << (24 - 8 * at) for at, part in enumerate(head)) + last))


def _part(text: str) -> int:
    if not (text.isascii() and text.isalnum()):
        raise ValueError(text)
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") and len(text) > 1 else 10)


def is_askable(host: str) -> bool:
    """Whether a name server could know this name: its form (RFC 1035 §2.3.4) and its top-level domain.

    >>> is_askable("example.org"), is_askable("a..b"), is_askable("x.invalid"), is_askable("1.2.3.4.5")
    (True, False, False, False)
    """
    labels = host.split(".")
    if not host.isascii() or len(host) > NAME_BYTES or not all(0 < len(label) <= LABEL_BYTES for label in labels):
        return False
    # RFC 6761 §6.4 and RFC 7686 §2: no server may be asked; and no top-level domain is a number.
    return labels[-1] not in ("invalid", "onion") and not labels[-1].isdigit()


def parse_hosts(text: str) -> dict[str, tuple[str, ...]]:
    """Names and addresses of a hosts file; lines that cannot be read are skipped.

    >>> parse_hosts("127.0.0.1 localhost here # comment\\n::1 localhost\\nnonsense line")
    {'localhost': ('127.0.0.1', '::1'), 'here': ('127.0.0.1',)}
    """
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        ip = literal(address.partition("%")[0]) if names else None
        for name in names if ip is not None else ():
            found[spelled(name)] = in_order((*found.get(spelled(name), ()), str(ip)))
    return found


def without_asking(host: str, hosts: dict[str, tuple[str, ...]]) -> Resolution | None:
    """The resolution of a host, spelled as remembered, that needs no question; None: ask a name server."""
    ip = literal(host)
    if ip is not None:
        return Resolution(host, (ip,), math.inf)
    if host in hosts:
        return Resolution(host, hosts[host], math.inf)
    if host == "localhost" or host.endswith(".localhost"):
        return Resolution(host, ("127.0.0.1", "::1"), math.inf)
    return None if is_askable(host) else Resolution(host, (), math.inf, "nxdomain")


# ---------------------------------------------------------------------------------------------- what was seen before


@dataclass(frozen=True, slots=True)
class Sighting:
    """The addresses a host had, and when they were first and last seen."""

    addresses: tuple[str, ...]
    first_at: float
    last_at: float


class AddressHistory:
    """Which addresses hosts had, newest last: bounded in hosts and in sightings of each.

    The Internet Archive's crawler kept such a history (Castillo 2004, §2.5.1). The order of addresses does not count:
    name servers rotate it to spread load.
    """

    def __init__(self, hosts: int, sightings: int = 8) -> None:
        self._most_hosts = hosts
        self._most_sightings = sightings
        self._seen: dict[str, tuple[Sighting, ...]] = {}

    def note(self, host: str, addresses: tuple[str, ...], now: float) -> bool:
        """Remember what a host was seen with; True if that is new or has changed."""
        seen = self._seen.pop(host, ())
        is_same = bool(seen) and set(seen[-1].addresses) == set(addresses)
        if is_same:
            seen = (*seen[:-1], Sighting(seen[-1].addresses, seen[-1].first_at, now))
        else:
            seen = (*seen, Sighting(addresses, now, now))[-self._most_sightings :]
        if len(self._seen) >= self._most_hosts:
            del self._seen[next(iter(self._seen))]
        self._seen[host] = seen
        return not is_same

    def of(self, host: str) -> tuple[Sighting, ...]:
        """What is remembered of a host."""
        return self._seen.get(host, ())


# ---------------------------------------------------------------------------------------------- a broken resolver


class LookupWindow:
    """The look-ups of the last minutes: if nearly all failed, the resolver is broken, not the web.

    Every failure counts, also "does not exist": that is what a crashed name server makes hosts look like. Counted in
    SLOTS pieces of the window, so the memory does not depend on how many look-ups there are.
    """

    SLOTS = 60

    def __init__(self, share: float = 0.9, lookups: int = 50, seconds: float = 300.0) -> None:
        self._share = share
        self._least_lookups = lookups
        self._seconds = seconds
        self._slots: deque[tuple[int, Counter[str]]] = deque()
        self._totals: Counter[str] = Counter()

    def note(self, error: Failure, now: float) -> None:
        """A look-up ended, with an error or without."""
        slot = self._slot(now)
        if not self._slots or self._slots[-1][0] < slot:
            self._forget(slot)
            self._slots.append((slot, Counter()))
        self._slots[-1][1][error] += 1
        self._totals[error] += 1

    def is_broken(self, now: float) -> bool:
        """Whether so many look-ups failed that the crawl should stop."""
        self._forget(self._slot(now))
        lookups = self._totals.total()
        failures = lookups - self._totals[""]
        return self._share > 0 and lookups >= self._least_lookups and failures >= self._share * lookups

    def sentence(self, now: float) -> str:
        """What happened, why it matters, what to do."""
        self._forget(self._slot(now))
        lookups, succeeded = self._totals.total(), self._totals[""]
        kinds = ", ".join(f"{count} {error}" for error, count in self._totals.most_common() if error and count)
        return (
            f"{lookups - succeeded} of {lookups} name look-ups in {self._seconds / 60:g} minutes failed ({kinds}). "
            "The name server is probably down or overloaded, and going on would write off every host as dead. "
            "Check it, ask it less at once (WEBCRAWL_DNS_CONCURRENT_LOOKUPS) or name another (WEBCRAWL_DNS_SERVERS), "
            "then resume; if the hosts really do not exist, set WEBCRAWL_DNS_STOP_SHARE=0."
        )

    def _slot(self, now: float) -> int:
        return int(now * self.SLOTS / self._seconds)

    def _forget(self, slot: int) -> None:
        while self._slots and self._slots[0][0] <= slot - self.SLOTS:
            self._totals.subtract(self._slots.popleft()[1])


class Addresses(Protocol):
    """Where hosts live, as the frontier asks before it hands out a page."""

    def known(self, url: str) -> str | None:
        """The address that a request for this URL would go to; empty: nobody can know (a proxy resolves it), None: it
        must be looked up first."""

    def look_up(self, url: str) -> None:
        """Find out; the frontier hears of it."""


class NoAddresses:
    """Nobody asks for addresses."""

    def known(self, url: str) -> str | None:
        """Not needed."""
        return ""

    def look_up(self, url: str) -> None:
        """Not needed."""
