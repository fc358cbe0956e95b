"""FrontierScheduler: Scrapy asks it for requests; it asks the frontier. Requests to values and back, timers, no rules.

How a request lives here:
    next_request     frontier.next -> lease -> Request, and a `Settlement` that goes with it
    (download, callback, pipelines: links, items and outcomes are noted on the settlement)
    enqueue_request  a request that the spider or a middleware made: a child of the settlement, or an offer of its own
    finished         the engine forgets the request: the settlement becomes one report

Scrapy calls all this on its event loop, so nothing here waits. When nothing may be fetched, one timer is set for the
earliest moment at which something may; threads wake the engine through the loop.
"""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import Request, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import CloseSpider
from scrapy.extensions.feedexport import FeedExporter
from scrapy.utils.conf import closest_scrapy_cfg
from xxhash import xxh3_64_intdigest

from webcrawl import engine as scrapy_engine
from webcrawl import oneline
from webcrawl.addresses import AddressBook
from webcrawl.assembly import Choices, Crawl, Purpose, assemble, load_choices, proxy_finder
from webcrawl.clock import Clock
from webcrawl.core.errors import RunError, SettingError
from webcrawl.core.frontier import IN_MEMORY, ROBOTS_KIND, Empty, Lease, Offer, Report, Visit
from webcrawl.core.lifecycle import Event
from webcrawl.core.outcomes import Outcome
from webcrawl.core.pagetable import DEEPEST
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, resolve
from webcrawl.middlewares.outcome import OutcomeMiddleware
from webcrawl.requests import request_from_bytes, request_identity, request_to_bytes
from webcrawl.resolver import CachingResolver
from webcrawl.settlement import CURRENT, Settlement, current

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler

    from webcrawl.core.errors import StoreError
    from webcrawl.core.names import Resolution

logger = logging.getLogger(__name__)

SEEDS_AT_ONCE = 1_000
UNEXPECTED_OF_SEEDS = (Reason.NOT_ALLOWED, Reason.NO_CONTACT, Reason.OPTED_OUT)  # scope and patterns are the operator's
DISK_CHECK_SECONDS = 5.0
DISK_WAIT_SECONDS = 0.05
SLOT = "webcrawl"  # one downloader slot for all: the frontier keeps the pauses
TROUBLES = ("store_failed", "disk_low", "dns_broken", "internal_error")  # reasons to close that need somebody's help
ROBOTS_META = {
    "download_slot": SLOT,
    "verbatim_url": True,
    "dont_redirect": True,  # each step is a request of its own, with the pause of its host
    "dont_retry": True,
    "dont_cache": True,
    "dont_merge_cookies": True,
    "handle_httpstatus_all": True,
}


