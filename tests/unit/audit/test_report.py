"""What is said about an audit: counts, lines, notes, the verdict."""

from __future__ import annotations

import json

from tests.unit.audit.logs import request, robots_txt
from webcrawl.audit import report
from webcrawl.audit.files import Tally
from webcrawl.audit.judging import Judge, Kind, Rules
from webcrawl.audit.records import Unread


def audited(records, rules=None, robots=None, *, show=5, tally=None):
    judge = Judge(rules or Rules(), (robots or {}).get)
    return report.run_audit(records, judge, tally or Tally(), show)


def test_a_polite_crawl():
    audit = audited([robots_txt(), request(0), request(2)])
    assert audit.is_polite
    assert report.verdict(audit) == "Polite: 3 requests to 1 host and no violation."
    assert report.plain_text(audit).endswith("no violation.")


def test_violations_are_counted_and_the_first_are_shown():
    audit = audited([robots_txt(), *(request(at / 2, line=at) for at in range(10))], show=2)
    assert not audit.is_polite
    assert report.verdict(audit) == "Not polite: 11 requests to 1 host and 9 violations (9 gap)."
    text = report.plain_text(audit)
    assert "access.log:1  a.example/page  0.400 s after the one before, 1 s wanted (access.log:0)" in text
    assert text.count("0.400 s after") == 2
    assert len(report.as_json(audit)["found"]) == 2


def test_for_programs():
    found = report.as_json(audited([robots_txt(), request(0), request(1, line=8)]))
    assert json.loads(json.dumps(found)) == found
    assert found["is_polite"] is False
    assert found["violations"] == dict.fromkeys([kind.value for kind in Kind], 0) | {"gap": 1}
    assert (found["found"][0]["file"], found["found"][0]["line"]) == ("access.log", 8)
    assert (found["found"][0]["earlier"], found["requests"], found["hosts"]) == ("access.log:1", 3, 1)
    assert found["worst_hosts"][0]["host"] == "a.example"
    assert round(found["min_gap_seconds"], 6) == 0.9


def test_the_worst_hosts_are_those_furthest_below_what_they_want():
    robots = {"slow.example": "User-agent: *\nCrawl-delay: 100"}
    records = [request(at, host=host) for at in (0, 10) for host in ("slow.example", "a.example")]
    worst = report.worst_hosts(audited(records, robots=robots))
    assert [(name, host.wanted_seconds) for name, host in worst] == [("slow.example", 100.0), ("a.example", 1.0)]


def notes(records, rules=None, robots=None, tally=None):
    return " ".join(report.notes(audited(records, rules, robots, tally=tally)))


def test_what_was_not_judged_is_said():
    bare = [robots_txt(), request(0, duration_seconds=None, resolution_seconds=1.0, retry_after_seconds=None)]
    said = notes(bare, Rules(address_delay_seconds=1, is_robots_first=False))
    assert "No robots files were given (--robots): robots rules and Crawl-delay were not judged." in said
    assert "Times are logged to 1 s" in said
    assert "Durations are not in 1 of 2 lines" in said
    assert "Retry-After is not in 1 of 2 lines" in said
    assert "The server address is not known of the log" in said
    assert "before the first page was not judged" in said
    clean = notes([robots_txt(), request(0)], robots={"a.example": ""})
    assert clean.startswith("Judged with a pause of 1 s from the end of a request")
    assert "not judged" not in clean
    two = notes([robots_txt(), request(0, host="b.example", agent="Other/1")], robots={"a.example": ""})
    assert "1 host of 2 had no robots file" in two
    assert "Lines of 2 user agents were judged as one crawler" in two


def test_lines_left_out_are_said():
    tally = Tally(torn=["log:9"], first_unreadable="log:3")
    tally.unread.update({Unread.UNREADABLE: 1, Unread.NO_HOST: 2, Unread.OTHER_AGENT: 3, Unread.NO_REQUEST: 4})
    said = notes([request(0)], tally=tally)
    assert "log:9 ends in the middle of a line" in said
    assert "1 line that could not be read, the first is log:3" in said
    assert "2 lines without a host" in said
    assert "3 lines of other user agents" in said
    assert "4 lines without a request" in said


def test_text_of_strangers_cannot_command_a_terminal():
    assert report.printable("/\x1b[2J\n\x9b") == "/?[2J??"
    assert len(report.printable("/" + "x" * 1000)) == 100
