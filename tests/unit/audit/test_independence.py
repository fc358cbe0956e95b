"""The auditor shares nothing with what it judges; and its examples run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import webcrawl.audit

ROOT = Path(__file__).parents[3]
MODULES = sorted(found.name for found in pkgutil.walk_packages(webcrawl.audit.__path__, "webcrawl.audit."))

LOADED = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print("\\n".join(sorted(sys.modules)))
"""


def test_no_module_of_the_crawler_and_no_other_robots_reader_is_imported():
    command = [sys.executable, "-c", LOADED, *MODULES]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert set(MODULES) <= set(loaded)
    ours = {name for name in loaded if name.split(".")[0] == "webcrawl"}
    assert ours == {"webcrawl", "webcrawl.audit", *MODULES}
    assert not {"protego", "scrapy", "twisted", "urllib.robotparser"} & set(loaded)


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0
