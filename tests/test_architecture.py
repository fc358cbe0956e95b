"""Style, types and imports are tests too: what `make check` runs, and that the import contracts cover every module."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = Path(sysconfig.get_path("scripts"))
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "ruff", "check", "."],
        [sys.executable, "-m", "ruff", "format", "--check", "."],
        [sys.executable, "-m", "mypy"],
        [str(SCRIPTS / "lint-imports"), "--no-logo"],
    ],
    ids=["ruff", "format", "mypy", "imports"],
)
def test_tool(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def contract(kind: str, word: str) -> dict[str, Any]:
    return next(one for one in CONFIG["contracts"] if one["type"] == kind and word in one["name"])


def layers() -> list[list[str]]:
    """The layers from top to bottom, each a list of module names."""
    return [
        [name.strip(" ()") for name in layer.replace("|", ":").split(":")]
        for layer in contract("layers", "Layers")["layers"]
    ]


def modules() -> set[str]:
    package = ROOT / "webcrawl"
    folders = {path.parent.name for path in package.glob("*/__init__.py")}
    return {f"webcrawl.{name}" for name in folders | {path.stem for path in package.glob("[!_]*.py")}}


def test_every_module_has_a_layer() -> None:
    assert modules() <= {name for layer in layers() for name in layer}


def test_the_line_below_which_nobody_knows_scrapy_is_complete() -> None:
    tops = [index for index, layer in enumerate(layers()) if "webcrawl.assembly" in layer]
    below = {name for layer in layers()[tops[0] :] for name in layer}
    assert set(contract("forbidden", "Scrapy is known only")["source_modules"]) == below & modules()


def test_only_the_wiring_and_the_tools_may_pick_a_backend() -> None:
    allowed = {"webcrawl.assembly", "webcrawl.simulator", "webcrawl.testing"}
    assert set(contract("protected", "backend")["allowed_importers"]) == allowed & modules()
