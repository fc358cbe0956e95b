"""The numbers an embedded frontier works by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Sizes and limits; 0 means no limit where there is one."""

    batch_pages: int = 100_000
    pages_per_host_in_batch: int = 500
    urls_per_host: int = 25_000
    pages_per_host: int = 0
    depth: int = 0
    commit_pages: int = 500
    random_seed: int = 1
