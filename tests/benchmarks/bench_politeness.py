"""How much of what politeness allows is used: H hosts with a pause of w seconds allow H / (w + t) requests a second.

    python tests/benchmarks/bench_politeness.py [HOSTS:DELAY:SECONDS ...]

A server of our own answers for every host, each with pages without end, and notes when each request began and ended; t
is the mean of that. Only the middle of the crawl counts: all hosts are known, and the crawl is not told to stop yet.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
CASES = ("100:1:40", "2000:10:90")
LATENCY_SECONDS = 0.05


class Served(NamedTuple):
    """One request as the server saw it."""

    host: str
    start: float
    end: float


class EndlessWeb(threading.Thread):
    """A proxy on loopback behind which every host has pages without end."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.served: list[Served] = []
        self.port = 0
        self._ready = threading.Event()
        self.start()
        self._ready.wait()

    def run(self) -> None:
        """The server's thread."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=4096)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                start = time.perf_counter()
                while (await reader.readline()) not in (b"\r\n", b""):
                    pass
                _, url, _ = line.decode().split(" ")
                await asyncio.sleep(LATENCY_SECONDS)
                writer.write(_reply(url))
                await writer.drain()
                self.served.append(Served(url.split("/")[2], start, time.perf_counter()))
        except ConnectionError:
            pass
        finally:
            writer.close()


def _reply(url: str) -> bytes:
    if url.endswith("/robots.txt"):
        return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    number = int(url.rpartition("/")[2] or 0)
    links = "".join(f'<a href="/{number * 3 + step}">{step}</a>' for step in (1, 2, 3))
    body = f"<!doctype html><title>{url}</title>{links}".encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def crawl(web: EndlessWeb, hosts: int, delay: float, seconds: float) -> float:
    """Crawl for a while; CPU seconds of the crawler."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder, "seeds.txt")
        seeds.write_text("".join(f"http://h{number}.test/\n" for number in range(hosts)))
        settings = {
            "WEBCRAWL_DIR": f"{folder}/run",
            "WEBCRAWL_SAFETY_ALLOW": "127.0.0.0/8",
            "WEBCRAWL_POLITENESS_DELAY_SECONDS": delay,
            "WEBCRAWL_POLITENESS_LARGE_SITE_DELAY_SECONDS": delay,
            "WEBCRAWL_POLITENESS_DELAY_FACTOR": 0,
            "WEBCRAWL_LIMIT_SECONDS": seconds,
            "CONCURRENT_REQUESTS": 1000,
            "LOG_LEVEL": "ERROR",
        }
        options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        command = [sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={seeds}", "-a", "scope=all", *options]
        proxy = f"http://127.0.0.1:{web.port}"
        environment = {**os.environ, "http_proxy": proxy, "https_proxy": proxy, "no_proxy": ""}
        before = os.times()
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        after = os.times()
    return after.children_user - before.children_user + after.children_system - before.children_system


def measure(hosts: int, delay: float, seconds: float, say: Callable[[str, float, str], None]) -> None:
    """One case."""
    web = EndlessWeb()
    cpu = crawl(web, hosts, delay, seconds)
    served = sorted(web.served, key=lambda one: one.end)
    begun = served[0].start + 2 * delay  # robots.txt and the first page of every host are over
    ended = served[0].start + seconds - 2.0
    inside = [one for one in served if begun <= one.end < ended]
    mean = sum(one.end - one.start for one in inside) / len(inside)
    allowed = hosts / (delay + mean)
    rate = len(inside) / (ended - begun)
    name = f"politeness/{hosts} hosts, {delay:g} s"
    say(f"{name}/requests a second", rate, "1/s")
    say(f"{name}/of what is allowed", 100.0 * rate / allowed, "%")
    say(f"{name}/least pause", 1000.0 * least_pause(served), "ms")
    say(f"{name}/CPU of the crawler", 100.0 * cpu / seconds, "% of a core")


def least_pause(served: list[Served]) -> float:
    """The shortest time from the end of an answer to the next request of the same host."""
    last: dict[str, float] = {}
    least = float("inf")
    for one in sorted(served, key=lambda one: one.start):
        least = min(least, one.start - last.get(one.host, -1e9))
        last[one.host] = one.end
    return least


def main() -> None:
    """Every case, one JSON object a line."""

    def say(name: str, value: float, unit: str) -> None:
        print(json.dumps({"name": name, "value": round(value, 2), "unit": unit}), flush=True)

    for case in sys.argv[1:] or CASES:
        hosts, delay, seconds = case.split(":")
        measure(int(hosts), float(delay), float(seconds), say)


if __name__ == "__main__":
    main()
