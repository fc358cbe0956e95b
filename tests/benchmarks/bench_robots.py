"""What robots.txt costs, and whose verdicts we share: one JSON object a line, {"name", "value", "unit"}.

    [WEBCRAWL_ROBOTS_CORPUS=FILE.jsonl.xz] python tests/benchmarks/bench_robots.py [rounds]

CPU time, the best of all rounds; ours and Protego's take turns, so that both share the noise of the machine. With a
corpus of real files ({"host", "body" | "body_b64"} a line) the same is measured over all of them. "Protego, our groups"
is Protego given only the rules of our group, which is how it would be used if its matcher were.
"""

from __future__ import annotations

import base64
import gc
import json
import lzma
import os
import statistics
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from protego import Protego

sys.path.insert(0, str(Path(__file__).parents[2]))

from webcrawl.core import robots

AGENT = "webcrawl"
CASES = Path(__file__).parents[1] / "unit" / "core" / "robots_cases.jsonl"

USUAL_FILE = b"""\
User-agent: *
Disallow: /wp-admin/
Disallow: /cgi-bin/
Disallow: /search
Disallow: /cart
Disallow: /checkout/
Disallow: /account/
Disallow: /*?sort=
Disallow: /*.pdf$
Allow: /wp-admin/admin-ajax.php
Crawl-delay: 5

Sitemap: https://www.example.com/sitemap.xml
"""
PAGES = {
    "plain": "/products/shoes/item-1234.html",
    "query": "/products?page=2&colour=red",
    "percent": "/produits/caf%C3%A9",
    "disallowed": "/cart/add",
}
HEAD = b"User-agent: *\n"
HOSTILE = {
    "2,000 rules of 100 stars": HEAD + b"".join(b"Disallow: /%d%s\n" % (i, b"a*" * 100) for i in range(2000)),
    "worst pieces": HEAD + b"".join(b"Disallow: *%sb%s\n" % (b"a" * (9 + i % 9), b"a" * 9) for i in range(9000)),
    "500 KiB of plain rules": HEAD + b"".join(b"Disallow: /%x\n" % i for i in range(32_000)),
    "500 KiB of odd rules": HEAD + b"".join(b"Disallow: /\xe9%d\n" % i for i in range(28_000)),
    "500 KiB of line feeds": b"\n" * 512_000,
}
LONG_URL = "http://www.example.com/" + "a" * 2000


def show(name: str, value: float, unit: str) -> None:
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit}, ensure_ascii=False), flush=True)


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def best(run: Callable[[], object], rounds: int) -> float:
    return min(seconds(run) for _ in range(rounds))


def repeated(run: Callable[[str], object], url: str, times: int) -> Callable[[], None]:
    def all_times() -> None:
        for _ in range(times):
            run(url)

    return all_times


def stock_protego(body: bytes) -> Protego:
    return Protego.parse(body.decode("utf-8", "replace"))


def protego_with_our_groups(body: bytes) -> Protego:
    rules = robots.parse(body, AGENT).rules()
    return Protego.parse("User-agent: *\n" + "\n".join(rule.rule for rule in rules))


def bytes_kept(make: Callable[[], object]) -> int:
    make()
    gc.collect()
    tracemalloc.start()
    kept = make()
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return size


def bench_usual_file(rounds: int) -> None:
    ours, theirs = robots.parse(USUAL_FILE, AGENT), stock_protego(USUAL_FILE)
    for name, path in PAGES.items():
        url = f"https://www.example.com{path}"
        measures: list[tuple[str, Callable[[str], object]]] = [
            ("allows", ours.allows),
            ("Protego can_fetch", lambda url: theirs.can_fetch(url, AGENT)),
        ]
        runs = [(label, repeated(run, url, 2000)) for label, run in measures]
        times = [[seconds(run) for _, run in runs] for _ in range(rounds)]
        for (label, _), took in zip(runs, map(min, zip(*times, strict=True)), strict=True):
            show(f"{label}, {name}", took / 2000 * 1e6, "µs")
    page = "https://www.example.com/products/1"
    show("verdict", best(repeated(ours.verdict, page, 2000), rounds) / 2000 * 1e6, "µs")
    show("origin_of", best(repeated(robots.origin_of, page, 2000), rounds) / 2000 * 1e6, "µs")
    show("parse, usual file", best(lambda: robots.parse(USUAL_FILE, AGENT), rounds * 20) * 1e6, "µs")
    show("Protego parse, usual file", best(lambda: stock_protego(USUAL_FILE), rounds * 20) * 1e6, "µs")
    show("memory, usual file", bytes_kept(lambda: [robots.parse(USUAL_FILE, AGENT) for _ in range(100)]) / 100, "bytes")
    show(
        "Protego memory, usual file", bytes_kept(lambda: [stock_protego(USUAL_FILE) for _ in range(100)]) / 100, "bytes"
    )


