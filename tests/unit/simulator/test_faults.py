"""Which request of which host fails."""

from __future__ import annotations

import pytest

from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.faults import Faults, castillo_latency_seconds


def faults(*texts, seed=1):
    return Faults(texts, seed, 50, lambda name: 3 if name == "h3.example" else None)


def one(text, seed=1):
    [fault] = faults(text, seed=seed).of(3)
    return fault


def hits(text, numbers=range(1, 11), seed=1):
    return [number for number in numbers if one(text, seed).hits(3, number)]


def test_windows_of_requests():
    assert hits("reset,first=3") == [1, 2, 3]
    assert hits("busy,window=4-6") == [4, 5, 6]
    assert hits("busy,window=9-") == [9, 10]
    assert hits("silent") == list(range(1, 11))


def test_chance_is_kept_and_follows_from_the_seed():
    many = range(1, 2001)
    found = hits("busy,chance=0.1", many)
    assert 150 < len(found) < 250
    assert found == hits("busy,chance=0.1", many)
    assert found != hits("busy,chance=0.1", many, seed=2)


@pytest.mark.parametrize(
    ("text", "status", "line"),
    [("busy", 503, ""), ("busy:429", 429, ""), ("busy:503,retry=30", 503, "Retry-After: 30\r\n"),
     ("busy:429,retry=200000", 429, "Retry-After: 200000\r\n"), ("busy,retry=absurd", 503, "Retry-After: soon\r\n"),
     ("busy,retry=date+30", 503, "Retry-After: Thu, 01 Jan 1970 00:00:40 GMT\r\n"),
     ("busy,retry=past", 503, "Retry-After: Wed, 31 Dec 1969 00:00:10 GMT\r\n")],
)  # fmt: skip
def test_what_a_busy_host_answers(text, status, line):
    answer = one(text).answer(1, now=10.0)
    assert answer.status == status
    assert ("Retry-After" in answer.headers.decode()) == bool(line) and line in answer.headers.decode()


def test_failures_end_the_connection():
    for name, status in (("refuse", 521), ("reset", 520), ("silent", 524), ("tls", 525)):
        answer = one(name).answer(1, now=0.0)
        assert (answer.ending, answer.status) == (name, status)


def test_pages_and_robots_files():
    assert (one("busy").on_pages, one("busy").on_robots) == (True, False)
    assert (one("reset").on_pages, one("reset").on_robots) == (True, True)
    assert (one("busy,on=robots").on_pages, one("busy,on=robots").on_robots) == (False, True)


def test_latencies():
    assert one("latency:0.25").latency_seconds(3, 1) == 0.25
    late = one("latency:castillo,factor=0.01")
    drawn = [100 * late.latency_seconds(3, number) for number in range(4000)]
    assert 0.88 < sum(seconds < 1.5 for seconds in drawn) / 4000 < 0.92
    assert 0.94 < sum(seconds < 3 for seconds in drawn) / 4000 < 0.96
    assert max(drawn) <= 60 < castillo_latency_seconds(1) + 1


def test_hosts_that_are_down_for_ever():
    rules = faults("reset,first=9@h3.example", "refuse@0.5", "busy@0.1", "tls")
    down = [host for host in range(50) if rules.is_down(host)]
    assert len(down) == 25 and 0 not in down
    assert down == [host for host in range(50) if rules.is_refusing(host)]
    assert not faults("silent").is_refusing(1) and faults("silent").is_down(1)
    assert not faults("tls", "busy", "latency:1", "reset,chance=0.9").is_down(1)
    assert rules.has_refusing_hosts and not faults("refuse,first=1").has_refusing_hosts


def test_rules_for_shares_are_drawn_apart():
    one_half = [bool(faults("reset@0.5", "silent@0.5").of(host)) for host in range(50)]
    assert 25 < sum(one_half) < 50


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("busy:500", "The rule 'busy:500' needs the status 429 or 503, such as busy:429."),
        ("latency", "The rule 'latency' needs a number of 0 or more where it has ''."),
        ("reset:5", "The rule 'reset:5' has '5' after reset, which takes nothing."),
        ("busy,window=5", "The rule 'busy,window=5' needs window=N-M, the numbers of two requests from 1."),
        ("busy,on=images", "The rule 'busy,on=images' is for 'images'. Choose on=pages, on=robots or on=all."),
        ("busy,retry=x", "The rule 'busy,retry=x' needs retry=SECONDS, date+SECONDS, past or absurd."),
    ],
)
def test_impossible_rules_are_refused_in_one_sentence(text, sentence):
    with pytest.raises(CannotServeError) as refused:
        faults(text).check()
    assert str(refused.value) == sentence
