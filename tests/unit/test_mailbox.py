"""The folder of commands: whole files only, oldest first, and nothing is taken away before it is answered."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from webcrawl.mailbox import MOST_URLS, STALE_SECONDS, Mailbox


@pytest.fixture
def mailbox(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path)


def test_a_command_waits_until_it_is_answered_and_the_answer_until_it_is_taken(mailbox: Mailbox):
    name = mailbox.post({"command": "pause"})
    assert mailbox.waiting() == [name]
    assert mailbox.take_answer(name) is None
    assert mailbox.read(name) == {"command": "pause"}
    mailbox.answer(name, {"command": "pause"}, {"applied": True})
    assert mailbox.waiting() == []
    assert mailbox.take_answer(name) == {"applied": True}
    assert mailbox.take_answer(name) is None
    [line] = (mailbox.path / "log.jsonl").read_text().splitlines()
    assert json.loads(line)["command"] == "pause"
    assert json.loads(line)["answer"] == {"applied": True}


def test_commands_are_read_in_the_order_in_which_they_were_given(mailbox: Mailbox):
    names = [mailbox.post({"command": "pause"}) for _ in range(20)]
    assert mailbox.waiting() == names


def test_what_is_still_being_written_is_not_seen(mailbox: Mailbox):
    (mailbox.path / ".5.json").write_text('{"comm')
    assert mailbox.waiting() == []


def test_a_command_can_be_taken_back_and_its_folder_is_private(mailbox: Mailbox):
    mailbox.withdraw(mailbox.post({"command": "status"}))
    assert mailbox.waiting() == []
    assert mailbox.path.stat().st_mode & 0o777 == 0o700


def test_only_the_first_of_many_seeds_are_logged(mailbox: Mailbox):
    urls = [f"http://a.test/{number}" for number in range(MOST_URLS * 2)]
    mailbox.answer("1", {"command": "seeds", "urls": urls}, {})
    assert json.loads((mailbox.path / "log.jsonl").read_text())["urls"] == urls[:MOST_URLS]


def test_answers_that_nobody_came_for_are_cleared_away_and_commands_are_not(mailbox: Mailbox):
    command = mailbox.post({"command": "pause"})
    for name, age in (
        ("old.answer.json", STALE_SECONDS + 1),
        ("new.answer.json", 1),
        (f"{command}.json", STALE_SECONDS * 9),
    ):
        path = mailbox.path / name
        path.touch()
        os.utime(path, (1e9 - age, 1e9 - age))
    mailbox.clear(1e9)
    assert sorted(path.name for path in mailbox.path.iterdir()) == sorted([f"{command}.json", "new.answer.json"])
