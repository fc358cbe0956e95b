"""What pages and headers ask of robots: every way of saying it that sites use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webcrawl.core import directives
from webcrawl.core.directives import HEADER_NAMES, NONE, Directives, followed, follows, meta_names, page_directives


def meta(*contents, name="robots"):
    return page_directives("webcrawl", metas=[(name, content) for content in contents])


def header(*values, name="X-Robots-Tag"):
    return page_directives("webcrawl", headers=[(name, value) for value in values])


@pytest.mark.parametrize(
    ("contents", "asked"),
    [
        (["noindex"], Directives(noindex=True)),
        (["NoIndex,NOFOLLOW"], Directives(noindex=True, nofollow=True)),
        (["none"], Directives(noindex=True, nofollow=True)),
        (["index, follow, all"], NONE),
        (["index", "noindex"], Directives(noindex=True)),
        ([" noarchive ;nosnippet"], Directives(noarchive=True, nosnippet=True)),
        (["nocache, max-snippet:0"], Directives(noarchive=True, nosnippet=True)),
        (["noai, noimageai"], Directives(other=("noai", "noimageai"))),
        (
            ["max-snippet : -1, max-image-preview:large"],
            Directives(other=("max-snippet: -1", "max-image-preview: large")),
        ),
        (["", " , ,"], NONE),
        (["noindexing"], Directives(other=("noindexing",))),
    ],
)
def test_meta_and_header_say_the_same(contents, asked):
    assert meta(*contents) == header(*contents) == asked


def test_meta_for_a_robot_by_name():
    assert meta("noindex", name="WebCrawl") == Directives(noindex=True)
    assert meta("noindex", name="googlebot") == NONE
    assert page_directives("", metas=[("", "noindex")]) == NONE


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (["googlebot: noindex"], NONE),
        (["webcrawl: noindex"], Directives(noindex=True)),
        (["WebCrawl : noindex"], Directives(noindex=True)),
        (["*: nofollow"], Directives(nofollow=True)),
        (["googlebot: noindex, nofollow"], NONE),
        (["noarchive, googlebot: noindex, webcrawl: nofollow, nosnippet"],
         Directives(nofollow=True, noarchive=True, nosnippet=True)),
        (["googlebot: noindex", "nofollow"], Directives(nofollow=True)),  # a name holds in its own header only
        (["webcrawl: max-snippet: 0"], Directives(nosnippet=True)),
        (["googlebot: max-snippet: 0"], NONE),
    ],
)  # fmt: skip
def test_header_for_a_robot_by_name(values, asked):
    assert header(*values) == asked


@pytest.mark.parametrize(
    "date",
    [
        "25 Jun 2030 15:00:00 PST",
        "Wed, 25 Jun 2030 15:00:00 PST",
        "June 25, 2030",
        "2030-06-25T15:00:00+00:00",
        "Wednesday, 25-Jun-30 15:00:00 UTC",
    ],
)
def test_a_date_may_hold_commas(date):
    kept = f"unavailable_after: {date.lower()}"
    assert header(f"unavailable_after: {date}, noindex") == Directives(noindex=True, other=(kept,))
    assert header(f"noindex, webcrawl: unavailable_after: {date}") == Directives(noindex=True, other=(kept,))
    assert header(f"googlebot: unavailable_after: {date}, noindex") == NONE


def test_signals_are_collected_as_said():
    found = page_directives(
        "webcrawl",
        metas=[("tdm-reservation", "1"), ("TDM-Policy", "https://a/policy.json")],
        headers=[("Content-Signal", "search=yes,  ai-train=no"), ("tdm-reservation", "1"), ("Server", "x")],
        robots_signals=["content-usage: train-ai=n"],
    )
    assert found == Directives(
        signals=(
            "content-usage: train-ai=n",
            "tdm-reservation: 1",
            "tdm-policy: https://a/policy.json",
            "content-signal: search=yes, ai-train=no",
        )
    )


def test_results_are_small():
    found = header(", ".join(f"x{i}" for i in range(5000)))
    assert len(found.other) == directives.MAX_OTHER
    (signal,) = header("y" * 10**6, name="Content-Signal").signals
    assert len(signal) == directives.MAX_SIGNAL_CHARACTERS
    assert len(header(*map(str, range(100)), name="Content-Signal").signals) == directives.MAX_SIGNALS


def test_links():
    heeded = frozenset({"nofollow", "ugc", "sponsored"})
    assert follows("", heeded) and follows("noopener external", heeded) and follows("nofollow", frozenset())
    for rel in ("nofollow", "NOFOLLOW noopener", "ugc,sponsored", "\tugc\n"):
        assert not follows(rel, heeded)


def test_links_of_a_page():
    links, rels = ["a", "b", "c", "d"], ["", "noopener", "nofollow noopener", "ugc"]
    assert followed(links, rels, frozenset({"nofollow"})) == ["a", "b", "d"]
    assert followed(links, rels, frozenset({"nofollow", "ugc"})) == ["a", "b"]
    assert followed(links, rels, frozenset()) is links
    assert followed(links, [""] * 4, frozenset({"nofollow"})) is links


def test_everything_that_was_asked_can_be_written_down():
    found = header("googlebot: none, webcrawl: noarchive, noai", "noindex")
    assert found.words() == ["noindex", "noarchive", "noai"]
    assert header("1", name="TDM-Reservation").words() == ["tdm-reservation: 1"]
    assert NONE.words() == header("index, follow").words() == []


def test_where_to_look():
    assert meta_names("WebCrawl ") == {"robots", "webcrawl", *HEADER_NAMES} - {"x-robots-tag"}
    assert "" not in meta_names("")


words = st.lists(st.sampled_from([*"a:,; \n*0é", "noindex", "webcrawl", "unavailable_after", "none"])).map("".join)


@given(st.text() | words, st.text() | words, st.text(max_size=5), st.sampled_from(["X-Robots-Tag", "tdm-policy", "x"]))
def test_nothing_raises_and_what_forbids_wins(first, second, token, name):
    alone = page_directives(token, headers=[(name, first)])
    both = page_directives(token, metas=[("robots", second)], headers=[(name, first)], robots_signals=[second])
    assert isinstance(follows(first, frozenset({second})), bool)
    for wish in ("noindex", "nofollow", "noarchive", "nosnippet"):
        assert getattr(both, wish) >= getattr(alone, wish)
