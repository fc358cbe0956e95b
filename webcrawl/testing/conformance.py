"""The promises of `webcrawl.core.frontier`, each as a check; `check_frontier` runs them all."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from webcrawl.core.frontier import Empty, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import Event
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of
from webcrawl.testing.crawls import Answer, Check, Fetch, Make, ModelCrawl, made_up_web, report, work
from webcrawl.testing.model import Manners

START = 1_000_000.0
SEEDS = [Offer(f"http://h{number}.test/") for number in range(3)]


def check_frontier(make: Make, directory: Path) -> None:
    """Check every promise of `webcrawl.core.frontier` for the frontiers that `make` makes below `directory`.

    Raises AssertionError with the promise that was broken. Time is virtual; nothing sleeps.
    """
    for check in CHECKS:
        check(make, directory / check.__name__)


def check_politeness(make: Make, directory: Path) -> None:
    """Never two leases of a page, never more than `connections` of a host, never before its pause is over."""
    for connections, order in ((1, "breadth_first"), (1, "depth_first"), (3, "random")):
        manners = Manners(order, delay_seconds=10.0, connections=connections)
        crawl = make(directory / f"{order}-{connections}", manners, START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, made_up_web(5, 12), START, at_once=6)
        check_trace(trace, manners)
        assert crawl.frontier.counts().stored == len(trace), "Every page is stored once, nothing else"
        crawl.close(now)


def check_trace(trace: Sequence[Fetch], manners: Manners) -> None:
    """The safety of a finished trace without re-visits."""
    assert len({fetch.page for fetch in trace}) == len(trace), "A page was leased twice"
    by_host: dict[int, list[Fetch]] = defaultdict(list)
    for fetch in sorted(trace):
        others = by_host[fetch.host]
        under_way = sum(1 for other in others if other.end > fetch.start)
        assert under_way < manners.connections, f"{fetch.url}: more than {manners.connections} connections"
        ends = [other.end for other in others if other.end <= fetch.start]
        if ends and not under_way:
            assert fetch.start >= max(ends) + manners.delay_seconds, f"{fetch.url}: asked too early"
        others.append(fetch)


def check_order(make: Make, directory: Path) -> None:
    """Highest score first within what politeness allows, ties by age; the model's order is the right one."""
    for order in ("breadth_first", "depth_first", "random"):
        manners = Manners(order, delay_seconds=2.0)
        traces = []
        makers: tuple[Make, ...] = (make, make, ModelCrawl)
        for number, maker in enumerate(makers):
            crawl = maker(directory / f"{order}-{number}", manners, START)
            crawl.frontier.offer(SEEDS, START)
            traces.append(work(crawl, made_up_web(6, 15, seed=3), START, at_once=3)[0])
            crawl.close(START + 10_000)
        assert traces[0] == traces[1], f"{order}: same offers, another order"
        assert traces[0] == traces[2], f"{order}: not the best first"


def check_known_once(make: Make, directory: Path) -> None:
    """A page is known once, however it is written."""
    crawl = make(directory, Manners(), START)
    offers = [Offer("http://h.test/?b=1&a=2"), Offer("http://h.test/?a=2&b=1"), Offer("http://h.test/?b=1&a=2")]
    assert crawl.frontier.offer(offers, START) == [1, 0, 0]
    assert crawl.frontier.counts().known == 1
    crawl.close(START)


def check_fencing(make: Make, directory: Path) -> None:
    """A second report of a lease is refused, and so is one of an earlier visit."""
    crawl = make(directory, Manners(delay_seconds=1.0), START)
    crawl.frontier.offer(SEEDS[:1], START)
    first = _leases(crawl.next(START))[0]
    report(crawl.frontier, first, Answer(event=Event.RETURN), START)
    second = _leases(crawl.next(START + 1))[0]
    for stale in (first, second._replace(visit=9)):
        try:
            report(crawl.frontier, stale, Answer(), START + 1)
        except Exception:  # noqa: BLE001, S110 - any error is a refusal
            pass
        else:
            raise AssertionError("A report of a lost lease was accepted")
    report(crawl.frontier, second, Answer(), START + 1)
    assert crawl.frontier.counts().stored == 1
    crawl.close(START + 2)


