"""Spiders as people write them, for the tests of the scheduler.

Run as a program: `python user_spiders.py CLASS SETTINGS_AS_JSON` crawls with one of them the way a script does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from scrapy import FormRequest, Item, Request, Spider, signals
from scrapy.exceptions import DropItem, IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

ONE = "http://one.test"


class Noting(Spider):
    """Puts down what happened; the driver hands it to the test."""

    @property
    def notes(self) -> list[Any]:
        return self.__dict__.setdefault("_notes", [])  # type: ignore[no-any-return]

    def note(self, *facts: Any) -> None:
        self.notes.append(facts)


class Shop(CrawlSpider):
    """Rules, as in Scrapy's documentation."""

    name = "shop"
    start_urls = [f"{ONE}/"]  # noqa: RUF012
    allowed_domains = ("one.test",)
    rules = (
        Rule(LinkExtractor(allow=r"/category/")),
        Rule(LinkExtractor(allow=r"/item/"), callback="parse_item", cb_kwargs={"found": "by rule"}),
    )

    def parse_item(self, response: Response, found: str) -> Iterator[dict[str, Any]]:
        yield {"url": response.url, "found": found, "depth": response.meta["depth"], "text": response.meta["link_text"]}


class Arguments(Noting):
    """Everything a request can carry."""

    name = "arguments"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(
            ONE,  # without a slash
            self.first,
            cb_kwargs={"pair": (1, b"two"), "many": {3}},
            meta={"kept": [None, 1.5], "cookiejar": 7},
            headers={"X-Test": "yes", "Referer": "http://from.test/"},
            cookies={"taste": "sweet"},
        )

    def first(self, response: Response, pair: tuple[int, bytes], many: set[int]) -> Iterator[Any]:
        self.note(pair == (1, b"two") and type(pair) is tuple, many == {3}, response.meta["kept"])
        yield FormRequest(f"{ONE}/form", formdata={"field": "ä ö"}, callback=self.second, meta=dict(response.meta))
        yield Request(f"{ONE}/put", self.second, method="PUT", body=b"\xff\x00", encoding="latin-1", flags=["mine"])

    def second(self, response: Response) -> dict[str, Any]:
        assert response.request is not None
        return {
            "url": response.url,
            "method": response.request.method,
            "kept": response.meta.get("kept"),
            "cookiejar": response.meta.get("cookiejar"),
            "flags": response.request.flags,
            "depth": response.meta["depth"],
        }


class Failures(Noting):
    """Error handlers, and a callback that fails."""

    name = "failures"

    async def start(self) -> AsyncIterator[Any]:
        for path in ("always500", "missing", "cut", "flaky", "raises", "fine"):
            yield Request(f"{ONE}/{path}", self.answered, errback=self.failed, cb_kwargs={"path": path})

    def answered(self, response: Response, path: str) -> Iterator[Any]:
        self.note("answered", path, response.status)
        yield {"path": path}
        if path == "raises":
            yield Request(f"{ONE}/child")
            raise ValueError(path)

    def failed(self, failure: Any) -> Iterator[Any]:
        status = getattr(getattr(failure.value, "response", None), "status", 0)
        self.note("failed", failure.request.cb_kwargs["path"], status, failure.type.__name__)
        yield {"path": failure.request.cb_kwargs["path"], "failed": True}

    def parse(self, response: Response, **kwargs: Any) -> Any:
        return {"path": "child"}


class Ordered(Noting):
    """Priorities."""

    name = "ordered"

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{ONE}/")

    def parse(self, response: Response, **kwargs: Any) -> Any:
        if response.url == f"{ONE}/":
            for priority in (0, 5, -3, 10, 5, 1):
                yield Request(f"{ONE}/{priority}?{len(self.notes)}", priority=priority)
                self.note(priority)


class Repeating(Noting):
    """The same page several times, on purpose."""

    name = "repeating"
    start_urls = [f"{ONE}/", f"{ONE}/"]  # noqa: RUF012 - Scrapy does not filter these

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield {"url": response.url}
        if response.url == f"{ONE}/":
            yield Request(f"{ONE}/same", dont_filter=True)
            yield Request(f"{ONE}/same", dont_filter=True)
            yield Request(f"{ONE}/once")
            yield Request(f"{ONE}/once")


