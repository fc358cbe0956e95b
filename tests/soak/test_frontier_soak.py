"""Large frontiers and many kills: memory per page and per host, start-up, and nothing lost after a hundred ends."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.integration.frontier_worker import Options
from tests.integration.test_frontier_kill import (
    START,
    Life,
    check_politeness,
    feed_urls,
    finish,
    kill_after,
    now_after,
    opened,
    reachable_without,
    visits,
)
from tests.property.test_frontier_machine import FrontierMachine
from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import Lease
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.strategies import strategy

pytestmark = pytest.mark.soak

MILLION = 1_000_000
STORE_CACHES = 2 * 32 * 1024 * 1024  # SQLite's, one per connection
PROCESSES = multiprocessing.get_context("spawn")
NOBODY = Lease(0, 0, "", 0, 0, 0.0, 0, 0, 0.0, None)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def start(directory: Path) -> EmbeddedRun:
    run = EmbeddedRun(directory)
    rules = Rules(batch_pages=1_000, urls_per_host=0)
    run.start(Plugs(rules, strategy("random"), Admission([]), HostPolicy(15.0), sync="normal"), START)
    return run


def fill(directory: Path, pages: int, hosts: int, answer: Connection) -> None:
    """In a process of its own: take in so many pages of so many hosts; what they cost."""
    run = start(directory)
    before = resident_bytes()
    for first in range(0, pages, 1_000):
        urls = [f"http://www.host-{page % hosts}.test/folder/page-{page}.html" for page in range(first, first + 1_000)]
        run.frontier.take_links(NOBODY, urls, START)
        is_safe = threading.Event()
        run.frontier.flush(START, is_safe.set)
        assert is_safe.wait(60)
    run.close("finished", START)
    answer.send((resident_bytes() - before, run.frontier.table.bytes_used(), run.frontier.counts()))


def reopen(directory: Path, answer: Connection) -> None:
    before, began = resident_bytes(), time.perf_counter()
    run = start(directory)
    seconds = time.perf_counter() - began
    answer.send((resident_bytes() - before, seconds, run.frontier.counts()))
    run.close("finished", START)


def in_a_process(work, *arguments):
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=work, args=(*arguments, theirs))
    process.start()
    theirs.close()
    answer = ours.recv()
    process.join()
    assert process.exitcode == 0
    return answer


@pytest.mark.parametrize(
    ("hosts", "bytes_per_page"), [(1_000, 64), (MILLION, 64 + 200)], ids=["few hosts", "a host a page"]
)
def test_memory_of_a_million_pages(hosts: int, bytes_per_page: int, tmp_path: Path, record_property) -> None:
    resident, columns, counts = in_a_process(fill, tmp_path / "run", MILLION, hosts)
    assert (counts.known, counts.ready, counts.hosts) == (MILLION, MILLION, hosts)
    assert columns / MILLION <= bytes_per_page
    assert resident / MILLION <= bytes_per_page, f"{resident:,} bytes resident, the store closed"
    again, seconds, counts_again = in_a_process(reopen, tmp_path / "run")
    assert counts_again == counts
    assert (again - STORE_CACHES) / MILLION <= bytes_per_page + 64, f"{again:,} bytes resident after a restart"
    for name, value in (("resident", resident), ("resident_after_restart", again), ("start_seconds", seconds)):
        record_property(name, value)
        print(f"{hosts:,} hosts: {name} {value:,.1f}")


def test_a_hundred_kills(tmp_path: Path) -> None:
    """A page that was under way at three kills may have been set aside; everything else is there, once."""
    chance = random.Random(8)
    lives = 0
    while Life(tmp_path, START if not lives else now_after(tmp_path), most=12).kill_after(chance.randint(1, 8)):
        lives += 1
        if lives == 100:
            assert finish(tmp_path, now_after(tmp_path)) == 0
            break
    run = opened(tmp_path)
    aside = {url for (url,) in run.store.rows("SELECT url FROM pages JOIN records ON id = page WHERE reason = 22")}
    counts = run.frontier.counts()
    run.close("looked at", START)
    urls = feed_urls(tmp_path)
    assert len(urls) == len(set(urls)) == counts.stored
    assert set(urls) == reachable_without(*aside)
    asked = [url for _, _, url in visits(tmp_path)]
    assert all(asked.count(url) >= 3 for url in aside)
    check_politeness(tmp_path)


@pytest.mark.parametrize("order", ["breadth_first", "depth_first", "random"])
def test_kills_with_a_depth_limit(order: str, tmp_path: Path) -> None:
    chance, stored = random.Random(order), []
    for attempt in range(5):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        options = Options(order, depth=5)
        for number in range(4):
            kill_after(directory, START if not number else now_after(directory), chance.randint(5, 50), options=options)
        assert finish(directory, now_after(directory), options) == 0
        stored.append(set(feed_urls(directory)))
        shutil.rmtree(directory / "run")
    assert all(pages == stored[0] for pages in stored)


def test_the_machine_for_longer() -> None:
    run_state_machine_as_test(FrontierMachine, settings=settings(max_examples=2_000, stateful_step_count=60))
