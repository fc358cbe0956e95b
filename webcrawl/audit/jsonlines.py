r"""One JSON object of an access log into one record.

Rules kept: any text gives a record or a reason, never an exception; a value of a wrong type counts as absent, unless
nothing can be read without it (the time, the request, the status).

| meaning | keys, the first that is there counts |
|---|---|
| start | `started_at`, `time` |
| end | `msec`, `time_iso8601`, `time_local`, `timestamp`, `@timestamp`, `ts` |
| duration in seconds | `duration`, `request_time` |
| host | `host`, `http_host`, `vhost`, `server_name` |
| what was asked for | `path`, `request_uri`, `uri`, `url`, `request` (a whole request line) |
| status | `status` |
| user agent | `agent`, `http_user_agent`, `user_agent` |
| client, server, connection | `client`, `remote_addr`; `address`, `server_addr`; `connection` |
| Retry-After, seconds or a date | `retry`, `retry_after`, `sent_http_retry_after`; null: the answer had none |

A time is a number of epoch seconds, ISO 8601 with a zone, or as in the text formats.
"""

from __future__ import annotations

import json
import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from webcrawl.audit.lines import Fields, LoggedTime, Reading, Stamp, instant, record, split_request, split_target
from webcrawl.audit.records import Record, Unread

_STARTS = ("started_at", "time")
_ENDS = ("msec", "time_iso8601", "time_local", "timestamp", "@timestamp", "ts")
_DURATIONS = ("duration", "request_time")
_HOSTS = ("host", "http_host", "vhost", "server_name")
_TARGETS = ("path", "request_uri", "uri", "url")
_AGENTS = ("agent", "http_user_agent", "user_agent")
_CLIENTS = ("client", "remote_addr")
_ADDRESSES = ("address", "server_addr")
_RETRIES = ("retry", "retry_after", "sent_http_retry_after")
_TIME = re.compile(r"(\d\d/[A-Za-z]{3}/\d{4}:\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? ([+-]\d{4})")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)")
_LAST_INSTANT = 253402300799  # the year 9999


def read_json_line(text: str, reading: Reading, file: str, line: int) -> Record | Unread:
    """The record of one line, or why there is none."""
    try:
        logged = json.loads(text)
    except (ValueError, RecursionError):
        return Unread.UNREADABLE
    if not isinstance(logged, dict):
        return Unread.UNREADABLE
    stamp, logged_time = _stamp(logged)
    status = _number(logged.get("status"))
    if stamp is None or status is None or not 0 <= status <= 999:
        return Unread.UNREADABLE
    asked = _asked(logged)
    if asked is None:
        return Unread.NO_REQUEST
    host, path = asked
    duration = _number(_first(logged, _DURATIONS))
    fields = Fields(
        None if duration is None or duration < 0 else duration,
        retry_after_seconds=_retry_after(logged, stamp.second_at),
        address=_text(logged, _ADDRESSES),
        connection=str(logged.get("connection") or ""),
        logged_time=logged_time,
    )
    return record(
        reading,
        stamp,
        fields,
        host=host or _text(logged, _HOSTS),
        client=_text(logged, _CLIENTS),
        path=path,
        status=int(status),
        agent=_text(logged, _AGENTS),
        file=file,
        line=line,
    )


def _first(logged: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((logged[key] for key in keys if key in logged), None)


def _text(logged: dict[str, Any], keys: tuple[str, ...]) -> str:
    value = _first(logged, keys)
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    """A finite number, also when it is written as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _stamp(logged: dict[str, Any]) -> tuple[Stamp | None, LoggedTime]:
    """The time, and which instant of the request it is."""
    for keys, logged_time in ((_STARTS, LoggedTime.START), (_ENDS, LoggedTime.END)):
        value = _first(logged, keys)
        if value is not None:
            return (_clock_time(value) if isinstance(value, str) else None) or _epoch_time(value), logged_time
    return None, LoggedTime.START


def _epoch_time(value: object) -> Stamp | None:
    """Epoch seconds.  Zeros at the end are lost in a number, so thousandths count as the least that was written."""
    number = _number(value)
    if number is None or not 0 <= number <= _LAST_INSTANT:
        return None
    if isinstance(value, int) or (isinstance(value, str) and value.isdigit()):
        return Stamp(number, "")
    whole, _, digits = f"{number:.6f}".partition(".")
    return Stamp(float(whole), digits[:3] if digits.endswith("000") else digits)


def _clock_time(value: str) -> Stamp | None:
    match = _TIME.fullmatch(value)
    if match is not None:
        seconds = instant(match[1], match[3])
        return None if seconds is None else Stamp(seconds, match[2] or "")
    match = _ISO.fullmatch(value)
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[1] + match[3])
        return Stamp(moment.timestamp(), match[2] or "")
    except (ValueError, OverflowError):
        return None


def _asked(logged: dict[str, Any]) -> tuple[str, str] | None:
    target = _text(logged, _TARGETS)
    return split_target(target) if target else split_request(_text(logged, ("request",)))


def _retry_after(logged: dict[str, Any], logged_at: float) -> float | None:
    """The seconds to wait; 0 where the answer asked for none, None where the log does not say."""
    if not any(key in logged for key in _RETRIES):
        return None
    value = _first(logged, _RETRIES)
    seconds = _number(value)
    if seconds is None and isinstance(value, str):
        try:
            until = parsedate_to_datetime(value)
            until = until if until.tzinfo else until.replace(tzinfo=UTC)
            seconds = until.timestamp() - logged_at
        except (ValueError, OverflowError):
            return 0.0
    return max(0.0, seconds or 0.0)