class Lambdas(Noting):
    """Callbacks that cannot be written down; one page fails at first."""

    name = "lambdas"

    async def start(self) -> AsyncIterator[Any]:
        for number in range(3):
            yield Request(f"{ONE}/{number}", callback=cast(Any, lambda response, number=number: {"number": number}))
        child = Request(f"{ONE}/child", self.child)
        yield Request(f"{ONE}/flaky", callback=cast(Any, lambda response: [{"number": "flaky"}, child]))

    def child(self, response: Response) -> Any:
        return {"number": "child"}


class Door:
    """A downloader middleware that does everything one may do."""

    def process_request(self, request: Request) -> Request | Response | None:
        path = request.url.removeprefix(ONE)
        if path == "/ignored":
            raise IgnoreRequest
        if path == "/canned":
            return HtmlResponse(request.url, body=b"<title>canned</title>", request=request)
        if path == "/replaced":
            return request.replace(url=f"{ONE}/replacement")
        return None

    async def process_response(self, request: Request, response: Response) -> Request | Response:
        if request.url == f"{ONE}/swallowed":
            raise IgnoreRequest
        if request.url == f"{ONE}/again" and not request.meta.get("again"):
            request.meta["again"] = True
            request.dont_filter = True
            return request
        return response

    def process_exception(self, request: Request, exception: Exception) -> Response | None:
        if request.url == f"{ONE}/cut":
            return HtmlResponse(request.url, status=200, body=b"<title>rescued</title>", request=request)
        return None


class Picky:
    """A pipeline that changes, drops and breaks."""

    def process_item(self, item: Any) -> Any:
        if item["title"] == "drop":
            raise DropItem(item["title"])
        if item["title"] == "break":
            raise ValueError
        return {**item, "seen": True}


class Doors(Noting):
    """Middlewares and pipelines of a project, and what signals say about them."""

    name = "doors"
    custom_settings = {  # noqa: RUF012
        "DOWNLOADER_MIDDLEWARES": {Door: 500},
        "ITEM_PIPELINES": {Picky: 1},
    }
    paths = ("ignored", "canned", "replaced", "swallowed", "again", "cut", "drop", "break", "plain", "to-plain", "far")

    @classmethod
    def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Doors:
        spider = super().from_crawler(crawler, *args, **kwargs)
        for name in ("request_dropped", "request_scheduled", "item_dropped", "item_error", "response_received"):
            crawler.signals.connect(getattr(spider, name), getattr(signals, name))
        return spider

    async def start(self) -> AsyncIterator[Any]:
        yield {"title": "before anything"}
        yield Request(f"{ONE}/", self.begin)

    def begin(self, response: Response) -> Iterator[Request]:
        for path in (*self.paths, "plain"):
            yield Request(f"{ONE}/{path}", errback=self.failed)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        yield {"title": response.css("title::text").get(""), "url": response.url}

    def failed(self, failure: Any) -> None:
        self.note("failed", failure.request.url, failure.type.__name__)

    def request_dropped(self, request: Request) -> None:
        self.note("dropped", request.url)

    def request_scheduled(self, request: Request) -> None:
        self.note("scheduled", request.url)

    def item_dropped(self, item: Any) -> None:
        self.note("item dropped", item["title"])

    def item_error(self, item: Any) -> None:
        self.note("item error", item["title"])

    def response_received(self, response: Response) -> None:
        self.note("received", response.url)


class Plain(Repeating):
    """A spider with a middleware of its own, written as in Scrapy's documentation."""

    name = "plain"
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {Door: 500}}  # noqa: RUF012


