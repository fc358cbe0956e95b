"""The seen-set against a dictionary, also where tables wrap around, double, and outgrow their regions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webcrawl.core.seenset import FEW, FIRST_CELLS, SEGMENT_BITS, SeenSet

SMALLEST = FIRST_CELLS.bit_length() - 1  # regions that must be enlarged at the first doubling
SHIFT = 64 - SEGMENT_BITS
LAST_CELL = FIRST_CELLS - 1

# Few segments and few first cells, so that keys collide, wrap around and fill single segments.
keys_of = st.builds(
    lambda segment, high, low: segment << SHIFT | high << 20 | low or 1,
    st.sampled_from([0, 1, 1023]),
    st.integers(0, 1 << 30),
    st.one_of(st.integers(0, (1 << 20) - 1), st.sampled_from([LAST_CELL, LAST_CELL - 1, 0])),
)


def array(numbers: list[int]) -> np.ndarray:
    return np.array(numbers, np.uint64)


@settings(max_examples=60)
@given(st.lists(st.lists(keys_of, unique=True, max_size=3 * FEW), max_size=8), st.integers(SMALLEST, SMALLEST + 2))
def test_like_a_dictionary(batches: list[list[int]], region_bits: int) -> None:
    seen, model = SeenSet(region_bits), dict[int, int]()
    for batch in batches:
        new = [key for key in batch if key not in model]
        assert seen.find(array(batch)).tolist() == [model.get(key, 0) for key in batch]
        ids = range(len(model) + 1, len(model) + len(new) + 1)
        seen.add(array(new), np.array(ids, np.uint32))
        model.update(zip(new, ids, strict=True))
        assert len(seen) == len(model)
    everything = list(model)
    assert seen.find(array(everything)).tolist() == list(model.values())
    assert [seen.get(key) for key in everything] == list(model.values())


@pytest.mark.parametrize("batch", [1, FEW, FEW + 1, 10_000], ids=lambda size: f"{size} at once")
def test_many_keys_in_batches_of_any_size(batch: int) -> None:
    rng = np.random.default_rng(7)
    keys = np.unique(rng.integers(1, 1 << 64, 40_000 if batch > 1 else 4_000, dtype=np.uint64))
    rng.shuffle(keys)
    seen = SeenSet(SMALLEST)
    for start in range(0, len(keys), batch):
        part = keys[start : start + batch]
        seen.add(part, np.arange(start + 1, start + 1 + len(part), dtype=np.uint32))
    assert np.array_equal(seen.find(keys), np.arange(1, len(keys) + 1))
    strangers = np.setdiff1d(rng.integers(1, 1 << 64, 1_000, dtype=np.uint64), keys)
    assert not seen.find(strangers).any()


def test_one_segment_takes_everything_and_the_others_stay_small() -> None:
    seen = SeenSet(SMALLEST)
    keys = np.arange(1, 5_001, dtype=np.uint64) * np.uint64(64)  # all in segment 0, all wanting its first cell
    seen.add(keys, np.arange(1, 5_001, dtype=np.uint32))
    assert np.array_equal(seen.find(keys), np.arange(1, 5_001))
    assert seen.bytes_used() <= (1023 * FIRST_CELLS + 16_384) * 12


def test_a_probe_goes_round_the_end_of_its_segment() -> None:
    seen = SeenSet()
    keys = array([(1 << 40) + LAST_CELL, (2 << 40) + LAST_CELL, (3 << 40) + LAST_CELL])
    seen.add(keys, np.array([1, 2, 3], np.uint32))
    assert seen.find(keys).tolist() == [1, 2, 3]
    assert seen.find(array([(4 << 40) + LAST_CELL])).tolist() == [0]


def test_nothing_is_found_in_an_empty_set() -> None:
    seen = SeenSet()
    assert len(seen) == 0 and seen.get(5) == 0
    assert seen.find(array([])).tolist() == []
    seen.add(array([]), np.array([], np.uint32))
    assert len(seen) == 0


def test_memory_per_key_is_bounded() -> None:
    seen = SeenSet()
    keys = np.random.default_rng(1).integers(1, 1 << 64, 1_000_000, dtype=np.uint64)
    worst = 0.0
    for start in range(0, 1_000_000, 100_000):
        seen.add(keys[start : start + 100_000], np.ones(100_000, np.uint32))
        worst = max(worst, seen.bytes_used() / len(seen))
    assert worst < 50
