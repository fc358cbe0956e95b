"""Breadth-first: pages nearer to their host's start page first, then older ones first (Castillo 2004, §4.3.1)."""

from __future__ import annotations

import numpy as np

from webcrawl.core.columns import Array
from webcrawl.core.strategies import NewPages


def scores(pages: NewPages) -> Array:
    """Start pages of all hosts, then what they link to, and so on."""
    return -pages.depths.astype(np.float32)
