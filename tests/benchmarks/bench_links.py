"""What links and pages cost in CPU time: one JSON object a line, {"name", "value", "unit"}; the best of many rounds.

    python tests/benchmarks/bench_links.py [rounds]

Pages are made here: 14 KB, 60 links, three of them broken or not for the Web. Two cores shared with others make figures
differ by half from run to run; compare what one run prints.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from w3lib.url import canonicalize_url

sys.path.insert(0, str(Path(__file__).parents[2]))

from webcrawl.core import parsing, urls

PAGES = 100
SYLLABLES = "ba ce di fo gu ha ke li mo nu pé rü sa te vi wo".split()


def words(rng: Random, count: int) -> str:
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def link(rng: Random, i: int) -> str:
    name = words(rng, 2).replace(" ", "-").replace("é", "e").replace("ü", "u")
    away, query = f"http://h{i}.example.org/{name}", f"/view?id={i}&topic={i % 9}"
    href = rng.choices([f"/{name}/", f"../{name}.html", away, query, f"{name}#c"], [4, 2, 2, 1, 1])[0]
    return f'<a href="{href}">{words(rng, 2)}</a>'


def page(rng: Random) -> bytes:
    menu = "\n".join(f'<li class="item">{link(rng, i)}</li>' for i in range(20))
    texts = [f"{words(rng, 85)} {link(rng, i)}, {link(rng, i + 1)}" for i in range(19)]
    paragraphs = "\n".join(f'<div class="text"><p>{text}</p></div>' for text in texts)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{words(rng, 5)}</title>'
        f'<meta name="description" content="{words(rng, 20)}"><link rel="stylesheet" href="/main.css">'
        f"<script>if (1 < 2) {{ go() }}</script></head><body><nav><ul>{menu}</ul></nav><main>{paragraphs}</main>"
        '<a href="mailto:a@b.c">mail</a> <a href="#top">top</a> <a href="javascript:x()">x</a></body></html>'
    ).encode()


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    rng = Random(1)
    bodies = [(f"http://h{i}.example.org/dir/page-{i}.html", page(rng)) for i in range(PAGES)]
    hrefs = [(url, [a.split('"')[1] for a in body.decode().split("<a ")[1:]]) for url, body in bodies]
    found = [parsing.parse_page(body, url, "utf-8").links for url, body in bodies]
    forms = [urls.canonicals(links) for links in found]
    link_count, href_count = sum(map(len, found)), sum(len(links) for _, links in hrefs)

    queries = [u for links in found for u in links if "?" in u]

    def parse(with_text: bool = True, with_anchors: bool = True) -> None:
        for url, body in bodies:
            parsing.parse_page(body, url, "utf-8", with_text=with_text, with_anchors=with_anchors)

    measures: list[tuple[str, Callable[[], object], int, str]] = [
        ("resolve", lambda: [urls.resolve(url, links) for url, links in hrefs], href_count, "µs/link"),
        ("canonicals", lambda: [urls.canonicals(links) for links in found], link_count, "µs/link"),
        ("canonical, one by one", lambda: [urls.canonical(u) for links in found for u in links], link_count, "µs/link"),
        ("canonicals, with query", lambda: urls.canonicals(queries), len(queries), "µs/link"),
        ("w3lib, with query", lambda: [canonicalize_url(u) for u in queries], len(queries), "µs/link"),
        ("keys", lambda: [urls.keys(links, 7) for links in forms], link_count, "µs/link"),
        ("host_of", lambda: [urls.host_of(u) for links in found for u in links], link_count, "µs/link"),
        ("site_of", lambda: [urls.site_of(urls.host_of(u)) for links in found for u in links], link_count, "µs/link"),
        ("kind_of", lambda: [urls.kind_of(u) for links in found for u in links], link_count, "µs/link"),
        ("parse_page", parse, PAGES, "µs/page"),
        ("parse_page, no text", lambda: parse(with_text=False), PAGES, "µs/page"),
        ("parse_page, no text, no anchors", lambda: parse(with_text=False, with_anchors=False), PAGES, "µs/page"),
        ("decode alone", lambda: [body.decode() for _, body in bodies], PAGES, "µs/page"),
    ]
    times = [[seconds(run) for _, run, _, _ in measures] for _ in range(rounds)]  # in turn, so that all share the noise
    for (name, _, count, unit), best in zip(measures, map(min, zip(*times, strict=True)), strict=True):
        print(json.dumps({"name": name, "value": round(best / count * 1e6, 3), "unit": unit}, ensure_ascii=False))
    size = sum(len(body) for _, body in bodies) / PAGES
    print(json.dumps({"name": "page size", "value": round(size), "unit": "bytes"}))
    print(json.dumps({"name": "links", "value": href_count / PAGES, "unit": "links/page"}))


if __name__ == "__main__":
    main()
