"""Random: any page may come next; the baseline other orders are measured against (Castillo 2004, §4.3).

The score is a fixed mix of seed and page id, so that the same seed gives the same order after a restart.
"""

from __future__ import annotations

import numpy as np

from webcrawl.core.columns import Array
from webcrawl.core.strategies import NewPages

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)


def scores(pages: NewPages) -> Array:
    """Uniform in [0, 1): the finaliser of SplitMix64 (Steele et al. 2014) over the page ids."""
    mixed = (pages.ids.astype(np.uint64) + np.uint64(pages.seed)) * GOLDEN
    mixed = (mixed ^ (mixed >> np.uint64(30))) * MIX
    return (mixed >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
