"""Errors of ours become one sentence in the log, once; other errors keep their traceback."""

from __future__ import annotations

import logging

import pytest

from webcrawl.core.errors import SeedError
from webcrawl.oneline import OneSentence


def record(error: BaseException) -> logging.LogRecord:
    return logging.LogRecord(
        "asyncio", logging.ERROR, __file__, 1, "Task %s failed", ("x",), (type(error), error, None)
    )


def after(cause: BaseException, attribute: str) -> BaseException:
    """An error as Python makes it by `raise ... from cause`, or while `cause` is handled."""
    error = RuntimeError("Engine slot not assigned")
    setattr(error, attribute, cause)
    return error


OURS = SeedError("No seeds\nwere given.", "", "Name \x1b[1ma file.")
SENTENCE = r"No seeds\nwere given. Name \x1b[1ma file."


@pytest.mark.parametrize(
    "error",
    [OURS, after(OURS, "__context__"), after(after(OURS, "__cause__"), "__context__")],
    ids=["itself", "while handled", "because of"],
)
def test_an_error_of_ours_is_its_sentence_on_one_line(error: BaseException) -> None:
    told, one = OneSentence(), record(error)
    assert told.filter(one)
    assert (one.name, one.getMessage(), one.exc_info) == ("webcrawl", SENTENCE, None)


def test_it_is_told_once_and_the_next_one_again() -> None:
    told = OneSentence()
    assert [told.filter(record(error)) for error in (OURS, OURS, SeedError("Another."))] == [True, False, True]


def test_a_bug_keeps_its_traceback() -> None:
    circle = RuntimeError("a bug")
    circle.__context__ = ValueError("its cause")
    circle.__context__.__context__ = circle
    one = record(circle)
    assert OneSentence().filter(one)
    assert (one.getMessage(), one.exc_info and one.exc_info[1]) == ("Task x failed", circle)


def test_records_without_an_error_pass() -> None:
    one = logging.LogRecord("asyncio", logging.ERROR, __file__, 1, "hello", (), None)
    assert OneSentence().filter(one)
    assert one.getMessage() == "hello"
