"""Commands are checked and spelled in one way; rules are values that say what applies to a page."""

from __future__ import annotations

import json

import pytest

from webcrawl.core.controls import SYNTAX, Boost, Command, Rules, from_facts, parse, rows_of, why_too_short
from webcrawl.core.errors import ControlError
from webcrawl.core.filters.optout import CurrentOptOut, OptOut, spelled
from webcrawl.core.reasons import Reason


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["delay", "WWW.Example.ORG", "30.50"], Command("delay", "www.example.org", "30.5")),
        (["delay", "a.test", "default"], Command("delay", "a.test", "default")),
        (["block", "https://a.test/"], Command("block", "a.test")),
        (["block", "*.a.test"], Command("block", ".a.test")),
        (["unblock", "a.test/%7Eme/*"], Command("unblock", "a.test/~me/*")),
        (["drop", "[::1]"], Command("drop", "[::1]")),
        (["boost", ".a.test", "x2"], Command("boost", ".a.test", "x2")),
        (["boost", ".a.test", "-1.5"], Command("boost", ".a.test", "-1.5")),
        (["boost", "a.test/x*", "default"], Command("boost", "a.test/x*", "default")),
        (["retry", "timeout"], Command("retry", "timeout")),
        (["pause"], Command("pause")),
        (["status"], Command("status")),
    ],
)
def test_commands_have_one_spelling_and_survive_being_written_down(words: list[str], command: Command):
    assert parse(words) == command
    assert from_facts(json.loads(json.dumps(command.facts()))) == command


def test_seeds_are_written_down_with_the_command():
    command = parse(["seeds"], ["http://a.test/", "http://b.test/"])
    assert from_facts(json.loads(json.dumps(command.facts()))) == command
    assert command.sentence() == "seeds 2 URLs"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "No command was given. There are: delay, block, unblock, boost, drop, pause, resume, seeds, retry, "),
        (["blok", "a.test"], "'blok' is no command. Did you mean block? There are: "),
        (["block"], "block takes 1 word and was given 0. Write: scrapy control block TARGET."),
        (["pause", "now"], "pause takes no words and was given 1. Write: scrapy control pause."),
        (["block", "a.test:8080"], "'a.test:8080' is neither a host, nor a site, nor pages of them. Write a host ("),
        (["block", "10.0.0.0/8"], "'10.0.0.0/8' is neither a host"),
        (["delay", ".a.test", "30"], ".a.test is not one host. A pause is that of a host. Name it: www.example.org."),
        (["delay", "a.test/x", "30"], "a.test/x is not one host."),
        (
            ["delay", "a.test", "soon"],
            "A delay of 'soon' cannot be kept. Give seconds, 2,592,000 at most, or `default`",
        ),
        (["delay", "a.test", "-1"], "A delay of '-1' cannot be kept."),
        (["delay", "a.test", "inf"], "A delay of 'inf' cannot be kept."),
        (["boost", "a.test", "2"], "'2' does not say how scores are to change. Write a factor (x2 raises"),
        (["boost", "a.test", "x0"], "'x0' does not say how scores are to change."),
        (["boost", "a.test", "+nan"], "'+nan' does not say how scores are to change."),
        (["boost", "a.test", "+-5"], "'+-5' does not say how scores are to change."),
        (
            ["retry", "timeouts"],
            "'timeouts' is no reason for which pages can be put back. Did you mean timeout? There are: ",
        ),
        (["retry", "out_of_scope"], "'out_of_scope' is no reason for which pages can be put back."),
        (["retry", "alias"], "'alias' is no reason for which pages can be put back."),
        (["seeds"], "No URL was given. Write: scrapy control seeds URL ... or scrapy control seeds FILE."),
    ],
)
def test_errors_say_what_to_write(words: list[str], sentence: str):
    with pytest.raises(ControlError) as raised:
        parse(words)
    assert str(raised.value).startswith(sentence)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("facts", [None, [], "block", {}, {"command": "explode"}, {"command": "block", "urls": 7}])
def test_what_is_no_command_is_refused(facts: object):
    with pytest.raises(ControlError):
        from_facts(facts)


def test_every_command_can_be_parsed():
    examples = {
        "delay": ["a.test", "60"],
        "block": ["a.test"],
        "unblock": ["a.test"],
        "boost": ["a.test", "x2"],
        "drop": ["a.test"],
        "retry": ["robots"],
    }
    for name in SYNTAX:
        assert parse([name, *examples.get(name, [])], ["http://a.test/"]).name == name


# ------------------------------------------------------------------------------------------------ rules


