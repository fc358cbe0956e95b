"""Each format of a log line is read, and no line whatever raises."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.audit.logs import EPOCH, combined_line, own_line, stamp
from webcrawl.audit.jsonlines import read_json_line
from webcrawl.audit.lines import DurationUnit, LoggedTime, Reading, fields_at_the_end, read_line, split_request
from webcrawl.audit.records import Record, Unread, host_name, literal_address
from webcrawl.simulator.accesslog import AccessLog
from webcrawl.simulator.wire import read_request

READING = Reading()
COMMON = f'192.0.2.1 - - [{stamp(1, 0)}] "GET /page HTTP/1.1" 200 1234'


def read(text: str, **how) -> Record:
    record = read_line(text.rstrip("\n"), Reading(**how), "log", 7)
    assert isinstance(record, Record), record
    return record


def test_the_simulated_web_s_own_line_has_everything():
    record = read(own_line(1.5, "/x?y=1", status=503, seconds=0.25, host="B.example:8000", retry="2.5"))
    assert record == Record(
        EPOCH + 1.5, EPOCH + 1.5, 0.25, 1e-6, "b.example:8000", "", "127.0.0.1", "", "/x?y=1", 503, "ExampleBot/1.0",
        2.5, "log", 7,
    )  # fmt: skip
    assert record.ended_at == EPOCH + 1.75
    assert record.where == "log:7"
    assert read(own_line(0)).retry_after_seconds == 0


def test_what_the_simulated_web_writes_is_read(tmp_path):
    log = AccessLog(tmp_path / "log", lambda seconds, flush: None)
    hostile = b'GET /a"b\x80 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x" 200\n\x1b[2J\x85 y\\\r\nReferer: "\r"'
    received_at = time.time()
    log.note(received_at, read_request(hostile), 200, 10, None)
    log.note(received_at, read_request(b"GET http://b.example:80/?q HTTP/1.1\r\nReferer: http://a/"), 503, 0, 1e6)
    log.close()
    first, second = (read(line) for line in (tmp_path / "log").read_text("latin-1").splitlines())
    assert (first.host, first.path, first.status, first.agent[-1]) == ("a.example", "/a%22b\x80", 200, "\\")
    assert (second.host, second.path, second.retry_after_seconds) == ("b.example", "/?q", 1e6)
    assert abs(first.started_at - received_at) < 2e-6
    assert first.duration_seconds is not None


def test_the_simulated_web_tells_the_ends_of_the_connection():
    line = own_line(0).replace("127.0.0.1 - - ", "127.0.0.1 7 127.0.0.2:8000 ")
    record = read(line)
    assert (record.client, record.connection, record.address) == ("127.0.0.1", "7", "127.0.0.2")
    assert read(line.replace("127.0.0.2:", "[::1]:")).address == "::1"
    assert read(own_line(0).replace("- - ", "- jane ")).address == ""


@pytest.mark.parametrize(("retry", "seconds"), [("-", 0), ("nan", 0), ("-86400.5", 0), ("200000", 2e5), ("1e+06", 1e6)])
def test_odd_retry_afters(retry, seconds):
    assert read(own_line(0, retry=retry)).retry_after_seconds == seconds


def test_common_and_combined():
    record = read(COMMON, host="a.example")
    assert (record.host, record.path, record.agent, record.client) == ("a.example", "/page", "", "192.0.2.1")
    assert (record.started_at, record.resolution_seconds) == (EPOCH + 1, 1.0)
    assert record.duration_seconds is None
    assert record.retry_after_seconds is None
    assert read(combined_line(1), host="a.example").agent == "ExampleBot/1.0"
    assert read(combined_line(1, agent=r"a \"b\" c"), host="a.example").agent == r"a \"b\" c"


@pytest.mark.parametrize(
    ("line", "host"),
    [
        (combined_line(0, before="www.example:443 "), "www.example"),
        (combined_line(0, before="www.example "), "www.example"),
        (combined_line(0, before="127.0.0.5:8000 "), "127.0.0.5:8000"),
        (combined_line(0, after=" www.example"), "www.example"),
        (combined_line(0, after=' "-" "www.example:8080" 0.012'), "www.example:8080"),
        (combined_line(0, after=" rt=0.1 host=www.example"), "www.example"),
        (combined_line(0, "http://user@WWW.Example:80/page"), "www.example"),
        (combined_line(0, "https://www.example?q", before="proxy.example "), "www.example"),
        (combined_line(0, after=' "203.0.113.9" TLSv1.3 127.0.0.1:9000'), "given.example"),
        (combined_line(0).replace("192.0.2.1 - -", "192.0.2.1 - Jane Doe"), "given.example"),
        (combined_line(0).replace("192.0.2.1 - -", "2001:db8::1 - Jane Doe"), "given.example"),
    ],
)
def test_the_host_is_found(line, host):
    assert read(line, host="given.example").host == host


def test_without_a_host_there_is_no_record():
    assert read_line(COMMON, READING, "log", 1) is Unread.NO_HOST
    assert read_line(own_line(0, host="-").rstrip(), READING, "log", 1) is Unread.NO_HOST


@pytest.mark.parametrize(
    ("after", "seconds", "logged_time"),
    [
        (" 0.250", 0.25, LoggedTime.END),
        (' "-" 0.250 0.249 .', 0.25, LoggedTime.END),
        (' "-" rt=0.250 uct="0.000" urt="0.100"', 0.25, LoggedTime.END),
        (" 250000", 0.25, LoggedTime.START),
        (" www.example 250000", 0.25, LoggedTime.START),
        (" 500 1500 250000", 0.25, LoggedTime.START),
        (" 500 1500", None, LoggedTime.START),
        (' "-"', None, LoggedTime.START),
    ],
)
def test_durations_of_nginx_and_apache(after, seconds, logged_time):
    fields = fields_at_the_end(after)
    assert (fields.duration_seconds, fields.logged_time) == (seconds, logged_time)


def test_the_time_is_the_end_for_nginx_the_start_for_apache_and_as_told():
    nginx, apache = combined_line(9, after=" 2.500"), combined_line(9, after=" 2500000")
    assert read(nginx, host="a").started_at == EPOCH + 6.5
    assert read(nginx, host="a").ended_at == read(nginx, host="a").logged_at == EPOCH + 9
    assert read(apache, host="a").started_at == EPOCH + 9
    assert read(nginx, host="a", logged_time=LoggedTime.START).started_at == EPOCH + 9
    assert read(apache, host="a", logged_time=LoggedTime.END).started_at == EPOCH + 6.5
    assert (
        read(combined_line(9, after=" 2500"), host="a", duration_unit=DurationUnit.MILLISECONDS).ended_at
        == EPOCH + 11.5
    )
    assert read(own_line(9, seconds=2.5)).started_at == EPOCH + 9


def test_fractions_and_zones():
    line = '192.0.2.1 - - [18/Nov/2026:14:00:01.5 +0200] "GET / HTTP/1.1" 200 -'
    record = read(line, host="a")
    assert (record.started_at, record.resolution_seconds) == (EPOCH + 1.5, 0.1)
    assert read(line.replace("14:00:01.5 +0200", "06:30:01 -0530"), host="a").started_at == EPOCH + 1
    assert read(line.replace(".5 ", ".123456789 "), host="a").resolution_seconds == 1e-6


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        COMMON.replace("Nov", "Now"),
        COMMON.replace("18/", "31/"),
        COMMON.replace("12:00", "25:00"),
        COMMON.replace(" 200 ", " OK "),
        COMMON[:60],
    ],
)
def test_what_is_no_log_line(line):
    assert read_line(line, READING, "log", 1) is Unread.UNREADABLE


@pytest.mark.parametrize("request_line", ["", "-", r"\x16\x03\x01", "CONNECT a.example:443 HTTP/1.1", "GET", "GET foo"])
def test_what_asks_for_no_page(request_line):
    line = COMMON.replace("GET /page HTTP/1.1", request_line)
    assert read_line(line, Reading(host="a"), "log", 1) is Unread.NO_REQUEST


def test_odd_requests():
    assert split_request("GET /a b HTTP/1.1") == ("", "/a b")
    assert split_request("GET /old") == ("", "/old")
    assert split_request(r"GET /\xC3\xA9\"x HTTP/1.1") == ("", '/\xc3\xa9"x')
    assert split_request("GET http:///x HTTP/1.1") is None


def test_lines_of_others_are_left_out():
    line = combined_line(0, "/.health", agent="Mozilla/5.0 (compatible; OtherBot/2; +https://o.example/examplebot)")
    assert read_line(line.rstrip(), Reading(agent="ExampleBot"), "log", 1) is Unread.OTHER_AGENT
    assert read(line, agent="otherbot", host="a").path == "/.health"
    assert read_line(line.rstrip(), Reading(host="a", ignored_paths=("/.h",)), "log", 1) is Unread.IGNORED


def test_named_fields():
    fields = fields_at_the_end(' "-" retry_after=120 addr=192.0.2.80 other="x y"')
    assert (fields.retry_after_seconds, fields.address) == (120, "192.0.2.80")
    assert fields_at_the_end(" retry_after=-").retry_after_seconds == 0


def test_json_lines():
    text = (
        '{"time": 1795003201.5, "duration": 0.25, "host": "a.example", "method": "GET", "path": "/x", "status": 503,'
        ' "size": 5, "agent": "ExampleBot/1.0", "retry": 2}'
    )
    record = read_json_line(text, READING, "log", 1)
    assert isinstance(record, Record)
    assert (record.started_at, record.ended_at) == (EPOCH + 1.5, EPOCH + 1.75)
    assert (record.resolution_seconds, record.retry_after_seconds) == (1e-3, 2)
    assert (record.host, record.path, record.status, record.agent) == ("a.example", "/x", 503, "ExampleBot/1.0")


def test_json_lines_as_nginx_is_often_told_to_write_them():
    text = (
        '{"time_iso8601": "2026-11-18T13:00:09+01:00", "request_time": "0.500", "http_host": "A.example:80",'
        ' "request": "GET /x HTTP/1.1", "status": "429", "remote_addr": "192.0.2.1", "server_addr": "192.0.2.80",'
        ' "sent_http_retry_after": "Wed, 18 Nov 2026 12:01:09 GMT"}'
    )
    record = read_json_line(text, READING, "log", 1)
    assert isinstance(record, Record)
    assert (record.started_at, record.logged_at) == (EPOCH + 8.5, EPOCH + 9)
    assert (record.host, record.client, record.address) == ("a.example", "192.0.2.1", "192.0.2.80")
    assert record.retry_after_seconds == 60
    for nothing in ('""', "null", '"-"'):
        text = f'{{"msec": 1795003209.125, "request": "GET / HTTP/1.1", "status": 200, "retry_after": {nothing}}}'
        record = read_json_line(text, Reading(host="a"), "log", 1)
        assert isinstance(record, Record)
        assert (record.logged_at, record.retry_after_seconds, record.connection) == (EPOCH + 9.125, 0, "")


@pytest.mark.parametrize(
    ("value", "at", "resolution"),
    [
        ("1795003201", 1, 1.0),
        ('"1795003201"', 1, 1.0),
        ("1795003201.0", 1, 1e-3),
        ("1795003201.123456", 1.123456, 1e-6),
        ('"2026-11-18T12:00:01.25Z"', 1.25, 0.01),
        (f'"{stamp(1.5)}"', 1.5, 1e-6),
    ],
)
def test_times_in_json(value, at, resolution):
    record = read_json_line(f'{{"ts": {value}, "path": "/", "status": 200}}', Reading(host="a"), "log", 1)
    assert isinstance(record, Record)
    assert record.started_at == pytest.approx(EPOCH + at, abs=1e-6)
    assert record.resolution_seconds == pytest.approx(resolution)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[1]",
        "{}",
        '{"time": 1e400, "path": "/", "status": 200}',
        '{"time": true, "path": "/", "status": 200}',
        '{"time": "2026-13-18T12:00:01Z", "path": "/", "status": 200}',
        '{"time": "18/Nov/2026:25:00:00 +0000", "path": "/", "status": 200}',
        '{"time": 1, "path": "/", "status": 1000}',
        '{"time": 1, "path": "/"}',
        "[" * 100_000,
    ],
)
def test_json_that_is_no_log_line(text):
    assert read_json_line(text, Reading(host="a"), "log", 1) is Unread.UNREADABLE


def test_json_without_a_request():
    assert read_json_line('{"time": 1, "status": 200}', READING, "log", 1) is Unread.NO_REQUEST
    assert (
        read_json_line('{"time": 1, "status": 200, "retry": "soon", "path": 3}', READING, "log", 1) is Unread.NO_REQUEST
    )
    record = read_json_line('{"time": 1, "status": 200, "retry": "soon", "path": "/", "host": "a"}', READING, "log", 1)
    assert isinstance(record, Record)
    assert record.retry_after_seconds == 0


def test_names_of_hosts():
    assert [host_name(text) for text in ("A.:80", "a:443", "a:8080", "[::1]:80", "[::1]:81", "[::1]", ":80")] == [
        "a", "a", "a:8080", "[::1]", "[::1]:81", "[::1]", ":80",
    ]  # fmt: skip
    assert [literal_address(text) for text in ("127.0.0.1:8", "[::1]:8", "a.example")] == ["127.0.0.1", "::1", ""]


# Pieces of log lines, so that arbitrary lines get past the first checks.
PIECES = st.sampled_from(
    ["192.0.2.1 - - ", "[18/Nov/2026:12:00:00 +0000]", "[99/Xyz/0000:99:99:99.9 -9999]", ' "GET / HTTP/1.1" ', '"',
     "\\", "200 ", "-", " ", "rt=", "host=", "0.5", "1e5", "9" * 400, "http://", "\x00", "\xe9", "\u0661", "{", "}"]
)  # fmt: skip
LINES = st.one_of(st.text(), st.lists(PIECES).map("".join), st.text().map(COMMON[:40].__add__))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=3
)
KEYS = st.sampled_from(["time", "msec", "duration", "host", "path", "request", "status", "retry", "agent", "client"])


@given(LINES, st.sampled_from([READING, Reading(host="a", agent="x", logged_time=LoggedTime.END)]))
def test_reading_never_raises(text, reading):
    assert isinstance(read_line(text, reading, "log", 1), (Record, Unread))
    assert isinstance(read_json_line(text, reading, "log", 1), (Record, Unread))


@given(st.text())
def test_reading_never_raises_whatever_stands_in_a_request_or_at_the_end(text):
    for line in (COMMON.replace("/page", text), COMMON + " " + text, combined_line(0).rstrip() + " " + text):
        assert isinstance(read_line(line, Reading(host="a"), "log", 1), (Record, Unread))


@given(st.dictionaries(KEYS, VALUES))
def test_reading_json_never_raises(logged):
    assert isinstance(read_json_line(json.dumps(logged), Reading(host="a"), "log", 1), (Record, Unread))
