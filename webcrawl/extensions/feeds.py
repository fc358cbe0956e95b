"""Feeds that agree with the frontier: no page missing, none twice, after any number of kills.

Scrapy's feed exporter writes to a buffered file of its own; a kill loses the tail, and a restart overwrites or repeats.
Here the bytes of an item travel with the settlement of the page it came from and are appended by the frontier's writer
in the same commit. That is promised for JSON lines and CSV on local files. Other formats and places cannot be appended
to (a JSON array, an object store), so their items are kept as JSON lines in the run directory, with the same promise,
and the feed is written from there whenever the crawl closes; this is said once at the start.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from itemadapter import ItemAdapter
from scrapy.exporters import CsvItemExporter, JsonLinesItemExporter
from scrapy.extensions.feedexport import FeedExporter
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.serialize import ScrapyJSONEncoder

from webcrawl.items import PAGE_FIELDS, Page
from webcrawl.settlement import current

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.extensions.feedexport import ItemFilter

    from webcrawl.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

Serialise = Callable[[Any], bytes]


class Target:
    """One feed: which items it takes, how they become bytes, and which file of the run they go to."""

    def __init__(self, number: int, accepts: Callable[[Any], bool], serialise: Serialise) -> None:
        self.number = number
        self.accepts = accepts
        self.serialise = serialise


class SettledFeeds(FeedExporter):
    """Takes the place of Scrapy's FeedExporter and understands the same FEEDS setting."""

    def open_spider(self, spider: Spider) -> None:
        """Register the run's output files; a file of this run is continued."""
        self._scheduler: FrontierScheduler = self.crawler.engine.scheduler  # type: ignore[assignment, union-attr]
        self._run = self._scheduler.crawl.run
        self._targets: list[Target] = []
        self._spools: dict[str, Path] = {}
        for template, options in self.feeds.items():
            uri = _uri(template, self._get_uri_params(spider, options["uri_params"]))
            accepts = _acceptance(self.filters[template])
            if _can_be_appended_to(uri, options, self.exporters):
                self._targets.append(self._appended(template, uri, options, accepts))
            else:
                self._targets.append(self._spooled(template, uri, accepts))

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Serialise at once, as Scrapy does: the item may change later."""
        settlement = current()
        for target in self._targets:
            if target.accepts(item):
                data = target.serialise(item)
                if settlement is None:
                    self._scheduler.crawl.frontier.output(target.number, data)
                else:
                    settlement.outputs.append((target.number, data))

    async def close_spider(self, spider: Spider) -> None:
        """Write the feeds that could not be appended to."""
        for template, spool in self._spools.items():
            await self._write_whole(template, spool, spider)

    # ------------------------------------------------------------------------------------------------ appended feeds

    def _appended(self, template: str, uri: str, options: dict[str, Any], accepts: Callable[[Any], bool]) -> Target:
        path = _path(uri)
        feed = self._run.feed(template, path, options["format"], overwrite=bool(options.get("overwrite")))
        if issubclass(self.exporters[options["format"]], CsvItemExporter):
            columns = CsvColumns(feed.number, options, self._scheduler, feed.settled_bytes > 0, self._run)
            return Target(feed.number, accepts, columns.serialise)
        if _is_plain(options, self.exporters):
            return Target(feed.number, accepts, page_line)
        return Target(feed.number, accepts, self._exported(options))

    def _exported(self, options: dict[str, Any]) -> Serialise:
        buffer = io.BytesIO()
        exporter = build_from_crawler(
            self.exporters[options["format"]],
            self.crawler,
            buffer,
            fields_to_export=options["fields"],
            encoding=options["encoding"],
            indent=options["indent"],
            **options["item_export_kwargs"],
        )

        def serialise(item: Any) -> bytes:
            exporter.export_item(item)
            data = buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
            return data

        return serialise

    # ------------------------------------------------------------------------------------------------ whole feeds

    def _spooled(self, template: str, uri: str, accepts: Callable[[Any], bool]) -> Target:
        spool = self._run.directory / "items" / f"{len(self._spools) + 1}.jsonl"
        feed = self._run.feed(template, spool, "jsonlines", overwrite=False)
        self._spools[template] = feed.path
        logger.info("%s is written whole when the crawl closes; until then its items are in %s", uri, feed.path)
        return Target(feed.number, accepts, lambda item: _line(ItemAdapter(item).asdict()))

    async def _write_whole(self, template: str, spool: Path, spider: Spider) -> None:
        options = {**self.feeds[template], "overwrite": True}
        slot = self._start_new_batch(
            batch_id=1,
            uri=_uri(template, self._get_uri_params(spider, options["uri_params"])),
            feed_options=options,
            spider=spider,
            uri_template=template,
        )
        with spool.open("rb") as lines:
            for line in lines:
                slot.start_exporting()
                assert slot.exporter is not None
                slot.exporter.export_item(json.loads(line))
                slot.itemcount += 1
        await self._close_slot(slot, spider)


class CsvColumns:
    """CSV needs its columns before its first line, and the same ones after a restart."""

    def __init__(
        self, number: int, options: dict[str, Any], scheduler: FrontierScheduler, has_header: bool, run: Any
    ) -> None:
        self._number = number
        self._options = options
        self._scheduler = scheduler
        self._serialise: Serialise | None = None
        remembered = run.feed_header(number)
        if remembered:
            self._start(json.loads(remembered))
        elif has_header and options["fields"]:
            self._start(options["fields"])

    def serialise(self, item: Any) -> bytes:
        """One line; before the very first one the header goes straight to the file."""
        if self._serialise is None:
            fields = self._options["fields"] or list(ItemAdapter(item).field_names())
            names = list(fields.values()) if isinstance(fields, Mapping) else list(fields)
            frontier = self._scheduler.crawl.frontier
            frontier.note_feed_header(self._number, json.dumps(fields))
            self._start(fields)
            frontier.output(self._number, _csv_line(names, self._options["encoding"] or "utf-8"))
        assert self._serialise is not None
        return self._serialise(item)

    def _start(self, fields: Any) -> None:
        options = {"include_headers_line": False, **self._options["item_export_kwargs"]}
        buffer = io.BytesIO()
        exporter = CsvItemExporter(
            buffer, fields_to_export=fields, encoding=self._options["encoding"], **{**options, "include_headers_line": False}
        )

        def serialise(item: Any) -> bytes:
            exporter.export_item(item)
            data = buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
            return data

        self._serialise = serialise


def page_line(item: Any) -> bytes:
    """One JSON line, as Scrapy's exporter would write it, without asking each field for its serialiser."""
    if type(item) is Page:
        return _line({name: getattr(item, name) for name in PAGE_FIELDS})
    return _line(ItemAdapter(item).asdict())


