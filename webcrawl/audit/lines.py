"""One line of an access log into one record: the family of Apache's and nginx's text formats.

    client ident user [18/Nov/2026:12:00:00 +0000] "GET /path HTTP/1.1" 200 1234                     common
    ... "referrer" "agent"                                                                           combined
    vhost:port client ident user [...] ...                                                           vhost in front
    ... fields                                                                                       more at the end

Rules kept:

- Any text gives a record or a reason, never an exception.
- The host is taken from an absolute-URI request (a proxy's log), else from a column in front, else from a field at the
  end, else from the operator (`--host`).
- Of the fields at the end these are known: the seconds of nginx's $request_time (with a decimal point, or as rt=0.012),
  the microseconds of Apache's %D (a whole number in the last place), a host name, `retry_after=`, `addr=`,
  `connection=`.  Two whole
  numbers alone are the byte counts of Apache's combinedio and no duration.
- nginx logs when a request has ended, Apache when it was received: so the time is the end beside a duration of nginx's
  and the start otherwise.  Where there is no duration it makes no difference.
- The simulated web's own lines (combined, times with fractions, then seconds, host and Retry-After) have the start; the
  columns for identity and user may hold the connection's number and the server's address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from webcrawl.audit.records import FINEST_SECONDS, Record, Unread, host_name
from webcrawl.audit.robots import is_product

_STAMP = r"\[(\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d)"
_QUOTED = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
# The simulated web's: quotes inside quotes cannot occur, backslashes can and mean nothing.
_OWN = re.compile(
    rf"(\S+) (\S+) (\S+) {_STAMP}\.(\d{{1,9}}) ([+-]\d{{4}})\] "
    r'"([^"]*)" (\d{3}) (?:\d+|-) "[^"]*" "([^"]*)" (\d+(?:\.\d+)?) (\S+) (-|nan|-?\d[\d.e+]*)'
)
_LINE = re.compile(
    rf"(.*?) ?{_STAMP}(?:[.,](\d{{1,9}}))? ([+-]\d{{4}})\] "
    rf"{_QUOTED} (\d{{3}}) (?:\d+|-)(?: {_QUOTED} {_QUOTED})?((?: .*)?)"
)
_FIELD = re.compile(r'(?:([A-Za-z_]+)=)?(?:"([^"\\]*(?:\\.[^"\\]*)*)"|(\S+))')
_ADDRESS = re.compile(r"[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*")
_HOST_FIELD = re.compile(r"(?:[\w-]+\.)*(?:[\w-]+\.[A-Za-z]{2,}|localhost)\.?(?::\d{1,5})?", re.ASCII)
_SERVER = re.compile(r"(?:[\d.]+|\[[0-9a-f:]+\]):\d+")
_SECONDS = re.compile(r"\d{1,9}\.\d{1,9}")
_WHOLE = re.compile(r"\d{1,15}")
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{0,15})?(?:e\+?\d{1,2})?")
_ESCAPED = re.compile(r'\\(?:x([0-9A-Fa-f]{2})|(["\\]))')
_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_EPOCH_DAY = date(1970, 1, 1).toordinal()

_DURATION_KEYS = frozenset({"rt", "request_time", "duration"})
_HOST_KEYS = frozenset({"host", "vhost", "server_name", "http_host"})
_RETRY_KEYS = frozenset({"retry_after", "retry"})
_ADDRESS_KEYS = frozenset({"addr", "server_addr"})


class LoggedTime(StrEnum):
    """Which instant of a request the log's time is."""

    START = "start"
    END = "end"


class DurationUnit(StrEnum):
    """The unit of a duration at the end of a line."""

    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    MICROSECONDS = "microseconds"

    @property
    def seconds(self) -> float:
        """One of it."""
        return {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6}[self]


