"""The private names of Scrapy: each is there in the installed version and does what we rely on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from pydispatch import dispatcher
from scrapy import Request, signals
from scrapy.core.downloader.middleware import DownloaderMiddlewareManager
from scrapy.core.engine import ExecutionEngine, _Slot
from scrapy.core.scheduler import BaseScheduler
from scrapy.signalmanager import SignalManager
from scrapy.utils.reactor import CallLaterOnce

from webcrawl import engine as touches
from webcrawl.core.errors import SettingError


class NoScheduler(BaseScheduler):
    def has_pending_requests(self) -> bool:
        return False

    def enqueue_request(self, request: Request) -> bool:
        return False

    def next_request(self) -> Request | None:
        return None


class Engine(SimpleNamespace):
    """As much of an engine as is touched, around Scrapy's own slot."""

    def __init__(self) -> None:
        self.asked = 0
        super().__init__(_slot=_Slot(True, CallLaterOnce(self.ask), NoScheduler()))

    def ask(self) -> None:
        self.asked += 1


def test_the_installed_scrapy_is_the_one_we_know() -> None:
    touches.check_scrapy()


@pytest.mark.parametrize("version", [(2, 18, 0), (2, 20, 0), (3, 0, 0)])
def test_an_unknown_scrapy_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch, version: tuple[int, ...]) -> None:
    monkeypatch.setattr(scrapy, "version_info", version)
    with pytest.raises(SettingError, match="pip install"):
        touches.check_scrapy()


def test_the_engine_keeps_its_slot_under_the_name_we_use() -> None:
    assert "_slot" in ExecutionEngine.__init__.__code__.co_names
    assert {"_slot", "closing"} <= set(ExecutionEngine._start_scheduled_requests.__code__.co_names)
    assert {"_slot", "nextcall", "schedule"} <= set(ExecutionEngine.crawl.__code__.co_names)
    assert {"_slot", "remove_request"} <= set(ExecutionEngine._remove_request.__code__.co_names)


def test_waking_asks_the_scheduler_in_the_next_turn_of_the_loop_and_once() -> None:
    async def wake() -> int:
        engine: Any = Engine()
        touches.wake(engine)
        touches.wake(engine)
        assert engine.asked == 0
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        touches.wake(engine)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return int(engine.asked)

    assert asyncio.run(wake()) == 2


def test_waking_a_closed_or_closing_engine_does_nothing() -> None:
    async def wake() -> int:
        engine: Any = Engine()
        engine._slot.closing = object()
        touches.wake(engine)
        slot, engine._slot = engine._slot, None
        touches.wake(engine)
        await asyncio.sleep(0)
        assert slot.nextcall._call is None
        return int(engine.asked)

    assert asyncio.run(wake()) == 0


def test_the_end_of_a_request_is_told_before_it_is_forgotten() -> None:
    async def run() -> list[tuple[Request, bool]]:
        engine: Any = Engine()
        told: list[tuple[Request, bool]] = []
        touches.on_finished(engine, lambda request: told.append((request, request in engine._slot.inprogress)))
        request = Request("http://one.test/")
        engine._slot.add_request(request)
        engine._slot.remove_request(request)
        assert engine._slot.inprogress == set()
        return told

    assert [is_there for _, is_there in asyncio.run(run())] == [True]


def test_a_request_is_forgotten_even_if_telling_fails() -> None:
    async def run() -> None:
        engine: Any = Engine()

        def fail(request: Request) -> None:
            raise ValueError

        touches.on_finished(engine, fail)
        request = Request("http://one.test/")
        engine._slot.add_request(request)
        with pytest.raises(ValueError):  # noqa: PT011 - the engine logs it
            engine._slot.remove_request(request)
        assert engine._slot.inprogress == set()

    asyncio.run(run())


def test_listeners_are_seen_as_long_as_they_listen() -> None:
    crawler: Any = SimpleNamespace()
    crawler.signals = SignalManager(sender=crawler)
    other: Any = SimpleNamespace()
    other.signals = SignalManager(sender=other)

    def listen() -> None: ...

    assert not touches.has_listeners(crawler, signals.request_left_downloader)
    crawler.signals.connect(listen, signals.request_left_downloader)
    assert touches.has_listeners(crawler, signals.request_left_downloader)
    assert not touches.has_listeners(crawler, signals.request_reached_downloader)
    assert not touches.has_listeners(other, signals.request_left_downloader)
    crawler.signals.disconnect(listen, signals.request_left_downloader)
    assert not touches.has_listeners(crawler, signals.request_left_downloader)
    dispatcher.connect(listen, signals.request_left_downloader)  # of every sender
    try:
        assert touches.has_listeners(crawler, signals.request_left_downloader)
    finally:
        dispatcher.disconnect(listen, signals.request_left_downloader)


class Old:
    def process_request(self, request: Request, spider: Any) -> None: ...


class New:
    def process_request(self, request: Request) -> None: ...


@pytest.mark.parametrize(("middleware", "is_old"), [(Old, True), (New, False)])
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
def test_middlewares_that_want_the_spider_are_recognised(middleware: type, is_old: bool) -> None:
    assert touches.wants_spider_argument(DownloaderMiddlewareManager(middleware())) is is_old