def check_late_report(make: Make, directory: Path) -> None:
    """Of two answers of a host the one that ended last counts, in whatever order they are reported."""
    crawl = make(directory, Manners(delay_seconds=10.0, connections=2), START)
    crawl.frontier.offer([Offer(f"http://h.test/{number}") for number in range(3)], START)
    for lease, end in zip(_leases(crawl.next(START, 2)), (START + 5, START + 1), strict=True):
        crawl.frontier.report(Report(lease, Visit(end, 200), Event.STORE), START + 5)
    answer = crawl.next(START + 14)
    assert isinstance(answer, Wait) and answer.until == START + 15, f"{answer} after an answer that ended at +5 s"
    crawl.close(START + 14)


def check_retries(make: Make, directory: Path) -> None:
    """A failed page rests until it is due, then comes back and counts its failures."""
    crawl = make(directory, Manners(delay_seconds=1.0), START)
    crawl.frontier.offer(SEEDS[:1], START)
    seen = []

    def web(lease: Lease) -> Answer:
        seen.append((lease.visit, lease.failures, lease.claimed_at))
        return Answer(event=Event.FAIL, due_in_seconds=60.0) if lease.visit < 2 else Answer()

    _, now = work(crawl, web, START)
    assert [entry[:2] for entry in seen] == [(0, 0), (1, 1), (2, 2)], seen
    gaps = [late[2] - early[2] for early, late in pairwise(seen)]
    assert all(gap >= 61.0 for gap in gaps), f"Asked before it was due: {gaps}"
    assert crawl.frontier.counts().stored == 1
    crawl.close(now)


def check_waiting(make: Make, directory: Path) -> None:
    """`Empty` only when nothing is left and nothing is under way."""
    crawl = make(directory, Manners(), START)
    assert isinstance(crawl.next(START), Empty)
    crawl.frontier.offer(SEEDS[:1], START)
    lease = _leases(crawl.next(START))[0]
    assert isinstance(crawl.next(START), Wait), "A page is under way"
    report(crawl.frontier, lease, Answer([lease.url + "a"]), START + 1)
    answer = crawl.next(START + 1)
    assert isinstance(answer, Wait) and answer.until == START + 11, f"{answer} is not the end of the pause"
    lease = _leases(crawl.next(START + 11))[0]
    report(crawl.frontier, lease, Answer(event=Event.GIVE_UP), START + 12)
    assert isinstance(crawl.next(START + 12), Empty)
    crawl.close(START + 12)


def check_kill(make: Make, directory: Path) -> None:
    """What was acknowledged survives, what was not is owed, hosts that were asked rest, nothing is lost."""
    manners, web = Manners(delay_seconds=10.0), made_up_web(4, 10, seed=5)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS, START)
    crawl.commit(START)
    settled, now = work(crawl, web, START, visits=5)
    crawl.commit(now)
    lost, now = work(crawl, web, now, visits=4)
    crawl.next(now + 10, 2)
    crawl.kill()
    now += 10.5
    crawl = make(directory, manners, now)
    counts = crawl.frontier.counts()
    assert counts.stored == 5 and counts.leased == 0 and counts.adds_up(), counts.sentence()
    rest, now = work(crawl, web, now)
    assert not {fetch.url for fetch in settled} & {fetch.url for fetch in rest}, "An acknowledged page was asked again"
    assert {fetch.url for fetch in lost} <= {fetch.url for fetch in rest}, "A page that was not acknowledged is lost"
    check_trace([*settled, *rest], manners)
    asked_last = {host_of(fetch.url): fetch.end for fetch in lost}
    for fetch in rest:
        gap = fetch.start - asked_last.pop(host_of(fetch.url), -math.inf)
        assert gap >= manners.delay_seconds, f"{fetch.url}: asked {gap} s after the last process did"
    assert crawl.frontier.counts().stored == crawl.frontier.counts().known
    crawl.close(now)


def check_crash_loop(make: Make, directory: Path) -> None:
    """A host that was asked keeps its pause through any number of kills, also one that is not on disk yet."""
    manners = Manners(delay_seconds=10.0)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS[:1], START)
    crawl.commit(START)
    for lease in _leases(crawl.next(START)):
        report(crawl.frontier, lease, Answer(["http://new.test/"]), START + 1)
    assert [lease.url for lease in _leases(crawl.next(START + 1))] == ["http://new.test/"]
    for second in (2, 3, 4):
        crawl.kill()
        crawl = make(directory, manners, START + second)
    trace, now = work(crawl, lambda lease: Answer(["http://new.test/"]), START + 4)
    starts = {fetch.url: fetch.start for fetch in trace}
    assert starts["http://h0.test/"] >= START + 11, (
        f"The first host was asked again after {starts['http://h0.test/'] - START} s"
    )
    assert starts["http://new.test/"] >= START + 11, "A host that was new when the process died was asked too early"
    crawl.close(now)


