"""Heads of HTTP/1.1 messages as bytes: ours written, theirs found and, if broken, repaired.

Rules kept:
- One line per header field whatever the values contain: a CR or LF in one never starts a new field (RFC 9112 §11.1).
- The length of our body is ours to say; Content-Length and Transfer-Encoding given on a request are not repeated (§6).
- Proxy-Authorization goes to a proxy or nowhere (RFC 9110 §11.7.2).
- Repair follows what browsers and Scrapy's own handler accept: lines without a colon are skipped, folded lines are
  joined, equal Content-Lengths are one; two different ones stay an error (RFC 9112 §5.1, §5.2, §6.3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Headers

METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
NEVER_REPEATED = frozenset({b"Content-Length", b"Transfer-Encoding", b"Proxy-Authorization"})

_LINE_BREAKS = re.compile(rb"[\r\n]+[ \t]*")
_HEAD_END = re.compile(rb"\n\r?\n")
_LINE_END = re.compile(rb"\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.\d +\d{3}(?!\d)")
_INTERIM = re.compile(rb"HTTP/1\.\d +1\d\d(?!\d)")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_CONTROLS = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_TARGET_SAFE = "!#$%&'()*+,/:;=?@[]~"


def safe_target(target: str) -> str:
    """The request target with every character that could end or split the request line percent-encoded.

    >>> safe_target("/a b\\r\\nX: y")
    '/a%20b%0D%0AX:%20y'
    """
    if target.isascii() and target.isprintable() and " " not in target:
        return target
    return quote(target, safe=_TARGET_SAFE)


def request_head(method: str, target: str, host: str, headers: Headers, body_bytes: int) -> bytes:
    """The bytes of a request up to and with the empty line (RFC 9112 §3); Host comes first (RFC 9110 §7.2)."""
    own_host = dict.__contains__(headers, b"Host")
    start = f"{method} {target} HTTP/1.1\r\n" if own_host else f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n"
    parts = [start.encode("ascii")]
    for name, values in dict.items(headers):
        if name not in NEVER_REPEATED:
            for value in values:
                parts += (name, b": ", value, b"\r\n")
    lines = (len(parts) - 1) // 4 + (1 if own_host else 2)
    if body_bytes or method in METHODS_WITH_BODY:
        parts.append(b"Content-Length: %d\r\n" % body_bytes)
        lines += 1
    head = b"".join(parts)
    if head.count(b"\n") != lines or head.count(b"\r") != lines:
        head = _one_line_each(parts, start)
    return head + b"\r\n"


def _one_line_each(parts: list[bytes], start: str) -> bytes:
    """The same head with line breaks inside names and values turned into spaces."""
    if start.count("\r") != start.count("\r\n") or start.count("\n") > 2:
        raise ValueError(f"A line break in the method or host of a request ({start!r}) would forge header fields.")
    is_ours = (b"\r\n", b"Content-Length: ")
    return parts[0] + b"".join(p if p.startswith(is_ours) else _LINE_BREAKS.sub(b" ", p) for p in parts[1:])


def with_field(head: bytes, name: bytes, value: bytes) -> bytes:
    """The head with one more field as its last."""
    return b"%b%b: %b\r\n\r\n" % (head[:-2], name, _LINE_BREAKS.sub(b" ", value))


def final_head_span(raw: bytes) -> tuple[int, int] | None:
    """Where the final response's head lies in received bytes, interim (1xx) heads skipped; None while incomplete.

    >>> final_head_span(b"HTTP/1.1 100 Go on\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n\\r\\nbody")
    (22, 41)
    """
    start = 0
    while True:
        while raw[start : start + 1] in (b"\r", b"\n"):
            start += 1
        end = _HEAD_END.search(raw, start)
        if end is None:
            return None
        if not _INTERIM.match(raw, start):
            return start, end.end()
        start = end.end()


def repaired(raw: bytes) -> bytes | None:
    """Received bytes with the final head cleaned so that a strict parser takes it; None while the head is incomplete.

    Raises ValueError where no repair is safe: no status line, or lengths that contradict each other.
    """
    span = final_head_span(raw)
    start, end = span or (0, len(raw))
    lines = _LINE_END.split(raw[start:end].lstrip(b"\r\n"))
    may_become_one = len(lines) == 1 and lines[0][:7] == b"HTTP/1."[: len(lines[0])]
    if not may_become_one and not _STATUS_LINE.match(lines[0]):
        raise ValueError(f"no HTTP/1 status line in {lines[0][:60]!r}")
    if span is None:
        return None
    status = _CONTROLS.sub(b" ", b" ".join(lines[0].split(None, 2)))
    fields = list(_one_length(_fields(lines[1:])))
    head = b"".join(b"%b: %b\r\n" % field for field in fields)
    return b"%b\r\n%b\r\n%b" % (status, head, raw[end:])


def _fields(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    unfolded: list[bytes] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and unfolded:
            unfolded[-1] += b" " + line.strip()
        else:
            unfolded.append(line)
    for line in unfolded:
        name, colon, value = line.partition(b":")
        if colon and _TOKEN.match(name.rstrip()):
            yield name.rstrip(), _CONTROLS.sub(b" ", value).strip()


def _one_length(fields: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    """Fields with at most one Content-Length; an unreadable one is dropped, so that the close ends the body."""
    length: bytes | None = None
    for name, value in fields:
        if name.lower() == b"transfer-encoding" and not value:
            continue
        if name.lower() != b"content-length":
            yield name, value
            continue
        said = {part.strip() for part in value.split(b",")}
        if length is not None:
            said.add(length)
        if len(said) > 1:
            raise ValueError(f"contradicting Content-Length values {sorted(said)!r}")
        (one,) = said
        if length is None and one.isdigit():
            length = one
            yield name, one
