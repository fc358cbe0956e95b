"""Heads as bytes: what is written, what is found, what is repaired."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Headers

from webcrawl.handlers import dns, fallback, head
from webcrawl.handlers.head import final_head_span, repaired, request_head, safe_target, with_field


@pytest.mark.parametrize("module", [head, dns, fallback])
def test_examples_in_the_documentation(module):
    assert doctest.testmod(module).failed == 0


def test_a_request_in_its_plainest_form():
    fields = Headers({"Accept": "text/html", "X-Two": ["a", "b"]})
    assert request_head("GET", "/x", "site.test:81", fields, 0) == (
        b"GET /x HTTP/1.1\r\nHost: site.test:81\r\nAccept: text/html\r\nX-Two: a\r\nX-Two: b\r\n\r\n"
    )


def test_a_host_of_the_users_own_replaces_ours():
    assert (
        request_head("GET", "/", "site.test", Headers({"Host": "other"}), 0) == b"GET / HTTP/1.1\r\nHost: other\r\n\r\n"
    )


@pytest.mark.parametrize(("method", "size", "said"), [("POST", 0, b"0"), ("GET", 3, b"3"), ("PUT", 12, b"12")])
def test_the_length_is_ours_to_say(method, size, said):
    fields = Headers({"Content-Length": "77", "Transfer-Encoding": "chunked", "Proxy-Authorization": "Basic x"})
    written = request_head(method, "/", "h", fields, size)
    assert written == b"%b / HTTP/1.1\r\nHost: h\r\nContent-Length: %b\r\n\r\n" % (method.encode(), said)


def test_a_get_without_a_body_says_nothing_of_lengths():
    assert b"Content-Length" not in request_head("GET", "/", "h", Headers(), 0)


@given(
    st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9)), max_size=5), st.text(max_size=20), st.integers(0, 9)
)
def test_no_value_ever_starts_a_field(fields, target, size):
    headers = Headers(fields)
    written = request_head("POST", safe_target("/" + target), "h", headers, size)
    kept = [name for name, values in dict.items(headers) for _ in values if name not in head.NEVER_REPEATED]
    lines = written[:-4].split(b"\r\n")
    assert b"\r" not in b"".join(lines)
    assert b"\n" not in b"".join(lines)
    assert len(lines) == 2 + len(kept) + 1 - (b"Host" in kept)


def test_a_forged_method_is_refused():
    with pytest.raises(ValueError, match="line break in the method"):
        request_head("GET / HTTP/1.1\r\nX: y\r\n\r\nGET", "/", "h", Headers(), 0)


def test_a_field_is_added_last():
    before, after = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\r\nA: 1 2\r\n\r\n"
    assert with_field(before, b"A", b"1\r\n2") == after


def test_an_incomplete_head_has_no_span():
    assert final_head_span(b"HTTP/1.1 200 OK\r\nA: b\r\n") is None
    assert final_head_span(b"HTTP/1.1 100 Continue\r\n\r\n") is None
    assert repaired(b"HTTP/1.1 200 OK\r\nno colon\r\n") is None


def test_repair_keeps_what_is_sound():
    raw = b"HTTP/1.1 200 OK\r\nno colon\r\nA: 1\r\n\t2\r\nB : 3\r\nbad name: 4\r\nContent-Length: \r\n\r\nbody\r\n\r\n"
    assert repaired(raw) == b"HTTP/1.1 200 OK\r\nA: 1 2\r\nB: 3\r\n\r\nbody\r\n\r\n"


@pytest.mark.parametrize(
    "raw", [b"SSH-2.0-x", b"<html>\r\n\r\n", b"HTTP/1.1 2000\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n"]
)
def test_what_cannot_be_repaired_is_said(raw):
    with pytest.raises(ValueError, match=r"status line|contradicting"):
        repaired(raw)


@given(st.binary(max_size=120))
def test_repair_of_anything_is_bounded_and_says_no_by_valueerror(data):
    raw = b"HTTP/1.1 200 OK\r\n" + data + b"\r\n\r\n"
    try:
        cleaned = repaired(raw)
    except ValueError:
        return
    assert cleaned is not None
    assert len(cleaned) <= 2 * len(raw) + 40
