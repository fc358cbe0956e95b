"""Settings: parsed, checked, refused with a remedy, and listed."""

from __future__ import annotations

import enum
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core import config
from webcrawl.core.config import (
    Directives,
    Frontier,
    Limits,
    Politeness,
    Retry,
    Run,
    Safety,
    all_settings,
    check_names,
    declare,
    load,
    set_by,
    setting,
)
from webcrawl.core.errors import SettingError


def refusal(cls: type, **values: object) -> str:
    with pytest.raises(SettingError) as caught:
        load(cls, values)
    return str(caught.value)


# ------------------------------------------------------------------------------------------ defaults


def test_defaults_follow_the_thesis() -> None:
    """Castillo 2004, Table 7.1: batch of 100,000, 500 a site, 15 s, 25,000 URLs a site."""
    assert load(Frontier, {}).batch_pages == 100_000
    assert load(Frontier, {}).batch_pages_per_host == 500
    assert load(Politeness, {}).delay_seconds == 15.0
    assert load(Limits, {}).urls_per_host == 25_000


def test_an_empty_source_gives_the_defaults_of_the_class() -> None:
    for cls in (Run, Safety, Politeness, Frontier, Retry, Limits):
        assert load(cls, {}) == cls()


def test_none_means_not_set() -> None:
    assert load(Retry, {"WEBCRAWL_RETRY_TIMES": None}).times == 2


def test_loaded_settings_do_not_change() -> None:
    loaded: Any = load(Run, {})
    with pytest.raises(FrozenInstanceError):
        loaded.forever = True


def test_every_setting_says_what_it_does_and_why_this_default() -> None:
    for one in all_settings():
        assert one.doc.endswith("."), one.name
        assert one.why.endswith("."), one.name
        assert one.concern.__doc__, one.name
        named_unit = one.name.rpartition("_")[2].lower()
        assert named_unit not in {"seconds", "bytes"} or one.unit == named_unit, one.name


# ------------------------------------------------------------------------------------------- parsing


def test_words_of_rel_are_words() -> None:
    assert load(Directives, {"WEBCRAWL_DIRECTIVES_REL": "NoFollow, ugc"}).rel == ("nofollow", "ugc")
    assert load(Directives, {"WEBCRAWL_DIRECTIVES_REL": ""}).rel == ()
    assert "Use words as they stand in rel" in refusal(Directives, WEBCRAWL_DIRECTIVES_REL="rel=nofollow")


@pytest.mark.parametrize("text", ["true", "True", " 1 ", "yes", "ON", True, 1])
def test_booleans_that_are_true(text: object) -> None:
    assert load(Run, {"WEBCRAWL_FOREVER": text}).forever is True


@pytest.mark.parametrize("text", ["false", "0", "No", "off", False, 0])
def test_booleans_that_are_false(text: object) -> None:
    assert load(Run, {"WEBCRAWL_FOREVER": text}).forever is False


@pytest.mark.parametrize("text", ["", "maybe", "2", 2, [True]])
def test_other_booleans_are_refused(text: object) -> None:
    assert "is neither true nor false" in refusal(Run, WEBCRAWL_FOREVER=text)


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), (" 7\n", 7), ("10_000", 10_000), ("1e3", 1000), (7.0, 7), (7, 7)]
)
def test_whole_numbers(text: object, value: int) -> None:
    loaded = load(Run, {"WEBCRAWL_COMMIT_PAGES": text}).commit_pages
    assert (loaded, type(loaded)) == (value, int)


@pytest.mark.parametrize("text", ["", "many", "1.5", 1.5, True, "1e999", "9" * 5000, [1]])
def test_other_whole_numbers_are_refused(text: object) -> None:
    assert "is not a whole number" in refusal(Run, WEBCRAWL_COMMIT_PAGES=text)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "", "soon", True, None.__class__, 10**400])
def test_a_time_is_a_finite_number(text: object) -> None:
    assert "is not a number" in refusal(Run, WEBCRAWL_END_WAIT_SECONDS=text)


def test_a_number_may_come_as_text_from_the_command_line() -> None:
    assert load(Run, {"WEBCRAWL_COMMIT_SECONDS": "0.5"}).commit_seconds == 0.5


@pytest.mark.parametrize(
    "given", ["a.example,b.example", "a.example b.example", ["a.example", "b.example"], " A.example,\tb.example. "]
)
def test_lists_come_as_lists_or_as_one_text(given: object) -> None:
    assert load(Safety, {"WEBCRAWL_SAFETY_ALLOW": given}).allow == ("a.example", "b.example")


def test_an_empty_text_is_an_empty_list() -> None:
    assert load(Safety, {"WEBCRAWL_SAFETY_ALLOW": ""}).allow == ()


