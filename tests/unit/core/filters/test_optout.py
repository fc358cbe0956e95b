"""The opt-out list: what its lines mean, and that none is lost."""

from __future__ import annotations

import pytest

from webcrawl.core.errors import SettingError
from webcrawl.core.filters import Admission
from webcrawl.core.filters.optout import OptOut, parse_optout
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, resolve

LIST = """\ufeff# those who wrote to us
www.example.org            # on 3 May
.example.net
*.star.example
Bücher.example
192.0.2.7
[2001:DB8::1]

https://start.example/
pages.example/private/*
pages.example/one.html
pages.example/~jo/*.pdf
http://pages.example/search?q=*
.below.example/*/draft/*
"""


def is_refused(rule, url):
    found = resolve("http://x.test/", [url])[0]
    assert found is not None
    return rule.refuse(found, host_of(found)) is Reason.OPTED_OUT


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://www.example.org/", True),
        ("https://www.example.org:8443/any?thing", True),
        ("http://www.example.org./", True),
        ("http://example.org/", False),
        ("http://a.www.example.org/", False),
        ("http://example.net/", True),
        ("http://a.b.example.net/x", True),
        ("http://notexample.net/", False),
        ("http://star.example/", True),
        ("http://a.star.example/", True),
        ("http://bücher.example/", True),
        ("http://192.0.2.7/", True),
        ("http://[2001:db8:0::1]/", True),
        ("http://start.example/", True),
        ("https://start.example/more", True),
        ("http://pages.example/", False),
        ("http://pages.example/private/", True),
        ("https://pages.example/private/a/b?c", True),
        ("http://pages.example/private", False),
        ("http://pages.example/public/../private/x", True),
        ("http://pages.example/one.html", True),
        ("http://pages.example/one.html?x", False),
        ("http://pages.example/%7Ejo/a.pdf", True),
        ("http://pages.example/~jo/a.pdf.html", False),
        ("http://pages.example/search?q=word", True),
        ("http://pages.example/search?p=word", False),
        ("http://www.below.example/a/draft/b", True),
        ("http://below.example/draft/b", False),
        ("http://elsewhere.example/", False),
    ],
)
def test_what_a_list_refuses(url, expected):
    rule = parse_optout(LIST, "list.txt")
    assert is_refused(rule, url) is expected
    assert is_refused(rule, url) is expected, "from memory, too"


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/a*b*c", "/a1b2c", True),
        ("/a*b*c", "/abc", True),
        ("/a*b*c", "/acb", False),
        ("/ab*ba", "/aba", False),
        ("/ab*ba", "/abba", True),
        ("/**", "/", True),
        ("/*", "/x", True),
        ("/*" + "a*" * 30 + "b", "/" + "a" * 3000, False),
    ],
)
def test_asterisks(pattern, path, expected):
    assert is_refused(OptOut([f"a.example{pattern}"]), f"http://a.example{path}") is expected


def test_an_empty_list_refuses_nothing():
    assert not is_refused(parse_optout("# nobody\n\n", "list.txt"), "http://a.example/")


def test_a_new_list_counts_at_once():
    assert not OptOut.by_host, "a verdict that others remember would outlive the list"


def test_admission_asks_it():
    admission = Admission([OptOut(["a.example"])])
    assert admission.refuse("http://a.example/", "a.example") is Reason.OPTED_OUT
    assert admission.refuse("http://b.example/", "b.example") is None


@pytest.mark.parametrize(
    "line",
    [
        "please remove us",
        "me@example.org",
        "example.org:8080",
        "*",
        ".",
        "..",
        "*.",
        "a.*.org",
        "10.0.0.0/8",
        "2001:db8::/32",
        "::1",
        "ftp://a.example/",
        "http://",
        "/private/*",
        "a.example?x",
        "<b>",
        "xn--\u00e4.example",
    ],
)
def test_a_line_that_cannot_be_understood_stops_the_start(line):
    with pytest.raises(SettingError) as refusal:
        parse_optout(f"a.example\n{line}\n", "list.txt")
    assert str(refusal.value) == (
        f"The opt-out list list.txt has a line that cannot be understood: line 2: {line}. Somebody who asked us to "
        "stay away would be visited all the same. Write a host (www.example.org), a site (.example.org) or pages "
        "(example.org/private/*), without port, or begin the line with #."
    )


def test_many_bad_lines_are_counted():
    with pytest.raises(
        SettingError, match=r"has 5 lines that cannot be understood: line 1: a b; .*line 3: a b and 2 more"
    ):
        parse_optout("a b\n" * 5, "list.txt")
