"""The two heaps against a search through everything, and what they are for: no bursts, no host asked too early."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core.workingset import WorkingSet

GAP = 10.0


class SimpleSet:
    """The model: looks at every page of every host for every pop."""

    def __init__(self, connections: int) -> None:
        self.connections = connections
        self.pages: dict[int, tuple[int, float]] = {}
        self.next_at: dict[int, float] = {}
        self.under_way: list[int] = []

    def pop(self, now: float) -> tuple[int, int] | None:
        free = [
            (-score, page, host)
            for page, (host, score) in self.pages.items()
            if self.next_at.get(host, 0.0) <= now and self.under_way.count(host) < self.connections
        ]
        if not free:
            return None
        _, page, host = min(free)
        del self.pages[page]
        self.under_way.append(host)
        return page, host


adds = st.tuples(st.just("add"), st.integers(1, 4), st.sampled_from([0.0, 1.0, 2.0, -1.0]))
pops = st.tuples(st.just("pop"), st.sampled_from([0.0, 0.5, 3.0, 11.0]), st.just(0.0))
releases = st.tuples(st.just("release"), st.integers(0, 5), st.sampled_from([0.0, 2.0, 10.0]))
drops = st.tuples(st.just("replace"), st.integers(1, 4), st.just(9.0))


@given(st.lists(st.one_of(adds, pops, releases, drops), max_size=80), st.integers(1, 3))
def test_like_a_search_through_everything(steps: list[tuple[str, float, float]], connections: int) -> None:
    ours, model, now, page = WorkingSet(), SimpleSet(connections), 100.0, 0
    for step, which, value in steps:
        host = int(which)
        if step == "replace" and ours.queued(host):  # a better page takes the place of the worst
            del model.pages[ours.drop_worst(host)]
        if step in ("add", "replace"):
            page += 1
            ours.add(page, host, value, model.next_at.get(host, 0.0), connections, now)
            model.pages[page] = host, value
        elif step == "pop":
            now += which
            assert ours.pop(now) == model.pop(now)
        elif model.under_way:
            host = model.under_way.pop(int(which) % len(model.under_way))
            model.next_at[host] = max(model.next_at.get(host, 0.0), now + value)
            ours.release(host, model.next_at[host], now)
        assert ours.size == len(model.pages)
        assert ours.under_way == len(model.under_way)
        assert all(
            ours.queued(one) == sum(1 for owner, _ in model.pages.values() if owner == one) for one in range(1, 5)
        )
        due_at = ours.next_due_at()
        if due_at is not None and due_at > now:
            waiting = [model.next_at.get(owner, 0.0) for owner, _ in model.pages.values()]
            assert due_at in waiting


@given(st.lists(st.tuples(st.integers(1, 5), st.floats(0, 9)), min_size=1, max_size=40))
def test_everything_comes_out_once_and_hosts_leave_nothing_behind(pages: list[tuple[int, float]]) -> None:
    ours, now, out = WorkingSet(), 0.0, []
    for number, (host, score) in enumerate(pages, 1):
        ours.add(number, host, score, 0.0, 1, now)
    while ours.size:
        found = ours.pop(now)
        if found is None:
            due_at = ours.next_due_at()
            assert due_at is not None and due_at > now, "something is left, so something must fall due"
            now = due_at
            continue
        out.append(found[0])
        now += 1.0
        ours.release(found[1], now + GAP, now)
    assert sorted(out) == list(range(1, len(pages) + 1))
    assert not ours.hosts


def crawl(ours: WorkingSet, host_of: dict[int, int]) -> list[tuple[int, float]]:
    """One thread, a fetch takes 1 s, a host rests GAP seconds after its end: (page, start)."""
    trace, now = [], 0.0
    while ours.size:
        found = ours.pop(now)
        if found is None:
            now = ours.next_due_at() or now
            continue
        trace.append((found[0], now))
        now += 1.0
        ours.release(host_of[found[0]], now + GAP, now)
    return trace


def test_mercator_trace() -> None:
    """Two priorities, four hosts (Najork and Heydon 2001): first by priority, then by age, never within the gap."""
    names = ["a/1", "a/2", "b/1", "c/1", "a/3", "d/1", "b/2", "c/2"]
    ours, host_of = WorkingSet(), {}
    for page, name in enumerate(names, 1):
        host_of[page] = "abcd".index(name[0]) + 1
        ours.add(page, host_of[page], 2.0 if page <= 4 else 1.0, 0.0, 1, 0.0)
    trace = [(names[page - 1], start) for page, start in crawl(ours, host_of)]
    assert trace == [
        ("a/1", 0.0),
        ("b/1", 1.0),
        ("c/1", 2.0),
        ("d/1", 3.0),
        ("a/2", 11.0),
        ("b/2", 12.0),
        ("c/2", 13.0),
        ("a/3", 22.0),
    ]
    ends: dict[str, float] = {}
    for name, start in trace:
        assert start - ends.get(name[0], -GAP) >= GAP
        ends[name[0]] = start + 1.0


def test_a_host_that_comes_back_still_rests() -> None:
    """Its queue was empty and forgotten; the end of its last fetch is not."""
    ours = WorkingSet()
    ours.add(1, 7, 0.0, 0.0, 1, 0.0)
    assert ours.pop(0.0) == (1, 7)
    ours.release(7, 11.0, 1.0)
    assert not ours.hosts
    ours.add(2, 7, 9.0, 11.0, 1, 2.0)
    assert ours.pop(10.9) is None
    assert ours.next_due_at() == 11.0
    assert ours.pop(11.0) == (2, 7)


def test_a_plain_priority_queue_makes_a_burst_and_this_does_not() -> None:
    """Most links of a page lead to its own host, with like scores: a plain queue asks for them one after the other."""
    host_of = dict.fromkeys(range(1, 21), 1) | {page: page for page in range(21, 41)}
    scores = {page: 2.0 if host == 1 else 1.0 for page, host in host_of.items()}
    plain = [(-score, page) for page, score in scores.items()]
    heapify(plain)
    burst = [host_of[heappop(plain)[1]] for _ in range(20)]
    assert burst == [1] * 20
    ours = WorkingSet()
    for page, score in scores.items():
        ours.add(page, host_of[page], score, 0.0, 1, 0.0)
    starts = [start for page, start in crawl(ours, host_of) if host_of[page] == 1]
    assert len(starts) == 20
    assert all(late - early >= 1.0 + GAP for early, late in pairwise(starts))


def test_hosts_that_wait_are_not_looked_at() -> None:
    """A pop costs the same with ten thousand resting hosts: their entries stay where they are."""
    ours = WorkingSet()
    for host in range(1, 10_001):
        ours.add(host, host, 5.0, 1000.0, 1, 0.0)
    ours.add(20_000, 20_000, 0.0, 0.0, 1, 0.0)
    before = list(ours._waiting)
    assert ours.pop(1.0) == (20_000, 20_000)
    assert ours.pop(1.0) is None
    assert ours._waiting == before


def test_stale_entries_do_not_pile_up_under_replacement() -> None:
    ours = WorkingSet()
    heappush(ours._waiting, (0.5, 99))  # of a host that is no longer here
    ours.add(1, 1, 0.0, 0.0, 1, 0.0)
    assert ours.pop(1.0) == (1, 1)
    assert not ours._waiting
