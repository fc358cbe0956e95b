"""The table of states: what can happen to a page, and what cannot."""

from __future__ import annotations

from itertools import product

import pytest

from webcrawl.core.lifecycle import OWED, TRANSITIONS, Event, State, after


def test_only_what_is_in_the_table_can_happen():
    for state, event in product(State, Event):
        if (state, event) in TRANSITIONS:
            assert after(state, event) is TRANSITIONS[state, event]
        else:
            with pytest.raises(AssertionError, match=f"{event.name} cannot happen to a page that is {state.name}"):
                after(state, event)


def test_every_lease_can_end_in_every_way():
    ends = {TRANSITIONS[State.LEASED, event] for event in Event if (State.LEASED, event) in TRANSITIONS}
    assert ends == set(State) - {State.LEASED}


def test_nothing_but_a_claim_leads_to_a_lease():
    assert {key for key, to in TRANSITIONS.items() if to is State.LEASED} == {(State.READY, Event.CLAIM)}


def test_every_page_that_is_not_owed_can_come_back():
    for state in set(State) - set(OWED):
        assert after(state, Event.FALL_DUE) is State.READY


def test_stored_numbers_never_change():
    assert [state.value for state in State] == [1, 2, 3, 4, 5, 6]
    assert [state.name for state in State] == ["READY", "LEASED", "RESTING", "STORED", "REFUSED", "GONE"]
