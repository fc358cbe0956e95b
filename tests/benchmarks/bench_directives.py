"""What it costs a page to be asked what it wants of robots: one JSON object a line, the best of many rounds.

    python tests/benchmarks/bench_directives.py [rounds]

CPU time of the spider's part, on the pages of bench_links.py (14 KB, 60 links): reading headers and meta elements,
choosing links, writing down what was asked. `parse_page` is measured with and without looking for meta elements; the
difference is smaller than the noise of a shared machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

from scrapy import Request
from scrapy.http import HtmlResponse

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.benchmarks.bench_links import page, seconds
from webcrawl.core.directives import meta_names
from webcrawl.core.frontier import Lease, Visit
from webcrawl.core.lifecycle import Event
from webcrawl.core.outcomes import Outcome
from webcrawl.core.parsing import ParsedPage, parse_page
from webcrawl.core.reasons import Reason
from webcrawl.settlement import Settlement
from webcrawl.webspider import WebSpider

PAGES = 100
NAMES = ("Content-Type", "Server", "Date", "Etag", "Cache-Control", "Content-Length", "Connection")
USUAL = '<meta name="robots" content="index, follow, max-image-preview:large">'
SIGNALS = ("content-signal: search=yes, ai-train=no",)

Case = tuple[HtmlResponse, Settlement, ParsedPage]


def cases(
    spider: WebSpider,
    meta: str = "",
    rel: str = "",
    signals: tuple[str, ...] = (),
    header: dict[str, str] | None = None,
) -> list[Case]:
    rng, made = Random(1), []
    said = {**dict.fromkeys(NAMES, "x"), **(header or {})}
    for number in range(PAGES):
        url = f"http://h{number}.example.org/dir/page-{number}.html"
        body = page(rng).replace(b"<title>", meta.encode() + b"<title>", 1).replace(b"<a ", b"<a " + rel.encode())
        settlement = Settlement(Lease(1, 1, url, 0, 0, 0.0, 0, 0, 0.0, None), Request(url))
        settlement.visit, settlement.outcome = Visit(1.0, 200), Outcome(Event.STORE, Reason.NONE)
        settlement.signals = signals
        response = HtmlResponse(url, headers=said, body=body, encoding="utf-8")
        made.append((response, settlement, spider._parsed(response)))
    return made


def ask(spider: WebSpider, made: list[Case]) -> None:
    """As `WebSpider._pages` does it."""
    for response, settlement, parsed in made:
        spider._note_wishes(response, settlement, parsed)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    spider, names = WebSpider(seeds="http://a.example/"), meta_names("webcrawl")
    plain = cases(spider)

    def parse(wanted: frozenset[str]) -> None:
        for response, _, _ in plain:
            parse_page(response.body, response.url, "utf-8", meta_names=wanted)

    pages = {
        "nothing asked": plain,
        "meta: index, follow, max-image-preview": cases(spider, USUAL),
        "meta: noindex, nofollow": cases(spider, '<meta name="robots" content="noindex, nofollow">'),
        "X-Robots-Tag: noarchive": cases(spider, header={"X-Robots-Tag": "noarchive"}),
        "Content-Signal of robots.txt": cases(spider, signals=SIGNALS),
        "rel on all links": cases(spider, rel='rel="noopener" '),
    }
    runs: dict[str, Callable[[], None]] = {name: lambda made=made: ask(spider, made) for name, made in pages.items()}  # type: ignore[misc]
    runs |= {"parse_page": lambda: parse(frozenset()), "parse_page, with meta elements": lambda: parse(names)}
    times = [[seconds(run) for run in runs.values()] for _ in range(rounds)]  # in turn, so that all share the noise
    for name, best in zip(runs, map(min, zip(*times, strict=True)), strict=True):
        print(json.dumps({"name": name, "value": round(best / PAGES * 1e6, 2), "unit": "µs/page"}, ensure_ascii=False))


if __name__ == "__main__":
    main()