def bench_hostile_files(rounds: int) -> None:
    for name, body in HOSTILE.items():
        rules = robots.parse(body, AGENT)
        show(f"parse, {name}", best(lambda body=body: robots.parse(body, AGENT), rounds) * 1e3, "ms")  # type: ignore[misc]
        show(f"allows, {name}", best(lambda rules=rules: rules.allows(LONG_URL), rounds) * 1e3, "ms")  # type: ignore[misc]


def count_cases() -> None:
    ours, theirs, all_of = Counter[str](), Counter[str](), Counter[str]()
    for line in CASES.read_text("utf-8").splitlines():
        row = json.loads(line)
        body = body_of(row, "robots")
        all_of[row["source"]] += 1
        ours[row["source"]] += robots.parse(body, row["agent"]).allows(row["url"]) == row["allowed"]
        theirs[row["source"]] += stock_protego(body).can_fetch(row["url"], row["agent"]) == row["allowed"]
    for source, count in all_of.items():
        show(f"{source}: cases", count, "cases")
        show(f"{source}: ours agrees", ours[source], "cases")
        show(f"{source}: Protego agrees", theirs[source], "cases")


def body_of(row: dict[str, Any], key: str) -> bytes:
    return base64.b64decode(row[f"{key}_b64"]) if f"{key}_b64" in row else row[key].encode("utf-8", "surrogatepass")


def bench_corpus(name: str) -> None:
    with lzma.open(name, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    bodies = [body_of(row, "body") for row in rows]
    show("corpus", len(bodies), "files")
    makers: list[tuple[str, Callable[[bytes], Any]]] = [
        ("ours", lambda body: robots.parse(body, AGENT)),
        ("Protego", stock_protego),
        ("Protego, our groups", protego_with_our_groups),
    ]
    kept = {}
    for label, make in makers:
        took = [best(lambda body=body: make(body), 3) for body in bodies]  # type: ignore[misc] # noqa: B023
        if label != "Protego, our groups":  # which are parsed by both
            show(f"corpus, {label}: parse, median", statistics.median(took) * 1e3, "ms")
            show(f"corpus, {label}: parse, mean", statistics.mean(took) * 1e3, "ms")
            show(f"corpus, {label}: parse, slowest file", max(took) * 1e3, "ms")
        size = bytes_kept(lambda: [make(body) for body in bodies])  # noqa: B023
        show(f"corpus, {label}: memory", size / len(bodies), "bytes/file")
        kept[label] = [make(body) for body in bodies]
    for page, path in PAGES.items():
        bench_asking(kept, [f"https://{row['host']}{path}" for row in rows], page)
    slowest = max(best(lambda rules=rules: rules.allows(LONG_URL), 3) for rules in kept["ours"])  # type: ignore[misc]
    show("corpus, ours: allows, 2,000 characters, slowest file", slowest * 1e3, "ms")


def bench_asking(kept: dict[str, list[Any]], urls: Sequence[str], page: str) -> None:
    def ask(label: str) -> None:
        for rules, url in zip(kept[label], urls, strict=True):
            rules.allows(url) if label == "ours" else rules.can_fetch(url, AGENT)

    times = [[seconds(lambda label=label: ask(label)) for label in kept] for _ in range(7)]  # type: ignore[misc]
    for label, took in zip(kept, map(min, zip(*times, strict=True)), strict=True):
        show(f"corpus, {label}: ask, {page}", took / len(urls) * 1e6, "µs")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    bench_usual_file(rounds)
    bench_hostile_files(min(rounds, 5))
    count_cases()
    corpus = os.environ.get("WEBCRAWL_ROBOTS_CORPUS")
    if corpus:
        bench_corpus(corpus)


if __name__ == "__main__":
    main()