def test_a_list_of_something_else_is_refused() -> None:
    assert "is not a list" in refusal(Safety, WEBCRAWL_SAFETY_ALLOW=7)


def test_a_regex_is_not_split_at_its_comma_or_blank() -> None:
    assert load(Limits, {"WEBCRAWL_INCLUDE": r"/a{1,2} b/"}).include == (r"/a{1,2} b/",)
    assert load(Limits, {"WEBCRAWL_EXCLUDE": "\\.zip$\n\n  \\.iso$\n"}).exclude == (r"\.zip$", r"\.iso$")
    assert load(Limits, {"WEBCRAWL_EXCLUDE": ["a,b", "c"]}).exclude == ("a,b", "c")


def test_a_broken_regex_is_refused_with_its_fault() -> None:
    assert "missing ), unterminated subpattern" in refusal(Limits, WEBCRAWL_INCLUDE="(x")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("127.0.0.0/8", "127.0.0.0/8"),
        ("127.0.0.1/8", "127.0.0.0/8"),
        ("192.0.2.7", "192.0.2.7/32"),
        ("[::1]", "::1/128"),
        ("Intranet", "intranet"),
        (".Example.", ".example"),
        ("bücher.example", "bücher.example"),
        ("a_b.c-d.example", "a_b.c-d.example"),
    ],
)
def test_allowed_hosts_are_spelled_one_way(text: str, value: str) -> None:
    assert load(Safety, {"WEBCRAWL_SAFETY_ALLOW": text}).allow == (value,)


@pytest.mark.parametrize(
    "text", ["http://a.example", "a.example:80", "*.example", "10.0.0.0/33", "a.example/x", "..", "*"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    assert "Name a host (intranet.example)" in refusal(Safety, WEBCRAWL_SAFETY_ALLOW=text)


@pytest.mark.parametrize(
    "text",
    ["https://crawl.example/about", "HTTP://10.0.0.1:8080?x=1", "crawl@example.org", "a.b+web@x-y.co.uk"],
)
def test_a_contact_is_a_web_address_or_an_e_mail_address(text: str) -> None:
    assert load(Run, {"WEBCRAWL_CONTACT": text}).contact == text


@pytest.mark.parametrize(
    "text",
    [
        "me",
        "a@b",
        "a@b\r\nX-Header: 1",
        "a@b.example\r\nX-Header: 1",
        "https://a.example/ (x)",
        "https://a.example/(x)",
        "https:///about",
        "ftp://a.example/",
        "mailto:a@b.example",
        "a@b..example",
        "ä@b.example",
        "@",
    ],
)
def test_what_nobody_can_write_to_is_no_contact(text: str) -> None:
    assert "Use a web address" in refusal(Run, WEBCRAWL_CONTACT=text)


@pytest.mark.parametrize("text", ["mybot", "My_Bot-2"])
def test_a_product_token_is_one_word(text: str) -> None:
    assert load(Run, {"WEBCRAWL_AGENT": text}).product_token == text


@pytest.mark.parametrize("text", ["my bot", "mybot/2", "mybot (x)", "bücher", "*", "a.b"])
def test_what_sites_cannot_call_us_by_is_no_product_token(text: str) -> None:
    assert "Use letters, digits, - and _ only" in refusal(Run, WEBCRAWL_AGENT=text)


def test_an_empty_product_token_is_the_default() -> None:
    assert load(Run, {"WEBCRAWL_AGENT": ""}).product_token == load(Run, {}).product_token == "webcrawl"


def test_on_and_off_may_be_booleans_in_a_settings_file() -> None:
    assert load(Politeness, {"WEBCRAWL_POLITENESS": False}).is_on is False
    assert load(Politeness, {"WEBCRAWL_POLITENESS": "ON"}).is_on is True


# ------------------------------------------------------------------------------------------- refusing


def test_the_delay_is_refused_in_three_sentences() -> None:
    assert refusal(Politeness, WEBCRAWL_POLITENESS_DELAY_SECONDS=0.2) == (
        "WEBCRAWL_POLITENESS_DELAY_SECONDS=0.2 is below 1.0. At that pace most sites will see an attack and block us. "
        "Use 1.0 or more; for a host you own, list it in WEBCRAWL_SAFETY_ALLOW."
    )


def test_a_value_out_of_range_names_the_range() -> None:
    assert refusal(Run, WEBCRAWL_COMMIT_PAGES=20_000) == (
        "WEBCRAWL_COMMIT_PAGES=20000 is above 10000. It means: Most pages settled in one commit. "
        "Use a value from 1 to 10000."
    )


def test_a_wrong_choice_names_the_choices_and_the_nearest() -> None:
    text = refusal(Run, WEBCRAWL_SYNC="ful")
    assert text.startswith("WEBCRAWL_SYNC=ful is not one of full, normal.")
    assert text.endswith("Did you mean full? Use one of full, normal.")


def test_a_bad_value_cannot_garble_the_terminal() -> None:
    text = refusal(Run, WEBCRAWL_SYNC="\x1b[31m" + "x" * 500)
    assert text.isprintable()
    assert len(text) < 400


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.lists(st.text()), st.booleans()))
def test_any_value_is_parsed_or_refused(raw: object) -> None:
    for one in all_settings():
        complaint = f"{one.name} was taken."
        try:
            load(one.concern, {one.name: raw})
        except SettingError as error:
            complaint = str(error)
        assert complaint.startswith(one.name)
        assert complaint.endswith(".")


