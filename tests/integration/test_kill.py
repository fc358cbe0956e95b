"""kill -9 at any moment: the resumed crawl ends with the pages of an undisturbed one and never hurries a host."""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.integration.crawling import (
    LATE_NOTE_SECONDS,
    PATIENCE_SECONDS,
    Asked,
    Reply,
    answers_of,
    crawl_command,
    finish,
    json_lines,
    kill,
    page,
    serving,
    shortest_pauses,
    start,
)
from webcrawl.simulator.generated import GeneratedWeb


def await_file(path: Path, process: subprocess.Popen[str]) -> None:
    """Until a process has made this file."""
    patience = time.monotonic() + PATIENCE_SECONDS
    while not path.exists():
        assert process.poll() is None, finish(process)[1]
        assert time.monotonic() < patience
        time.sleep(0.002)


def check_kills(web: GeneratedWeb, directory: Path, kills: int, early: int, seed: int) -> None:
    """Crawl a web with a process that is killed again and again; every page must be in the feed, once."""
    chance = random.Random(seed)
    feed = directory / "feed.jsonl"
    command = crawl_command(web.seeds[0], directory / "run", "-O", str(feed))
    stride = web.pages // (kills + 2)
    with serving(answers_of(web)) as site:
        for number in range(early):  # before anything is settled
            process = start(command, site.environment)
            if number % 2:
                site.wait_for(len(site.asked) + 1)
            else:
                await_file(directory / "run" / "frontier.sqlite", process)
            assert "Traceback" not in kill(process)
        for _ in range(kills):
            process = start(command, site.environment)
            site.wait_for(len(site.asked) + chance.randint(stride // 2, stride))
            assert "Traceback" not in kill(process)
        code, log = finish(start(command, site.environment))
        asked = Counter(site.urls)
    assert code == 0, log
    assert "Traceback" not in log
    assert "Resumed" in log
    urls = Counter(line["url"] for line in json_lines(feed))
    wanted = set(web.manifest())
    assert wanted <= set(asked)
    assert not wanted - set(urls), "pages that are missing from the feed"
    assert {url: count for url, count in urls.items() if count > 1} == {}
    files = {url for url in asked if "/files/" in url or "/images/" in url or "/private/" in url}
    assert set(urls) <= wanted | files


def test_a_crawl_that_is_killed_again_and_again_loses_and_repeats_nothing(tmp_path: Path) -> None:
    web = GeneratedWeb(pages=500, hosts=12, seed=11, page_bytes=800, links=20)
    check_kills(web, tmp_path, kills=4, early=2, seed=1)


def test_a_crash_loop_never_hurries_a_host(tmp_path: Path) -> None:
    """Starting takes less than the pause here, so a start that forgot whom it asked would be seen."""
    delay = 3.0
    names = [f"http://host{number}.test" for number in range(6)]

    def answer(asked: Asked) -> Reply:
        return page(asked.url, *(["/1", f"{names[-1]}/"] if asked.target == "/" else []))

    feed = tmp_path / "feed.jsonl"
    seeds = " ".join(f"{name}/" for name in names[:-1])  # the last host is found by a link
    polite: dict[str, Any] = {"WEBCRAWL_POLITENESS": "on", "WEBCRAWL_POLITENESS_DELAY_SECONDS": delay}
    command = crawl_command(seeds, tmp_path / "run", "-O", str(feed), **polite)
    with serving(answer) as site:
        for count in (1, 6):
            process = start(command, site.environment)
            site.wait_for(count)
            kill(process)
        code, log = finish(start(command, site.environment))
        pauses = shortest_pauses(site.asked)
    assert code == 0, log
    assert len(pauses) == len(names)
    assert min(pauses.values()) >= delay - LATE_NOTE_SECONDS, pauses
    wanted = sorted(f"{name}/{path}" for name in names for path in ("", "1"))
    assert sorted(line["url"] for line in json_lines(feed)) == wanted
