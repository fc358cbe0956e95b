"""Log lines are whole, quoted and in the format that log readers know."""

from __future__ import annotations

import re

from webcrawl.simulator.accesslog import AccessLog
from webcrawl.simulator.wire import read_request

# As the politeness auditor reads it.
LINE = re.compile(
    r"^\S+ \S+ \S+ \[(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d(?:\.\d+)?) ([+-]\d{4})\] "
    r'"(\S+) (\S+)[^"]*" (\d{3}) (\d+|-) "[^"]*" "([^"]*)" ([\d.]+) (\S+) (\S+)$'
)


def test_lines_are_written_together_and_can_be_read(tmp_path):
    later = []
    log = AccessLog(tmp_path / "log", lambda seconds, flush: later.append(flush))
    hostile = b'GET /a"b\x80 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: x" 200\n\x1b[2J\x85 y\r\nReferer: "\r"'
    log.note(1.25, read_request(hostile), 200, 10, None)
    log.note(2.0, read_request(b"GET http://b.example:80/?q HTTP/1.1\r\nReferer: http://a/"), 503, 0, 1.5)
    assert (tmp_path / "log").read_bytes() == b""
    assert len(later) == 1
    later[0]()
    first, second = (tmp_path / "log").read_text("latin-1").split("\n")[:2]
    match = LINE.match(first)
    assert match is not None
    assert match.groups()[:11] == (
        "01",
        "Jan",
        "1970",
        "00",
        "00",
        "01.250000",
        "+0000",
        "GET",
        "/a%22b\x80",
        "200",
        "10",
    )
    assert match[12] == "x? 200??[2J? y"
    assert match[14] == "a.example" and match[15] == "-"
    assert re.fullmatch(r'.* "GET /\?q HTTP/1.1" 503 0 "http://a/" "-" [\d.]+ b.example:80 1.5', second)
    log.close()


def test_the_ends_of_the_connection_and_odd_retry_afters(tmp_path):
    log = AccessLog(tmp_path / "log", lambda seconds, flush: None)
    request = read_request(b"GET / HTTP/1.1\r\nHost: a.example")
    for seconds in (200_000.0, 30.75, -86_400.5, float("nan")):
        log.note(1.0, request, 503, 0, seconds, "127.0.0.1 7 127.0.0.2:8000")
    log.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert all(LINE.match(line) and line.startswith("127.0.0.1 7 127.0.0.2:8000 [") for line in lines)
    assert [line.split()[-1] for line in lines] == ["200000", "30.75", "-86400.5", "nan"]