def rules_of(*commands: list[str]) -> Rules:
    rules = Rules()
    for words in commands:
        for row in rows_of(parse(words)):
            rules = rules.after(row)
    return rules


def test_rules_are_set_replaced_and_taken_back():
    rules = rules_of(["delay", "a.test", "60"], ["block", ".b.test"], ["boost", "c.test", "x2"], ["pause"])
    assert rules.facts() == {
        "paused": True,
        "delays": {"a.test": 60.0},
        "blocks": [".b.test"],
        "boosts": {"c.test": "x2"},
    }
    assert rules_of(["delay", "a.test", "60"], ["delay", "a.test", "90"]).delays == {"a.test": 90.0}
    assert rules_of(["boost", "a.test", "x2"], ["boost", "a.test", "x2"]).boosts == {"a.test": "x2"}
    for undone in (["pause"], ["resume"]), (["block", "a.test"], ["unblock", "a.test"]):
        assert rules_of(*undone) == Rules()
    for name, value in ("delay", "60"), ("boost", "x3"):
        assert rules_of([name, "a.test", value], [name, "a.test", "default"]) == Rules()


def test_commands_without_a_rule_leave_none():
    assert [rows_of(parse(words)) for words in (["drop", "a.test"], ["retry", "robots"], ["status"])] == [[], [], []]


def test_stored_rules_are_the_same_rules():
    rows = [
        row for words in (["block", "a.test"], ["boost", "b.test", "+1"], ["pause"]) for row in rows_of(parse(words))
    ]
    assert Rules.from_rows(rows) == rules_of(["block", "a.test"], ["boost", "b.test", "+1"], ["pause"])


def test_boosts_apply_in_the_order_in_which_they_were_set():
    rules = rules_of(["boost", ".a.test", "+1"], ["boost", "www.a.test/x/*", "x3"])
    assert rules.boosted("http://www.a.test/x/1", "www.a.test", 1.0) == 6.0
    assert rules.boosted("http://www.a.test/y", "www.a.test", 1.0) == 2.0
    assert rules.boosted("http://b.test/x/1", "b.test", 1.0) == 1.0


@pytest.mark.parametrize("score", [-5.0, -0.5, 0.0, 0.5, 5.0])
def test_a_factor_above_one_never_lowers_and_one_below_never_raises(score: float):
    assert Boost.parse("x3").apply(score) >= score >= Boost.parse("x0.3").apply(score)


def test_blocks_refuse_hosts_sites_and_pages():
    blocks = rules_of(["block", "a.test"], ["block", ".b.test"], ["block", "c.test/no/*"]).block_list
    refused = ["http://a.test/", "https://a.test:8443/x", "http://b.test/", "http://www.b.test/", "http://c.test/no/1"]
    for url in refused:
        assert blocks.refuse(url, url.split("/")[2].partition(":")[0]) is Reason.BLOCKED, url
    for url in ("http://www.a.test/", "http://ab.test/", "http://c.test/yes"):
        assert blocks.refuse(url, url.split("/")[2]) is None, url
    assert [blocks.refuse_host(host) for host in ("a.test", "www.b.test", "c.test", "d.test")] == [
        Reason.BLOCKED,
        Reason.BLOCKED,
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("value", "may_hurry", "is_refused"),
    [("14", False, True), ("15", False, False), ("60", False, False), ("1", True, False), ("default", False, False)],
)
def test_only_own_hosts_may_have_shorter_pauses(value: str, may_hurry: bool, is_refused: bool):
    why = why_too_short(parse(["delay", "a.test", value]), 15.0, may_hurry)
    assert (why is not None) == is_refused
    if why:
        assert why == (
            "A delay of 14 s for a.test is below WEBCRAWL_POLITENESS_DELAY_SECONDS=15. A host of somebody else may "
            "only be asked less often. Give a longer delay; for a host you own, list it in WEBCRAWL_SAFETY_ALLOW."
        )


# ------------------------------------------------------------------------------------------------ the opt-out list


def test_a_list_that_takes_the_place_of_another_counts_at_once():
    current = CurrentOptOut(OptOut(["a.test"]))
    assert current.refuse("http://a.test/", "a.test") is Reason.OPTED_OUT
    current.rule = OptOut(["b.test/*"])
    assert current.refuse("http://a.test/", "a.test") is None
    assert current.rule.refuse_host("b.test") is Reason.OPTED_OUT


@pytest.mark.parametrize("text", ["", "   ", "a b", "ftp://a.test/", "a.test:80", "@", "*"])
def test_what_is_no_entry_is_no_target(text: str):
    with pytest.raises(ValueError, match=r"^"):
        spelled(text)
