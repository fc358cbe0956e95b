"""Every reason has a sentence of its own and a number that stays."""

from __future__ import annotations

from webcrawl.core import config
from webcrawl.core.reasons import SENTENCES, Reason


def test_every_reason_has_its_own_sentence():
    assert set(SENTENCES) == set(Reason)
    assert len(set(SENTENCES.values())) == len(Reason)
    for reason in Reason:
        assert not reason.sentence.endswith("."), "it goes into a longer sentence"


def test_settings_named_in_sentences_exist():
    words = {word.strip("(),") for sentence in SENTENCES.values() for word in sentence.split() if "WEBCRAWL_" in word}
    config.check_names(words)


def test_numbers_are_stored_and_stay():
    stored = {0: "NONE", 1: "OUT_OF_SCOPE", 6: "HOST_FULL", 20: "TOO_DEEP", 22: "CRASHED", 40: "NOT_FOUND", 60: "ALIAS"}
    stored |= {9: "NOFOLLOW", 62: "NOINDEX"}
    assert {number: Reason(number).name for number in stored} == stored
    assert max(Reason) < 256, "one byte a page"


def test_the_key_is_the_name_in_lower_case():
    assert Reason.TOO_DEEP.key == "too_deep"
