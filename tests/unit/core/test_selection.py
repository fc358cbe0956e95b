"""Batches: the best pages, spread over as many hosts as possible; exactly what a slow and simple search finds."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core.selection import Plan

Page = tuple[int, int, float]  # (page, host, score)


def plan_of(pages: list[Page]) -> Plan:
    numbers, hosts, scores = zip(*pages, strict=True) if pages else ((), (), ())
    return Plan(np.array(numbers, np.uint32), np.array(hosts, np.uint32), np.array(scores, np.float32))


def draw(plan: Plan, size: int, room: dict[int, int] | int = 500, hosts: int = 100_000) -> list[tuple[int, int]]:
    rooms = np.full(hosts, room if isinstance(room, int) else 500, np.int64)
    if isinstance(room, dict):
        rooms[list(room)] = list(room.values())
    numbers, owners = plan.draw(size, rooms)
    return sorted(zip(numbers.tolist(), owners.tolist(), strict=True))


def best(pages: list[Page], size: int, room: dict[int, int]) -> list[tuple[int, int]]:
    """The model: raise the share of a host one by one until the batch is full, then leave out the worst."""
    ranked = sorted(pages, key=lambda page: (-page[2], page[0]))
    share, chosen = 0, list[Page]()
    while len(chosen) < size and share <= len(pages):
        share += 1
        taken: Counter[int] = Counter()
        chosen = []
        for page in ranked:
            if taken[page[1]] < min(share, room.get(page[1], 500)):
                taken[page[1]] += 1
                chosen.append(page)
    return sorted((page, host) for page, host, _ in chosen[:size])


scores = st.one_of(st.sampled_from([0.0, -0.0, 1.0, -1.0]), st.floats(-1e6, 1e6, width=32))
hosts = st.sampled_from([1, 2, 3, 70_000, 70_001])


@given(
    st.lists(st.tuples(hosts, scores), max_size=60),
    st.dictionaries(hosts, st.integers(0, 4)),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_batch_after_batch_like_the_model(
    found: list[tuple[int, float]], room: dict[int, int], sizes: list[int]
) -> None:
    pages = [(number, host, score) for number, (host, score) in enumerate(found, 1)]
    plan = plan_of(pages)
    for size in sizes:
        batch = draw(plan, size, room)
        assert batch == best(pages, size, room)
        drawn = {page for page, _ in batch}
        pages = [page for page in pages if page[0] not in drawn]
        assert plan.left == len(pages)


def test_many_hosts_before_many_pages() -> None:
    """Host 1 has the thousand best pages; a batch of 100 still holds all 50 hosts."""
    pages = [(number, 1, 1000.0) for number in range(1, 1001)]
    pages += [(1000 + host, host, 1.0) for host in range(2, 51)]
    batch = Counter(host for _, host in draw(plan_of(pages), 100))
    assert len(batch) == 50
    assert batch[1] == 51


def test_no_host_gets_more_than_its_share() -> None:
    pages = [(number, 1 + number % 2, float(number)) for number in range(1, 2001)]
    batch = Counter(host for _, host in draw(plan_of(pages), 100_000, room=500))
    assert batch == {1: 500, 2: 500}


def test_room_that_is_taken_is_left_out() -> None:
    pages = [(number, 1 + number % 2, 1.0) for number in range(1, 101)]
    batch = Counter(host for _, host in draw(plan_of(pages), 1000, room={1: 0, 2: 7}))
    assert batch == {2: 7}


def test_ties_go_by_age() -> None:
    pages = [(number, 1, 5.0) for number in range(1, 101)]
    assert [page for page, _ in draw(plan_of(pages), 10)] == list(range(1, 11))


def test_both_zeros_are_the_same_score() -> None:
    """Breadth-first gives start pages -0.0 after a restart and 0.0 before."""
    pages = [(1, 1, -0.0), (2, 1, 0.0), (3, 1, -0.0), (4, 1, 0.0)]
    assert [page for page, _ in draw(plan_of(pages), 2)] == [1, 2]


def test_nothing_to_draw() -> None:
    assert draw(plan_of([]), 10) == []
    plan = plan_of([(1, 1, 0.0)])
    assert (draw(plan, 5), draw(plan, 5), plan.left) == ([(1, 1)], [], 0)
