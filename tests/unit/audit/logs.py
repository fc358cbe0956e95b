"""Lines and records for the tests of the auditor."""

from __future__ import annotations

import time
from typing import Any

from webcrawl.audit.judging import Judge, Kind, Rules, Violation
from webcrawl.audit.records import Record

EPOCH = 1_795_003_200.0  # 18 November 2026, 12:00:00 UTC


def request(at: float, path: str = "/page", **changes: Any) -> Record:
    """A request that began `at` seconds after noon and lasted a tenth of a second, on a log with microseconds."""
    known: dict[str, Any] = {
        "duration_seconds": 0.1,
        "resolution_seconds": 1e-6,
        "host": "a.example",
        "address": "",
        "client": "192.0.2.1",
        "connection": "",
        "status": 200,
        "agent": "ExampleBot/1.0",
        "retry_after_seconds": 0.0,
        "file": "access.log",
        "line": 1,
        "logged_at": EPOCH + at,
        "started_at": EPOCH + at,
        "path": path,
    }
    return Record(**(known | changes))


def robots_txt(at: float = -100.0, **changes: Any) -> Record:
    """robots.txt asked for, by default long before noon."""
    return request(at, "/robots.txt", **changes)


def judged(records: list[Record], rules: Rules | None = None, robots: dict[str, str] | None = None) -> list[Violation]:
    """All violations; records are given in the order of their logged times."""
    judge = Judge(rules or Rules(), (robots or {}).get)
    found = [violation for record in records for violation in judge.judge(record)]
    return found + judge.finish()


def kinds(violations: list[Violation]) -> list[Kind]:
    return [violation.kind for violation in violations]


def stamp(at: float, digits: int = 6) -> str:
    """The time of a log line, `at` seconds after noon."""
    instant = EPOCH + at
    text = time.strftime("%d/%b/%Y:%H:%M:%S", time.gmtime(int(instant)))
    fraction = f"{instant % 1:.6f}"[2 : 2 + digits]
    return f"{text}.{fraction} +0000" if digits else f"{text} +0000"


def own_line(at: float, path: str = "/page", *, status: int = 200, seconds: float = 0.1, host: str = "a.example",
             agent: str = "ExampleBot/1.0", retry: str = "-") -> str:  # fmt: skip
    """A line as the simulated web writes it."""
    return (
        f'127.0.0.1 - - [{stamp(at)}] "GET {path} HTTP/1.1" {status} 1234 "-" "{agent}" {seconds:.6f} {host} {retry}\n'
    )


def combined_line(at: float, path: str = "/page", *, status: int = 200, agent: str = "ExampleBot/1.0", before: str = "",
                  after: str = "") -> str:  # fmt: skip
    """A line of Apache or nginx with whole seconds."""
    return f'{before}192.0.2.1 - - [{stamp(at, 0)}] "GET {path} HTTP/1.1" {status} 1234 "-" "{agent}"{after}\n'
