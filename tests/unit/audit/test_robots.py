"""The auditor's own reader of robots.txt, with the examples of RFC 9309."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.audit.robots import is_product, one_spelling, policy_for, product_token

RFC_5_1 = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


def allows(text: str, path: str, token: str = "examplebot") -> bool:
    return policy_for(text, token).forbidding(path) is None


@pytest.mark.parametrize(
    ("token", "path", "expected"),
    [
        ("other", "/a.gif", False),
        ("other", "/a.gif?x", True),
        ("other", "/example/x", False),
        ("other", "/publications/x", True),
        ("foobot", "/x", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/robots.txt", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/allowed.gif", True),
        ("quxbot", "/example/x", True),
    ],
)
def test_simple_example_of_the_rfc(token, path, expected):
    assert allows(RFC_5_1, path, token) is expected


def test_the_longest_match_counts_and_allow_wins_a_tie():
    assert not allows("User-Agent: *\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif",
                      "/example/page/disallowed.gif")  # fmt: skip
    assert allows("User-agent: *\nDisallow: /x\nAllow: /x", "/x")
    assert not allows("User-agent: *\nAllow: /\nDisallow: /x*y", "/xay")


@pytest.mark.parametrize(
    ("rule", "path", "is_match"),
    [
        # RFC 9309, section 2.2.2
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", True),
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar", True),
        ("/foo/bar/\xe3\x83\x84", "/foo/bar/%E3%83%84", True),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", True),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", True),
        ("/a%2Fb", "/a/b", False),
        # section 2.2.3
        ("/this/path/exactly$", "/this/path/exactly", True),
        ("/this/path/exactly$", "/this/path/exactly/not", False),
        ("/this/*/exactly", "/this/any/path/exactly", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html", True),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-x.html", False),
        ("/path/foo-%24", "/path/foo-$", True),
        ("/a$b", "/a$b", True),
        ("*", "/x", True),
        ("/*a*b*c$", "/xaybzc", True),
        ("/*a*b*c$", "/xaybzcd", False),
        ("/*ab*abc$", "/ababcabc", True),
        ("/*?session=", "/p?session=1", True),
        ("/*?session=", "/p?x", False),
    ],
)
def test_patterns(rule, path, is_match):
    assert allows(f"User-agent: *\nDisallow: {rule}", path) is not is_match


def test_groups_of_one_agent_count_together():
    text = "User-agent: ExampleBot\nDisallow: /a\nUser-agent: *\nDisallow: /\nuser-agent: examplebot/2 #\nDISALLOW : /b"
    assert [allows(text, path) for path in ("/a", "/b", "/c")] == [False, False, True]


def test_other_lines_do_not_end_a_group():
    text = (
        "User-agent: a\nCrawl-delay: 5\nSitemap: https://a.example/s.xml\nUser-agent: b\nDisallow: /x\nCrawl-delay: 7"
    )
    assert not allows(text, "/x", "a")
    assert not allows(text, "/x", "b")
    assert policy_for(text, "a").crawl_delay_seconds == 7
    assert policy_for("User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow:", "b").crawl_delay_seconds == 0


@pytest.mark.parametrize(
    ("value", "seconds"), [("2", 2), ("0.5", 0.5), ("-1", 0), ("x", 0), ("nan", 0), ("inf", 0), ("", 0)]
)
def test_crawl_delay(value, seconds):
    assert policy_for(f"User-agent: *\nCrawl-delay: {value}", "b").crawl_delay_seconds == seconds


def test_odd_files():
    assert allows("", "/x")
    assert allows("Disallow: /", "/x")
    assert allows("User-agent: *\nDisallow:", "/x")
    assert not allows("\xef\xbb\xbfUser-agent: *\rDisallow: /x # no", "/x")
    assert not allows("User-agent: 360Spider\nDisallow: /", "/x", "360spider")


def test_rules_after_500_kibibytes_do_not_count():
    text = "User-agent: *\nDisallow: /a\n" + "#" * 512_000 + "\nDisallow: /b"
    assert not allows(text, "/a")
    assert allows(text, "/b")


def test_a_hostile_rule_costs_little():
    assert allows("User-agent: *\nDisallow: /" + "*a" * 500 + "b$", "/" + "a" * 2000)


def test_tokens():
    assert product_token("ExampleBot/1.0 (+https://bot.example)") == "examplebot"
    assert product_token("(nobody)") == ""
    assert is_product("examplebot", "examplebot")
    assert is_product("ExampleBot", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://e.example/bot)")
    assert not is_product("bot", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://e.example/bot)")
    assert not is_product("example", "ExampleBot/1.0")


@given(st.text(), st.text(max_size=10), st.text())
def test_reading_never_raises(text, token, path):
    policy_for(text, token).forbidding(path)
    policy_for(f"User-agent: *\nDisallow: {text}\nAllow: {path}", token).forbidding(path)


@given(st.text())
def test_one_spelling_is_final(path):
    assert one_spelling(one_spelling(path)) == one_spelling(path)