_encode = ScrapyJSONEncoder(ensure_ascii=False).encode


def _line(fields: dict[str, Any]) -> bytes:
    return _encode(fields).encode("utf-8", "surrogatepass") + b"\n"


def _csv_line(values: list[str], encoding: str) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(values)
    return text.getvalue().encode(encoding)


def _uri(template: str, params: dict[str, Any]) -> str:
    return template % params if "%(" in template else template


def _path(uri: str) -> Path:
    parts = urlparse(uri)
    return Path(url2pathname(parts.path) if parts.scheme == "file" else uri).absolute()


def _acceptance(item_filter: ItemFilter) -> Callable[[Any], bool]:
    return item_filter.accepts


def _can_be_appended_to(uri: str, options: dict[str, Any], exporters: Mapping[str, type]) -> bool:
    is_local = urlparse(uri).scheme in ("", "file")
    is_by_lines = issubclass(exporters[options["format"]], JsonLinesItemExporter | CsvItemExporter)
    return is_local and is_by_lines and not options.get("postprocessing") and not options.get("batch_item_count")


def _is_plain(options: dict[str, Any], exporters: Mapping[str, type]) -> bool:
    is_stock = exporters[options["format"]] is JsonLinesItemExporter
    is_utf8 = (options["encoding"] or "").lower() in ("utf-8", "utf8")
    return is_stock and is_utf8 and not options["fields"] and not options["indent"] and not options["item_export_kwargs"]
