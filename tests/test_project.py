"""The project as a whole: set-up that works anywhere, pins without addresses, nothing of one machine in the files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import webcrawl

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"([A-Za-z0-9._-]+)==[A-Za-z0-9.]+(?: *;.*)?")

# Features that came after GNU make 3.81 and bash 3.2, both still shipped with macOS.
TOO_NEW = {
    "Makefile": [
        r"\.ONESHELL",
        r"\.SHELLFLAGS",
        r"^\w+ *!=",
        r"::=",
        r"\$\(file ",
        r"^undefine",
        r"&:",
        r"^define \w+ *=",
    ],
    ".ci/run": [r"declare -A", r"mapfile|readarray", r"\$\{\w+(,,|\^\^)", r"\|&", r"&>>", r"coproc"],
}


@pytest.mark.parametrize("name", TOO_NEW)
def test_old_make_and_old_bash_suffice(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert [pattern for pattern in TOO_NEW[name] if re.search(pattern, text, flags=re.MULTILINE)] == []


def test_recipes_are_indented_with_tabs() -> None:
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith(" ")] == []


def test_the_gate_can_be_started() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def make_venv(folder: Path, pythons: str) -> subprocess.CompletedProcess[str]:
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    command = ["make", "venv", f"PYTHONS={pythons}"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_without_python_make_says_what_to_install(tmp_path: Path) -> None:
    done = make_venv(tmp_path, "python-that-is-not-there")
    assert done.returncode != 0
    assert "No Python 3.11 or newer was found" in done.stderr
    assert "apt install python3 python3-venv" in done.stderr


def test_without_venv_make_names_the_package(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; *print*) echo 3.12;; esac\n')
    python.chmod(0o755)
    done = make_venv(tmp_path, str(python))
    assert done.returncode != 0
    assert "apt install python3.12-venv" in done.stderr
    assert not (tmp_path / ".venv").exists()


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [PIN.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(pins), "constraints.txt holds only name==version"
    return [canonical(pin[1]) for pin in pins if pin]


def test_constraints_pin_everything_we_ask_for() -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [
        requirement for extra in extras if extra != "docs" for requirement in extras[extra]
    ]
    names = {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in wanted}  # type: ignore[index]
    assert names - {"webcrawl"} <= set(pinned())


def test_constraints_are_sorted_and_unique() -> None:
    text = [line.lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(pinned()) == len(set(pinned()))
    assert text == sorted(text)


def test_the_version_is_said_once() -> None:
    assert webcrawl.__version__ == PYPROJECT["project"]["version"]


def test_the_changelog_starts_with_what_is_not_released() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert headings[0] == "Unreleased"


def project_files() -> list[Path]:
    skipped = {"runs", "build", "dist", "site", "__pycache__"}
    kept = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in skipped and (not name.startswith(".") or name == ".ci")]
        kept += [Path(folder, name) for name in files]
    return kept


def test_nothing_of_one_machine_is_in_the_files() -> None:
    """Folders of the machine a file was written on mean nothing anywhere else."""
    folders = "|".join(["wor" + "k", "Use" + "rs", "opt/py" + "pi", "tmp/ve" + "nv"])
    pattern = re.compile(rf"(?<![\w.:/~-])/(?:{folders})/|\.\./sha" + "red")
    found = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {match[0]}" for match in pattern.finditer(text)]
    assert found == []
