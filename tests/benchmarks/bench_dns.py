"""What a look-up costs: one JSON object a line, {"name", "value", "unit"}; the best and the median of some rounds.

    python tests/benchmarks/bench_dns.py [rounds]

The name server is `webcrawl.testing.dns` in a process of its own, so its CPU does not count; both families are asked.
CPU is that of the asking process, the thread of c-ares included. The system's look-up goes to the name server of
/etc/resolv.conf, which may not exist here: its line asks for a literal address, which costs the thread and the call
but no packet, and so is less than a real look-up.
"""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[2]))

from webcrawl.core.dnsmessage import A
from webcrawl.core.names import Answer, Dns, server_address
from webcrawl.lookups import ask_server
from webcrawl.resolver import CachingResolver
from webcrawl.testing.dns import FakeDns, Name

NAMES = 2000
HITS = 100_000


class EveryName(dict[str, Name]):
    """Knows all names but those that begin with `gone`."""

    def get(self, name: str, default: Name | None = None) -> Name:  # type: ignore[override]
        known = Name(a=("192.0.2.1",), aaaa=("2001:db8::1",))
        return Name(outcome="nxdomain") if name.startswith("gone") else known


def serve() -> None:
    with FakeDns(EveryName()) as server:
        print(server.address, flush=True)
        sys.stdin.read()


def told(name: str, values: list[float], unit: str) -> None:
    value, least = round(median(values), 2), round(min(values), 2)
    print(json.dumps({"name": name, "value": value, "least": least, "unit": unit}, ensure_ascii=False))


async def cost(asking: Callable[[int], Awaitable[object]], count: int) -> tuple[float, float]:
    """CPU and elapsed microseconds for each of `count` questions, all asked at once."""
    cpu, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(asking(n) for n in range(count)))
    return (time.process_time() - cpu) / count * 1e6, (time.perf_counter() - start) / count * 1e6


async def one_round(server: str, number: int) -> dict[str, tuple[float, float]]:
    resolver = CachingResolver(Dns(servers=(server,), timeout_seconds=20.0), hosts={})
    loop = asyncio.get_running_loop()
    where, slots = server_address(server), asyncio.Semaphore(64)

    async def by_ourselves(n: int) -> object:
        async with slots:
            return await ask_server(where, f"own{n}-{number}.test", A, 20.0)

    found = {
        "look-up, c-ares": await cost(lambda n: resolver.resolve(f"h{n}-{number}.test"), NAMES),
        "look-up of a name that does not exist": await cost(
            lambda n: resolver.resolve(f"gone{n}-{number}.test"), NAMES
        ),
        "one question of our own": await cost(by_ourselves, NAMES),
        "getaddrinfo of a literal in a thread": await cost(lambda n: loop.getaddrinfo("192.0.2.1", None), NAMES),
        "cached(), hit": cached(resolver, f"h1-{number}.test"),
        "await resolve(), hit": await awaited(resolver, f"h1-{number}.test"),
    }
    resolver.close()
    return found


def cached(resolver: CachingResolver, host: str) -> tuple[float, float]:
    now = time.time()
    cpu, start = time.process_time(), time.perf_counter()
    for _ in range(HITS):
        resolver.cached(host, now)
    return (time.process_time() - cpu) / HITS * 1e6, (time.perf_counter() - start) / HITS * 1e6


async def awaited(resolver: CachingResolver, host: str) -> tuple[float, float]:
    cpu, start = time.process_time(), time.perf_counter()
    for _ in range(HITS):
        await resolver.resolve(host)
    return (time.process_time() - cpu) / HITS * 1e6, (time.perf_counter() - start) / HITS * 1e6


class Invented:
    """A look-up that asks nobody: two addresses for every name."""

    async def look_up(self, name: str) -> Answer:
        return Answer((f"192.0.2.{len(name)}", f"2001:db8::{len(name):x}"), 300)

    def close(self) -> None:
        """Nothing is open."""


async def memory() -> float:
    """Bytes a remembered name takes, its history included."""
    resolver = CachingResolver(Dns(), make_lookup=lambda dns: Invented(), hosts={})
    gc.collect()
    tracemalloc.start()
    for n in range(HITS // 2):
        await resolver.resolve(f"host{n}.example.org")
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0] / (HITS // 2)
    tracemalloc.stop()
    return taken


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    command = [sys.executable, __file__, "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        results = [asyncio.run(one_round(address, number)) for number in range(rounds)]
        for name in results[0]:
            told(name, [result[name][0] for result in results], "µs of CPU")
            told(name, [result[name][1] for result in results], "µs elapsed")
        told("a remembered name", [asyncio.run(memory())], "bytes")
        server.stdin.close()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
