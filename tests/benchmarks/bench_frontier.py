"""What the frontier costs alone, without network or parsing: one JSON object per line.

    python tests/benchmarks/bench_frontier.py [--urls 1000000] [--hosts 100,1000000] [--budget 3]

Every figure comes from a process of its own. Durability is part of the price: claims are journalled and settlements are
committed in groups with synchronous=FULL. `yardstick` is the CPU time of a fixed piece of Python work; divide by it to
compare two machines, or one machine with itself on a busier day.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from webcrawl.speed import tune
from webcrawl.testing import BenchFrontier

UNDER_WAY = 100
LINKS_A_PAGE = 60
KNOWN_LINKS = 54


def url(number: int, hosts: int) -> str:
    return f"http://h{number % hosts}.example.test/section-{number % 17}/some-page-title-{number}.html"


def fill(frontier: BenchFrontier, urls: int, hosts: int, at_once: int = 1000) -> None:
    for start in range(0, urls, at_once):
        frontier.add([url(number, hosts) for number in range(start, min(urls, start + at_once))])


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_claims(directory: str, urls: int, hosts: int, budget: float) -> dict[str, float]:
    """Claim and finish in turn, with a hundred claims under way."""
    frontier = BenchFrontier(directory)
    before, started = resident_bytes(), time.process_time()
    fill(frontier, urls, hosts)
    filled = time.process_time() - started
    memory = resident_bytes() - before
    tune()
    under_way: deque[object] = deque()
    times: list[float] = []
    started = time.process_time()
    while len(times) % 64 or time.process_time() - started < budget:
        if len(under_way) == UNDER_WAY:
            frontier.done(under_way.popleft())  # type: ignore[arg-type]
        at = time.perf_counter()
        claim = frontier.claim()
        times.append(time.perf_counter() - at)
        if claim is None:
            if not under_way:
                break
            frontier.done(under_way.popleft())  # type: ignore[arg-type]
            continue
        under_way.append(claim)
    spent = time.process_time() - started
    return {
        "claims_per_cpu_second": round(len(times) / spent),
        "worst_claim_ms": round(max(times) * 1000, 2),
        "fill_per_cpu_second": round(urls / filled),
        "resident_bytes_per_url": round(memory / urls, 1),
        "table_bytes_per_url": round(frontier.table_bytes() / urls, 1),
        "open_files": len(os.listdir("/proc/self/fd")),
    }


def measure_adds(directory: str, urls: int, hosts: int, budget: float) -> dict[str, float]:
    """Add a page's links, nine in ten known."""
    frontier = BenchFrontier(directory)
    fill(frontier, urls, hosts)
    tune()
    chance, fresh, count, new, spent = random.Random(1), urls, 0, 0, 0.0
    while spent < budget:
        links = [url(chance.randrange(urls), hosts) for _ in range(KNOWN_LINKS)]
        links += [url(fresh + number, hosts) for number in range(LINKS_A_PAGE - KNOWN_LINKS)]
        fresh += LINKS_A_PAGE - KNOWN_LINKS
        chance.shuffle(links)
        started = time.process_time()
        new += frontier.add(links)
        spent += time.process_time() - started
        count += LINKS_A_PAGE
    assert new == fresh - urls, "every fresh URL must be taken as new, and no other"
    return {"links_per_cpu_second": round(count / spent)}


def measure_open(directory: str, urls: int, hosts: int, budget: float) -> dict[str, float]:
    """From a closed run to its first claim, in the process that closed it (imports are not counted)."""
    frontier = BenchFrontier(directory)
    fill(frontier, urls, hosts)
    frontier.close()
    del frontier
    gc.collect()
    started, cpu = time.perf_counter(), time.process_time()
    frontier = BenchFrontier(directory)
    assert frontier.claim() is not None
    result = {
        "open_seconds": round(time.perf_counter() - started, 2),
        "open_cpu_seconds": round(time.process_time() - cpu, 2),
        "disk_bytes_per_url": round(sum(file.stat().st_size for file in Path(directory).iterdir()) / urls, 1),
    }
    frontier.close()
    return result


MEASURES = {"claims": measure_claims, "adds": measure_adds, "open": measure_open}


def yardstick() -> float:
    started = time.process_time()
    table = {f"http://h{number % 977}/p{number}": number for number in range(400_000)}
    sum(hash(text) & 1 for text in sorted(table))
    return time.process_time() - started


def unit_of(name: str) -> str:
    units = {"_per_cpu_second": "1/CPU s", "_ms": "ms", "_cpu_seconds": "CPU s", "_seconds": "s", "_per_url": "bytes"}
    return next((unit for ending, unit in units.items() if name.endswith(ending)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the embedded frontier.")
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", default="100,1000000")
    parser.add_argument("--budget", type=float, default=3.0, help="CPU seconds for a figure")
    parser.add_argument("--only", default="claims,adds,open")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        measure, hosts = options.child.split(":")
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(MEASURES[measure](directory, options.urls, int(hosts), options.budget)))
        return
    for hosts in options.hosts.split(","):
        for measure in options.only.split(","):
            command = [sys.executable, __file__, "--child", f"{measure}:{hosts}", "--urls", str(options.urls)]
            command += ["--budget", str(options.budget)]
            print(json.dumps({"name": "yardstick", "value": round(yardstick(), 3), "unit": "CPU s"}))
            result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for name, value in result.items():
                line = {"name": f"frontier/{options.urls}_urls/{hosts}_hosts/{name}", "value": value}
                print(json.dumps({**line, "unit": unit_of(name)}), flush=True)


if __name__ == "__main__":
    main()