def check_clean_end(make: Make, directory: Path) -> None:
    """After a clean end everything goes on where it was, also the pauses of hosts that were being asked."""
    manners, web = Manners("depth_first", delay_seconds=10.0), made_up_web(4, 10, seed=7)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS, START)
    trace, now = work(crawl, web, START, visits=6)
    before = crawl.frontier.counts()
    crawl.close(now)
    crawl = make(directory, manners, now)
    counts = crawl.frontier.counts()
    assert (counts.known, counts.stored, counts.leased) == (before.known, before.stored, 0)
    assert counts.ready == before.ready + before.leased
    rest, now = work(crawl, web, now)
    check_trace([*trace, *rest], manners)
    assert crawl.frontier.counts().stored == crawl.frontier.counts().known == len(trace) + len(rest)
    crawl.close(now)


def check_clock_set_back(make: Make, directory: Path) -> None:
    """If the clock is set back between two runs, a host waits at most its own pause."""
    manners = Manners(delay_seconds=10.0)
    crawl = make(directory, manners, START)
    crawl.frontier.offer(SEEDS[:1], START)
    _, now = work(crawl, lambda lease: Answer(["http://h0.test/a"]), START, visits=1)
    crawl.close(now)
    crawl = make(directory, manners, START - 100_000)
    trace, now = work(crawl, lambda lease: Answer(), START - 100_000)
    assert [fetch.start for fetch in trace] == [START - 99_990], f"{trace}"
    crawl.close(now)


def check_depth(make: Make, directory: Path) -> None:
    """With a depth limit the set of stored pages does not depend on the order; shorter ways count."""

    def web(lease: Lease) -> Answer:
        number = int(lease.url.rpartition("/")[2] or 0)
        links = [f"http://{host_of(lease.url)}/{number + step}" for step in ((1, 3, 9)[: 1 + number % 3])]
        return Answer([*links, f"http://h{number % 3}.test/{number * 7 % 60 or ''}"], seconds=1.0 + number % 5)

    stored = {}
    for order in ("breadth_first", "depth_first", "random"):
        crawl = make(directory / order, Manners(order, delay_seconds=0.0, depth=6), START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, web, START, at_once=3, commit_seconds=10.0)
        check_trace(trace, Manners(delay_seconds=0.0))
        counts = crawl.frontier.counts()
        assert counts.reasons.get(Reason.TOO_DEEP, 0) == counts.refused > 0, f"Nothing was too deep: {counts.reasons}"
        assert counts.known == counts.stored + counts.refused, counts.sentence()
        stored[order] = {fetch.url for fetch in trace}
        crawl.close(now)
    sizes = {order: len(pages) for order, pages in stored.items()}
    assert all(pages == stored["breadth_first"] for pages in stored.values()), f"Another order, another set: {sizes}"


def check_shorter_way(make: Make, directory: Path) -> None:
    """A shorter way to a page that is under way or settled changes its depth, and nothing else about it."""
    manners = Manners(delay_seconds=0.0, depth=5)
    crawl = make(directory, manners, START)
    under_way, settled = Offer("http://h.test/u", depth=3), Offer("http://h.test/s", depth=2)
    crawl.frontier.offer([settled, under_way], START)
    lease = _leases(crawl.next(START))[0]
    crawl.frontier.offer([settled._replace(depth=1)], START)
    report(crawl.frontier, lease, Answer(), START)
    assert _leases(crawl.next(START))[0].url == under_way.url
    crawl.frontier.offer([under_way._replace(depth=1)], START)
    crawl.commit(START)
    crawl.kill()
    crawl = make(directory, manners, START)
    counts = crawl.frontier.counts()
    assert (counts.stored, counts.ready) == (1, 1), f"A page is lost or owed twice: {counts.sentence()}"
    crawl.frontier.offer([settled._replace(depth=0)], START)  # it has no links to be looked at again
    trace, now = work(crawl, lambda lease: Answer(), START, commit_seconds=1.0)
    assert [fetch.url for fetch in trace] == [under_way.url]
    crawl.frontier.offer([under_way._replace(depth=0)], now)
    crawl.close(now)


