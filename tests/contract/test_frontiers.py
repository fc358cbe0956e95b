"""Every frontier keeps the promises of `webcrawl.core.frontier`; the model keeps them too, or it would be no oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from webcrawl import testing
from webcrawl.testing import CHECKS, EmbeddedCrawl, ModelCrawl, conformance

FRONTIERS = [EmbeddedCrawl, ModelCrawl]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("make", FRONTIERS, ids=lambda make: make.__name__)
def test_promise(make: testing.Make, check: testing.Check, tmp_path: Path) -> None:
    check(make, tmp_path / "run")


def test_all_checks_are_run(tmp_path: Path) -> None:
    checks = {name for name in vars(conformance) if name.startswith("check_")} - {"check_frontier", "check_trace"}
    assert {check.__name__ for check in CHECKS} == checks
    testing.check_frontier(ModelCrawl, tmp_path)
