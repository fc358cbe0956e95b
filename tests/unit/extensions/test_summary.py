"""The end of a crawl in words and as JSON; the extension around it is tested with real crawls."""

from __future__ import annotations

import doctest
import io
import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from webcrawl.core.frontier import Counts
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.pagetable import PageTable
from webcrawl.core.reasons import Reason
from webcrawl.extensions import summary
from webcrawl.extensions.summary import ENDINGS, FAILURES, Facts, Feed, Share, as_json, plain

COMMAND = "scrapy crawl web -a seeds=seeds.txt"
DONE = Facts(
    reason="finished",
    counts=Counts(known=300, stored=300, hosts=20),
    session=Share(300, 4_200_000, 12.0),
    run=Share(300, 4_200_000, 12.0),
    directory="/runs/web",
    command=COMMAND,
    feeds=(Feed("/out/pages.jsonl", 3_900_000), Feed("s3://bucket/pages.json", None)),
)
PAUSED = Facts(
    reason="waiting",
    counts=Counts(known=1250, stored=1000, resting=7, refused=203, gone=40, hosts=1),
    session=Share(400, 800, 3725.0),
    run=Share(1000, 2000, 90_000.0),
    directory="/runs/web",
    command=COMMAND,
    sessions=3,
    links_not_taken={Reason.OUT_OF_SCOPE: 5, Reason.EXCLUDED: 1200},
    pages={
        State.STORED: {Reason.ALIAS: 12},
        State.REFUSED: {Reason.TOO_DEEP: 203},
        State.GONE: {Reason.TIMEOUT: 1, Reason.NOT_FOUND: 39},
        State.RESTING: {Reason.TIMEOUT: 7},
    },
    requests_lost=2,
    next_at=1_800_000_000.0,
)


def test_a_finished_crawl() -> None:
    assert plain(DONE) == (
        "The crawl is finished: every page that it knows and may fetch was asked for.\n"
        "Fetched\n"
        "  this session   300 pages, 4.2 MB, 12.0 s, 25.0 pages/s\n"
        "  the whole run  300 pages, 4.2 MB, 12.0 s, 20 hosts, 1 session\n"
        "Not fetched\n"
        "  nothing that was found\n"
        "Results\n"
        "  feed           /out/pages.jsonl (3.9 MB)\n"
        "  feed           s3://bucket/pages.json\n"
        "  run directory  /runs/web\n"
        "Next\n"
        "  Nothing is left to do; the same command again changes nothing. More seeds: -a add=true."
    )


def test_a_crawl_that_waits_says_what_is_missing_and_why() -> None:
    assert plain(PAUSED).splitlines()[1:] == [
        "Fetched",
        "  this session   400 pages, 800 B, 1 h 2 min, 0.1 pages/s",
        "  the whole run  1,000 pages, 2.0 kB, 1 d 1 h, 1 host, 3 sessions",
        f"  of it, alias   12: {Reason.ALIAS.sentence}",
        "Not fetched",
        "  links not taken                   1,205",
        f"    excluded                        1,200: {Reason.EXCLUDED.sentence}",
        f"    out_of_scope                    5: {Reason.OUT_OF_SCOPE.sentence}",
        "  pages refused                     203",
        f"    too_deep                        203: {Reason.TOO_DEEP.sentence}",
        "  pages gone                        40",
        f"    not_found                       39: {Reason.NOT_FOUND.sentence}",
        f"    timeout                         1: {Reason.TIMEOUT.sentence}",
        "  pages resting, to be tried again  7",
        f"    timeout                         7: {Reason.TIMEOUT.sentence}",
        "  requests lost                     2: they cannot be written down and end with this process",
        "Results",
        "  run directory  /runs/web",
        "Next",
        "  7 pages must wait, the first until 2027-01-15 08:00:00 UTC.",
        "  The same command goes on where this one ended:",
        f"  {COMMAND}",
    ]


def test_every_reason_is_told_with_its_sentence() -> None:
    reasons = {reason: int(reason) for reason in Reason if reason}
    text = plain(replace(DONE, links_not_taken=reasons))
    assert [reason for reason in reasons if f"{reason.key} " not in text or reason.sentence not in text] == []


