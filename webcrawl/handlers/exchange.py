"""What an archive wants to know of one exchange, byte for byte (WARC request and response records)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True, frozen=True)
class Exchange:
    """One request and its response as they went over the wire.

    `raw_request_head` and `raw_response_head` end with their empty line; credentials for a proxy are left out of the
    former. `raw_body` is free of chunked framing, its content coding is untouched. `peer` is the address connected
    to, a proxy's if there was one. Durations count from `started_at` (UTC epoch) except `dns_seconds` and
    `connect_seconds`, which are those steps alone and 0.0 on a reused connection.
    """

    raw_request_head: bytes
    raw_response_head: bytes
    raw_body: bytes
    peer: tuple[str, int]
    started_at: float
    dns_seconds: float
    connect_seconds: float
    first_byte_seconds: float
    total_seconds: float
