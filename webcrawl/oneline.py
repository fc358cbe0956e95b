"""An error that a user can cause is told in one sentence, once, instead of tracebacks.

Scrapy has no place where the errors of a start are told. They leave `Crawler.crawl` as an exception that nobody
awaits: asyncio then says "Task exception was never retrieved" (Twisted: "Unhandled error in Deferred"), with a
traceback. An error in a scheduler's `from_crawler` comes wrapped in a second one ("Engine slot not assigned"), because
Scrapy tries to close what was never open.

So a filter sits on the loggers that tell such errors. A record whose exception is one of ours, or was caused by one,
or happened while one was handled, becomes that error's sentence; the same error a second time is dropped. Everything
else passes untouched: a bug keeps its traceback.

The filter is on the loggers, not on a handler, because Scrapy replaces its handler three times during a start; and it
is no part of `scrapy crawl`, because the scheduler also works in projects that have their own commands, and in scripts.
Where Scrapy is made to use Twisted's own process (FORCE_CRAWLER_PROCESS), Twisted prints its traceback by itself and
the sentence is the last thing said. The exit code needs nothing: a start that fails ends `scrapy crawl` with 1. For a
crawl that fails later see `webcrawl.commands.crawl`.
"""

from __future__ import annotations

import logging

from webcrawl.core.errors import WebcrawlError

LOGGERS = ("asyncio", "twisted", "scrapy.core.engine", "scrapy.utils.signal")


class OneSentence(logging.Filter):
    """Turns records about our errors into sentences; see the module."""

    def __init__(self) -> None:
        super().__init__()
        self._told: WebcrawlError | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is to be shown, perhaps as a sentence."""
        error = _ours(record.exc_info[1] if record.exc_info else None)
        if error is None:
            return True
        if error is self._told:
            return False
        self._told = error
        record.name, record.msg, record.args = "webcrawl", _on_one_line(str(error)), ()
        record.exc_info = record.exc_text = None
        return True


def _ours(error: BaseException | None) -> WebcrawlError | None:
    """The error of ours behind an exception, if there is one."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, WebcrawlError):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


def _on_one_line(text: str) -> str:
    """What a file or an argument put into the sentence must not break the line or reach the terminal as a command."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)


_filter = OneSentence()


def install() -> None:
    """Tell errors of ours in one sentence from now on; twice is the same as once."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_filter)