@pytest.mark.parametrize(
    ("reason", "counts", "next_line"),
    [
        ("shutdown", Counts(known=9, ready=9), "The same command goes on where this one ended:"),
        ("page_limit", Counts(known=9, ready=9), "With a higher WEBCRAWL_LIMIT_PAGES the same command goes on"),
        ("store_failed", Counts(known=9, stored=9), "Look at the disk; then the same command goes on"),
        ("time_limit", Counts(known=9, stored=9), "Nothing is left to do"),
        ("my_own_reason", Counts(known=9, leased=1), "The same command goes on where this one ended:"),
    ],
)
def test_what_to_do_next(reason: str, counts: Counts, next_line: str) -> None:
    facts = replace(DONE, reason=reason, counts=counts)
    text = plain(facts)
    assert text.startswith(ENDINGS.get(reason, "The crawl was closed: my_own_reason."))
    assert f"\n  {next_line}" in text
    assert (COMMAND in text) == ("Nothing is left" not in next_line)
    assert facts.has_failed == (reason in FAILURES)


def test_seeds_that_were_all_refused_are_a_failure() -> None:
    facts = replace(DONE, counts=Counts(), links_not_taken={Reason.NOT_ALLOWED: 1})
    assert facts.has_failed
    assert plain(facts).startswith("Nothing was fetched: every seed was refused.")
    assert "Allow the hosts of the seeds" in plain(facts)


def test_the_table_of_a_terminal_says_the_same() -> None:
    screen = io.StringIO()
    summary.show(PAUSED, Console(file=screen, width=300))
    shown = [" ".join(line.split()) for line in screen.getvalue().splitlines()]
    assert shown == [" ".join(line.split()) for line in plain(PAUSED).splitlines()]


def test_the_command_can_be_copied_whole_from_a_narrow_terminal() -> None:
    screen = io.StringIO()
    command = "scrapy crawl web -a seeds=" + "x" * 100
    summary.show(replace(PAUSED, command=command), Console(file=screen, width=40))
    assert f"  {command}\n" in screen.getvalue()


def test_the_facts_for_programs() -> None:
    facts = as_json(PAUSED)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["reason"] == "waiting"
    assert (facts["failed"], facts["complete"], facts["next_at"]) == (False, False, 1_800_000_000.0)
    assert facts["session"] == {"pages": 400, "bytes": 800, "seconds": 3725.0, "pages_per_second": 400 / 3725}
    assert facts["run"]["sessions"] == 3
    assert sum(facts["pages"].values()) == 2 * facts["pages"]["known"]
    assert facts["pages_by_reason"]["gone"] == {"timeout": 1, "not_found": 39}
    assert facts["links_not_taken"] == {"out_of_scope": 5, "excluded": 1200}
    assert (facts["resume"], as_json(DONE)["resume"]) == (COMMAND, None)
    assert as_json(DONE)["feeds"][0] == {"uri": "/out/pages.jsonl", "bytes": 3_900_000}


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (["/p/python", "/v/bin/scrapy", "crawl", "web", "-a", "seeds=a b.txt"], "scrapy crawl web -a 'seeds=a b.txt'"),
        (["/p/python3", "-m", "scrapy", "crawl", "web"], "python3 -m scrapy crawl web"),
        (["python", "own.py", "--proxy", "http://me:secret@proxy:1/"], "python own.py --proxy 'http://***@proxy:1/'"),
        (["scrapy", "-s", "X=http://u@h/,ftp://u:p@h/?a@b"], "scrapy -s 'X=http://***@h/,ftp://***@h/?a@b'"),
    ],
)
def test_the_command_line_is_quoted_and_hides_passwords(typed: list[str], shown: str) -> None:
    assert summary.command_line(typed) == shown


def test_reasons_are_counted_by_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "PAGES_AT_ONCE", 2)
    table = PageTable(16)
    numbers = np.arange(1, 6, dtype=np.uint64)
    table.append_pages(numbers, numbers, numbers, numbers * 0, numbers)
    for page, event, reason in [
        (1, Event.STORE, Reason.NONE),
        (2, Event.STORE, Reason.ALIAS),
        (3, Event.GIVE_UP, Reason.NOT_FOUND),
        (4, Event.GIVE_UP, Reason.NOT_FOUND),
        (5, Event.REFUSE, Reason.TOO_LARGE),
    ]:
        table.claim(page)
        table.move(page, event, reason)
    assert summary.reasons_by_state(table) == {
        State.STORED: {Reason.ALIAS: 1},
        State.GONE: {Reason.NOT_FOUND: 2},
        State.REFUSED: {Reason.TOO_LARGE: 1},
    }


def test_examples_run() -> None:
    assert doctest.testmod(summary).failed == 0
