"""Orderings: what each puts first, and that a restart or another batch size changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from webcrawl.core.errors import SettingError
from webcrawl.core.strategies import NewPages, names, strategy


def scores(name, ids, depths=None, seed=1):
    ids = np.array(ids, np.uint32)
    depths = np.zeros(len(ids), np.uint16) if depths is None else np.array(depths, np.uint16)
    return strategy(name)(NewPages(ids, depths, np.zeros(len(ids), np.uint8), seed))


def test_breadth_first_asks_nearer_pages_first():
    assert np.argsort(-scores("breadth_first", [1, 2, 3, 4], [2, 0, 1, 0]), kind="stable").tolist() == [1, 3, 2, 0]


def test_depth_first_asks_the_newest_page_first():
    assert np.argsort(-scores("depth_first", [5, 9, 7]), kind="stable").tolist() == [1, 2, 0]
    assert len(set(scores("depth_first", range((1 << 24) - 9, 1 << 24)).tolist())) == 9, "exact up to 16 million"


def test_random_is_even_and_differs_by_seed():
    values = scores("random", range(1, 100_001))
    assert values.min() >= 0 and values.max() < 1
    assert np.allclose(np.histogram(values, 10)[0], 10_000, rtol=0.05)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.02, "neighbours have nothing in common"
    assert len(np.unique(values)) > 99_000
    assert not np.array_equal(values, scores("random", range(1, 100_001), seed=2))


@pytest.mark.parametrize("name", names())
def test_a_score_depends_on_its_page_only(name):
    ids, depths = list(range(1, 200)), [number * 7 % 11 for number in range(1, 200)]
    together = scores(name, ids, depths)
    alone = np.concatenate([scores(name, [page], [depth]) for page, depth in zip(ids, depths, strict=True)])
    assert together.dtype == np.float32
    assert np.array_equal(together, alone)


def test_an_unknown_ordering_names_those_there_are():
    with pytest.raises(
        SettingError, match=r"WEBCRAWL_STRATEGY=best is not an ordering\. Use one of breadth_first, depth_"
    ):
        strategy("best")
