"""Orderings: one file each; a page with a higher score is asked for first, ties by age.

A strategy is a module with a function ``scores(pages: NewPages) -> array of float32``. It is called with whole
batches. Adding a file to this folder adds a choice to WEBCRAWL_STRATEGY.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from webcrawl.core.columns import Array
from webcrawl.core.errors import SettingError


@dataclass(frozen=True, slots=True)
class NewPages:
    """What a strategy may know of pages that were just found; arrays of equal length."""

    ids: Array
    depths: Array
    kinds: Array
    seed: int


Scorer = Callable[[NewPages], Array]


def names() -> list[str]:
    """Every strategy there is, by scanning this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def strategy(name: str) -> Scorer:
    """The scorer of that name."""
    if name not in names():
        raise SettingError(f"WEBCRAWL_STRATEGY={name} is not an ordering.", "", f"Use one of {', '.join(names())}.")
    scorer: Scorer = importlib.import_module(f"{__name__}.{name}").scores
    return scorer