class Retrying(Doors):
    """A project that keeps Scrapy's own retries."""

    name = "retrying"
    custom_settings = {  # noqa: RUF012
        "DOWNLOADER_MIDDLEWARES": {"scrapy.downloadermiddlewares.retry.RetryMiddleware": 550},
        "RETRY_TIMES": 1,
    }

    async def start(self) -> AsyncIterator[Any]:
        yield Request(f"{ONE}/flaky", dont_filter=True)
        yield Request(f"{ONE}/always500", dont_filter=True, errback=self.failed)


class Media(Noting):
    """Requests beside the scheduler, from a callback, as media pipelines make them."""

    name = "media"
    start_urls = [f"{ONE}/a", f"{ONE}/b"]  # noqa: RUF012

    async def parse(self, response: Response, **kwargs: Any) -> Any:
        for name in ("image", "to-plain", "missing"):
            answer = await self.crawler.engine.download_async(Request(f"{ONE}/{name}?of={response.url[-1]}"))
            yield {"of": response.url, "status": answer.status, "url": answer.url}


class Odd(Noting):
    """Requests that are no pages, and an attribute with a name of ours."""

    name = "odd"
    purpose = "mine"

    async def start(self) -> AsyncIterator[Any]:
        yield Request("data:,text")
        yield Request("http://no host.test/")
        yield Request(f"{ONE}/always500", meta={"dont_retry": True}, errback=self.failed)
        yield Request(f"{ONE}/always500?2", meta={"max_retry_times": 1}, errback=self.failed)
        yield Request(f"{ONE}/timeout", meta={"download_timeout": 0.2, "dont_retry": True}, errback=self.failed)
        yield Request(f"{ONE}?query", self.parse)
        yield Request(f"{ONE}/class", cb_kwargs={"thing": Item()}, callback=self.thing)

    def parse(self, response: Response, **kwargs: Any) -> Any:
        return {"url": response.url}

    def thing(self, response: Response, thing: Item) -> Any:
        return {"url": response.url, "kind": type(thing).__name__}

    def failed(self, failure: Any) -> None:
        self.note("failed", failure.request.url, failure.type.__name__)


class Catalogue(Noting):
    """Lists that lead to details with arguments: for kills. Every item must be there once, with the right arguments."""

    name = "catalogue"
    lists = 12
    details = 12

    async def start(self) -> AsyncIterator[Any]:
        for number in range(self.lists):
            yield Request(f"{ONE}/list/{number}", self.listed, cb_kwargs={"number": number}, dont_filter=True)

    def listed(self, response: Response, number: int) -> Iterator[Any]:
        yield {"list": number}
        for detail in range(self.details):
            url = f"{ONE}/detail/{number}/{detail}"
            yield Request(url, self.detailed, cb_kwargs={"key": (number, detail)}, meta={"from": response.url})
            yield Request(url, self.detailed)  # filtered
        yield FormRequest(f"{ONE}/search", formdata={"list": str(number)}, callback=self.found, errback=self.lost)
        yield Request(f"{ONE}/poll", self.polled, dont_filter=True, cb_kwargs={"number": number})
        yield Request(f"{ONE}/missing/{number}", self.found, errback=self.lost, meta={"number": number})

    def detailed(self, response: Response, key: tuple[int, int]) -> Iterator[Any]:
        assert type(key) is tuple
        yield {"key": list(key), "url": response.url, "from": response.meta["from"]}

    def found(self, response: Response) -> Any:
        return {"search": response.text}

    def polled(self, response: Response, number: int) -> Any:
        return {"poll": number}

    def lost(self, failure: Any) -> Any:
        return {"lost": failure.value.response.meta["number"]}


class Renamed(Catalogue):
    """The same spider after its author has removed a callback."""

    @property
    def detailed(self) -> Any:
        raise AttributeError


def main(class_name: str, settings: str) -> None:
    """A script as in Scrapy's documentation, with webcrawl's settings."""
    from scrapy.crawler import CrawlerProcess

    import webcrawl.settings

    ours = {name: getattr(webcrawl.settings, name) for name in dir(webcrawl.settings) if name.isupper()}
    process = CrawlerProcess(settings={**ours, **json.loads(settings)})
    process.crawl(globals()[class_name])
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
