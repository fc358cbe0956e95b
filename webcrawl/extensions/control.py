"""`scrapy control` from the crawl's side: notices commands once a second, has them applied, and answers.

A command is taken out of the folder only after the commit that holds its effect (see `webcrawl.mailbox`); one that
waits when the crawl starts is applied before the first page is asked for. The same timer notices a changed opt-out
list (WEBCRAWL_OPTOUT_FILE): a new one counts at once, one that cannot be read or understood changes nothing and is
told once. Looking costs 30 µs a second.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import DontCloseSpider

from webcrawl import engine as scrapy_engine
from webcrawl.assembly import read_optout
from webcrawl.core.controls import Answer, Command, from_facts
from webcrawl.core.errors import ControlError, SettingError
from webcrawl.core.frontier import Offer
from webcrawl.core.urls import host_of
from webcrawl.mailbox import Mailbox
from webcrawl.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
SMALL_BYTES = 65_536  # a longer command, e.g. a list of seeds, is read in a thread
SEEDS_AT_ONCE = 500  # in one turn of the event loop

Stamp = tuple[int, int, int] | None


class Control:
    """Extension: applies the operator's commands; see the module."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Begin when the engine does: by then the run is open."""
        control = cls(crawler)
        crawler.signals.connect(control.engine_started, signals.engine_started)
        return control

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._taken: set[str] = set()  # commands that were begun in this process
        self._tasks: set[asyncio.Task[None]] = set()
        self._offering = 0
        self._complaint = ""

    def engine_started(self) -> None:
        """Apply what waits, then look once a second."""
        scheduler = self._crawler.engine.scheduler
        if not isinstance(scheduler, FrontierScheduler):
            return
        self._scheduler, self._controls = scheduler, scheduler.crawl.frontier.controls
        self._loop = asyncio.get_running_loop()
        self._mailbox = Mailbox(scheduler.crawl.run.directory)
        self._mailbox.clear(scheduler.started_at)
        self._optout_file = scheduler.choices.safety.optout_file
        self._optout_stamp = self._stamp()
        if self._optout_stamp and self._optout_stamp[0] >= (scheduler.started_at - LOOK_SECONDS) * 1e9:
            self._optout_stamp = None  # it may have been written after it was read
        self._crawler.signals.connect(self.spider_closed, signals.spider_closed)
        self._crawler.signals.connect(self.spider_idle, signals.spider_idle)
        self._tick()
        if self._controls.is_paused:
            logger.warning(
                "The crawl is paused by `scrapy control`, so nothing is asked for. "
                "Go on with: scrapy control resume -s WEBCRAWL_DIR=%s",
                scheduler.crawl.run.directory,
            )

    def spider_closed(self) -> None:
        """What comes now is for the next start."""
        self._timer.cancel()

    def spider_idle(self) -> None:
        """A crawl with nothing to do stays open while seeds for it are being read."""
        if self._tasks or self._offering:
            raise DontCloseSpider

    def _tick(self) -> None:
        self._timer = self._loop.call_later(LOOK_SECONDS, self._tick)
        if self._scheduler.is_closed:
            return
        try:
            self._look()
        except OSError as error:
            if str(error) != self._complaint:
                self._complaint = str(error)
                logger.warning("Commands of `scrapy control` cannot be read: %s. The crawl goes on.", error)

    def _look(self) -> None:
        for name in self._mailbox.waiting():
            if name not in self._taken:
                self._taken.add(name)
                if self._mailbox.size_bytes(name) > SMALL_BYTES:
                    self._in_background(self._read_and_apply(name))
                else:
                    self._apply(name, lambda name=name: self._mailbox.read(name))  # type: ignore[misc]
        if self._optout_file and (stamp := self._stamp()) != self._optout_stamp:
            self._optout_stamp = stamp
            self._in_background(self._read_optout())

    def _in_background(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ------------------------------------------------------------------------------------------------ commands

    async def _read_and_apply(self, name: str) -> None:
        try:
            facts = await asyncio.to_thread(self._mailbox.read, name)
        except (OSError, ValueError):
            facts = None
        if not self._scheduler.is_closed:
            self._apply(name, lambda: facts)

    def _apply(self, name: str, read: Callable[[], Any]) -> None:
        try:
            command = from_facts(read())
        except FileNotFoundError:
            return  # it was taken back
        except ControlError as error:
            self._answer(name, {}, Answer(str(error), is_applied=False))
            return
        except ValueError:
            self._answer(name, {}, Answer("What was written down is no command.", is_applied=False))
            return
        if command.name == "seeds":
            self._take_seeds(name, command)
        else:
            now = self._scheduler.clock.now()
            self._controls.apply(command, now, self._answering(name, command))
        self._wake()

    def _answering(self, name: str, command: Command) -> Callable[[Answer], None]:
        """What is called when everything is on disk, perhaps by the writer's thread."""
        return lambda answer: self._call(self._answer, name, command.facts(), answer)

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)

    def _answer(self, name: str, command: dict[str, Any], answer: Answer) -> None:
        level = logging.INFO if answer.is_applied else logging.WARNING
        if command.get("command") != "status":
            logger.log(level, "Control %s: %s", _shown(command), " ".join([answer.text, *answer.warnings]))
        try:
            self._mailbox.answer(name, command, answer.as_json())
        except OSError as error:
            logger.warning("A command of `scrapy control` was dealt with but not answered: %s.", error)
        self._wake()

    def _wake(self) -> None:
        if not self._scheduler.is_closed:
            scrapy_engine.wake(self._crawler.engine)

    # ------------------------------------------------------------------------------------------------ seeds

    def _take_seeds(self, name: str, command: Command) -> None:
        """Offer them, some in each turn; what they are about belongs to the run from now on."""
        self._scheduler.crawl.widen(command.urls)
        self._offering += 1
        self._offer(name, command, 0, 0, {})

    def _offer(self, name: str, command: Command, start: int, new: int, refused: dict[str, list[str]]) -> None:
        if self._scheduler.is_closed:
            return  # the command stays for the next start
        crawl, now = self._scheduler.crawl, self._scheduler.clock.now()
        part = command.urls[start : start + SEEDS_AT_ONCE]
        blocks = self._controls.rules.block_list
        for url in part:
            host = host_of(url)
            reason = crawl.admission.refuse(url, host) or blocks.refuse(url, host)
            if reason is not None:
                refused.setdefault(reason.sentence, []).append(url)
        new += sum(map(bool, crawl.frontier.offer([Offer(url) for url in part], now)))
        if start + len(part) < len(command.urls):
            self._loop.call_soon(self._offer, name, command, start + len(part), new, refused)
            return
        self._offering -= 1
        answer = _seeds_answer(len(command.urls), new, refused)
        done = self._answering(name, command)
        crawl.frontier.flush(now, lambda: done(answer))
        self._wake()

    # ------------------------------------------------------------------------------------------------ the opt-out list

    def _stamp(self) -> Stamp:
        """What changes when the file does; None: it is not there."""
        try:
            found = os.stat(self._optout_file)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    async def _read_optout(self) -> None:
        try:
            rule = await asyncio.to_thread(read_optout, self._optout_file)
        except SettingError as error:
            logger.error("%s The list as it was stays in force until then.", error)  # noqa: TRY400 - a sentence is enough
            return
        if not self._scheduler.is_closed:
            now = self._scheduler.clock.now()
            self._controls.replace_optout(rule, lambda answer: self._call(logger.info, "%s", answer.text), now)
            self._wake()


def _shown(command: dict[str, Any]) -> str:
    return from_facts(command).sentence() if command else "refused"


def _seeds_answer(count: int, new: int, refused: dict[str, list[str]]) -> Answer:
    turned_down = Counter({sentence: len(urls) for sentence, urls in refused.items()})
    known = count - new - turned_down.total()
    warnings = [
        f"{len(urls):,} of {count:,} seeds {'is' if len(urls) == 1 else 'are'} refused, e.g. {urls[0]}: {sentence}."
        for sentence, urls in refused.items()
    ]
    text = f"{count:,} seed{'' if count == 1 else 's'}: {new:,} new, {max(known, 0):,} known already."
    facts = {"new": new, "refused": turned_down.total()}
    return Answer(text, is_applied=turned_down.total() < count, warnings=warnings, facts=facts)
