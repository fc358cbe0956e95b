"""For tests that crawl: a web played by this process, and real Scrapy processes that crawl it.

`Site` answers as an HTTP proxy for every host name; what it answers is a function in the test, what it was asked is a
list. `start` runs a program in a process of its own, `finish` waits for its end. `Driver` is one process
that does many crawls one after the other, because a start of Scrapy costs more than most of the crawls here.

Run as a program this file is the driver's process: plans come in as lines of JSON, what came of them goes out likewise.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from webcrawl.simulator.answers import Web

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 60  # a hung crawl is a failure, not a hung test
OWN_WEB = {"WEBCRAWL_POLITENESS": "off", "WEBCRAWL_SAFETY_ALLOW": "127.0.0.0/8"}

# ------------------------------------------------------------------------------------------------ the web


@dataclass(slots=True)
class Asked:
    """One request that arrived."""

    url: str
    method: str
    headers: dict[str, str]
    body: bytes
    began: float
    count: int  # the how many-th for this URL
    ended: float = 0.0

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def target(self) -> str:
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


@dataclass(slots=True)
class Reply:
    """What is answered; `cut` breaks the connection instead."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "text/html; charset=utf-8"
    cut: bool = False


def page(title: str, *links: str, text: str = "") -> Reply:
    """An HTML page with these links."""
    anchors = "".join(f'<p><a href="{link}">to {link}</a></p>' for link in links)
    return Reply(f"<!doctype html><title>{title}</title><p>{text or title}</p>{anchors}".encode())


def moved(to: str, status: int = 302) -> Reply:
    """A redirect."""
    return Reply(b"moved", status, {"Location": to} if to else {})


class Site:
    """A server on loopback that is every host; `answer` says what each request gets."""

    def __init__(self, answer: Callable[[Asked], Reply]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._counts: Counter[str] = Counter()
        self._news = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def proxy_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"http_proxy": self.proxy_url, "https_proxy": self.proxy_url, "no_proxy": ""}

    @property
    def urls(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.url for asked in self.asked]

    def wait_for(self, count: int) -> None:
        """Until so many requests have arrived, ever."""
        with self._news:
            arrived = self._news.wait_for(lambda: len(self.asked) >= count, PATIENCE_SECONDS)
        assert arrived, f"only {len(self.asked)} of {count} requests arrived"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _note(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Asked:
        with self._news:
            self._counts[url] += 1
            asked = Asked(url, method, headers, body, time.monotonic(), self._counts[url])
            self.asked.append(asked)
            self._news.notify_all()
        return asked

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # head and body in one packet
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                asked = site._note(self.command, self.path, dict(self.headers.items()), body)
                reply = site.answer(asked)
                if reply.cut:
                    self.close_connection = True
                else:
                    self.send_response(reply.status)
                    for name, value in {"Content-Type": reply.kind, **reply.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(reply.body)))
                    self.end_headers()
                    self.wfile.write(reply.body)
                    with contextlib.suppress(OSError):  # the crawler was killed
                        self.wfile.flush()
                asked.ended = time.monotonic()

            do_POST = do_PUT = do_GET  # noqa: N815

            def log_message(self, *arguments: Any) -> None:
                pass

        return Handler


@contextlib.contextmanager
def serving(answer: Callable[[Asked], Reply]) -> Iterator[Site]:
    """A site while the block runs."""
    site = Site(answer)
    try:
        yield site
    finally:
        site.close()


def pages_of(pages: Mapping[str, Reply | Callable[[Asked], Reply]]) -> Callable[[Asked], Reply]:
    """An answer function from URLs to replies; 404 for all others."""

    def answer(asked: Asked) -> Reply:
        found = pages.get(asked.url, Reply(b"nothing here", 404))
        return found if isinstance(found, Reply) else found(asked)

    return answer


def answers_of(web: Web) -> Callable[[Asked], Reply]:
    """An answer function from a web of the simulator."""

    def answer(asked: Asked) -> Reply:
        found = web.answer(asked.host, asked.target)
        if found is None:
            return Reply(b"no such host", 502)
        headers = {"Location": found.location} if found.location else {}
        return Reply(found.body, found.status, headers, found.content_type)

    return answer


# The client has the last byte before the server's thread comes to note the end; on a busy machine some time before.
LATE_NOTE_SECONDS = 0.1


def shortest_pauses(asked: Sequence[Asked]) -> dict[str, float]:
    """Per host: the shortest time from the end of an answer to the next request; negative where two were at once."""
    by_host: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        by_host[one.host].append(one)
    pauses = {}
    for host, visits in by_host.items():
        visits.sort(key=lambda one: one.began)
        gaps = [after.began - max(one.ended for one in visits[:n]) for n, after in enumerate(visits) if n]
        pauses[host] = min(gaps, default=float("inf"))
    return pauses


# ------------------------------------------------------------------------------------------------ crawls


def options(settings: Mapping[str, Any]) -> list[str]:
    """Settings as command line options."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def environment(proxies: Mapping[str, str]) -> dict[str, str]:
    """Of a crawl that can reach nothing but these proxies."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **proxies, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "200"}


