"""Reading requests: three forms, and one sentence for everything that is none of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.simulator.wire import Authority, BadRequestError, read_request


@pytest.mark.parametrize(
    ("line", "scheme", "authority", "target"),
    [
        (b"GET /a?b=1#c HTTP/1.1", "", Authority("x.example:8000", "x.example", 8000), "/a?b=1"),
        (b"GET http://Y.example/a HTTP/1.1", "http", Authority("y.example", "y.example"), "/a"),
        (b"GET HTTP://y.example:80 HTTP/1.1", "http", Authority("y.example:80", "y.example", 80), "/"),
        (b"GET http://y.example?q HTTP/1.1", "http", Authority("y.example", "y.example"), "/?q"),
        (b"GET https://y.example/ HTTP/1.0", "https", Authority("y.example", "y.example"), "/"),
        (b"CONNECT y.example:443 HTTP/1.1", "https", Authority("y.example:443", "y.example", 443), "y.example:443"),
        (b"GET http://[::1]:9/ HTTP/1.1", "http", Authority("[::1]:9", "[::1]", 9), "/"),
    ],
)
def test_forms_of_requests(line, scheme, authority, target):
    request = read_request(line + b"\r\nHost: X.example:8000\r\nUser-Agent: me")
    assert (request.scheme, request.authority, request.target) == (scheme, authority, target)
    assert request.fields.agent == "me"


@pytest.mark.parametrize(
    ("version", "connection", "keep_alive"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"\r\nConnection: Close", False),
        (b"1.0", b"", False),
        (b"1.0", b"\r\nConnection: Keep-Alive", True),
    ],
)
def test_connections_are_kept_as_the_client_wishes(version, connection, keep_alive):
    assert read_request(b"GET / HTTP/" + version + b"\r\nHost: a" + connection).keep_alive is keep_alive


@pytest.mark.parametrize(
    ("head", "sentence"),
    [
        (b"GET /", "The first line is not an HTTP/1.1 request line."),
        (b"GET  / HTTP/1.1", "The first line is not an HTTP/1.1 request line."),
        (b"GET / HTTP/2.0", "The first line is not an HTTP/1.1 request line."),
        (b"GET / HTTP/1.1", "A request needs a Host field."),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", "There are two host fields."),
        (b"GET / HTTP/1.1\r\nHost: a b", "The host is not a host name with an optional port."),
        (b"GET http://user@a/ HTTP/1.1", "The host is not a host name with an optional port."),
        (b"GET http:///a HTTP/1.1", "The URL names no host."),
        (b"GET ftp://a/ HTTP/1.1", "The request target is neither a path nor an http URL."),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded: x", "A header line has no name."),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1", "The Content-Length is not a number."),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked", "This server reads no chunked request bodies."),
    ],
)
def test_bad_requests_get_one_sentence(head, sentence):
    with pytest.raises(BadRequestError) as refused:
        read_request(head)
    assert str(refused.value) == sentence


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_are_worse_than_bad(line, block):
    for head in (line + b"\r\n" + block, b"GET " + line + b" HTTP/1.1\r\nHost: a\r\n" + block):
        try:
            request = read_request(head)
        except BadRequestError:
            continue
        assert " " not in request.target and "\r" not in request.target
