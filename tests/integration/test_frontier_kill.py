"""kill -9, power loss, full and damaged disks: nothing settled is lost, no page is stored twice, no host hurried."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from tests.integration import frontier_worker
from tests.integration.frontier_worker import HOSTS, Options, links_of, reachable
from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules, journal
from webcrawl.backends.embedded.journal import ClaimJournal
from webcrawl.backends.embedded.store import FILE_NAME
from webcrawl.backends.embedded.writer import FeedFile
from webcrawl.core.errors import RunError, StoreError
from webcrawl.core.filters import Admission
from webcrawl.core.frontier import IN_MEMORY, Counts, Offer, Report, Visit
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import strategy
from webcrawl.testing import Answer, EmbeddedCrawl, Manners, work

START = 1_000_000.0
PLAIN = Options()
DELAY = 2.0


PROCESSES = multiprocessing.get_context("forkserver")  # imports once, then forks: a life costs milliseconds
PROCESSES.set_forkserver_preload([frontier_worker.__name__])


class Life:
    """One process that works on a crawl; with `most`, it stops after so many reports and waits to be killed."""

    def __init__(self, directory: Path, now: float, options: Options = PLAIN, most: int = 0) -> None:
        self._progress, progress = PROCESSES.Pipe(duplex=False)
        permits, self._permits = PROCESSES.Pipe(duplex=False)
        os.write(self._permits.fileno(), b"." * max(0, most - 1))
        arguments = (directory, now, options, progress, permits if most else None)
        self._process = PROCESSES.Process(target=frontier_worker.main, args=arguments)
        self._process.start()
        progress.close()
        permits.close()

    def kill_after(self, reports: int) -> bool:
        """Kill it when it has reported so many pages; False if it came to its end before."""
        done = 0
        while done < reports and (more := os.read(self._progress.fileno(), reports - done)):
            done += len(more)
        self._process.kill()
        return self.end() != 0

    def end(self) -> int:
        """Wait for its end; 0, 3 (the disk) or -9 (killed)."""
        while os.read(self._progress.fileno(), 1 << 16):
            pass
        self._process.join()
        status = self._process.exitcode
        for held in (self._progress, self._permits, self._process):
            held.close()
        assert status in (0, 3, -signal.SIGKILL)
        return status


def kill_after(directory: Path, now: float, reports: int, ahead: int = 5, options: Options = PLAIN) -> None:
    """Kill a process when it has reported so many pages; it may be `ahead` of that by so many."""
    assert Life(directory, now, options, reports + ahead).kill_after(reports), "it came to its end"


def finish(directory: Path, now: float, options: Options = PLAIN) -> int:
    return Life(directory, now, options).end()


def visits(directory: Path) -> Iterator[tuple[float, str, str]]:
    for line in (directory / "visits.log").read_text().splitlines():
        at, host, url = line.split(" ")
        yield float(at), host, url


def now_after(directory: Path) -> float:
    """Just after the last visit: the worst moment to start again."""
    return max((at for at, _, _ in visits(directory)), default=START) + 0.001


def check_politeness(directory: Path) -> None:
    """Over all processes, between two visits of a host lies at least its pause."""
    last: dict[str, float] = {}
    for at, host, url in visits(directory):
        assert at - last.get(host, 0.0) >= DELAY, (
            f"{url} was asked {at - last[host]} s after the last visit of its host"
        )
        last[host] = at


def feed_urls(directory: Path) -> list[str]:
    text = (directory / "pages.jsonl").read_text()
    assert not text or text.endswith("\n")
    return [json.loads(line)["url"] for line in text.splitlines()]


def check_result(directory: Path, expected: set[str]) -> Counts:
    """Every page stored once, one whole line each, and a ledger that adds up."""
    urls = feed_urls(directory)
    assert len(urls) == len(set(urls)), "a page is in the feed twice"
    assert set(urls) == expected
    run = opened(directory)
    counts = run.frontier.counts()
    states = dict(run.store.rows("SELECT p.url, r.state FROM pages p JOIN records r ON r.page = p.id"))
    assert {url for url, state in states.items() if state == State.STORED} == expected
    assert run.recovered.was_clean and run.recovered.cut_bytes == 0
    run.close("looked at", START)
    assert counts.adds_up() and counts.stored == len(expected) and counts.ready == counts.leased == 0
    return counts


def ignore(error: StoreError) -> None:
    """For runs that are not expected to fail."""


def opened(
    directory: Path, now: float = START, delay: float = DELAY, on_failure: Callable[[StoreError], None] = ignore
) -> EmbeddedRun:
    run = EmbeddedRun(directory / "run")
    plugs = Plugs(
        Rules(), strategy("breadth_first"), Admission([]), HostPolicy(delay), sync="normal", on_failure=on_failure
    )
    try:
        run.start(plugs, now)
    except BaseException:
        run.abandon()
        raise
    return run


def check_rest(directory: Path, scratch: Path) -> None:
    """A copy of what a kill has left: each host of the journal that is on disk rests a full pause."""
    shutil.copytree(directory / "run", scratch / "run")
    hosts = {claim.host for claim in ClaimJournal(scratch / "run" / "claims.bin").read()}
    now = now_after(directory)
    run = opened(scratch, now, delay=30.0)
    known = [host for host in hosts if host <= run.frontier.table.hosts.count]
    assert np.all(run.frontier.table.hosts.next_at[known] >= now + 30.0)
    run.close("looked at", now)
    shutil.rmtree(scratch / "run")


# ------------------------------------------------------------------------------------------------ kill -9


def kill_often(directory: Path, chance: random.Random, kills: int, options: Options = PLAIN) -> None:
    """Kill it `kills` times, each time after a few pages, and let it come to its end."""
    for number in range(kills):
        now = START if not number else now_after(directory)
        kill_after(directory, now, chance.randint(1, 20), chance.randint(0, 9), options)
        if number == kills // 2:
            (directory / "copy").mkdir()
            check_rest(directory, directory / "copy")
    assert finish(directory, now_after(directory), options) == 0


def test_killed_at_any_moment(tmp_path: Path) -> None:
    kill_often(tmp_path, random.Random(4), 16)
    check_result(tmp_path, reachable())
    check_politeness(tmp_path)


@pytest.mark.parametrize("order", ["breadth_first", "depth_first", "random"])
def test_the_set_does_not_depend_on_the_order(order: str, tmp_path: Path) -> None:
    kill_often(tmp_path, random.Random(order), 4, Options(order, depth=4))
    counts = check_result(tmp_path, reachable(4))
    assert counts.refused == counts.reasons[Reason.TOO_DEEP] > 0
    check_politeness(tmp_path)


@pytest.mark.parametrize("order", ["breadth_first", "depth_first"])
def test_a_page_that_kills_is_set_aside(order: str, tmp_path: Path) -> None:
    """Three crashes are counted, after one that may come before the page is on disk."""
    poison = "http://h3.test/1"
    options = Options(order, poison=poison)
    ends = [finish(tmp_path, START, options)]
    while ends[-1] and len(ends) < 6:
        ends.append(finish(tmp_path, now_after(tmp_path), options))
    crashes = len(ends) - 1
    assert ends == [-signal.SIGKILL] * crashes + [0]
    assert crashes in (3, 4)
    counts = check_result(tmp_path, reachable_without(poison))
    assert counts.refused == counts.reasons[Reason.CRASHED] == 1
    assert sum(1 for _, _, url in visits(tmp_path) if url == poison) == crashes
    check_politeness(tmp_path)


def reachable_without(*poison: str) -> set[str]:
    found, waiting = {*poison, frontier_worker.SEED}, [frontier_worker.SEED]
    while waiting:
        for link in links_of(waiting.pop()):
            if link not in found:
                found.add(link)
                waiting.append(link)
    return found - set(poison)


# ------------------------------------------------------------------------------------------------ the disk


def test_a_full_disk_ends_the_crawl_and_loses_nothing(tmp_path: Path) -> None:
    assert finish(tmp_path, START, Options(disk_full_after=9)) == 3
    sentence = (tmp_path / "failure.txt").read_text()
    assert sentence.startswith(f"The disk that holds {tmp_path / 'run'} is full. Pages fetched since")
    before = feed_urls(tmp_path)
    assert 0 < len(before) < len(reachable())
    assert finish(tmp_path, now_after(tmp_path)) == 0
    assert feed_urls(tmp_path)[: len(before)] == before
    check_result(tmp_path, reachable())
    check_politeness(tmp_path)


def cut_feed(directory: Path, keep: float) -> int:
    """As after a power cut; how many whole lines are left."""
    feed = directory / "pages.jsonl"
    os.truncate(feed, int(feed.stat().st_size * keep))
    return feed.read_bytes().count(b"\n")


def test_output_lost_in_a_power_cut_is_fetched_again(tmp_path: Path) -> None:
    kill_after(tmp_path, START, 200)
    before = feed_urls(tmp_path)
    kept = cut_feed(tmp_path, 0.7)
    kill_after(tmp_path, now_after(tmp_path), 90)
    again = cut_feed(tmp_path, 0.8)  # lengths of commits that were given up must not be believed
    assert kept < len(before)
    assert finish(tmp_path, now_after(tmp_path)) == 0
    assert feed_urls(tmp_path)[: again // 2] == before[: again // 2]
    check_result(tmp_path, reachable())
    check_politeness(tmp_path)


def settle(run: EmbeddedRun, feed: FeedFile, pages: int) -> None:
    """Settle so many pages in one commit, with a line of a hundred bytes each."""
    leases = run.frontier.next(START, pages)
    while not isinstance(leases, list):
        run.frontier.wait_for_selection()
        leases = run.frontier.next(START, pages)
    for lease in leases:
        report = Report(lease, Visit(START, 200), Event.STORE)
        report.outputs = [(feed.number, json.dumps({"url": lease.url}).ljust(99).encode() + b"\n")]
        run.frontier.report(report, START)
    is_safe = threading.Event()
    run.frontier.flush(START, is_safe.set)
    assert is_safe.wait(60) and len(leases) == pages


def test_lengths_of_commits_that_were_given_up_are_not_believed(tmp_path: Path) -> None:
    """Ten commits, then back to the fifth; after the next one, the sixth speaks of bytes that are others now."""
    path = tmp_path / "pages.jsonl"
    run = opened(tmp_path, delay=0.0)
    run.frontier.offer([Offer(f"http://h{number}.test/") for number in range(10)], START)
    for _ in range(10):
        settle(run, run.feed("pages", path, "jsonlines", overwrite=False), 1)
    run.close("finished", START)
    os.truncate(path, 550)
    run = opened(tmp_path, delay=0.0)
    assert (run.recovered.owed_again, path.stat().st_size) == (5, 500)
    settle(run, run.feed("pages", path, "jsonlines", overwrite=False), 2)
    run.close("finished", START)
    os.truncate(path, 650)
    run = opened(tmp_path, delay=0.0)
    assert path.stat().st_size == 500
    assert run.frontier.table.hosts.stored[1:11].sum() == 5
    settle(run, run.feed("pages", path, "jsonlines", overwrite=False), 5)
    run.close("finished", START)
    assert sorted(feed_urls(tmp_path)) == [f"http://h{number}.test/" for number in range(10)]


def test_output_that_was_moved_away_stops_the_start(tmp_path: Path) -> None:
    """Although there is a commit from before the first line, to which one could go back and fetch everything again."""
    path = tmp_path / "pages.jsonl"
    run = opened(tmp_path, delay=0.0)
    feed = run.feed("pages", path, "jsonlines", overwrite=False)
    run.frontier.offer([Offer(f"http://h{number}.test/") for number in range(4)], START)
    run.frontier.flush(START)
    settle(run, feed, 3)
    run.close("finished", START)
    path.rename(tmp_path / "moved.jsonl")
    with pytest.raises(RunError, match=r"pages\.jsonl is missing or has lost most.*Put the file back, or start a new"):
        opened(tmp_path)
    (tmp_path / "moved.jsonl").rename(path)
    run = opened(tmp_path)
    assert run.frontier.counts().stored == 3 and not run.recovered.owed_again
    run.close("finished", START)


@pytest.fixture
def settled(tmp_path: Path) -> Path:
    """A run that came to a clean end in the middle."""
    run = opened(tmp_path)
    run.frontier.offer([Offer(f"http://h{number % 50}.test/{number}") for number in range(3000)], START)
    run.close("finished", START)
    return tmp_path


@pytest.mark.parametrize("damage", ["all", "middle", "head"])
def test_a_damaged_store_is_said_and_left_alone(damage: str, settled: Path) -> None:
    path = settled / "run" / FILE_NAME
    data = bytearray(path.read_bytes())
    garbage = random.Random(1).randbytes(len(data))
    if damage == "all":
        data[:] = garbage
    elif damage == "head":
        data[:100] = garbage[:100]
    else:
        data[8192:] = garbage[8192:]
    path.write_bytes(data)
    for _ in range(2):
        with pytest.raises(StoreError, match=rf"{FILE_NAME} is damaged: .*Going on could make it worse.*\.recover"):
            opened(settled)
        assert path.read_bytes() == data


def test_a_newer_schema_is_refused(settled: Path) -> None:
    connection = apsw.Connection(str(settled / "run" / FILE_NAME))
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    connection.close()
    with pytest.raises(RunError, match=r"written by a newer webcrawl \(its schema is 99, .*Upgrade webcrawl"):
        opened(settled)


def test_other_rules_for_urls_are_refused(settled: Path) -> None:
    connection = apsw.Connection(str(settled / "run" / FILE_NAME))
    connection.execute("UPDATE meta SET value = '77' WHERE key = 'canonical_version'")
    connection.close()
    with pytest.raises(RunError, match=r"other rules for comparing URLs \(version 77"):
        opened(settled)


def test_a_directory_in_use_names_its_holder(tmp_path: Path) -> None:
    run = opened(tmp_path)
    with pytest.raises(RunError, match=rf"is in use by another process \(pid {os.getpid()}\)"):
        opened(tmp_path)
    run.close("finished", START)
    opened(tmp_path).close("finished", START)


def test_the_directory_is_for_one_user(tmp_path: Path) -> None:
    opened(tmp_path).close("finished", START)
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700


def test_a_clock_set_back_makes_no_host_wait_longer_than_its_pause(tmp_path: Path) -> None:
    kill_after(tmp_path, START, 60)
    earlier = START - 86_400
    run = opened(tmp_path, earlier)
    hosts = run.frontier.table.hosts
    assert HOSTS >= hosts.count > 0
    assert np.all(hosts.next_at[1 : hosts.count + 1] <= earlier + DELAY)
    run.close("finished", earlier)


# ------------------------------------------------------------------------------------------------ small things


def test_a_request_that_cannot_be_written_leaves_no_trace_on_disk(tmp_path: Path) -> None:
    """Its id goes to another page in the next process: nothing may be written under it."""
    crawl = EmbeddedCrawl(tmp_path, Manners(delay_seconds=0.0, depth=9), START)
    in_memory = Offer("http://h.test/form", key=77, depth=3, request=IN_MEMORY)
    crawl.frontier.offer([Offer("http://h.test/"), in_memory], START)
    crawl.frontier.offer([in_memory._replace(depth=1)], START)
    work(crawl, lambda lease: Answer([f"{lease.url}a"] if lease.url.endswith(("/", "form")) else []), START)
    crawl.frontier.offer([in_memory._replace(depth=0)], START)
    crawl.commit(START)
    crawl.kill()
    crawl = EmbeddedCrawl(tmp_path, Manners(delay_seconds=0.0), START)
    counts = crawl.frontier.counts()
    assert counts.adds_up() and counts.known == counts.stored == 3, counts.sentence()
    rows = crawl.run.store.rows
    assert rows("SELECT page FROM records EXCEPT SELECT id FROM pages") == []
    assert rows("SELECT page FROM links EXCEPT SELECT id FROM pages") == []
    crawl.close(START)


def test_whatever_goes_wrong_in_the_writer_ends_the_crawl(tmp_path: Path) -> None:
    """A thread that died in silence would settle nothing any more."""
    failures: list[StoreError] = []
    run = opened(tmp_path, on_failure=failures.append)
    run.frontier.offer([Offer("http://h.test/")], START)
    run.frontier.output(99, b"for a feed that is not there")
    run.close("finished", START)
    assert failures == [run.writer.failure]
    assert str(failures[0]).startswith(f"Working in {tmp_path / 'run'} failed")


def test_scores_are_the_same_after_a_restart(tmp_path: Path) -> None:
    def scores(crawl: EmbeddedCrawl) -> list[float]:
        columns = crawl.frontier.table.pages
        return [float(score) for score in columns.score[1 : columns.count + 1]]

    manners = Manners("random")
    crawl = EmbeddedCrawl(tmp_path, manners, START)
    crawl.frontier.offer([Offer(f"http://h.test/{n}", priority=n % 3 * 1e-3) for n in range(50)], START)
    before = scores(crawl)
    crawl.close(START)
    crawl = EmbeddedCrawl(tmp_path, manners, START)
    assert scores(crawl) == before
    crawl.close(START)


def test_the_journal_grows_when_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal of few records is begun anew again and again; what is under way at the kill is still in it."""
    monkeypatch.setattr(journal, "RECORDS", 5)
    manners = Manners(delay_seconds=10.0)
    crawl = EmbeddedCrawl(tmp_path, manners, START)
    crawl.frontier.offer([Offer(f"http://h{number % 20}.test/{number}") for number in range(40)], START)
    crawl.commit(START)
    trace, now = work(crawl, lambda lease: Answer(), START, at_once=7, visits=12)
    crawl.commit(now)
    lost, now = work(crawl, lambda lease: Answer(), now, at_once=1, visits=4)
    leases = crawl.next(now, 3)
    assert isinstance(leases, list)
    crawl.kill()
    crawl = EmbeddedCrawl(tmp_path, manners, now)
    asked = [lease.host for lease in leases] + [fetch.host for fetch in lost]
    assert len(trace) >= 12
    assert all(crawl.frontier.table.hosts.next_at[host] == now + 10.0 for host in asked)
    assert {page for page, _, _ in crawl.run.recovered.suspects} >= {lease.page for lease in leases}
    crawl.close(now)


