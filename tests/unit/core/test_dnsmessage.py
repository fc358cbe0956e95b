"""Answers of name servers, read as far as they can be read."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core.dnsmessage import AAAA, SOA, A, Question, is_truncated, read
from webcrawl.core.names import Answer

QUESTION = Question.ask("site.test", A, 0x1234)
ASKED = QUESTION.message[12:]


def record(type_, data, ttl=300, name=b"\xc0\x0c", length=None):
    return name + struct.pack("!HHIH", type_, 1, ttl, len(data) if length is None else length) + data


def answer(*records, code=0, counts=None, asked=ASKED):
    counts = counts or (len(records), 0, 0)
    return b"\x12\x34\x81" + bytes([0x80 | code]) + struct.pack("!4H", 1, *counts) + asked + b"".join(records)


ADDRESS = record(A, bytes([192, 0, 2, 1]))


def test_a_question_is_a_message():
    assert QUESTION.message == (
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x04site\x04test\x00\x00\x01\x00\x01"  # RFC 1035 §4.1
    )


def test_its_answer_has_the_same_number():
    assert QUESTION.is_answered_by(answer(ADDRESS))
    assert not QUESTION.is_answered_by(b"\x12\x35" + answer(ADDRESS)[2:])
    assert not QUESTION.is_answered_by(QUESTION.message)
    assert not QUESTION.is_answered_by(b"\x12\x34\x81")


def test_addresses_of_both_families():
    assert read(answer(ADDRESS, record(A, bytes([192, 0, 2, 2]), ttl=60)), QUESTION) == Answer(
        ("192.0.2.1", "192.0.2.2"), 60
    )
    question = Question.ask("site.test", AAAA, 0x1234)
    six = record(AAAA, bytes.fromhex("20010db8000000000000000000000001"))
    assert read(answer(ADDRESS, six, asked=question.message[12:]), question) == Answer(("2001:db8::1",), 300)


def test_servers_may_spell_the_question_in_other_cases():
    assert read(answer(ADDRESS, asked=ASKED.replace(b"site", b"SiTe")), QUESTION).addresses == ("192.0.2.1",)


def test_answers_to_other_questions_are_not_taken():
    other = Question.ask("evil.test", A, 0x1234).message[12:]
    assert read(answer(ADDRESS, asked=other), QUESTION) == Answer(error="malformed")


def test_what_is_wrong_beside_the_addresses_does_not_matter():
    found = Answer(("192.0.2.1",), 300)
    assert read(answer(record(5, b"\xc0\xff\xff"), ADDRESS), QUESTION) == found
    assert read(answer(record(A, b"\x7f\0\0"), ADDRESS), QUESTION) == found
    assert read(answer(ADDRESS, counts=(9, 9, 9)), QUESTION) == found
    assert read(answer(ADDRESS, counts=(0, 0, 0)), QUESTION) == found
    assert read(answer(ADDRESS, b"\x3fcut"), QUESTION) == found
    assert read(answer(ADDRESS, record(16, b"text", length=400)), QUESTION) == found


def test_a_ttl_beyond_all_bounds_is_zero():
    assert read(answer(record(A, bytes([192, 0, 2, 1]), ttl=2**31)), QUESTION).ttl_seconds == 0


def test_negative_answers_hold_as_long_as_their_zone_says():
    def soa(ttl, minimum):
        return record(SOA, b"\0\0" + struct.pack("!5I", 1, 2, 3, 4, minimum), ttl=ttl)

    assert read(answer(soa(3600, 900), code=3, counts=(0, 1, 0)), QUESTION) == Answer((), 900, "nxdomain")
    assert read(answer(soa(60, 900), counts=(0, 1, 0)), QUESTION) == Answer((), 60, "nodata")
    assert read(answer(code=3), QUESTION) == Answer(error="nxdomain")
    assert read(answer(record(SOA, b"\0"), code=3, counts=(0, 1, 0)), QUESTION) == Answer(error="nxdomain")


def test_failures():
    assert read(answer(code=2), QUESTION) == read(answer(code=5), QUESTION) == Answer(error="servfail")
    assert read(answer(counts=(2, 0, 0)), QUESTION) == Answer(error="malformed")


def test_truncation():
    assert not is_truncated(answer(ADDRESS))
    assert is_truncated(answer(ADDRESS).replace(b"\x81\x80", b"\x83\x80"))


@given(st.binary(max_size=200))
def test_no_bytes_break_it(junk):
    for message in (junk.ljust(12, b"\0"), answer(junk), answer(ADDRESS, junk)):
        found = read(message, QUESTION)
        assert bool(found.addresses) != bool(found.error)
    assert "192.0.2.1" in read(answer(ADDRESS, junk), QUESTION).addresses
