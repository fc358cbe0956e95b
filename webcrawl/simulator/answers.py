"""What a web is: host names, seeds, and an answer for each host and request target.

A `Web` is a pure lookup without sockets.  Something that changes answers (a cache, and later faults such as 503 with
Retry-After or slow hosts) is itself a `Web` around another one, so the server needs to know only this protocol.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"


class CannotServeError(Exception):
    """A sentence for the person who started the server: what is wrong, why, what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, with its header block ready to be sent.

    `retry_after_seconds` goes to the client and the access log; `delay_seconds` is waited for before the answer leaves.
    """

    status: int
    body: bytes = b""
    content_type: str = HTML
    location: str = ""
    retry_after_seconds: float | None = None
    delay_seconds: float = 0.0
    status_line: bytes = field(init=False, repr=False)
    headers: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lines = [f"Content-Type: {self.content_type}", f"Content-Length: {len(self.body)}"]
        if self.location:
            lines.append(f"Location: {self.location}")
        if self.retry_after_seconds is not None:
            lines.append(f"Retry-After: {self.retry_after_seconds:g}")
        if self.status == HTTPStatus.METHOD_NOT_ALLOWED:
            lines.append("Allow: GET, HEAD, CONNECT")
        object.__setattr__(self, "status_line", f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n".encode())
        object.__setattr__(self, "headers", "".join(f"{line}\r\n" for line in lines).encode("latin-1"))


def message(status: int, sentence: str) -> Answer:
    """A short page that says one sentence to whoever reads it."""
    text = sentence.replace("&", "&amp;").replace("<", "&lt;")
    title = f"{status} {HTTPStatus(status).phrase}"
    page = (
        f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>\n"
    )
    return Answer(status, page.encode("utf-8", "replace"))


def redirect(url: str, status: int = 301) -> Answer:
    """An answer that sends the client to another URL."""
    safe = url.encode("ascii", "backslashreplace").decode().translate(_UNSAFE_IN_HEADERS)
    return Answer(status, b"<!DOCTYPE html>\n<title>Moved</title>\n<p>This page has moved.</p>\n", location=safe)


_UNSAFE_IN_HEADERS = {code: f"%{code:02X}" for code in (*range(33), 127)}


class Web(Protocol):
    """Hosts and what they answer."""

    @property
    def host_count(self) -> int: ...

    @property
    def page_count(self) -> int: ...

    @property
    def seeds(self) -> tuple[str, ...]:
        """URLs from which to start a crawl."""
        ...

    def host_names(self) -> Iterator[str]:
        """The names of all hosts, the largest or first one first."""
        ...

    def manifest(self) -> Iterator[str]:
        """The URLs of all pages."""
        ...

    def answer(self, host: str, target: str) -> Answer | None:
        """What `host` (lower case, no port) answers to GET `target` (path and query); None: there is no such host."""
        ...

    def arguments(self) -> list[str]:
        """The command line of `python -m webcrawl.simulator` that serves this web."""
        ...


class CachedWeb:
    """Another web, with the answers that were used last kept up to a number of bytes."""

    def __init__(self, web: Web, limit_bytes: int = 256 << 20) -> None:
        self.web = web
        self.limit_bytes = limit_bytes
        self.kept_bytes = 0
        self._answers: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    def answer(self, host: str, target: str) -> Answer | None:
        key = (host, target)
        kept = self._answers.get(key)
        if kept is not None:
            self._answers.move_to_end(key)
            return kept
        answer = self.web.answer(host, target)
        if answer is not None and answer.status < HTTPStatus.BAD_REQUEST:  # there is no end of things that do not exist
            self._keep(key, answer)
        return answer

    def _keep(self, key: tuple[str, str], answer: Answer) -> None:
        if _cost_bytes(key, answer) > self.limit_bytes // 8:
            return
        self._answers[key] = answer
        self.kept_bytes += _cost_bytes(key, answer)
        while self.kept_bytes > self.limit_bytes:
            self.kept_bytes -= _cost_bytes(*self._answers.popitem(last=False))


def _cost_bytes(key: tuple[str, str], answer: Answer) -> int:
    return len(answer.body) + len(key[1]) + 600  # 600: the objects around them
