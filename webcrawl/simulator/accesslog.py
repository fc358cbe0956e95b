"""The access log: one line for each answer, in the combined format with three more fields.

    127.0.0.1 7 127.0.0.1:8000 [18/Nov/2026:12:00:00.123456 +0000] "GET /path HTTP/1.1" 200 123 "-" "me" 0.000210 host -

The client's address, the number of its connection (from 1, in the order in which connections came; where servers log an
identity that nobody uses), the address and port of the server (where they log a user), and the instant at which the
request was there.  After the agent come the seconds until the answer was handed over or the connection had ended, the
host as the client named it (with a port only if the client gave one) and the answer's Retry-After in seconds: less than
0 for a date in the past, `nan` for what is no time, `-` for none.  The path is the origin form also for requests to the
proxy.  Lines are appended together every 10 ms, with one write, so a reader only ever sees whole lines.
"""

from __future__ import annotations

import os
import re
import sys
import time
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webcrawl.simulator.wire import Request

FLUSH_SECONDS = 0.01
_UNSAFE = re.compile(r"[^ !#-~\xa0-\xff]")


@lru_cache(maxsize=1024)
def _quotable(text: str) -> str:
    """What a client said, safe between quotes on one line of a log."""
    return _UNSAFE.sub("?", text[:1000])


class AccessLog:
    """Appends lines to a file; `later` runs a function after some seconds (an event loop's call_later)."""

    def __init__(self, path: Path, later: Callable[[float, Callable[[], None]], object]) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._path = path
        self._later = later
        self._lines: list[str] = []
        self._second = -1
        self._stamp = ""

    def note(
        self,
        received_at: float,
        request: Request,
        status: int,
        body_bytes: int,
        retry_after: float | None,
        ends: str = "127.0.0.1 - -",
    ) -> None:
        """Adds the line of one answer; `ends` are the first three fields."""
        second = int(received_at)
        if second != self._second:
            self._second, self._stamp = second, time.strftime("%d/%b/%Y:%H:%M:%S", time.gmtime(second))
        if not self._lines:
            self._later(FLUSH_SECONDS, self.flush)
        agent, referrer = request.fields.agent, request.fields.referrer
        target = request.target.replace('"', "%22")
        self._lines.append(
            f"{ends} [{self._stamp}.{int((received_at - second) * 1e6):06d} +0000] "
            f'"{request.method} {target} {request.version}" {status} {body_bytes} "{_quotable(referrer)}" '
            f'"{_quotable(agent)}" {max(0.0, time.time() - received_at):.6f} {request.authority.text or "-"} '
            f"{'-' if retry_after is None else format(retry_after, '.10g')}\n"
        )

    def flush(self) -> None:
        """Appends the lines that wait; after an error (a full disk) no more are kept."""
        if not self._lines or self._descriptor < 0:
            return
        lines, self._lines = self._lines, []
        try:
            os.write(self._descriptor, "".join(lines).encode("latin-1"))
        except OSError as problem:
            print(f"The access log {self._path} ends here: {problem.strerror}.", file=sys.stderr)
            self.close()

    def close(self) -> None:
        self.flush()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