class FrontierScheduler(BaseScheduler):
    """Scrapy's SCHEDULER over a durable frontier."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Load and check every setting of ours, then open the run.

        Not in `open`: when that fails Scrapy closes all components, also those that it has not opened yet, and each
        of them fails too. An error here ends the start and nothing else happens.
        """
        oneline.install()
        scrapy_engine.check_scrapy()
        scheduler = cls(crawler, load_choices(crawler.settings, crawler.settings.keys()))
        _check_components(crawler)
        assert crawler.spider is not None
        scheduler.open_run(crawler.spider)
        return scheduler

    def __init__(self, crawler: Crawler, choices: Choices) -> None:
        self.crawler = crawler
        self.choices = choices
        self.clock = Clock()
        self.crawl: Crawl
        self.started_at = self.clock.now()
        self.pages_at_start = 0
        self.is_closed = False
        self._settlements: dict[Request, Settlement] = {}
        self._requests_in_memory: dict[int, Request] = {}
        self._unfiltered = 0
        self._start_requests: Counter[int] = Counter()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._commit_timer: asyncio.TimerHandle | None = None
        self._limit_timer: asyncio.TimerHandle | None = None
        self._stop_reason = ""
        self._disk_checked_at = 0.0

    # ------------------------------------------------------------------------------------------------ open and close

    def open_run(self, spider: Spider) -> None:
        """Open the run and recover what is in it; nothing is offered yet."""
        self._spider = spider
        self._page_failed = getattr(spider, "page_failed", None)
        self._loop = asyncio.get_running_loop()
        found = getattr(spider, "purpose", None)  # a spider may have an attribute of that name for itself
        self._purpose = found if isinstance(found, Purpose) else Purpose(spider.name)
        root = Path(closest_scrapy_cfg()).parent if closest_scrapy_cfg() else Path.cwd()
        addresses = AddressBook(proxy_finder(), self.clock.now)
        try:
            self.crawl = assemble(
                self.choices,
                self._purpose,
                root,
                addresses,
                self.clock.now(),
                self._wake_from_thread,
                self._failed_in_thread,
            )
        except OSError as error:
            raise RunError(
                f"The run directory cannot be used: {error}.", "", "Choose another one with -s WEBCRAWL_DIR=DIR."
            ) from error
        self._frontier = self.crawl.frontier
        self._resolver = CachingResolver(
            self.choices.dns, clock=self.clock.now, on_change=self._moved, on_broken=self._names_are_broken
        )
        setattr(self.crawler, "webcrawl_resolver", self._resolver)  # noqa: B010  asked by handlers/
        addresses.open(self._resolver, self._resolved)
        setattr(self.crawler, "webcrawl_check_address", self.crawl.peers.check_address)  # noqa: B010  asked by handlers/
        self.pages_at_start = self._frontier.counts().pages

    def open(self, spider: Spider) -> None:
        """Hook into the engine. Seeds are offered when all components are open: until then they may use the store."""
        self._say_what_was_found()
        self.crawler.signals.connect(self._offer_seeds, signals.engine_started)
        assert self.crawler.engine is not None
        self._engine = self.crawler.engine
        scrapy_engine.on_finished(self._engine, self._finished)
        if self.choices.limits.seconds:
            self._limit_timer = self._loop.call_later(self.choices.limits.seconds, self._wake_again)
        self.crawler.signals.connect(self._spider_idle, signals.spider_idle)
        self.crawler.signals.connect(self._spider_error, signals.spider_error)

    def close(self, reason: str) -> None:
        """Write everything that is settled; the run can be resumed."""
        self.is_closed = True
        for timer in (self._timer, self._commit_timer, self._limit_timer):
            if timer is not None:
                timer.cancel()
        self._resolver.close()
        self.crawl.run.close(reason, self.clock.now())

    def _say_what_was_found(self) -> None:
        recovered = self.crawl.run.recovered
        if self.crawl.is_resumed:
            logger.info("Resumed the run in %s: %s", self.crawl.run.directory, recovered.sentence())
        else:
            logger.info("New run in %s", self.crawl.run.directory)

    def _warn_of_unused_feeds(self) -> None:
        """Pages of this session will be missing in a file that earlier sessions of the run wrote to."""
        for feed in self.crawl.run.writer.feeds.values():
            if not feed.is_used:
                logger.warning(
                    "This run wrote to %s before, and this session does not: its pages will be missing there. "
                    "Stop and give the same -o or -O again to continue the file.",
                    feed.path,
                )

    def _offer_seeds(self) -> None:
        self._warn_of_unused_feeds()
        now, seeds = self.clock.now(), self._purpose.seeds
        for reason, refused in self._refused(seeds).items():
            shown = (len(refused), len(seeds), refused[0], reason.sentence)
            logger.error("%d of %d seeds are refused, e.g. %s: %s.", *shown)
        for start in range(0, len(seeds), SEEDS_AT_ONCE):
            self._frontier.offer([Offer(seed) for seed in seeds[start : start + SEEDS_AT_ONCE]], now)
        self._frontier.flush(now)

    def _refused(self, seeds: Iterable[str]) -> dict[Reason, list[str]]:
        """Seeds that will not be fetched although they are in scope, by what their hosts are refused for."""
        refused: dict[Reason, list[str]] = {}
        for seed in seeds:
            reason = self.crawl.admission.refuse(seed, host_of(seed))
            if reason in UNEXPECTED_OF_SEEDS:
                refused.setdefault(reason, []).append(seed)
        return refused

    @property
    def requests_in_memory(self) -> int:
        """Requests that cannot be written down and are not done: they end with this process."""
        return len(self._requests_in_memory)

    # ------------------------------------------------------------------------------------------------ in

    def enqueue_request(self, request: Request) -> bool:
        """Take a request of the spider or of a middleware."""
        settlement = current()
        if settlement is not None and request is settlement.request and _will_be_repeated(settlement):
            return True  # our own sign for "try again later": the outcome is on the settlement
        offer = self._offer_of(request, is_start=settlement is None and bool(request.meta.get("is_start_request")))
        if offer is None:
            return False
        if settlement is not None and offer.request != IN_MEMORY:
            is_new = self._is_new(offer, settlement)
            settlement.children.append(offer)  # also a known one: it may be nearer than was thought
            return is_new
        page = self._frontier.offer([offer], self.clock.now())[0]
        if page and offer.request == IN_MEMORY:
            self._requests_in_memory[page] = request
            self.crawler.stats.inc_value("webcrawl/requests_in_memory")
        self._commit_soon()
        return bool(page)

    def _is_new(self, offer: Offer, settlement: Settlement) -> bool:
        """Whether the frontier will take it, as far as can be told before the settlement is written."""
        if offer.key in settlement.child_keys or self._frontier.knows(offer.key):
            self.crawler.stats.inc_value("webcrawl/requests_known")
            return False
        settlement.child_keys.add(offer.key)
        return self.crawl.admission.refuse(offer.url, host_of(offer.url)) is None

    def _offer_of(self, request: Request, is_start: bool) -> Offer | None:
        """The request as an offer; None for what is no page of the web."""
        try:
            url = _web_url(request.url)
        except ValueError as error:
            logger.warning("A request is not made: %s", error)
            return None
        identity = request_identity(request, self.crawler.request_fingerprinter.fingerprint(request), is_start)
        seed = self.crawl.run.recovered.hash_seed
        if request.dont_filter:
            identity += self._serial_number(xxh3_64_intdigest(identity, seed), is_start)
        return Offer(
            url,
            key=xxh3_64_intdigest(identity, seed) or 1,
            depth=min(max(int(request.meta.get("depth", 0)), 0), DEEPEST),
            priority=request.priority * 1000.0,
            request=request_to_bytes(request, self._spider) or IN_MEMORY,
        )

    def _serial_number(self, identity: int, is_start: bool) -> bytes:
        """What makes requests with `dont_filter` different: for start requests the same at every start, else never."""
        if is_start:
            self._start_requests[identity] += 1
            return b" %d" % self._start_requests[identity]
        self._unfiltered += 1
        return f" {self.started_at!r} {self._unfiltered}".encode()

    # ------------------------------------------------------------------------------------------------ out

    def has_pending_requests(self) -> bool:
        """Whether the crawl should stay open; asked only when nothing is under way in the engine."""
        if self._stop_reason:
            return False
        if self.choices.run.forever or self._frontier.is_busy or self._disk_is_behind:
            return True
        now = self.clock.now()
        return self._frontier.next_instant(now) <= now + self.choices.run.end_wait_seconds

    def next_request(self) -> Request | None:
        """The best request that may be made now, or None; then a timer is set."""
        if self._stop_reason or self._must_stop():
            return None
        now = self.clock.now()
        if self._disk_is_behind:
            self._wake_at(now + DISK_WAIT_SECONDS, now)
            return None
        while isinstance(answer := self._frontier.next(now), list):
            if (request := self._request_for(answer[0])) is not None:
                return request
        if not isinstance(answer, Empty):
            self._wake_at(answer.until, now)
        if self._frontier.has_unwritten_rows:  # robots.txt files to be fetched, pages refused
            self._commit_soon()
        return None

    @property
    def _disk_is_behind(self) -> bool:
        return self._frontier.is_behind

    def _request_for(self, lease: Lease) -> Request | None:
        if lease.kind == ROBOTS_KIND:
            request = Request(lease.url, meta=dict(ROBOTS_META), dont_filter=True)
        elif lease.request is None:
            meta = {"verbatim_url": True, "depth": lease.depth, "download_slot": SLOT}
            request = Request(lease.url, meta=meta, errback=self._page_failed)
        elif lease.request == IN_MEMORY:
            request = self._requests_in_memory[lease.page]
            request.meta["download_slot"] = SLOT
        else:
            restored = self._restored(lease)
            if restored is None:
                return None
            request = restored
            request.meta["download_slot"] = SLOT
        settlement = Settlement(lease, request)
        settlement.signals = self._frontier.signals_of(lease)
        self._settlements[request] = settlement
        CURRENT.set(settlement)
        return request

    def _restored(self, lease: Lease) -> Request | None:
        """The request that was written down; one the spider no longer understands is set aside, not lost."""
        assert lease.request is not None
        try:
            return request_from_bytes(lease.request, self._spider)
        except Exception as error:  # noqa: BLE001 - whatever it is, the crawl goes on with the others
            logger.error("The stored request for %s cannot be used by this spider any more: %s", lease.url, error)  # noqa: TRY400
            now = self.clock.now()
            self._frontier.report(Report(lease, Visit(now), Event.REFUSE, Reason.SPIDER_ERROR), now)
            self._commit_soon()
            return None

    # ------------------------------------------------------------------------------------------------ back

    def _finished(self, request: Request) -> None:
        settlement = self._settlements.pop(request, None)
        if settlement is None:
            return  # not one of ours, e.g. an image of a media pipeline
        settlement.is_done = True
        now = self.clock.now()
        outcome = settlement.outcome
        if outcome is None:  # a middleware answered with other requests, or swallowed the answer
            is_alias = bool(settlement.children)
            outcome = Outcome(Event.STORE, Reason.ALIAS) if is_alias else Outcome(Event.REFUSE, Reason.IGNORED)
        if settlement.spider_failed and outcome.event is Event.STORE:
            outcome = Outcome(Event.STORE, Reason.SPIDER_ERROR)
        report = Report(
            settlement.lease,
            settlement.visit or settlement.answered or Visit(now),
            outcome.event,
            outcome.reason,
            outcome.due_at,
            settlement.links,
            settlement.redirect,
            settlement.children,
            settlement.outputs,
            outcome.counts,
            settlement.robots,
            settlement.nofollow_links,
        )
        try:
            self._frontier.report(report, now)
        except Exception:  # a lease that never comes back would keep the crawl open for ever
            logger.exception("%s could not be settled", settlement.lease.url)
            self._stop("internal_error", "a page could not be settled; it will be fetched again")
            return
        if settlement.lease.request == IN_MEMORY and outcome.event is not Event.FAIL:
            del self._requests_in_memory[settlement.lease.page]
        self._commit_soon()

    def _spider_error(self) -> None:
        settlement = current()
        if settlement is not None:
            settlement.spider_failed = True

    def _commit_soon(self) -> None:
        if self._commit_timer is None:
            self._commit_timer = self._loop.call_later(self.choices.run.commit_seconds, self._commit)

    def _commit(self) -> None:
        self._commit_timer = None
        self._frontier.clock_offset = self.clock.drift()
        self._frontier.flush(self.clock.now(), self._wake_from_thread)

    # ------------------------------------------------------------------------------------------------ timers, the end

    def _wake_at(self, instant: float, now: float) -> None:
        """One timer for the earliest moment; set anew only when an earlier one appears."""
        if instant >= self._timer_at or instant == math.inf:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = instant
        self._timer = self._loop.call_later(max(0.0, instant - now), self._wake)

    def _wake(self) -> None:
        self._timer, self._timer_at = None, math.inf
        scrapy_engine.wake(self._engine)

    def _wake_from_thread(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_again)

    def wake(self) -> None:
        """Something has changed beside the engine: pages may be ready, rows wait to be written."""
        self._commit_soon()
        self._wake_again()

    def _wake_again(self) -> None:
        if hasattr(self, "_engine"):
            scrapy_engine.wake(self._engine)

    def _failed_in_thread(self, error: StoreError) -> None:
        self._loop.call_soon_threadsafe(self._stop, "store_failed", str(error))

    def _resolved(self, host: str, failure: Reason) -> None:
        self._frontier.note_resolved(host, failure, self.clock.now())
        self._wake_again()

    def _moved(self, resolution: Resolution) -> None:
        self._frontier.note_addresses(resolution.host, resolution.addresses, self.clock.now())

    def _names_are_broken(self, sentence: str) -> None:
        self._stop("dns_broken", sentence)

    def _must_stop(self) -> bool:
        """Whether a limit is reached; then the spider is closed as soon as what is under way has come back."""
        limits, now = self.choices.limits, self.clock.now()
        if limits.pages and self._frontier.stored + self._frontier.under_way >= limits.pages:
            return self._frontier.under_way > 0 or self._stop("page_limit", f"{limits.pages:,} pages are stored")
        if limits.seconds and now - self.started_at >= limits.seconds:
            return self._stop("time_limit", f"{limits.seconds:g} seconds have passed")
        if limits.bytes and self._frontier.body_bytes >= limits.bytes:
            return self._stop("byte_limit", f"{limits.bytes:,} bytes were fetched")
        if now - self._disk_checked_at >= DISK_CHECK_SECONDS:
            self._disk_checked_at = now
            free = shutil.disk_usage(self.crawl.run.directory).free
            if free < limits.min_free_disk_bytes:
                return self._stop("disk_low", f"only {free:,} bytes are free on the disk of {self.crawl.run.directory}")
        return False

    def _stop(self, reason: str, sentence: str) -> bool:
        if not self._stop_reason:
            self._stop_reason = reason
            level = (
                logging.ERROR
                if reason in ("store_failed", "disk_low", "dns_broken", "internal_error")
                else logging.INFO
            )
            logger.log(level, "Closing the crawl: %s", sentence)
            self._closing = self._loop.create_task(self._engine.close_spider_async(reason=reason))
        return True

    def _spider_idle(self) -> None:
        """Nothing is left, or nothing for a long time: the latter is not a finished crawl."""
        if self._stop_reason:
            raise CloseSpider(self._stop_reason)
        if self._frontier.next_instant(self.clock.now()) < math.inf:
            raise CloseSpider("waiting")