def test_a_suspect_that_comes_back_is_acquitted(tmp_path: Path) -> None:
    crawl = EmbeddedCrawl(tmp_path, Manners(), START)
    crawl.frontier.offer([Offer("http://h.test/")], START)
    crawl.commit(START)
    crawl.next(START)
    crawl.kill()
    crawl = EmbeddedCrawl(tmp_path, Manners(), START)
    assert crawl.run.store.rows("SELECT page, crashes FROM suspects") == [(1, 1)]
    _, now = work(crawl, lambda lease: Answer(), START)
    crawl.commit(now)
    assert crawl.run.store.rows("SELECT * FROM suspects") == []
    crawl.close(now)


@pytest.mark.parametrize("order", ["breadth_first", "depth_first", "random"])
def test_the_working_set_stays_small(order: str, tmp_path: Path) -> None:
    """Also if every new page beats the worst that is in it, and every page has its own host."""
    crawl = EmbeddedCrawl(tmp_path, Manners(order, delay_seconds=0.0, batch_pages=50), START)
    crawl.frontier.offer([Offer(f"http://h{number}.test/", depth=99 - number // 10) for number in range(900)], START)
    assert crawl.frontier._ready.working.size <= 100
    trace, now = work(crawl, lambda lease: Answer(), START, commit_seconds=1.0)
    assert len(trace) == crawl.frontier.counts().stored == 900
    crawl.close(now)
