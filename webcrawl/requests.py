"""Requests of spiders, written down as JSON and read back.

A request is kept with its callback and errback (by method name), arguments, headers, cookies, body and meta. Bytes,
tuples and sets are tagged, so that what comes back equals what went in, types included. What cannot be held so (a
lambda, a live object, an instance of a class of the project) makes the request one that cannot be written down; nothing
is ever pickled, because unpickling runs code.
"""

from __future__ import annotations

import base64
import json
from enum import Enum
from typing import TYPE_CHECKING, Any

from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy import Request, Spider

OURS = frozenset({"download_slot", "download_latency", "webcrawl_times", "webcrawl_exchange"})  # of one visit only


_PLAIN = frozenset({type(None), bool, int, float, str})
_MAKERS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


def request_to_bytes(request: Request, spider: Spider) -> bytes | None:
    """The request as JSON, or None if it cannot be written down."""
    try:
        fields = request.to_dict(spider=spider)
        fields["meta"] = {name: value for name, value in fields["meta"].items() if name not in OURS}
        return json.dumps(_tagged(fields)).encode()
    except (TypeError, ValueError, RecursionError):
        return None


def request_from_bytes(data: bytes, spider: Spider) -> Request:
    """The request that was written down."""
    return request_from_dict(_untagged(json.loads(data)), spider=spider)


def request_identity(request: Request, fingerprint: bytes, is_start: bool) -> bytes:
    """What makes two requests the same one: the project's fingerprint, as in Scrapy.

    Requests that ask not to be filtered are never the same as others (the caller adds what tells them apart). Those of
    `start()` are the same as their like of the last start: callback and arguments count, too.
    """
    if not request.dont_filter:
        return fingerprint
    if not is_start:
        return fingerprint + b" again"
    callback = getattr(request.callback, "__name__", "")
    return fingerprint + f" start {callback} {sorted(request.cb_kwargs.items(), key=repr)!r}".encode("utf-8", "replace")


def _tagged(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is bytes:
        return {"~": "bytes", "of": base64.b64encode(value).decode()}
    if kind is list:
        return [_tagged(each) for each in value]
    if kind in _MAKERS.values():
        return {"~": kind.__name__, "of": [_tagged(each) for each in value]}
    if kind is dict:
        return {"~": "dict", "of": [[_tagged(name), _tagged(each)] for name, each in value.items()]}
    if isinstance(value, str) and not isinstance(value, Enum):
        return str(value)  # what selectors give is often a text with a memory of where it came from
    raise TypeError(f"{type(value).__name__} cannot be written down")


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(each) for each in value]
    if not isinstance(value, dict):
        return value
    kind, inner = value["~"], value["of"]
    if kind == "bytes":
        return base64.b64decode(inner)
    if kind == "dict":
        return {_untagged(name): _untagged(each) for name, each in inner}
    return _MAKERS[kind](_untagged(each) for each in inner)
