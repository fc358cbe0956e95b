"""Real crawls of webs that ask for manners, killed in between, judged by the auditor from the server's log alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.integration.crawling import ROOT, Asked, Reply, crawl_command, finish, json_lines, kill, page, serving, start
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import RunningServer, serve

DELAY = 1.0
SETTINGS: dict[str, Any] = {
    "WEBCRAWL_POLITENESS": "on",
    "WEBCRAWL_POLITENESS_DELAY_SECONDS": DELAY,
    "WEBCRAWL_POLITENESS_LARGE_SITE_DELAY_SECONDS": DELAY,
    "WEBCRAWL_POLITENESS_DELAY_FACTOR": 0,
    "WEBCRAWL_BACKOFF_FIRST_SECONDS": 2,
    "WEBCRAWL_ROBOTS_RETRY_SECONDS": 2,
    "WEBCRAWL_RETRY_DELAY_SECONDS": 1,
    "WEBCRAWL_RETRY_TIMES": 6,
    "WEBCRAWL_END_WAIT_SECONDS": 10,
}


def proxies(server: RunningServer) -> dict[str, str]:
    return {"http_proxy": server.proxy_url, "https_proxy": server.proxy_url, "no_proxy": ""}


def robots_files(web: GeneratedWeb, folder: Path) -> Path:
    """One file a host, as the auditor reads them."""
    folder.mkdir()
    for host in web.addresses():
        (folder / host).write_text(web.robots_text(host))
    return folder


def audit(log: Path, *options: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "scrapy", "audit", str(log), "--json", "--tolerance", "0.05", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_crawl_of_demanding_hosts_is_polite_through_kills(tmp_path: Path) -> None:
    web = GeneratedWeb(
        pages=48,
        hosts=16,
        page_bytes=2_000,
        robots=(
            "sections@0.2",
            "crawl-delay:2@0.2",
            "disallow-all@0.1",
            "none@0.1",
            "redirect:2@0.1",
            "status:503,retry=3,fetches=1,then=private@0.2",
        ),
        faults=("busy:429,retry=3,chance=0.15@0.4", "busy:503,chance=0.15@0.3", "latency:0.05"),
    )
    log, feed = tmp_path / "access.log", tmp_path / "feed.jsonl"
    with serve(web, log=log) as server:
        seeds = ",".join(f"http://{host}/" for host in web.addresses())
        command = crawl_command(seeds, tmp_path / "run", "-O", str(feed), **SETTINGS)
        for seconds in (4.0, 3.0):
            process = start(command, proxies(server))
            time.sleep(seconds)
            kill(process)
        code, said = finish(start(command, proxies(server)))
    assert code == 0, said
    verdict = audit(log, "--delay", str(DELAY), "--robots", str(robots_files(web, tmp_path / "robots")))
    assert verdict["violations"] == dict.fromkeys(verdict["violations"], 0), verdict
    fetched = {line["url"] for line in json_lines(feed)}
    assert fetched.isdisjoint(web.must_not_fetch("webcrawl"))
    assert set(web.must_fetch("webcrawl")) - fetched == set()


def test_fifty_pages_of_a_host_that_forbids_everything(tmp_path: Path) -> None:
    """At a concurrency of a hundred; a crawler that asks page by page lets some through."""

    def answer(asked: Asked) -> Reply:
        if asked.target == "/robots.txt":
            return Reply(b"User-agent: *\nDisallow: /\n", kind="text/plain")
        return page(asked.url)

    seeds = " ".join(f"http://closed.test/{number}" for number in range(50))
    command = crawl_command(seeds, tmp_path / "run", **SETTINGS, CONCURRENT_REQUESTS=100)
    with serving(answer) as site:
        code, said = finish(start(command, site.environment))
        assert code == 0, said
        assert site.urls == ["http://closed.test/robots.txt"]
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["pages_by_reason"]["refused"] == {"robots": 50}
