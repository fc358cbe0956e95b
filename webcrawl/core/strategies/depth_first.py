"""Depth-first: the page found last is asked for first (Castillo 2004, §4.3).

The score is the page's id; single precision keeps it exact for the first 16 million pages and in groups after that.
"""

from __future__ import annotations

import numpy as np

from webcrawl.core.columns import Array
from webcrawl.core.strategies import NewPages


def scores(pages: NewPages) -> Array:
    """Newest first."""
    return pages.ids.astype(np.float32)