def _web_url(url: str) -> str:
    """A request's URL in the spelling the frontier works with; ValueError for what is no address of the web."""
    found = resolve(url, [""])[0] if url.startswith(("http:", "https:")) else None
    if found is None:
        raise ValueError(f"{url[:200]!r} is neither http nor https.")
    return found


def _check_components(crawler: Crawler) -> None:
    """Refuse a crawl whose outcomes nobody notes, or whose feeds do not agree with the frontier."""
    if crawler.get_downloader_middleware(OutcomeMiddleware) is None:
        raise SettingError(
            "The downloader middleware webcrawl.middlewares.outcome.OutcomeMiddleware is missing.",
            "Nobody would note how a visit ended.",
            "Take it from webcrawl.settings, or add it: DOWNLOADER_MIDDLEWARES = "
            '{"webcrawl.middlewares.outcome.OutcomeMiddleware": 20, ...}.',
        )
    if type(crawler.get_extension(FeedExporter)) is FeedExporter:
        raise SettingError(
            "The extension scrapy.extensions.feedexport.FeedExporter is in use.",
            "A kill would lose what it has not written, and a restart would overwrite or repeat the rest.",
            'Use ours: EXTENSIONS = {"webcrawl.extensions.feeds.SettledFeeds": 0,'
            ' "scrapy.extensions.feedexport.FeedExporter": None, ...}.',
        )


def _will_be_repeated(settlement: Settlement) -> bool:
    """Whether the answer is for the frontier alone: a page that rests, or a robots.txt."""
    return settlement.robots is not None or (settlement.outcome is not None and settlement.outcome.event is Event.FAIL)
