"""Documentation that cannot rot: the settings page is generated, links lead somewhere, examples run.

As a program (`make docs`) this file writes docs/settings.md.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from itertools import groupby
from pathlib import Path

import pytest

import webcrawl.core
from webcrawl.core import config

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "settings.md"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
CORE = sorted(found.name for found in pkgutil.walk_packages(webcrawl.core.__path__, "webcrawl.core."))
for _name in CORE:  # settings are declared when their module is imported
    importlib.import_module(_name)

HEAD = """\
# Settings

Every setting of webcrawl, with its default and the reason for it. This page is written by `make docs` from
`webcrawl/core/config.py` and the strategies; edit those.

Set them as any Scrapy setting: in `settings.py`, in a spider's `custom_settings`, or for one run with
`-s NAME=VALUE`. Unknown names that start with `WEBCRAWL_` and values out of range stop the start. A list may be
written as one text, separated by commas or blanks; patterns, which may hold both, are separated by line ends.
"""


def settings_page() -> str:
    """The settings of `core/config.py` in its own order, then those of strategies by module."""
    declared = sorted(
        config.all_settings(), key=lambda one: (one.concern.__module__ != config.__name__, one.concern.__module__)
    )
    parts = [HEAD]
    for concern, group in groupby(declared, key=lambda one: one.concern):
        parts.append(f"\n## {concern.__name__}\n\n{first_paragraph(concern)}\n")
        parts.extend(entry(one) for one in group)
    return "".join(parts)


def first_paragraph(concern: type) -> str:
    return " ".join((concern.__doc__ or "").split("\n\n")[0].split())


def entry(one: config.Setting) -> str:
    unit = f" {one.unit}" if one.unit else ""
    first = f"Default {shown(one.default)}{unit}; {one.rule}."
    return f"\n### {one.name}\n\n{first}\n\n{one.doc}\n\n*Why this default:* {one.why}\n"


def shown(default: object) -> str:
    if default in ("", ()):
        return "empty"
    return (
        f"`{default:,}`".replace(",", "_")
        if isinstance(default, int) and not isinstance(default, bool)
        else f"`{default}`"
    )


def test_the_settings_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page(), "docs/settings.md is out of date: run `make docs`"


def test_every_setting_has_a_sentence_and_a_reason() -> None:
    assert [one.name for one in config.all_settings() if not (one.doc.strip() and one.why.strip())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_named_in_the_prose_exist(page: Path) -> None:
    known = {one.name for one in config.all_settings()} | {config.PREFIX}
    assert set(re.findall(r"\bWEBCRAWL_[A-Z_]*", page.read_text(encoding="utf-8"))) <= known


def test_the_readme_tour_names_files_that_exist() -> None:
    tour = (ROOT / "README.md").read_text(encoding="utf-8").partition("## The tour")[2].partition("\n## ")[0]
    named = re.findall(r"^\d+\. `([^`]+)`", tour, flags=re.MULTILINE)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", CORE)
def test_examples_in_the_core_run(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name))
    assert failures == 0


if __name__ == "__main__":
    PAGE.write_text(settings_page(), encoding="utf-8")