def start(command: Sequence[str], proxies: Mapping[str, str], cwd: Path = ROOT) -> subprocess.Popen[str]:
    """A Python program in a process (and a process group) of its own; its log can be read from stderr."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env=environment(proxies),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """(exit code, log) once it has ended."""
    try:
        output, log = process.communicate(timeout=PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, log = process.communicate()
        raise AssertionError(f"the crawl did not end:\n{log[-5000:]}") from None
    return process.returncode, output + log


def crawl_command(seeds: str, directory: Path, *more: str, scope: str = "all", **settings: Any) -> list[str]:
    """`scrapy crawl web` as a command for `start`; keywords are settings, in front of our own."""
    known = {**OWN_WEB, "WEBCRAWL_DIR": directory, **settings}
    return ["-m", "scrapy", "crawl", "web", "-a", f"seeds={seeds}", "-a", f"scope={scope}", *options(known), *more]


def kill(process: subprocess.Popen[str]) -> str:
    """kill -9, and what it had said."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[1]


def json_lines(path: Path) -> list[dict[str, Any]]:
    """A feed; every line must be whole."""
    data = path.read_bytes()
    assert not data or data.endswith(b"\n"), f"{path} ends in the middle of a line: {data[-80:]!r}"
    return [json.loads(line) for line in data.splitlines()]


def csv_rows(path: Path) -> list[list[str]]:
    """A feed, header first."""
    return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"))))


@dataclass(frozen=True, slots=True)
class Crawled:
    """What came of a crawl of the driver."""

    reason: str
    stats: dict[str, Any]
    log: str
    error: str
    notes: list[Any]  # what the spider put down, see `Noting` in user_spiders


class Driver:
    """One process, many crawls."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=ROOT,
            env=environment({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def crawl(
        self,
        spider: str,
        site: Site,
        settings: Mapping[str, Any],
        feeds: Mapping[Path, Mapping[str, Any]] | None = None,
        **arguments: Any,
    ) -> Crawled:
        """One crawl: `spider` is `web` or `file.py:Class`."""
        assert self._process.stdin and self._process.stdout
        known = {**OWN_WEB, "FEEDS": {str(path): dict(options) for path, options in (feeds or {}).items()}, **settings}
        plan = {"spider": spider, "settings": known, "arguments": arguments, "environment": site.environment}
        self._process.stdin.write(json.dumps(plan, default=str) + "\n")
        self._process.stdin.flush()
        timer = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        assert line, "the driver died, or a crawl did not end"
        return Crawled(**json.loads(line))

    def close(self) -> None:
        self._process.communicate()


# ------------------------------------------------------------------------------------------------ the driver's process


def drive() -> None:
    """Do crawls until there are no more plans."""
    import asyncio
    import logging

    from scrapy.utils.log import configure_logging
    from scrapy.utils.reactor import install_reactor

    from webcrawl.speed import event_loop

    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor", event_loop())
    from twisted.internet import reactor as installed

    reactor: Any = installed

    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints must not disturb the results
    configure_logging({"LOG_INSTALL_ROOT_HANDLER": False})
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))
    handler.setLevel(logging.INFO)
    logging.getLogger().addHandler(handler)

    async def work() -> None:
        while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            log.seek(0)
            log.truncate()
            result = await _crawl(json.loads(line))
            results.write(json.dumps({**result, "log": log.getvalue()}, default=str) + "\n")
            results.flush()
        reactor.stop()

    reactor.callWhenRunning(lambda: asyncio.ensure_future(work()))
    reactor.run()


async def _crawl(plan: dict[str, Any]) -> dict[str, Any]:
    from scrapy.crawler import AsyncCrawlerRunner
    from scrapy.settings import Settings

    os.environ.update(plan["environment"])
    settings = Settings()
    settings.setmodule("webcrawl.settings", priority="project")
    settings.update(plan["settings"], priority="cmdline")
    error = ""
    spider_class = _load_spider(plan["spider"])
    crawler = AsyncCrawlerRunner(settings).create_crawler(spider_class)
    try:
        await crawler.crawl_async(**plan["arguments"])
    except Exception:  # noqa: BLE001 - the test looks at it
        error = traceback.format_exc()
    stats = crawler.stats.get_stats() if hasattr(crawler.stats, "get_stats") else {}
    notes = getattr(crawler.spider, "notes", [])
    return {"reason": stats.get("finish_reason", ""), "stats": stats, "error": error, "notes": notes}


def _load_spider(name: str) -> Any:
    import importlib.util

    if name == "web":
        from webcrawl.webspider import WebSpider

        return WebSpider
    path, _, class_name = name.rpartition(":")
    module_name = "driven_" + Path(path).stem
    if module_name not in sys.modules:
        spec = importlib.util.spec_from_file_location(module_name, path)
        assert spec and spec.loader
        module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return getattr(sys.modules[module_name], class_name)


if __name__ == "__main__":
    drive()
