"""Logs and robots files on disk: opened, put back into the order of time, and merged.

Rules kept:

- A log is read once, line by line.  A server writes a line when the request has ended, so lines with start times come
  out of order: records wait in a buffer until the log is `reorder_seconds` further.  A request that lasted longer is
  given out when it is read; whatever was given out since it began did overlap it, so the verdicts are right.
- A line that is older than that and was not under way is a log in disorder: refused, with the line and a remedy.
- A line that cannot be read is refused, too, unless the operator skips such lines: a proof has no holes.  Only a last
  line without its end is forgiven; the server was stopped while it wrote.
- Robots files are read when their host first appears.
"""

from __future__ import annotations

import gzip
import heapq
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from webcrawl.audit.jsonlines import read_json_line
from webcrawl.audit.lines import Reading, read_line
from webcrawl.audit.records import CannotAuditError, Record, Unread, host_name

STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_SCHEMES = ("http_", "https_")


@dataclass(slots=True)
class Tally:
    """What happened to the lines."""

    lines: int = 0
    unread: Counter[Unread] = field(default_factory=Counter)
    first_unreadable: str = ""
    torn: list[str] = field(default_factory=list)


def read_logs(
    names: Iterable[str], reading: Reading, tally: Tally, *, reorder_seconds: float, may_skip: bool
) -> Iterator[Record]:
    """The records of all logs, in the order of their logged times."""
    streams = [
        in_order(read_log(name, _lines(name), reading, tally, may_skip=may_skip), reorder_seconds) for name in names
    ]
    return streams[0] if len(streams) == 1 else heapq.merge(*streams, key=lambda record: record.logged_at)


def read_log(
    name: str, lines: Iterable[bytes], reading: Reading, tally: Tally, *, may_skip: bool = False
) -> Iterator[Record]:
    """The records of one log, as they stand there."""
    for number, line in enumerate(lines, 1):
        tally.lines += 1
        text = line.decode("latin-1").rstrip("\r\n")
        read = read_json_line if text.startswith("{") else read_line
        record = read(text, reading, name, number) if text else Unread.EMPTY
        if isinstance(record, Record):
            yield record
            continue
        if record is Unread.UNREADABLE:
            if not line.endswith(b"\n"):
                tally.torn.append(f"{name}:{number}")
                continue
            tally.first_unreadable = tally.first_unreadable or f"{name}:{number}"
        tally.unread[record] += 1
        if not may_skip:
            _refuse(record, f"{name}:{number}", text)


def _refuse(reason: Unread, where: str, text: str) -> None:
    if reason is Unread.UNREADABLE:
        raise CannotAuditError(
            f"{where} is no line of an access log that can be read ({text[:80]!r}), so requests could be missed; "
            "repair the log or leave such lines out with --skip-unreadable."
        )
    if reason is Unread.NO_HOST:
        raise CannotAuditError(
            f"{where} does not say which host was asked, and pauses are judged for each host; name the host of such "
            "lines with --host."
        )


def in_order(records: Iterable[Record], reorder_seconds: float) -> Iterator[Record]:
    """Records in the order of their logged times; equal times keep the order of the lines."""
    waiting: list[tuple[float, int, Record]] = []
    given_at = newest_at = float("-inf")
    for number, record in enumerate(records):
        logged_at = record.logged_at
        if logged_at < given_at:
            _check_was_under_way(record, newest_at, reorder_seconds)
            yield record
            continue
        heapq.heappush(waiting, (logged_at, number, record))
        newest_at = max(newest_at, logged_at)
        while waiting[0][0] < newest_at - reorder_seconds:
            given_at, _, first = heapq.heappop(waiting)
            yield first
    while waiting:
        yield heapq.heappop(waiting)[2]


def _check_was_under_way(record: Record, newest_at: float, reorder_seconds: float) -> None:
    late_seconds = newest_at - max(record.ended_at, record.logged_at)
    if late_seconds > reorder_seconds:
        raise CannotAuditError(
            f"{record.where} is {late_seconds:.0f} s older than a line before it, so the order of the requests is not "
            "known; sort the log by time, give its parts as files of their own, or use "
            f"--reorder {late_seconds + 1:.0f}."
        )


def _lines(name: str) -> Iterator[bytes]:
    """The lines of a file, compressed or not, or of standard input."""
    try:
        if name == STANDARD_INPUT:
            yield from sys.stdin.buffer
            return
        with open(name, "rb") as file:
            yield from _plain(file)
    except (OSError, EOFError, zlib.error) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise CannotAuditError(
            f"The log {name} cannot be read ({reason}); give an access log, plain or .gz."
        ) from problem


def _plain(file: BinaryIO) -> Iterable[bytes]:
    is_compressed = file.read(2) == _GZIP_MAGIC
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if is_compressed else file


class RobotsFolder:
    """robots.txt of hosts: `HOST`, `HOST:PORT` or `SCHEME_HOST_PORT`, each with or without `.txt`."""

    def __init__(self, folder: Path) -> None:
        self._files: dict[str, Path] = {}
        try:
            found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
        except OSError as problem:
            raise CannotAuditError(
                f"The folder {folder} of robots files cannot be read ({problem.strerror}); give a folder with --robots."
            ) from problem
        for path in found:
            host = host_of_file(path.name)
            if host in self._files:
                raise CannotAuditError(
                    f"{self._files[host]} and {path} are both the robots.txt of {host}, and a log does not say which "
                    "one counts; leave one in the folder."
                )
            self._files[host] = path

    def __call__(self, host: str) -> str | None:
        """The text for a host; None: there is no file."""
        path = self._files.get(host)
        try:
            return None if path is None else path.read_bytes().decode("latin-1")
        except OSError as problem:
            raise CannotAuditError(f"The robots file {path} cannot be read ({problem.strerror}).") from problem


def host_of_file(name: str) -> str:
    """The host that a robots file belongs to.

    >>> host_of_file("https_www.example_8443.txt"), host_of_file("127.0.0.5:8000")
    ('www.example:8443', '127.0.0.5:8000')
    """
    name = name.lower().removesuffix(".txt")
    for scheme in _SCHEMES:
        name = name.removeprefix(scheme)
    host, line, port = name.rpartition("_")
    return host_name(f"{host}:{port}" if line and port.isdigit() else name)
