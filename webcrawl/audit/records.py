"""One request as the server logged it, and the names of hosts.

Instants are UTC epoch seconds.  What was logged is a time cut to some resolution: the true instant lies in
[logged, logged + resolution).  No resolution is finer than a microsecond, which is also more than the rounding of
floats at today's instants (0.24 microseconds), so that sums and differences never decide a verdict by rounding.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

FINEST_SECONDS = 1e-6
ROBOTS_PATH = "/robots.txt"
_DEFAULT_PORTS = frozenset({"", "80", "443"})
_PORT = re.compile(r"(.+?|\[[^\]]*\]):(\d*)")
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


class CannotAuditError(Exception):
    """The input cannot be judged; the message says what is wrong and what to do."""


class Unread(StrEnum):
    """Why a line gave no record."""

    UNREADABLE = "unreadable"
    NO_REQUEST = "no request"  # a broken request, or a tunnel (CONNECT), which asks the host for nothing
    NO_HOST = "no host"
    OTHER_AGENT = "other agent"
    IGNORED = "ignored"
    EMPTY = "empty"


class Record(NamedTuple):
    """One request.  `logged_at` is what records are ordered by: the start or the end, as the log has it."""

    logged_at: float
    started_at: float
    duration_seconds: float | None  # None: the log does not say
    resolution_seconds: float
    host: str
    address: str  # of the server; empty: the log does not say
    client: str
    connection: str  # any name for it; empty: the log does not say
    path: str
    status: int
    agent: str
    retry_after_seconds: float | None  # 0: the answer had none; None: the log does not say
    file: str
    line: int

    @property
    def ended_at(self) -> float:
        """The end, or the start where the log has no durations."""
        return self.started_at + (self.duration_seconds or 0.0)

    @property
    def before(self) -> float:
        """The true start lies before this instant."""
        return self.started_at + self.resolution_seconds

    @property
    def is_robots(self) -> bool:
        """Whether this asked for robots.txt."""
        return self.path == ROBOTS_PATH

    def is_same_connection(self, other: Record) -> bool:
        """Whether both can have come over one connection."""
        return self.client == other.client and (
            self.connection == other.connection or not (self.connection and other.connection)
        )

    @property
    def where(self) -> str:
        """The place in the log."""
        return f"{self.file}:{self.line}"


@lru_cache(maxsize=65536)
def host_name(text: str) -> str:
    """One spelling for a host: small letters, no final dot, the ports of http and https left out.

    >>> host_name("WWW.Example.:443"), host_name("127.0.0.5:8000")
    ('www.example', '127.0.0.5:8000')

    http and https of one name are one host here: they are one machine, and its pauses are what is judged.
    """
    text = text.strip().lower()
    match = _PORT.fullmatch(text)
    name, port = (match[1], match[2]) if match else (text, "")
    name = name.rstrip(".")
    return name if port in _DEFAULT_PORTS else f"{name}:{port}"


@lru_cache(maxsize=65536)
def literal_address(host: str) -> str:
    """The IP address that a host is named by, or nothing.

    >>> literal_address("127.0.0.5:8000"), literal_address("a.example")
    ('127.0.0.5', '')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name = host.partition(":")[0]
    return name if _IPV4.fullmatch(name) else ""
