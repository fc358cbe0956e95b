"""The large kill -9 test: 15 kills in the middle and 5 at the start of a crawl of 5,000 pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.test_kill import check_kills
from webcrawl.simulator.generated import GeneratedWeb


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_kills(tmp_path: Path, seed: int) -> None:
    web = GeneratedWeb(pages=5_000, hosts=200, seed=seed, page_bytes=14_000, links=60)
    check_kills(web, tmp_path, kills=15, early=5, seed=seed)
