"""Rules as text, and which hosts they are for."""

from __future__ import annotations

import pytest

from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.rules import chooser, read_rule


def rule(text):
    return read_rule(text, ("busy", "reset"), ("first", "retry"))


def chosen(texts, hosts=100, seed=1):
    """For each host the text of the rule for it, without its WHERE."""
    rules = [rule(text) for text in texts]
    choose = chooser(rules, seed, hosts, lambda name: int(name[1:]) if name[0] == "h" else None)
    return [None if (place := choose(host)) is None else texts[place].partition("@")[0] for host in range(hosts)]


def test_a_rule_is_taken_apart():
    found = rule("busy:503,first=3,retry=date+30@0.25")
    assert (found.name, found.argument, found.share, found.host) == ("busy", "503", 0.25, "")
    assert dict(found.options) == {"first": "3", "retry": "date+30"}
    assert (found.number("first", 0), found.number("absent", 7)) == (3, 7)
    assert (rule("reset@h1.example").host, rule("reset@h1.example").share) == ("h1.example", None)
    assert rule("reset").share == 1


def test_shares_are_exact_and_follow_from_the_seed():
    texts = ("busy:429@0.3", "busy:503@0.2", "reset@h7")
    found = chosen(texts)
    assert found[7] == "reset"
    assert (found.count("busy:429"), found.count("busy:503")) in {(30, 20), (29, 20), (30, 19)}  # host 7 is taken away
    assert found == chosen(texts)
    assert found != chosen(texts, seed=2)


def test_the_first_host_is_the_last_that_a_share_takes():
    assert all(chosen(("reset@0.99",), seed=seed)[0] is None for seed in range(20))
    assert chosen(("reset@0.99",)).count("reset") == 99
    assert chosen(("reset",)) == ["reset"] * 100
    assert chosen(("reset@0",)) == [None] * 100
    assert chosen((), hosts=1) == [None]


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (("slow",), "The rule 'slow' begins with an unknown name. Choose one of busy, reset."),
        (("reset,last=3",), "The rule 'reset,last=3' has an unknown option 'last'. Choose of first, retry."),
        (("reset@1.5",), "The rule 'reset@1.5' is for a share of the hosts, which 1.5 is not. Choose 0 to 1."),
        (("reset@x.example",), "The rule 'reset@x.example' is for x.example, which is no host of this web."),
        (
            ("reset@0.7", "busy@0.4"),
            "The rules are for 1.1 of the hosts together. Lower their shares to 1 in all.",
        ),
    ],
)
def test_what_is_no_rule_is_refused_in_one_sentence(texts, sentence):
    with pytest.raises(CannotServeError) as refused:
        chosen(texts)
    assert str(refused.value) == sentence


def test_numbers_are_checked():
    with pytest.raises(CannotServeError, match="'busy,first=-1' needs a number of 0 or more where it has '-1'"):
        rule("busy,first=-1").number("first", 0)