@dataclass(frozen=True, slots=True)
class Reading:
    """How lines are read and which are wanted; None: as the format says."""

    host: str = ""  # of lines that name none
    agent: str = ""  # product token; empty: all
    ignored_paths: tuple[str, ...] = ()
    logged_time: LoggedTime | None = None
    duration_unit: DurationUnit | None = None

    def refusal(self, agent: str, path: str, host: str) -> Unread | None:
        """Why a request is not judged."""
        if self.agent and not is_product(self.agent, agent):
            return Unread.OTHER_AGENT
        if self.ignored_paths and path.startswith(self.ignored_paths):
            return Unread.IGNORED
        return None if host else Unread.NO_HOST


class Stamp(NamedTuple):
    """A logged time: its whole second, and the digits of the fraction as they were written."""

    second_at: float
    fraction: str


class Fields(NamedTuple):
    """What stands after the known columns of a line."""

    duration_seconds: float | None = None
    host: str = ""
    retry_after_seconds: float | None = None
    address: str = ""
    connection: str = ""
    logged_time: LoggedTime = LoggedTime.START


NO_FIELDS = Fields()
NO_HOSTS = frozenset({"", "-"})
RESOLUTIONS = tuple(max(FINEST_SECONDS, 10.0**-digits) for digits in range(10))


def read_line(text: str, reading: Reading, file: str, line: int) -> Record | Unread:
    """The record of one line, or why there is none."""
    match = _OWN.fullmatch(text)
    if match is not None:
        client, identity, user, stamp, fraction, zone, request, status, agent, seconds, column, retry = match.groups()
        address, connection = _ends(user, identity)
        fields = Fields(float(seconds), "", _retry_after(retry), address, connection)
    else:
        match = _LINE.fullmatch(text)
        if match is None:
            return Unread.UNREADABLE
        front, stamp, fraction, zone, request, status, _, agent, rest = match.groups()
        column, client = _columns_in_front(front)
        fields = fields_at_the_end(rest, reading.duration_unit) if rest else NO_FIELDS
    second_at = instant(stamp, zone)
    if second_at is None:
        return Unread.UNREADABLE
    asked = split_request(request)
    if asked is None:
        return Unread.NO_REQUEST
    host, path = asked
    return record(
        reading,
        Stamp(second_at, fraction or ""),
        fields,
        host=host or column or fields.host,
        client=client,
        path=path,
        status=int(status),
        agent=agent or "",
        file=file,
        line=line,
    )


def record(
    reading: Reading,
    stamp: Stamp,
    fields: Fields,
    *,
    host: str,
    client: str,
    path: str,
    status: int,
    agent: str,
    file: str,
    line: int,
) -> Record | Unread:
    """A record from its parts, unless nobody wants it."""
    host = reading.host if host in NO_HOSTS else host_name(host)
    refusal = reading.refusal(agent, path, host)
    if refusal is not None:
        return refusal
    logged_at, fraction = stamp
    resolution_seconds = RESOLUTIONS[len(fraction)]
    if fraction:
        logged_at += float("." + fraction)
    duration = fields.duration_seconds
    started_at = logged_at
    if duration is not None and (reading.logged_time or fields.logged_time) is LoggedTime.END:
        started_at -= duration
    return Record(logged_at, started_at, duration, resolution_seconds, host, fields.address, client,
                  fields.connection, path, status, agent, fields.retry_after_seconds, file, line)  # fmt: skip


def split_request(request: str) -> tuple[str, str] | None:
    """Host and path of a request line; the host is empty unless it is an absolute URI (RFC 9112, section 3.2.2).

    >>> split_request("GET http://a.example:8000/x?y HTTP/1.1")
    ('a.example:8000', '/x?y')
    """
    if request.startswith("GET /") and request.endswith(" HTTP/1.1") and "\\" not in request:
        return "", request[4:-9]  # nearly all, so quickly
    method, _, target = request.partition(" ")
    head, space, version = target.rpartition(" ")
    if space and version.startswith("HTTP/"):
        target = head
    if not target or not method.isalpha() or method == "CONNECT":
        return None
    return split_target(target)


