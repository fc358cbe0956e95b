"""Names to addresses for the whole crawl: asked once, remembered as long as they hold, never too many at a time.

Rules kept:
- One look-up per name is under way, whoever asks and however many; one asker that gives up does not take the answer
  from the others.
- At most WEBCRAWL_DNS_CONCURRENT_LOOKUPS are under way; the others wait in the order they came.
- Answers are kept as `core.names` says, also that there are none; WEBCRAWL_DNS_CACHE_NAMES bounds them.
- `resolve` answers and never raises for what name servers do; after `close` everybody still waiting is told so.
- What was answered can be what is connected to: the frontier asks before it leases a page, and the handler finds the
  same resolution while it holds, or goes to the address named in the request's meta (DNS rebinding).

How the question is put is `lookups.py`; the clock is the crawl's, so that tests and the frontier share its time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from scrapy.exceptions import CannotResolveHostError

from webcrawl.clock import Clock
from webcrawl.core.names import (
    AddressHistory,
    Answer,
    Dns,
    LookupWindow,
    Resolution,
    lifetime_seconds,
    parse_hosts,
    spelled,
    without_asking,
)
from webcrawl.lookups import Lookup, best_lookup

logger = logging.getLogger(__name__)

HOSTS_FILE = Path("/etc/hosts")


class CachingResolver:
    """Addresses of hosts; one for each crawl, shared by all who need addresses.

    `on_change` hears of every host whose addresses are new or have changed, for whoever keeps the history; `on_broken`
    hears once, with a sentence for the operator, that nearly all look-ups fail.
    """

    def __init__(
        self,
        dns: Dns,
        *,
        clock: Callable[[], float] | None = None,
        make_lookup: Callable[[Dns], Lookup] = best_lookup,
        hosts: dict[str, tuple[str, ...]] | None = None,
        on_change: Callable[[Resolution], None] | None = None,
        on_broken: Callable[[str], None] | None = None,
    ) -> None:
        self.window = LookupWindow(dns.stop_share, dns.stop_lookups, dns.stop_window_seconds)
        self.history = AddressHistory(dns.cache_names)
        self._dns = dns
        self._now = clock or Clock().now
        self._make_lookup = make_lookup
        self._hosts = _system_hosts() if hosts is None else hosts
        self._on_change = on_change
        self._on_broken = on_broken
        self._known: dict[str, Resolution] = {}
        self._asking: dict[str, asyncio.Future[Resolution]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(dns.concurrent_lookups)
        self._lookup: Lookup | None = None
        self._is_closed = False
        self._is_reported = False

    def cached(self, host: str, now: float) -> Resolution | None:
        """What is known without asking anybody; None if a look-up is needed."""
        known = self._known.get(host)
        if known is None:
            name = _ascii(spelled(host))
            known = self._known.get(name) or without_asking(name, self._hosts)
        return known if known is not None and known.expires_at > now else None

    async def resolve(self, host: str) -> Resolution:
        """The addresses of a host, or why there are none."""
        known = self.cached(host, self._now())
        if known is not None:
            return known
        name = _ascii(spelled(host))
        if self._is_closed:
            return self._given_up(name)
        answered = self._asking.get(name)
        if answered is None:
            answered = self._ask(name)
        # Shielded: one impatient asker must not take the answer from the others.
        return await asyncio.shield(answered)

    async def addresses(self, host: str) -> list[str]:
        """The addresses of a host; CannotResolveHostError if there are none."""
        resolution = await self.resolve(host)
        if not resolution.addresses:
            raise CannotResolveHostError(f"DNS lookup of {host!r} failed: {resolution.why}.")
        return list(resolution.addresses)

    def close(self) -> None:
        """Give up on look-ups under way and tell those who wait; what is remembered stays."""
        self._is_closed = True
        for name, answered in self._asking.items():
            if not answered.done():
                answered.set_result(self._given_up(name))
        for task in self._tasks:
            task.cancel()
        if self._lookup is not None:
            self._lookup.close()

    def _ask(self, name: str) -> asyncio.Future[Resolution]:
        loop = asyncio.get_running_loop()
        answered = self._asking[name] = loop.create_future()
        task = loop.create_task(self._look_up(name, answered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return answered

    async def _look_up(self, name: str, answered: asyncio.Future[Resolution]) -> None:
        try:
            async with self._slots:
                if self._lookup is None:
                    self._lookup = self._make_lookup(self._dns)
                answer = await self._lookup.look_up(name)
        except Exception:  # a look-up that breaks is our bug; those who wait must not wait for ever
            logger.exception("Look-up failed: it should have answered. host=%s", name)
            answer = Answer(error="servfail")
        finally:
            self._asking.pop(name, None)
        resolution = self._remember(name, answer)
        if not answered.done():
            answered.set_result(resolution)

    def _remember(self, name: str, answer: Answer) -> Resolution:
        now = self._now()
        resolution = Resolution(name, answer.addresses, now + lifetime_seconds(answer, self._dns), answer.error)
        self._known.pop(name, None)
        if len(self._known) >= self._dns.cache_names:
            del self._known[next(iter(self._known))]
        self._known[name] = resolution
        self.window.note(answer.error, now)
        if answer.error:
            self._report(now)
        elif self.history.note(name, answer.addresses, now) and self._on_change is not None:
            self._on_change(resolution)
        return resolution

    def _report(self, now: float) -> None:
        if self._is_reported or not self.window.is_broken(now):
            return
        self._is_reported = True
        sentence = self.window.sentence(now)
        logger.error("Name server broken: %s", sentence)
        if self._on_broken is not None:
            self._on_broken(sentence)

    def _given_up(self, name: str) -> Resolution:
        return Resolution(name, (), self._now(), "timeout")


def _system_hosts() -> dict[str, tuple[str, ...]]:
    try:
        return parse_hosts(HOSTS_FILE.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}


def _ascii(name: str) -> str:
    """A name as DNS knows it (IDNA); one that has no such form is left as it is, and no server is asked for it."""
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode("ascii")
    except UnicodeError:
        return name
