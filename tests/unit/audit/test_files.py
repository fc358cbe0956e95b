"""Logs on disk: compressed, out of order, in several files, torn; and folders of robots files."""

from __future__ import annotations

import gzip

import pytest

from tests.unit.audit.logs import EPOCH, own_line, request
from webcrawl.audit.files import RobotsFolder, Tally, host_of_file, in_order, read_log, read_logs
from webcrawl.audit.lines import Reading
from webcrawl.audit.records import CannotAuditError, Unread


def starts(names, **how):
    records = read_logs([str(name) for name in names], Reading(), Tally(), reorder_seconds=10.0, may_skip=False, **how)
    return [record.started_at - EPOCH for record in records]


def test_several_logs_are_merged_by_time_compressed_or_not(tmp_path):
    (tmp_path / "one.log").write_text(own_line(0) + own_line(4))
    (tmp_path / "two.log.gz").write_bytes(gzip.compress((own_line(1) + own_line(5)).encode()))
    assert starts([tmp_path / "one.log", tmp_path / "two.log.gz"]) == [0, 1, 4, 5]


def test_lines_out_of_order_are_put_in_order():
    records = [request(at, line=line) for line, at in enumerate((3, 1, 2, 2, 30, 25, 60))]
    given = list(in_order(records, 10.0))
    assert [record.started_at - EPOCH for record in given] == [1, 2, 2, 3, 25, 30, 60]
    assert [record.line for record in given[1:3]] == [2, 3]


def test_a_request_that_lasted_long_is_given_out_late():
    records = [request(0), request(50), request(5, duration_seconds=60, line=9), request(70)]
    assert [record.line for record in in_order(records, 10.0)] == [1, 9, 1, 1]


def test_a_log_in_disorder_is_refused_with_a_remedy():
    with pytest.raises(CannotAuditError, match=r"access\.log:9 is 45 s older .* or use --reorder 46\."):
        list(in_order([request(0), request(20), request(50), request(4.9, line=9)], 4.0))


def read(lines, *, may_skip=False, reading=None):
    tally = Tally()
    return list(read_log("log", lines, reading or Reading(), tally, may_skip=may_skip)), tally


def test_lines_that_cannot_be_read_are_refused_or_skipped_and_counted():
    lines = [own_line(0).encode(), b"nonsense\n", b"\n", own_line(1, host="-").encode()]
    with pytest.raises(CannotAuditError, match=r"log:2 is no line of an access log .*--skip-unreadable\."):
        read(lines)
    with pytest.raises(CannotAuditError, match=r"log:1 does not say which host was asked.*--host\."):
        read(lines[3:])
    records, tally = read(lines, may_skip=True)
    assert len(records) == 1
    assert tally.unread == {Unread.UNREADABLE: 1, Unread.EMPTY: 1, Unread.NO_HOST: 1}
    assert tally.first_unreadable == "log:2"


def test_a_last_line_that_was_cut_off_is_forgiven():
    records, tally = read([own_line(0).encode(), own_line(1).encode()[:40]])
    assert len(records) == 1
    assert tally.torn == ["log:2"]


DAMAGED = [gzip.compress(b"x" * 99)[:-9], b"\x1f\x8b\x08\x00garbage garbage"]


@pytest.mark.parametrize("content", DAMAGED, ids=["cut off", "garbage"])
def test_a_damaged_file_is_told_in_one_sentence(tmp_path, content):
    (tmp_path / "log.gz").write_bytes(content)
    with pytest.raises(CannotAuditError, match=r"The log .* cannot be read \("):
        starts([tmp_path / "log.gz"])


def test_a_missing_file_is_told_in_one_sentence(tmp_path):
    with pytest.raises(CannotAuditError, match=r"cannot be read \(No such file"):
        starts([tmp_path / "no.log"])


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("www.example.txt", "www.example"),
        ("WWW.Example", "www.example"),
        ("127.0.0.5:8000", "127.0.0.5:8000"),
        ("http_www.example_80.txt", "www.example"),
        ("https_www.example_8443.txt", "www.example:8443"),
        ("https_my_host.example_443", "my_host.example"),
        ("www.example_8000.txt", "www.example:8000"),
    ],
)
def test_names_of_robots_files(name, host):
    assert host_of_file(name) == host


def test_a_folder_of_robots_files(tmp_path):
    (tmp_path / "a.example.txt").write_bytes(b"User-agent: *\r\nDisallow: /\xe9")
    (tmp_path / ".hidden").write_text("")
    folder = RobotsFolder(tmp_path)
    assert folder("a.example") == "User-agent: *\r\nDisallow: /\xe9"
    assert folder("b.example") is None
    (tmp_path / "https_a.example_443.txt").write_text("")
    with pytest.raises(CannotAuditError, match=r"are both the robots\.txt of a\.example"):
        RobotsFolder(tmp_path)
    with pytest.raises(CannotAuditError, match=r"The folder .* cannot be read"):
        RobotsFolder(tmp_path / "none")
