"""What a whole crawl costs, beside stock Scrapy in the same run: one JSON object per line.

    python tests/benchmarks/bench_crawl.py [--pages 3000] [--hosts 100] [--rounds 1]

Both crawl the same generated web through the same server: every page once, one feed line a page. Stock Scrapy is a
CrawlSpider with a LinkExtractor, as its documentation shows it. CPU is user and system time of the crawler's process;
start-up is the same command on a web of one page and is left out of the net figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from webcrawl.simulator.generated import GeneratedWeb  # noqa: E402
from webcrawl.simulator.serving import RunningServer, serve  # noqa: E402

STOCK_SPIDER = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule

class Web(CrawlSpider):
    name = "web"
    rules = [Rule(LinkExtractor(), callback="page", follow=True)]
    custom_settings = {"CONCURRENT_REQUESTS": 32, "CONCURRENT_REQUESTS_PER_DOMAIN": 32, "DOWNLOAD_DELAY": 0,
                       "ROBOTSTXT_OBEY": False, "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False}

    def __init__(self, seed, **arguments):
        super().__init__(**arguments)
        self.start_urls = [seed]

    def parse_start_url(self, response):
        return self.page(response)

    def page(self, response):
        return {"url": response.url, "status": response.status, "title": response.css("title::text").get()}
"""


def cpu_seconds(command: list[str], environment: dict[str, str], cwd: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, env=environment, cwd=cwd, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def stock(seed: str, work: Path) -> list[str]:
    spider = work / "stock.py"
    spider.write_text(STOCK_SPIDER)
    return [
        sys.executable,
        "-m",
        "scrapy",
        "runspider",
        str(spider),
        "-a",
        f"seed={seed}",
        "-o",
        str(work / "feed.jsonl"),
    ]


def ours(seed: str, work: Path) -> list[str]:
    return [
        *(sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={seed}", "-a", "scope=all"),
        *("-s", f"WEBCRAWL_DIR={work / 'run'}", "-s", "WEBCRAWL_POLITENESS=off"),
        *("-s", "WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8", "-O", str(work / "feed.jsonl")),
    ]


CRAWLERS = {"stock": (stock, Path(tempfile.gettempdir())), "webcrawl": (ours, ROOT)}


def crawl(name: str, served: RunningServer) -> tuple[float, int]:
    """(CPU seconds, distinct pages in the feed)."""
    make, cwd = CRAWLERS[name]
    environment = {key: value for key, value in os.environ.items() if key.lower() != "no_proxy"}
    environment.update(served.proxy_environment)
    with tempfile.TemporaryDirectory() as work:
        spent = cpu_seconds(make(served.seeds[0], Path(work)), environment, cwd)
        lines = (Path(work) / "feed.jsonl").read_bytes().splitlines()
        return spent, len({json.loads(line)["url"] for line in lines})


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure a whole crawl beside stock Scrapy.")
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        net = {}
        for name in CRAWLERS:
            with serve(GeneratedWeb(pages=1, hosts=1, file_ratio=0, redirect_ratio=0, broken_ratio=0)) as served:
                start_up, _ = crawl(name, served)
            web = GeneratedWeb(pages=options.pages, hosts=options.hosts, file_ratio=0, redirect_ratio=0, broken_ratio=0)
            with serve(web) as served:
                spent, pages = crawl(name, served)
            net[name] = pages / (spent - start_up)
            for what, value, unit in (
                ("pages", pages, "pages"),
                ("start_up", start_up, "CPU s"),
                ("gross", pages / spent, "pages/CPU s"),
                ("net", net[name], "pages/CPU s"),
            ):
                print(json.dumps({"name": f"crawl/{name}/{what}", "value": round(value, 2), "unit": unit}), flush=True)
        ratio = net["webcrawl"] / net["stock"]
        print(json.dumps({"name": "crawl/net_ratio", "value": round(ratio, 2), "unit": "times stock"}), flush=True)


if __name__ == "__main__":
    main()
