"""CPU per exchange of the download handlers; a program, not a test: `python tests/unit/handlers/measure.py --help`.

`handler`: the handler alone, many keep-alive exchanges in one loop, Response included, Request not; `floor` is the
same traffic by a protocol that only counts bytes. `alone`: the lean handler's own work, no network.
`scrapy`: a bare crawl (no middlewares, empty callback) through each handler, one process each, rounds interleaved.
The site is one process answering every request with the same page in one write. CPU is the crawling process's own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

HANDLERS = {
    "http11": "scrapy.core.downloader.handlers.http11.HTTP11DownloadHandler",
    "aiohttp": "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler",
    "lean": "webcrawl.handlers.http.LeanHttpHandler",
}
HEADERS = {"Accept": "text/html", "Accept-Language": "en", "User-Agent": "webcrawl", "Accept-Encoding": "gzip"}
LOOPS = {"asyncio": None, "uvloop": "uvloop.Loop"}
HOSTS = 32
BODY = (b"<html><head><title>page</title></head><body>" + b"<p>river stone market winter engine</p>" * 1000)[
    : 14 * 1024
]
PAGE = (
    b"HTTP/1.1 200 OK\r\nServer: loop\r\nDate: Wed, 18 Nov 2026 09:00:00 GMT\r\n"
    b"Content-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n"
    b"Cache-Control: max-age=60\r\nConnection: keep-alive\r\n\r\n" % len(BODY)
) + BODY


class Site(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.pending = b""

    def data_received(self, data):
        *requests, self.pending = (self.pending + data).split(b"\r\n\r\n")
        self.transport.write(PAGE * len(requests))


async def serve():
    server = await asyncio.get_running_loop().create_server(Site, "0.0.0.0", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def settings(handler, loop):
    return {
        "DOWNLOAD_HANDLERS": {"http": HANDLERS[handler]},
        "ASYNCIO_EVENT_LOOP": LOOPS[loop],
        "CONCURRENT_REQUESTS": 64,
        "CONCURRENT_ITEMS": 1,
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "DOWNLOADER_MIDDLEWARES_BASE": {},
        "SPIDER_MIDDLEWARES_BASE": {},
        "EXTENSIONS_BASE": {},
    }


def urls(port, pages):
    return [f"http://127.0.0.{1 + n % HOSTS}:{port}/page/{n}.html?lang=en" for n in range(pages)]


def crawl(handler, loop, port, pages):
    import scrapy
    from scrapy import signals
    from scrapy.crawler import AsyncCrawlerProcess

    seen = []

    class Bare(scrapy.Spider):
        name = "bare"

        async def start(self):
            for url in urls(port, pages):
                yield scrapy.Request(url, dont_filter=True, meta={"download_timeout": 30.0})

        def parse(self, response):
            seen.append(len(response.body))

    process = AsyncCrawlerProcess(settings(handler, loop))
    crawler = process.create_crawler(Bare)
    spent = []
    mark = lambda: spent.append(time.process_time())  # noqa: E731
    crawler.signals.connect(mark, signals.spider_opened)
    crawler.signals.connect(mark, signals.spider_closed)
    process.crawl(crawler)
    process.start()
    assert seen == [len(BODY)] * pages, f"{len(seen)} of {pages} pages came"
    print(json.dumps((spent[1] - spent[0]) / pages * 1e6))


class Floor(asyncio.Protocol):
    """As little as one can do for an exchange: send, count the bytes, wake the one who waits."""

    waiter: asyncio.Future[None]

    def connection_made(self, transport):
        self.transport = transport
        self.received = 0

    def data_received(self, data):
        self.received += len(data)
        if self.received >= len(PAGE):
            self.received = 0
            self.waiter.set_result(None)


async def floor(port, pages):
    loop = asyncio.get_running_loop()
    waiting = iter(range(pages))

    async def ask(host):
        _, line = await loop.create_connection(Floor, f"127.0.0.{1 + host}", port)
        for _ in waiting:
            line.waiter = loop.create_future()
            line.transport.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: webcrawl\r\n\r\n")
            await line.waiter
        line.transport.abort()

    before = time.process_time()
    await asyncio.gather(*(ask(host) for host in range(HOSTS)))
    print(json.dumps((time.process_time() - before) / pages * 1e6))


class Mirror(asyncio.Transport):
    """A transport that answers each write with the page, at once."""

    connection: Any

    def write(self, data):
        self.connection.data_received(PAGE)


async def alone():
    """Least and median µs of an exchange without a network: bursts too short to be interrupted much."""
    from scrapy import Request, Spider
    from scrapy.utils.test import get_crawler

    from webcrawl.handlers.connection import Connection
    from webcrawl.handlers.http import LeanHttpHandler

    handler = LeanHttpHandler(get_crawler(Spider))
    request = Request("http://127.0.0.1:8080/page/1.html?lang=en", headers=HEADERS, meta={"download_timeout": 30.0})
    await handler.close()
    handler._loop, handler._may_fall_back = asyncio.get_running_loop(), False
    route, _ = handler._locate(request, request.meta)
    connection, mirror = Connection(route), Mirror()
    mirror.connection = connection
    connection.transport, connection.is_open, connection.keep_alive = mirror, True, True
    connection.request = request
    handler._pool.release(connection)
    spent = []
    for _ in range(300):
        before = time.process_time()
        for _ in range(100):
            await handler.download_request(request)
        spent.append((time.process_time() - before) / 100 * 1e6)
    print(f"an exchange without a network: least {min(spent):.0f} µs, median {median(spent):.0f} µs")


async def exchanges(handler, port, pages):
    from scrapy import Request, Spider
    from scrapy.utils.misc import build_from_crawler, load_object
    from scrapy.utils.test import get_crawler

    crawler = get_crawler(Spider, {"DOWNLOAD_HANDLERS": {}})
    subject = build_from_crawler(load_object(HANDLERS[handler]), crawler)
    waiting = iter(urls(port, pages))
    meta = {"verbatim_url": True, "download_timeout": 30.0}

    async def ask():
        for url in waiting:
            response = await subject.download_request(Request(url, headers=HEADERS, meta=meta))
            assert len(response.body) == len(BODY)

    await asyncio.gather(*(ask() for _ in range(HOSTS)))
    waiting = iter(urls(port, pages))
    before = time.process_time()
    await asyncio.gather(*(ask() for _ in range(HOSTS)))
    spent = time.process_time() - before
    before = time.process_time()
    for url in urls(port, pages):
        Request(url, headers=HEADERS, meta=meta)
    requests = time.process_time() - before
    await subject.close()
    print(json.dumps((spent - requests) / pages * 1e6))


def once(what, handler, loop, port, pages):
    command = [sys.executable, __file__, "one", what, handler, loop, str(port), str(pages)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[3])
    if done.returncode:
        raise SystemExit(done.stderr)
    return float(done.stdout.split()[-1])


def table(what, rounds, pages):
    site = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
    assert site.stdout is not None
    port = int(site.stdout.readline())
    # The handler alone is measured without a reactor, which http11 cannot do.
    names = ["http11", "aiohttp", "lean"] if what == "scrapy" else ["floor", "aiohttp", "lean"]
    rows = [(name, loop) for name in names for loop in LOOPS]
    figures: dict[tuple[str, str], list[float]] = {row: [] for row in rows}
    try:
        for _ in range(rounds):
            for handler, loop in rows:
                figures[handler, loop].append(once(what, handler, loop, port, pages))
    finally:
        site.terminate()
        site.wait()
    print(f"| {what} | loop | µs a page, median | least |\n|---|---|---|---|")
    for (handler, loop), spent in figures.items():
        print(f"| {handler} | {loop} | {median(spent):.0f} | {min(spent):.0f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["handler", "scrapy", "alone", "serve", "one"])
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=4000)
    asked = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[3]))
    if asked.what == "serve":
        asyncio.run(serve())
    elif asked.what == "alone":
        asyncio.run(alone())
    elif asked.what != "one":
        table(asked.what, asked.rounds, asked.pages)
    elif asked.rest[0] == "scrapy":
        crawl(asked.rest[1], asked.rest[2], int(asked.rest[3]), int(asked.rest[4]))
    else:
        if asked.rest[2] == "uvloop":
            import uvloop

            uvloop.install()
        name, port, pages = asked.rest[1], int(asked.rest[3]), int(asked.rest[4])
        asyncio.run(floor(port, pages) if name == "floor" else exchanges(name, port, pages))


if __name__ == "__main__":
    main()