def split_target(target: str) -> tuple[str, str] | None:
    """Host and path of what was asked for."""
    if "\\" in target:
        target = _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], target)
    if target[0] in "/*":
        return "", target
    scheme, marks, rest = target.partition("://")
    if not marks or scheme.lower() not in ("http", "https"):
        return None
    authority_length = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    authority, path = rest[:authority_length].rpartition("@")[2], rest[authority_length:].partition("#")[0]
    return (authority, path if path.startswith("/") else "/" + path) if authority else None


def fields_at_the_end(rest: str, unit: DurationUnit | None = None) -> Fields:
    """What the fields after the known columns mean; those nobody knows are passed over.

    >>> fields_at_the_end(" 0.012 www.example").duration_seconds
    0.012
    """
    named: dict[str, str] = {}
    plain = []
    for match in _FIELD.finditer(rest):
        value = match[3] if match[2] is None else match[2]
        if match[1]:
            named.setdefault(match[1].lower(), value)
        else:
            plain.append(value)
    seconds = next((_number(named[key]) for key in named if key in _DURATION_KEYS), None)
    duration, logged_time = (seconds, LoggedTime.END) if seconds is not None else _duration(plain, unit)
    host = next((named[key] for key in named if key in _HOST_KEYS), "")
    retry = next((named[key] for key in named if key in _RETRY_KEYS), None)
    return Fields(
        duration,
        host or next((value for value in plain if _HOST_FIELD.fullmatch(value)), ""),
        None if retry is None else _retry_after(retry),
        next((named[key] for key in named if key in _ADDRESS_KEYS), ""),
        named.get("connection", ""),
        logged_time,
    )


def _duration(plain: list[str], unit: DurationUnit | None) -> tuple[float | None, LoggedTime]:
    """A duration among fields without names, and which instant such a log's time is."""
    with_point = next((value for value in plain if _SECONDS.fullmatch(value)), None)
    if with_point is not None:
        return float(with_point) * (unit.seconds if unit else 1.0), LoggedTime.END
    whole = [value for value in plain if _WHOLE.fullmatch(value)]
    if whole and plain[-1] == whole[-1] and len(whole) != 2:
        return int(whole[-1]) * (unit or DurationUnit.MICROSECONDS).seconds, LoggedTime.START
    return None, LoggedTime.START


def _columns_in_front(front: str) -> tuple[str, str]:
    """Virtual host (or nothing) and client: three columns have none, with four the host comes first.

    A user name with a blank makes four as well; then the first column is an address and the second is none.
    """
    columns = front.split()
    if len(columns) < 2:
        return "", front
    if len(columns) > 3 and (_ADDRESS.fullmatch(columns[1]) or not _ADDRESS.fullmatch(columns[0])):
        return columns[0], columns[1]
    return "", columns[0]


@lru_cache(maxsize=4096)
def _ends(user: str, identity: str) -> tuple[str, str]:
    """Address of the server and number of the connection, which the simulated web logs in these columns."""
    return (user.rpartition(":")[0].strip("[]"), identity) if _SERVER.fullmatch(user) else ("", "")


def _retry_after(text: str) -> float:
    """Seconds to wait; none for a date that is past and for what is no time."""
    return _number(text) or 0.0


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


@lru_cache(maxsize=4096)
def instant(stamp: str, zone: str) -> float | None:
    """The instant of `18/Nov/2026:12:00:00` in a zone such as `+0100`."""
    day, month, rest = stamp.split("/")
    year, hours, minutes, seconds = (int(part) for part in rest.split(":"))
    number = _MONTHS.get(month.title())
    if number is None or hours > 23 or minutes > 59 or seconds > 60:
        return None
    try:
        days = date(year, number, int(day)).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    offset = (int(zone[1:3]) * 60 + int(zone[3:])) * (-60 if zone[0] == "-" else 60)
    return float(days * 86400 + hours * 3600 + minutes * 60 + seconds - offset)
