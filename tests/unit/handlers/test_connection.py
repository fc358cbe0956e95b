"""One connection fed with bytes: every framing, every split, and what must not be taken for a response."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Request
from scrapy.exceptions import DownloadFailedError

from webcrawl.handlers.connection import HEAD_LIMIT_BYTES, Connection, ConnectionDroppedError, Ending
from webcrawl.handlers.pool import Pool, Route


class Wire(asyncio.Transport):
    """A transport that only knows whether it was closed."""

    def __init__(self):
        super().__init__()
        self.is_aborted = False

    def get_extra_info(self, name, default=None):
        return ("127.0.0.1", 80) if name == "peername" else None

    def is_closing(self):
        return self.is_aborted

    def abort(self):
        self.is_aborted = True


class Nobody:
    alarm_bytes = 1 << 62
    is_listening = False


@pytest.fixture(scope="module")
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def connect(loop):
    connection = Connection(Route(Pool(lambda _: None), "http", "site.test", 80, "site.test"))
    connection.connection_made(Wire())
    return connection


def exchange(loop, pieces, method="GET", end=False, connection=None):
    """The connection and its waiter after some pieces arrived and, if told so, the peer closed."""
    connection = connection or connect(loop)
    waiter = loop.create_future()
    connection.begin(waiter, Request("http://site.test/", method=method), Nobody(), 1e18)
    for piece in pieces:
        if connection.waiter is not None:
            connection.data_received(piece)
    if end and connection.waiter is not None:
        connection.connection_lost(None)
    return connection, waiter


CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;ilovew3;somuchlove=aretheseparametersfor\r\nhello\r\n6;blahblah;blah\r\n world\r\n0\r\nVary: *\r\n\r\n"
)
# Raw responses as in llhttp's own test-suite (MIT): bytes, status, body, how it ends once the peer closes.
SAMPLES = {
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", Ending.COMPLETE),
    "tabs around the length": (b"HTTP/1.1 200 OK\r\nContent-Length:\t2\t\r\n\r\nok", 200, b"ok", Ending.COMPLETE),
    "proxy-connection": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nProxy-Connection: close\r\n\r\nhello world",
        200,
        b"hello world",
        Ending.COMPLETE,
    ),
    "chunk extensions": (CHUNKED, 200, b"hello world", Ending.COMPLETE),
    "spaces after chunk sizes": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nOK\r\n0  \r\n\r\n",
        200,
        b"OK",
        Ending.COMPLETE,
    ),
    "no length": (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello world",
        200,
        b"hello world",
        Ending.CLOSED,
    ),
    "HTTP/1.0 keep-alive": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nHTTP/1.0 200 OK",
        200,
        b"HTTP/1.0 200 OK",
        Ending.CLOSED,
    ),
    "chunked is not last": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, deflate\r\n\r\nWorld",
        200,
        b"World",
        Ending.CLOSED,
    ),
    "chunkedchunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunkedchunked\r\n\r\n2\r\nOK",
        200,
        b"2\r\nOK",
        Ending.CLOSED,
    ),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", 304, b"", Ending.COMPLETE),
    "no content": (b"HTTP/1.1 204 No content\r\n\r\n", 204, b"", Ending.COMPLETE),
    "continue first": (
        b"HTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone",
        404,
        b"gone",
        Ending.COMPLETE,
    ),
    "upgrade offered": (
        b"HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 4\r\n\r\nbody",
        200,
        b"body",
        Ending.COMPLETE,
    ),
    "line breaks first": (
        b"\r\nHTTP/1.1 200 OK\r\nHeader2:\t Value2\r\nContent-Length: 0\r\n\r\n",
        200,
        b"",
        Ending.COMPLETE,
    ),
    "no reason phrase": (b"HTTP/1.1 301\r\nContent-Length: 0\r\n\r\n", 301, b"", Ending.COMPLETE),
    "latin-1 reason": (b"HTTP/1.1 500 Ori\xebntatieprobleem\r\nContent-Length: 0\r\n\r\n", 500, b"", Ending.COMPLETE),
    "underscore": (b"HTTP/1.1 200 OK\r\nDCLK_imp: v7;x\r\nContent-Length: 0\r\n\r\n", 200, b"", Ending.COMPLETE),
    "spaces in a name": (
        b"HTTP/1.1 200 OK\r\nen-US Content-Type: text/xml\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
        Ending.COMPLETE,
    ),
    "two spaces before the status": (b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", Ending.COMPLETE),
    "line feeds only": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, b"ok", Ending.COMPLETE),
    "control characters": (
        b"HTTP/1.1 200 OK\r\nA: \x00\x01\r\nContent-Length: 2\r\n\r\nok",
        200,
        b"ok",
        Ending.COMPLETE,
    ),
    "same length twice": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2, 2\r\n\r\nok",
        200,
        b"ok",
        Ending.COMPLETE,
    ),
    "short": (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", 200, b"ok", Ending.LOST),
    "bad chunk size": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n",
        200,
        b"ok",
        Ending.LOST,
    ),
}
REFUSED = {
    "not HTTP": b"HTPS/1.1 200 OK\r\n\r\n",
    "no dot": b"HTTP/11.1 200 OK\r\n\r\n",
    "HTTP/2 in words": b"HTTP/2 200\r\n\r\n",
    "one digit": b"HTTP/1.1 2 OK\r\n\r\n",
    "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nproto",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokk",
    "cut": b"HTTP/1.1 200 OK\r\nContent-Le",
}


def check(loop, raw, pieces, status, body, ending):
    connection, waiter = exchange(loop, pieces, end=True)
    assert waiter.result() is ending
    assert (connection.status, connection.body()) == (status, body)
    assert b"Vary" not in connection.headers


@pytest.mark.parametrize("name", SAMPLES)
def test_responses_whole_and_byte_by_byte(loop, name):
    raw, status, body, ending = SAMPLES[name]
    check(loop, raw, [raw], status, body, ending)
    check(loop, raw, [raw[n : n + 1] for n in range(len(raw))], status, body, ending)


@pytest.mark.parametrize("name", SAMPLES)
def test_responses_split_at_every_place(loop, name):
    raw, status, body, ending = SAMPLES[name]
    for n in range(1, len(raw)):
        check(loop, raw, [raw[:n], raw[n:]], status, body, ending)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_response_fails_however_it_comes(loop, name):
    raw = REFUSED[name]
    for pieces in ([raw], [raw[n : n + 1] for n in range(len(raw))]):
        connection, waiter = exchange(loop, pieces, end=True)
        assert isinstance(waiter.exception(), DownloadFailedError)
        assert connection.transport.is_aborted


@given(
    data=st.binary(max_size=200),
    cut=st.integers(0, 200),
    prefix=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED[:60]]),
)
def test_any_bytes_end_in_a_result_or_a_failure_of_scrapys(data, cut, prefix):
    loop = asyncio.new_event_loop()
    raw = prefix + data
    connection, waiter = exchange(loop, [raw[:cut] or b"H", raw[cut:] or b"\n"], end=True)
    assert waiter.done()
    if waiter.exception() is None:
        assert connection.status >= 200
    else:
        assert isinstance(waiter.exception(), DownloadFailedError)
    loop.close()


def test_two_exchanges_share_a_connection(loop):
    raw = SAMPLES["length"][0]
    connection, _ = exchange(loop, [raw])
    assert connection.keep_alive
    connection, waiter = exchange(loop, [CHUNKED], connection=connection)
    assert (waiter.result(), connection.body(), connection.keep_alive) == (Ending.COMPLETE, b"hello world", True)


@pytest.mark.parametrize("rest", [b"more", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"])
def test_bytes_after_the_end_make_a_connection_unfit(loop, rest):
    connection, waiter = exchange(loop, [SAMPLES["length"][0] + rest])
    assert (waiter.result(), connection.body(), connection.keep_alive) == (Ending.COMPLETE, b"abc", False)


def test_bytes_nobody_asked_for_close_the_connection(loop):
    connection, _ = exchange(loop, [SAMPLES["length"][0]])
    connection.data_received(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
    assert connection.transport.is_aborted
    assert not connection.is_open


def test_both_framings_at_once_are_read_as_chunks_and_not_trusted_further(loop):
    raw = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n", 1)
    connection, _ = exchange(loop, [raw])
    assert (connection.body(), connection.keep_alive) == (b"hello world", False)


@pytest.mark.parametrize(("rest", "keep_alive"), [(b"", True), (b"body after all", False)])
def test_an_answer_to_head_ends_with_its_head(loop, rest, keep_alive):
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"
    connection, waiter = exchange(loop, [raw + rest], method="HEAD")
    assert (waiter.result(), connection.body(), connection.keep_alive) == (Ending.COMPLETE, b"", keep_alive)


def test_a_peer_that_says_nothing_is_told_apart(loop):
    _, waiter = exchange(loop, [], end=True)
    assert isinstance(waiter.exception(), ConnectionDroppedError)


def test_the_raw_head_is_the_final_one_as_received(loop):
    raw, *_ = SAMPLES["continue first"]
    connection, _ = exchange(loop, [raw[n : n + 1] for n in range(len(raw))])
    assert connection.raw_head() == b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n"


@pytest.mark.parametrize("size", [1000, 10_000, 300_000])
@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\nno colon\r\nA: ", CHUNKED[:-2] + b"T: "],
    ids=["field", "broken head", "trailer"],
)
def test_floods_end_however_they_are_cut(loop, size, start):
    flood = b"x" * (3 * HEAD_LIMIT_BYTES)
    connection, waiter = exchange(loop, [start, *(flood[n : n + size] for n in range(0, len(flood), size))])
    assert str(HEAD_LIMIT_BYTES) in str(waiter.exception())
    assert connection.transport.is_aborted


def test_a_flood_that_comes_at_once_with_its_end(loop):
    fields = b"".join(b"X-%d: y\r\n" % n for n in range(20_000))
    _, waiter = exchange(loop, [b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n"])
    assert str(HEAD_LIMIT_BYTES) in str(waiter.exception())


def test_a_large_first_read_is_no_flood(loop):
    body = b"x" * 250_000
    connection, waiter = exchange(loop, [b"HTTP/1.1 200 OK\r\nContent-Length: 250000\r\n\r\n" + body])
    assert (waiter.result(), connection.body()) == (Ending.COMPLETE, body)


def test_interim_answers_without_end_are_a_flood(loop):
    _, waiter = exchange(loop, [b"HTTP/1.1 102 Processing\r\n\r\n" * 100] * 40)
    assert isinstance(waiter.exception(), DownloadFailedError)


def test_a_cancelled_waiter_is_left_alone(loop):
    connection, waiter = exchange(loop, [])
    waiter.cancel()
    connection.data_received(SAMPLES["length"][0])
    assert waiter.cancelled()
