"""The verdicts of other parsers' suites: ours are the same, except where the row says why not."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path

import pytest

from webcrawl.core import robots

ROWS = [json.loads(line) for line in (Path(__file__).parent / "robots_cases.jsonl").read_text("utf-8").splitlines()]
SOURCES = {
    "google/robotstxt": 109,
    "google/robotstxt-spec-test": 319,
    "scrapy/protego": 264,
    "crawler-commons": 194,
    "seomoz/reppy": 60,
}


def body_of(row):
    return base64.b64decode(row["robots_b64"]) if "robots_b64" in row else row["robots"].encode()


@pytest.mark.parametrize("source", SOURCES)
def test_verdicts_of_the_suite(source):
    rows = [row for row in ROWS if row["source"] == source]
    assert len(rows) == SOURCES[source]
    for row in rows:
        rules = robots.parse(body_of(row), row["agent"])
        assert rules.allows(row["url"]) == (row["allowed"] != ("differs" in row)), row
        assert rules.verdict(row["url"]).allowed == rules.allows(row["url"]), row


def test_differences_are_counted():
    differing = Counter(row["source"] for row in ROWS if "differs" in row)
    assert differing == {
        "google/robotstxt": 4,
        "google/robotstxt-spec-test": 11,
        "scrapy/protego": 7,
        "crawler-commons": 1,
        "seomoz/reppy": 2,
    }
