"""Requests as bytes: reads the head of an HTTP/1.1 request, without any I/O (RFC 9112, sections 2 to 5).

Three forms of request are understood: `GET /path` with a Host field (origin form), `GET http://host/path` as a proxy
gets it (absolute form), and `CONNECT host:443` (authority form).

A crawler sends the same header lines with every request to a host, so what they say is remembered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

MOST_HEAD_BYTES = 64 << 10
MOST_BODY_BYTES = 1 << 20
MOST_REMEMBERED_BYTES = 4096  # of one header block; 1024 of them are remembered

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~\x80-\xff]+) (HTTP/1\.[01])")
_ABSOLUTE = re.compile(r"(https?)://([^/?]*)(.*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?")
_LENGTH = re.compile(r"\d{1,15}", re.ASCII)


class BadRequestError(Exception):
    """What is wrong with a request, in one sentence."""


class Fields(NamedTuple):
    """What the header lines of a request say.  `keep_alive` is None when they leave it to the HTTP version."""

    host: str | None = None
    agent: str = "-"
    referrer: str = "-"
    keep_alive: bool | None = None
    body_bytes: int = 0


class Authority(NamedTuple):
    """A host (lower case) and a port, if one was given; `text` is both as the client named them."""

    text: str = ""
    host: str = ""
    port: int | None = None


@dataclass(slots=True)
class Request:
    """What the server needs to know of a request; `scheme` is empty unless the request named it, as to a proxy."""

    method: str
    target: str
    version: str
    scheme: str
    authority: Authority
    fields: Fields
    keep_alive: bool


def read_request(head: bytes) -> Request:
    """The request with this head (request line and header lines, without the blank line)."""
    line, _, block = head.partition(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise BadRequestError("The first line is not an HTTP/1.1 request line.")
    method, target, version = map(_text, match.groups())
    fields = _remembered_fields(block) if len(block) <= MOST_REMEMBERED_BYTES else read_fields(block)
    scheme, authority, target = _destination(method, target, version, fields)
    keep_alive = version == "HTTP/1.1" if fields.keep_alive is None else fields.keep_alive
    return Request(method, target, version, scheme, read_authority(authority), fields, keep_alive)


def _text(raw: bytes) -> str:
    return raw.decode("latin-1")


def read_fields(block: bytes) -> Fields:
    """What a block of header lines says."""
    values: dict[str, str] = {}
    for line in _text(block).split("\r\n") if block else ():
        name, colon, value = line.partition(":")
        if not colon or not name or name[0] in " \t":
            raise BadRequestError("A header line has no name.")
        name = name.lower()
        if name in values and name in {"host", "content-length"}:
            raise BadRequestError(f"There are two {name} fields.")
        values[name] = value.strip()
    if "transfer-encoding" in values:
        raise BadRequestError("This server reads no chunked request bodies.")
    length = values.get("content-length", "0")
    if not _LENGTH.fullmatch(length):
        raise BadRequestError("The Content-Length is not a number.")
    agent, referrer = values.get("user-agent") or "-", values.get("referer") or "-"
    return Fields(values.get("host"), agent, referrer, _keep_alive(values.get("connection", "")), int(length))


_remembered_fields = lru_cache(maxsize=1024)(read_fields)


def _keep_alive(connection: str) -> bool | None:
    options = connection.lower()
    if "close" in options:
        return False
    return True if "keep-alive" in options else None


def _destination(method: str, target: str, version: str, fields: Fields) -> tuple[str, str, str]:
    """Scheme, authority and target (path and query), whichever form the request has."""
    if method == "CONNECT":
        return "https", target, target
    target = target.partition("#")[0]
    if target.startswith("/"):
        if fields.host is None and version == "HTTP/1.1":
            raise BadRequestError("A request needs a Host field.")
        return "", fields.host or "", target
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise BadRequestError("The request target is neither a path nor an http URL.")
    scheme, authority, rest = match.groups()
    if not authority:
        raise BadRequestError("The URL names no host.")
    return scheme.lower(), authority, rest if rest.startswith("/") else "/" + rest


@lru_cache(maxsize=4096)
def read_authority(text: str) -> Authority:
    """Host and port of `host:port`; nothing of an empty text.

    >>> read_authority("Harbour-1.example:80")
    Authority(text='harbour-1.example:80', host='harbour-1.example', port=80)
    """
    if not text:
        return Authority()
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        raise BadRequestError("The host is not a host name with an optional port.")
    return Authority(match[0], match[1], int(match[2]) if match[2] else None)
