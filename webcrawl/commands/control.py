"""`scrapy control`: change a crawl while it runs, or before its next start; docs/control.md says what and how.

Exit codes: 0 when the command was applied, 1 when it was refused or not applied in time, 2 when it cannot be
understood; then one sentence on standard error says why.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.utils.conf import closest_scrapy_cfg

from webcrawl.assembly import default_directory, stored_controls
from webcrawl.core import config
from webcrawl.core.controls import SYNTAX, Rules, parse
from webcrawl.core.controls import Command as Order
from webcrawl.core.errors import WebcrawlError
from webcrawl.mailbox import Mailbox
from webcrawl.webspider import read_seeds

if TYPE_CHECKING:
    from collections.abc import Iterator

EXIT_NOT_APPLIED = 1
EXIT_BAD_INPUT = 2
LOOK_SECONDS = 0.05


class Command(ScrapyCommand):
    """Leaves a command in the run's folder and waits for the crawl's answer."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "COMMAND [ARGUMENT ...] [options]"

    def short_desc(self) -> str:
        return "Change a crawl while it runs: delays, blocks, boosts, seeds, pause"

    def long_desc(self) -> str:
        commands = "; ".join(f"{name} {syntax}".rstrip() for name, syntax in SYNTAX.items())
        return (
            f"Change the crawl in -s WEBCRAWL_DIR=DIR. Commands: {commands}. A TARGET is a host (www.example.org), a "
            "site (.example.org) or pages (example.org/private/*). Exit code: 0 if applied, 1 if refused or not "
            "applied in time, 2 if it cannot be understood."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--wait",
            type=_seconds,
            default=10.0,
            metavar="SECONDS",
            help="how long to wait for the crawl's answer (default %(default)g)",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            order = _order(args)
            directory = self._directory()
            rules = stored_controls(directory)
        except WebcrawlError as error:
            print(error, file=sys.stderr)
            self.exitcode = EXIT_BAD_INPUT
            return
        facts = _listed(rules, Mailbox(directory)) if order.name == "list" else _given(order, directory, opts.wait)
        if opts.json:
            print(json.dumps(facts, ensure_ascii=False))
        else:
            print("\n".join(_lines(facts)))
        self.exitcode = 0 if facts["applied"] else EXIT_NOT_APPLIED

    def _directory(self) -> Path:
        assert self.settings is not None
        config.check_names(name for name in self.settings if str(name).startswith(config.PREFIX))
        chosen = config.load(config.Run, self.settings).directory
        root = Path(closest_scrapy_cfg()).parent if closest_scrapy_cfg() else Path.cwd()
        return (Path(chosen) if chosen else default_directory(root, "web")).absolute()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time to wait")
    return seconds


def _order(words: list[str]) -> Order:
    return parse(words, read_seeds(" ".join(words[1:])) if words[:1] == ["seeds"] and words[1:] else ())


def _given(order: Order, directory: Path, wait_seconds: float) -> dict[str, Any]:
    """Leave a command and wait for what becomes of it."""
    mailbox = Mailbox(directory)
    name = mailbox.post(order.facts())
    ends_at = time.monotonic() + wait_seconds
    while (answer := mailbox.take_answer(name)) is None and time.monotonic() < ends_at:
        time.sleep(LOOK_SECONDS)
    if answer is not None:
        return answer
    if order.name != "status":
        text = f"No crawl answers, so none is running in {directory}. The command will be applied at its next start."
        return {"applied": False, "text": text, "warnings": [], "id": name}
    mailbox.withdraw(name)
    text = f"No crawl answers, so none is running in {directory}."
    return {"applied": False, "text": text, "warnings": [], "rules": stored_controls(directory).facts()}


def _listed(rules: Rules, mailbox: Mailbox) -> dict[str, Any]:
    """What is stored, without asking the crawl."""
    waiting = [found for name in mailbox.waiting() if (found := _read(mailbox, name)) is not None]
    text = "Rules in force, as they are stored." if rules != Rules() else "No rules are in force."
    return {"applied": True, "text": text, "warnings": [], "rules": rules.facts(), "waiting": waiting}


def _read(mailbox: Mailbox, name: str) -> dict[str, Any] | None:
    try:
        found = mailbox.read(name)
    except (OSError, ValueError):  # applied meanwhile, or damaged: the crawl will say so
        return None
    return found if isinstance(found, dict) else None


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    """For people."""
    yield facts["text"]
    yield from (f"warning: {warning}" for warning in facts["warnings"])
    rules = facts.get("rules", {})
    if rules.get("paused"):
        yield "paused"
    yield from (f"delay    {host}  {seconds:g} s" for host, seconds in rules.get("delays", {}).items())
    yield from (f"block    {target}" for target in rules.get("blocks", ()))
    yield from (f"boost    {target}  {value}" for target, value in rules.get("boosts", {}).items())
    if "counts" in facts:
        yield facts["counts"]
    yield from (f"  {key}  {count:,}" for key, count in facts.get("reasons", {}).items())
    yield from (f"waiting  {_typed(one)}" for one in facts.get("waiting", ()))


def _typed(facts: dict[str, Any]) -> str:
    words = (facts.get("command"), facts.get("target"), facts.get("value"), *(facts.get("urls") or ())[:1])
    return " ".join(str(word) for word in words if word)