def check_host_limit(make: Make, directory: Path) -> None:
    """So many pages of a host are stored, the others are refused with that reason; kills in between change nothing."""
    manners = Manners(delay_seconds=0.0, pages_per_host=3)
    crawl = make(directory, manners, START)
    crawl.frontier.offer([Offer(f"http://h{number % 2}.test/{number}") for number in range(20)], START)
    crawl.commit(START)
    _leases(crawl.next(START, 2))
    crawl.kill()
    crawl = make(directory, manners, START)
    trace, now = work(crawl, lambda lease: Answer(seconds=0.01), START, at_once=2, commit_seconds=1.0)
    counts = crawl.frontier.counts()
    assert len(trace) == counts.stored == 6, counts.sentence()
    assert counts.refused == counts.reasons[Reason.HOST_LIMIT] == 14, counts.reasons
    crawl.close(now)


def check_fairness(make: Make, directory: Path) -> None:
    """A page that falls due is asked for at once, however many pages of other hosts wait."""
    crawl = make(directory, Manners(delay_seconds=10.0, pages_per_host_in_batch=20), START)
    crawl.frontier.offer([Offer(f"http://large.test/{number}") for number in range(60)], START)
    crawl.frontier.offer([Offer("http://small.test/")], START)
    crawl.commit(START)
    asked = []

    def web(lease: Lease) -> Answer:
        if "small" in lease.url:
            asked.append(lease.claimed_at - START)
        return Answer(event=Event.FAIL, due_in_seconds=15.0) if "small" in lease.url and lease.visit < 4 else Answer()

    _, now = work(crawl, web, START, commit_seconds=1.0)
    assert asked == [0.0, 16.0, 32.0, 48.0, 64.0], f"A page that was due had to wait: {asked}"
    crawl.close(now)


def check_large_host(make: Make, directory: Path) -> None:
    """A host with more pages than fit into a batch is asked as often as it may be, as long as it has any."""
    crawl = make(directory, Manners(delay_seconds=10.0, pages_per_host_in_batch=4), START)
    crawl.frontier.offer([Offer(f"http://large.test/{number}") for number in range(25)], START)
    crawl.frontier.offer([Offer("http://endless.test/0")], START)

    def web(lease: Lease) -> Answer:
        number = int(lease.url.rpartition("/")[2]) + 1
        return Answer([f"http://endless.test/{number}"] if "endless" in lease.url and number < 40 else [])

    trace, now = work(crawl, web, START, commit_seconds=1.0)
    starts = [fetch.start for fetch in trace if "large" in fetch.url]
    gaps = [late - early for early, late in pairwise(starts)]
    assert len(starts) == 25 and max(gaps) < 11.5, f"The host had to wait {max(gaps)} s"
    crawl.close(now)


def check_small_batches(make: Make, directory: Path) -> None:
    """However small the batch, everything is fetched, once, and politely."""
    for order in ("breadth_first", "depth_first", "random"):
        manners = Manners(order, delay_seconds=1.0, batch_pages=12, pages_per_host_in_batch=3)
        crawl = make(directory / order, manners, START)
        crawl.frontier.offer(SEEDS, START)
        trace, now = work(crawl, made_up_web(6, 30, seed=2), START, commit_seconds=5.0)
        check_trace(trace, manners)
        counts = crawl.frontier.counts()
        assert counts.stored == counts.known == len(trace) > 100, counts.sentence()
        crawl.close(now)


def _leases(answer: list[Lease] | Wait | Empty) -> list[Lease]:
    assert isinstance(answer, list), f"A lease was expected, not {answer}"
    return answer


CHECKS: tuple[Check, ...] = (
    check_politeness,
    check_order,
    check_known_once,
    check_fencing,
    check_late_report,
    check_retries,
    check_waiting,
    check_kill,
    check_crash_loop,
    check_clean_end,
    check_clock_set_back,
    check_depth,
    check_shorter_way,
    check_host_limit,
    check_fairness,
    check_large_host,
    check_small_batches,
)
