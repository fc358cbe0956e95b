"""DNS messages, read tolerantly: the addresses are taken even if other parts of the answer are wrong.

Rules kept (Castillo 2004, §A.2.3; RFC 1035 §4.1):
- A record is skipped by its length, never by its contents: a name that cannot be decoded, an address of three bytes or
  a record of unknown type costs nothing but itself.
- Where the structure ends (a cut message, fewer records than announced) reading ends; what was found before counts.
- One thing must be right: the question that is repeated is ours. Otherwise the answer may be to something else.

This is no DNS client: c-ares asks, and only what it refuses to read is asked again and read here (`lookups.py`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from webcrawl.core.names import Answer, Failure

A, SOA, AAAA = 1, 6, 28
_ADDRESS_BYTES = {A: 4, AAAA: 16}
_IN = 1
_HEAD_BYTES = 12
_IS_RESPONSE = 0x80
_IS_TRUNCATED = 0x02
_WANTS_RECURSION = 0x0100
# RFC 2181 §8: a TTL with the highest bit set is zero.
_LONGEST_TTL = 2**31 - 1
_NO_ERROR, _NXDOMAIN = 0, 3
# The five numbers that end an SOA record; the last is the lifetime of negative answers.
_SOA_NUMBERS_BYTES = 20


class Record(NamedTuple):
    """One record, its data unread."""

    type: int
    ttl_seconds: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Question:
    """A question on its way: the message, and what its answer must repeat."""

    message: bytes
    type: int

    @classmethod
    def ask(cls, name: str, type_: int, id_: int) -> Question:
        """A question for one kind of record of a name."""
        labels = b"".join(bytes([len(label)]) + label for label in name.encode("ascii").split(b"."))
        head = b"".join(number.to_bytes(2) for number in (id_, _WANTS_RECURSION, 1, 0, 0, 0))
        return cls(head + labels + b"\0" + type_.to_bytes(2) + _IN.to_bytes(2), type_)

    def is_answered_by(self, message: bytes) -> bool:
        """Whether a message claims to be the answer: the same number, and a response."""
        return len(message) >= _HEAD_BYTES and message[:2] == self.message[:2] and bool(message[2] & _IS_RESPONSE)


def is_truncated(message: bytes) -> bool:
    """Whether the server says that not everything fitted."""
    return bool(message[2] & _IS_TRUNCATED)


def read(message: bytes, question: Question) -> Answer:
    """What an answer says, as far as it can be read."""
    asked = question.message[_HEAD_BYTES:]
    if message[_HEAD_BYTES : _HEAD_BYTES + len(asked)].lower() != asked.lower():
        return Answer(error="malformed")
    records = list(_records(message, _HEAD_BYTES + len(asked)))
    wanted = _ADDRESS_BYTES[question.type]
    found = [one for one in records if one.type == question.type and len(one.data) == wanted]
    if found:
        addresses = tuple(str(ipaddress.ip_address(one.data)) for one in found)
        return Answer(addresses, min(one.ttl_seconds for one in found))
    return Answer((), _negative_ttl_seconds(records), _error(message, records))


def _records(message: bytes, at: int) -> Iterator[Record]:
    """Every record of all sections: where a message is wrong, so may be its counts."""
    while True:
        at = _end_of_name(message, at)
        data_at = at + 10
        if at == 0 or data_at > len(message):
            return
        type_ = int.from_bytes(message[at : at + 2])
        ttl = int.from_bytes(message[at + 4 : at + 8])
        end = data_at + int.from_bytes(message[at + 8 : data_at])
        if end > len(message):
            return
        yield Record(type_, ttl if ttl <= _LONGEST_TTL else 0, message[data_at:end])
        at = end


def _end_of_name(message: bytes, at: int) -> int:
    """Where a name ends that starts at `at`; 0 if it does not."""
    while at < len(message):
        length = message[at]
        if length >= 0xC0:  # the rest stands elsewhere
            return at + 2
        if length == 0:
            return at + 1
        at += 1 + length
    return 0


def _negative_ttl_seconds(records: list[Record]) -> float | None:
    """RFC 2308 §5: the lesser of the SOA record's own TTL and its last number."""
    for one in records:
        if one.type == SOA and len(one.data) >= _SOA_NUMBERS_BYTES:
            return min(one.ttl_seconds, int.from_bytes(one.data[-4:]))
    return None


def _error(message: bytes, records: list[Record]) -> Failure:
    code = message[3] & 0x0F
    if code == _NXDOMAIN:
        return "nxdomain"
    if code != _NO_ERROR:
        return "servfail"
    announced = int.from_bytes(message[6:8]) + int.from_bytes(message[8:10])
    return "nodata" if len(records) >= announced else "malformed"
