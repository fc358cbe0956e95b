"""Rules that refuse a URL by its looks."""

from __future__ import annotations

from typing import ClassVar

import pytest

from webcrawl.core.errors import SettingError
from webcrawl.core.filters import Admission
from webcrawl.core.filters.patterns import ExcludePatterns, IncludePatterns, LengthLimit, compiled
from webcrawl.core.filters.scope import scope_rules
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of

SEEDS = ["http://www.example.co.uk/a", "http://127.0.0.1:8000/"]


def verdict(rules, url):
    return Admission(rules).refuse(url, host_of(url))


@pytest.mark.parametrize(
    ("scope", "url", "is_taken"),
    [
        ("hosts", "http://www.example.co.uk/b?c", True),
        ("hosts", "https://www.example.co.uk:8443/b", True),
        ("hosts", "http://shop.example.co.uk/", False),
        ("hosts", "http://127.0.0.1:9000/", True),
        ("sites", "http://shop.example.co.uk/", True),
        ("sites", "http://other.co.uk/", False),
        ("sites", "http://127.0.0.2/", False),
        ("all", "http://anywhere.test/", True),
        (r"^https?://[^/]*\.test/", "http://a.test/x", True),
        (r"^https?://[^/]*\.test/", "http://a.org/?http://b.test/", False),
    ],
)
def test_scope(scope, url, is_taken):
    assert verdict(scope_rules(scope, SEEDS), url) == (None if is_taken else Reason.OUT_OF_SCOPE)


def test_a_scope_that_is_no_pattern_is_said():
    with pytest.raises(SettingError, match=r"-a scope=\(hosts is neither hosts, sites nor all.*Use one of the three"):
        scope_rules("(hosts", SEEDS)


def test_patterns_and_length():
    exclude = ExcludePatterns(compiled((r"\.zip$", r"/private/")))
    include = IncludePatterns(compiled((r"/en/", r"/de/")))
    limit = LengthLimit(30)
    assert verdict([exclude], "http://a.test/x.zip") is Reason.EXCLUDED
    assert verdict([exclude], "http://a.test/x.zip?y") is None
    assert verdict([include], "http://a.test/fr/") is Reason.NOT_INCLUDED
    assert verdict([include, exclude], "http://a.test/en/x") is None
    assert verdict([limit], "http://a.test/" + "x" * 16) is None
    assert verdict([limit], "http://a.test/" + "x" * 17) is Reason.TOO_LONG


def test_alternatives_inside_a_pattern_stay_inside():
    flagged = ExcludePatterns(compiled(("(?i)logout", r"/(a+)/\1/")))
    assert flagged.refuse("http://a.test/LogOut", "a.test") is Reason.EXCLUDED
    assert flagged.refuse("http://a.test/aa/aa/", "a.test") is Reason.EXCLUDED
    assert flagged.refuse("http://a.test/ab/aa/", "a.test") is None


class UrlRule:
    """A rule that notes what it is asked."""

    by_host: ClassVar[bool] = False

    def __init__(self, reason: Reason | None = None) -> None:
        self.reason, self.asked = reason, list[str]()

    def refuse(self, url: str, host: str) -> Reason | None:
        self.asked.append(url)
        return self.reason


class HostRule(UrlRule):
    """The same for rules that look at the host only."""

    by_host: ClassVar[bool] = True


def test_verdicts_on_hosts_are_remembered_and_those_on_urls_are_not():
    by_host, by_url = HostRule(), UrlRule()
    admission = Admission([by_url, by_host])
    for url in ("http://a.test/1", "http://a.test/2", "https://a.test/3", "http://b.test/4"):
        admission.refuse(url, host_of(url))
    assert by_host.asked == ["http://a.test/1", "https://a.test/3", "http://b.test/4"]
    assert len(by_url.asked) == 4


def test_the_first_refusal_counts():
    rules = [HostRule(Reason.OUT_OF_SCOPE), HostRule(Reason.NOT_ALLOWED), UrlRule(Reason.EXCLUDED)]
    assert verdict(rules, "http://a.test/") is Reason.OUT_OF_SCOPE
    assert not rules[2].asked


def test_patterns_are_searched_not_matched():
    assert ExcludePatterns(compiled(("end$",))).refuse("http://a.test/the-end", "a.test") is Reason.EXCLUDED
