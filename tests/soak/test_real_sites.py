"""Real sites, crawled whole: every page reachable by links is in the feed, none twice.

Needs a folder of sites laid out as <folder>/<host>/<path> with a `_manifest.json` that names seeds for each host; give
it in WEBCRAWL_SITES. The walk that says what is reachable is independent: lxml and urllib, over the same server.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urldefrag, urljoin, urlsplit

import lxml.html
import pytest

from webcrawl.core.urls import canonical
from webcrawl.simulator.folder import FolderWeb
from webcrawl.simulator.serving import RunningServer, serve

ROOT = Path(__file__).parents[2]
SITES = os.environ.get("WEBCRAWL_SITES", "")
LINKS = ("a/@href", "area/@href", "frame/@src", "iframe/@src")

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not SITES, reason="WEBCRAWL_SITES names no folder of real sites"),
]


def seeds_of(sites: Path) -> list[str]:
    hosts = json.loads((sites / "_manifest.json").read_text())["hosts"].values()
    return [seed for host in hosts for seed in host["seeds"]]


class Walk:
    """A breadth-first walk over links, as simple as can be."""

    def __init__(self, connection: http.client.HTTPConnection, hosts: set[str]) -> None:
        self._connection = connection
        self._hosts = hosts
        self.pages: set[str] = set()

    def run(self, seeds: list[str]) -> None:
        queue, seen = deque(seeds), {canonical(seed) for seed in seeds}
        while queue:
            url = queue.popleft()
            for found in self._visit(url):
                if urlsplit(found).hostname in self._hosts and len(found) <= 2083 and canonical(found) not in seen:
                    seen.add(canonical(found))
                    queue.append(found)

    def _visit(self, url: str) -> Iterator[str]:
        target = quote(url, safe="%/:=&?~#+!$,;'@()*[]")
        self._connection.request("GET", target)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status in (301, 302, 303, 307, 308):
            yield urljoin(url, answer.getheader("Location") or "")
        elif answer.status == 200 and body:
            self.pages.add(canonical(url))
            if (answer.getheader("Content-Type") or "").startswith(("text/html", "application/xhtml")):
                yield from links_of(url, body)


def links_of(url: str, body: bytes) -> Iterator[str]:
    tree = lxml.html.document_fromstring(body, parser=lxml.html.HTMLParser(encoding=None, huge_tree=True))
    base = urljoin(url, next(iter(tree.xpath("//base/@href")), ""))
    for kind in LINKS:
        for href in tree.xpath(f"//{kind}"):
            try:
                found = urldefrag(urljoin(base, href.strip()))[0]
                if found.startswith(("http://", "https://")):
                    yield found
            except ValueError:
                continue


def crawl(server: RunningServer, seeds: list[str], work: Path) -> list[str]:
    (work / "seeds.txt").write_text("\n".join(seeds))
    command = [
        *(sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={work / 'seeds.txt'}", "-a", "scope=hosts"),
        *("-s", f"WEBCRAWL_DIR={work / 'run'}", "-s", "WEBCRAWL_POLITENESS=off", "-s", "WEBCRAWL_RETRY_TIMES=0"),
        *("-s", "WEBCRAWL_LIMIT_URLS_PER_HOST=0", "-s", "WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8"),
        *("-s", "WEBCRAWL_DIRECTIVES_NOFOLLOW=ignore", "-s", "WEBCRAWL_DIRECTIVES_REL="),  # the walk takes all links
        *("-s", "WEBCRAWL_DIRECTIVES_NOINDEX=ignore"),
        *("-O", str(work / "feed.jsonl")),
    ]
    environment = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    subprocess.run(command, check=True, cwd=ROOT, env={**environment, **server.proxy_environment})
    with (work / "feed.jsonl").open("rb") as lines:
        return [json.loads(line)["canonical_url"] for line in lines]


def test_every_reachable_page_is_in_the_feed_once(tmp_path: Path) -> None:
    sites = Path(SITES)
    seeds = seeds_of(sites)
    with serve(FolderWeb(sites)) as server:
        feed = Counter(crawl(server, seeds, tmp_path))
        with closing(http.client.HTTPConnection("127.0.0.1", server.port)) as connection:
            walk = Walk(connection, {urlsplit(seed).hostname or "" for seed in seeds})
            walk.run(seeds)
    twice = [url for url, count in feed.items() if count > 1]
    missing, more = sorted(walk.pages - feed.keys()), sorted(feed.keys() - walk.pages)
    print(f"feed {len(feed):,} pages, walk {len(walk.pages):,}, missing {len(missing)}, more {len(more)}")
    print("missing:", *missing[:20], "more:", *more[:20], sep="\n  ")
    assert not twice
    assert not missing