# ---------------------------------------------------------------------------------------------- names


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError) as caught:
        check_names(["WEBCRAWL_POLITENES_DELAY", "CONCURRENT_REQUESTS"])
    assert str(caught.value) == (
        "WEBCRAWL_POLITENES_DELAY is no setting of webcrawl. A mistyped setting would be ignored and the crawl would "
        "run with the default. Did you mean WEBCRAWL_POLITENESS_DELAY_SECONDS? docs/settings.md lists them all."
    )


def test_several_unknown_names_are_refused_at_once() -> None:
    with pytest.raises(SettingError, match="WEBCRAWL_XYZZY, webcrawl_dir are no settings"):
        check_names(["webcrawl_dir", "WEBCRAWL_XYZZY"])


def test_known_names_and_those_of_others_pass() -> None:
    check_names(["USER_AGENT", "BOT_NAME", *(one.name for one in all_settings())])


class WithPriorities:
    """What Scrapy's settings look like from here."""

    def __init__(self, **values: tuple[object, int]) -> None:
        self.values = values

    def get(self, name: str, /) -> object:
        return self.values[name][0] if name in self.values else None

    def getpriority(self, name: str) -> int | None:
        return self.values[name][1] if name in self.values else None


def test_who_set_it() -> None:
    settings = WithPriorities(WEBCRAWL_DIR=("x", 40), WEBCRAWL_SYNC=("full", 20), WEBCRAWL_PROGRESS=("off", 17))
    assert load(Run, settings).directory == "x"
    assert set_by(settings, "WEBCRAWL_DIR") == "command line"
    assert set_by(settings, "WEBCRAWL_SYNC") == "project"
    assert set_by(settings, "WEBCRAWL_PROGRESS") == "priority 17"
    assert set_by(settings, "WEBCRAWL_CONTACT") == "default"


def test_who_set_it_in_a_plain_mapping() -> None:
    assert set_by({"WEBCRAWL_DIR": "x"}, "WEBCRAWL_DIR") == "given"
    assert set_by({}, "WEBCRAWL_DIR") == "default"


# ------------------------------------------------------------------------------------------ declaring


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings declared by a test are gone after it."""
    monkeypatch.setattr(config, "_declared", dict(config._declared))
    monkeypatch.setattr(config, "_of_class", dict(config._of_class))


@pytest.mark.usefixtures("own_registry")
def test_a_strategy_declares_its_own_settings() -> None:
    @declare
    @dataclass(frozen=True)
    class Opic:
        """A strategy's settings."""

        colour: Colour = setting("WEBCRAWL_OPIC_COLOUR", Colour.RED, doc="Its colour.", why="Red is visible.")
        helper: int = 3

    assert load(Opic, {"WEBCRAWL_OPIC_COLOUR": "blue"}) == Opic(Colour.BLUE)
    check_names(["WEBCRAWL_OPIC_COLOUR"])
    assert [one.rule for one in all_settings() if one.concern is Opic] == ["one of red, blue"]


@pytest.mark.usefixtures("own_registry")
def test_mistakes_of_a_declaration_are_found_at_import() -> None:
    @dataclass(frozen=True)
    class Taken:
        """A name that exists."""

        times: int = setting("WEBCRAWL_RETRY_TIMES", 2, doc="Twice.", why="Declared already.")

    @dataclass(frozen=True)
    class Outside:
        """A default outside its own bounds."""

        times: int = setting("WEBCRAWL_OUTSIDE", 2, at_least=3, doc="Twice.", why="None.")

    with pytest.raises(AssertionError, match="declared twice"):
        declare(Taken)
    with pytest.raises(SettingError, match="is below 3"):
        declare(Outside)


def test_rules_in_words() -> None:
    rules = {one.name: one.rule for one in all_settings()}
    assert rules["WEBCRAWL_POLITENESS_DELAY_SECONDS"] == "a number, 1.0 or more"
    assert rules["WEBCRAWL_COMMIT_PAGES"] == "a whole number, from 1 to 10000"
    assert rules["WEBCRAWL_FOREVER"] == "true or false"
    assert rules["WEBCRAWL_SAFETY_ALLOW"] == "a list of texts"
