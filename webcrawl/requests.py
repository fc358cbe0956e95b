"""Requests of spiders, written down as JSON and read back.

A request is kept with its callback and errback (by method name), arguments, headers, cookies, body and meta. Bytes,
tuples and sets are tagged, so that what comes back equals what went in. What JSON cannot hold (a lambda, a live object)
makes the request one that cannot be written down; nothing is ever pickled, because unpickling runs code.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from scrapy.utils.request import request_from_dict
from xxhash import xxh3_64_intdigest

if TYPE_CHECKING:
    from scrapy import Request, Spider

OURS = frozenset({"download_slot", "download_latency", "download_timeout", "webcrawl_times", "webcrawl_exchange"})


def request_to_bytes(request: Request, spider: Spider) -> bytes | None:
    """The request as JSON, or None if it cannot be written down."""
    try:
        fields = request.to_dict(spider=spider)
        fields["meta"] = {name: value for name, value in fields["meta"].items() if name not in OURS}
        return json.dumps(_tagged(fields), ensure_ascii=False).encode()
    except (TypeError, ValueError):
        return None


def request_from_bytes(data: bytes, spider: Spider) -> Request:
    """The request that was written down."""
    return request_from_dict(_untagged(json.loads(data)), spider=spider)


def request_key(request: Request, fingerprint: bytes, seed: int, unique: int) -> int:
    """The 64-bit key by which a request is recognised.

    Start requests are the same at every start if fingerprint, callback and arguments are; requests that ask not to be
    filtered are all different (`unique` tells them apart); all others are what the project's fingerprinter says.
    """
    if request.meta.get("is_start_request"):
        name = getattr(request.callback, "__name__", "")
        identity = fingerprint + f"start {name} {sorted(request.cb_kwargs.items())!r}".encode()
    elif request.dont_filter:
        identity = fingerprint + f"again {unique}".encode()
    else:
        identity = fingerprint
    return xxh3_64_intdigest(identity, seed) or 1


def _tagged(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return {"~": "bytes", "of": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_tagged(each) for each in value]
    if isinstance(value, tuple | set | frozenset):
        return {"~": type(value).__name__, "of": [_tagged(each) for each in value]}
    if isinstance(value, dict):
        return {"~": "dict", "of": [[_tagged(name), _tagged(each)] for name, each in value.items()]}
    raise TypeError(f"{type(value).__name__} cannot be written down")


_MAKERS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}


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
