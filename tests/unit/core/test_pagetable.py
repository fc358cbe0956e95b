"""The page table: ids, depths, and a ledger that follows every change of state."""

from __future__ import annotations

import random

import numpy as np
import pytest

from webcrawl.core.lifecycle import TRANSITIONS, Event, State
from webcrawl.core.pagetable import DEEPEST, PageTable, link_depth
from webcrawl.core.reasons import Reason


@pytest.fixture
def table() -> PageTable:
    table = PageTable(cells=64)
    number = np.arange(1, 21)
    table.append_pages(number.astype(np.uint64), number % 3, number % 5, number % 2, -number.astype(np.float32))
    return table


def test_new_pages_are_ready_and_found_by_their_key(table: PageTable) -> None:
    assert table.page_ids.get(7) == 7
    assert (table.pages.host[7], table.pages.depth[7], table.pages.kind[7], table.pages.score[7]) == (1, 2, 1, -7.0)
    counts = table.counts()
    assert (counts.known, counts.ready) == (20, 20)
    assert counts.sentence() == "known 20 = ready 20 + leased 0 + resting 0 + stored 0 + refused 0 + gone 0"


def test_ids_go_on(table: PageTable) -> None:
    ones = np.ones(2, np.uint32)
    assert table.append_pages(np.array([90, 91], np.uint64), ones, ones, ones, ones) == 21
    assert table.page_ids.get(91) == 22


def test_the_ledger_follows_any_walk_through_the_states(table: PageTable) -> None:
    chance = random.Random(1)
    for _ in range(2_000):
        page = chance.randint(1, 20)
        state = State(int(table.pages.state[page]))
        event = chance.choice([event for one, event in TRANSITIONS if one is state])
        reason = chance.choice(list(Reason)) if event in (Event.REFUSE, Event.GIVE_UP) else Reason.NONE
        assert table.move(page, event, reason) == TRANSITIONS[state, event]
        counts = table.counts()
        assert counts.adds_up()
    states = [State(number) for number in table.pages.state[1:21].tolist()]
    reasons = [Reason(number) for number in table.pages.reason[1:21].tolist() if number]
    assert [counts.ready, counts.leased, counts.resting, counts.stored, counts.refused, counts.gone] == [
        states.count(state) for state in State
    ]
    assert counts.reasons == {reason: reasons.count(reason) for reason in reasons}


def test_a_claim_is_a_move(table: PageTable) -> None:
    table.claim(3)
    assert table.pages.state[3] == State.LEASED
    assert (table.counts().ready, table.counts().leased) == (19, 1)
    with pytest.raises(AssertionError, match="only a ready page"):
        table.claim(3)


def test_a_page_and_a_host_cost_little() -> None:
    table = PageTable(cells=1 << 21)
    count = 1_000_000
    keys = np.random.default_rng(3).permutation(np.arange(1, count + 1, dtype=np.uint64)) * np.uint64(
        0x9E3779B97F4A7C15
    )
    zeros = np.zeros(count, np.uint8)
    table.append_pages(keys, zeros, zeros, zeros, zeros)
    assert table.bytes_used() / count <= 64


@pytest.mark.parametrize(
    ("parent", "same_host", "is_start_page", "depth"),
    [
        (0, True, False, 1),
        (7, True, False, 8),
        (7, False, False, 1),
        (7, True, True, 0),
        (7, False, True, 0),
        (DEEPEST, True, False, DEEPEST),
    ],
)
def test_depth_counts_clicks_from_the_start_page(parent: int, same_host: bool, is_start_page: bool, depth: int) -> None:
    assert link_depth(parent, same_host, is_start_page) == depth
