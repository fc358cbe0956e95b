"""`scrapy audit`: whether a crawl was polite, from access logs and robots files alone.

Exit codes: 0 when no violation was found, 1 when there is any, 2 when the input cannot be judged; then one sentence on
standard error says why.  docs/audit.md explains the rules.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from webcrawl.audit import report
from webcrawl.audit.files import RobotsFolder, Tally, read_logs
from webcrawl.audit.judging import Allowances, Judge, Rules
from webcrawl.audit.lines import DurationUnit, LoggedTime, Reading
from webcrawl.audit.records import CannotAuditError, Unread, host_name
from webcrawl.audit.robots import product_token

EXIT_VIOLATIONS = 1
EXIT_BAD_INPUT = 2
LONGEST_SECONDS = 30 * 86400.0


class Command(ScrapyCommand):
    """Reads logs and judges them.  Runs no crawler and asks no server."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] LOG [LOG ...]"

    def short_desc(self) -> str:
        return "Check from access logs that a crawl was polite"

    def long_desc(self) -> str:
        return (
            "Judge the politeness of a crawl by the access logs of the servers it visited (plain or .gz; - is standard "
            "input) and by robots files. Exit code 0: no violation; 1: violations; 2: the input cannot be judged."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        _add_rules(parser.add_argument_group("what counts as polite"))
        _add_reading(parser.add_argument_group("reading the logs"))
        output = parser.add_argument_group("output")
        output.add_argument("--json", action="store_true", help="print one JSON object instead of text")
        output.add_argument(
            "--show", type=_whole, default=5, metavar="N", help="lines of each kind to show (default %(default)s)"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args:
            raise UsageError("audit needs at least one access log.", print_help=False)
        try:
            audit = judge_logs(args, opts)
        except CannotAuditError as problem:
            print(problem, file=sys.stderr)
            self.exitcode = EXIT_BAD_INPUT
            return
        if opts.json:
            print(json.dumps(report.as_json(audit)))
        elif sys.stdout.isatty():
            show(audit, Console())
        else:
            print(report.plain_text(audit))
        self.exitcode = 0 if audit.is_polite else EXIT_VIOLATIONS


def _add_rules(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--delay",
        type=_seconds,
        default=Rules().delay_seconds,
        metavar="SECONDS",
        help="least pause from the end of a request to the start of the host's next one (default %(default)g)",
    )
    group.add_argument(
        "--address-delay",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="least pause between requests to one server address, whatever the host (default: none)",
    )
    group.add_argument(
        "--tolerance",
        type=_seconds,
        default=Rules().tolerance_seconds,
        metavar="SECONDS",
        help="how much shorter a pause may be (default %(default)g)",
    )
    group.add_argument(
        "--connections",
        action="append",
        type=_host_number,
        default=[],
        metavar="HOST=N",
        help="this host allows N requests at one time; .example means every host below, * every host; repeatable",
    )
    group.add_argument(
        "--visit",
        action="append",
        type=_host_number,
        default=[],
        metavar="HOST=N",
        help="this host allows N requests on one kept-alive connection before a pause; repeatable",
    )
    group.add_argument(
        "--gap-from",
        choices=("end", "start"),
        default="end",
        help="where a pause begins: at the end of the request before, or at its start (default %(default)s)",
    )
    group.add_argument("--robots", type=Path, metavar="DIR", help="folder of robots files, named by host")
    group.add_argument(
        "--no-robots-first", action="store_true", help="do not report pages asked for before robots.txt was answered"
    )
    group.add_argument("--exempt-robots", action="store_true", help="robots.txt itself may be fetched without a pause")
    group.add_argument(
        "--assume-retry-after",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="pause wanted after 429 and 503 where the log does not tell Retry-After (default: none)",
    )
    group.add_argument(
        "--address",
        action="append",
        type=_host_address,
        default=[],
        metavar="HOST=IP",
        help="server address of a host (* for all others), whatever the log says; repeatable",
    )


def _add_reading(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--agent", metavar="TOKEN", help="judge only lines of this User-Agent product token")
    group.add_argument("--host", metavar="NAME", help="the host of lines that name none")
    group.add_argument(
        "--ignore", action="append", default=[], metavar="PREFIX", help="do not judge such paths; repeatable"
    )
    group.add_argument(
        "--logged-time",
        choices=[one.value for one in LoggedTime],
        help="whether the logged time is the start or the end of a request (default: as the format says)",
    )
    group.add_argument(
        "--duration-unit",
        choices=[one.value for one in DurationUnit],
        help="of the duration at the end of a line (default: with a point seconds, else microseconds)",
    )
    group.add_argument(
        "--reorder",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="how far lines may be out of order (default %(default)g)",
    )
    group.add_argument("--skip-unreadable", action="store_true", help="leave out lines that cannot be judged")


def judge_logs(names: list[str], opts: argparse.Namespace) -> report.Audit:
    """The audit that the command line asks for."""
    rules, reading = chosen_rules(opts), chosen_reading(opts)
    judge = Judge(rules, RobotsFolder(opts.robots)) if opts.robots else Judge(rules)
    tally = Tally()
    records = read_logs(names, reading, tally, reorder_seconds=opts.reorder, may_skip=opts.skip_unreadable)
    audit = report.run_audit(records, judge, tally, opts.show)
    if not audit.findings.requests:
        raise CannotAuditError(_nothing_judged(tally, reading))
    return audit


def chosen_rules(opts: argparse.Namespace) -> Rules:
    """What counts as polite, by the options."""
    return Rules(
        delay_seconds=opts.delay,
        address_delay_seconds=opts.address_delay,
        tolerance_seconds=opts.tolerance,
        connections=Allowances(dict(opts.connections)),
        visit_pages=Allowances(dict(opts.visit)),
        agent=product_token(_agent(opts)),
        is_robots_first=not opts.no_robots_first,
        is_robots_exempt=opts.exempt_robots,
        is_gap_from_start=opts.gap_from == "start",
        assumed_retry_after_seconds=opts.assume_retry_after,
        addresses=dict(opts.address),
    )


def chosen_reading(opts: argparse.Namespace) -> Reading:
    """How lines are read, by the options."""
    return Reading(
        host=host_name(opts.host) if opts.host else "",
        agent=_agent(opts),
        ignored_paths=tuple(opts.ignore),
        logged_time=LoggedTime(opts.logged_time) if opts.logged_time else None,
        duration_unit=DurationUnit(opts.duration_unit) if opts.duration_unit else None,
    )


def _agent(opts: argparse.Namespace) -> str:
    """The product's name: `ExampleBot` of `ExampleBot/1.0 (...)`."""
    if opts.agent is None:
        return ""
    name = re.split(r"[\s/(]", opts.agent.strip(), maxsplit=1)[0]
    if not product_token(name):
        raise CannotAuditError(
            f"--agent {opts.agent!r} has no product token, so no line could be its; give a name such as ExampleBot."
        )
    return name


def _nothing_judged(tally: Tally, reading: Reading) -> str:
    if tally.unread[Unread.OTHER_AGENT]:
        number = report.counted(tally.unread[Unread.OTHER_AGENT], "line")
        return f"No line is of the agent {reading.agent!r} ({number} of others), so nothing was judged; check --agent."
    return f"No request was found in {report.counted(tally.lines, 'line')}, so nothing was judged; check the log."


# ---------------------------------------------------------------------------------------------------------- arguments


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= LONGEST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {LONGEST_SECONDS:g}.")
    return seconds


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number.")
    return int(text)


def _host_number(text: str) -> tuple[str, int]:
    host, _, number = text.rpartition("=")
    if not host or not number.isascii() or not number.isdigit() or not 1 <= int(number) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST=N with N from 1 to 1000.")
    return host_name(host), int(number)


def _host_address(text: str) -> tuple[str, str]:
    host, _, address = text.partition("=")
    if not host or not address:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST=IP.")
    return host_name(host), address


# ----------------------------------------------------------------------------------------------------------- terminal


def show(audit: report.Audit, console: Console) -> None:
    """The audit on a terminal."""
    for table in report.tables(audit):
        drawn = RichTable(title=Text(table.title, style="bold"), title_justify="left", box=None, pad_edge=False)
        for column, heading in enumerate(table.headings):
            drawn.add_column(heading, justify="right" if column in table.right else "left", overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        console.print(drawn)
        console.print()
    for note in report.notes(audit):
        console.print(Text(note, style="dim"))
    console.print(Text(report.verdict(audit), style="bold green" if audit.is_polite else "bold red"))
