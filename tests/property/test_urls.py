"""Addresses of any shape: one spelling stays one spelling, and what we cut out of strings is what a parser finds."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from url import URL

from webcrawl.core import urls

# Pieces that mean something in a URL, so that random strings of them reach every corner of its grammar.
PIECES = [
    *("a", "B", "é", "ß", "1", "0x7f", "80", "~", "^", "|", "+", "'", '"', "<", " ", "\t", "\n", "\0", "\ud800", "１"),
    *(".", "..", "./", ".:", "/", "//", "///", "\\", ":", "@", "[::1]", ";", "xn--", "http:", "https://", "mailto:"),
    *("?", "#", "&", "=", "a=1", "b=2", "%", "%2e", "%2E", "%41", "%2f", "%%32", "%c3%a9"),
]
pieces = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)
hrefs = st.one_of(pieces, pieces.map("http://".__add__), pieces.map("https://h/".__add__), st.text(max_size=20))
bases = st.sampled_from(["http://example.org/a/b?c#d", "https://h:8080/", "http://u:p@x.y./z/"])


@given(bases, st.lists(hrefs, max_size=8))
def test_resolve_gives_parsed_urls_or_none(base: str, links: list[str]) -> None:
    found = urls.resolve(base, links)
    assert len(found) == len(links)
    for url in filter(None, found):
        assert str(URL.parse(url)) == url
        assert url.startswith(("http://", "https://"))
        assert "#" not in url


@given(bases, st.lists(hrefs, max_size=8))
def test_links_do_not_depend_on_their_neighbours(base: str, links: list[str]) -> None:
    assert urls.resolve(base, links) == [urls.resolve(base, [link])[0] for link in links]


@given(bases, st.lists(hrefs, min_size=1, max_size=8))
@example("http://h/", ["%%32%65"])
@example("http://h/", ["http://0x7f../", "http://a./", "?b&a&&"])
def test_canonical_is_a_fixed_point(base: str, links: list[str]) -> None:
    found = [url for url in urls.resolve(base, links) if url]
    forms = urls.canonicals(found)
    assert forms == [urls.canonical(url) for url in found], "the fast way and the careful way agree"
    assert urls.canonicals(forms) == forms
    assert [urls.canonical(form) for form in forms] == forms


@given(bases, hrefs)
def test_canonical_keeps_every_parameter(base: str, link: str) -> None:
    found = urls.resolve(base, [link])[0]
    if found:
        before, after = URL.parse(found).query_pairs, URL.parse(urls.canonical(found)).query_pairs
        assert sorted(before) == sorted(after)
        for name in {name for name, _ in before}:
            assert [v for n, v in before if n == name] == [v for n, v in after if n == name]


@given(bases, hrefs)
def test_names_are_those_a_parser_finds(base: str, link: str) -> None:
    found = urls.resolve(base, [link])[0]
    if found:
        parsed = URL.parse(found)
        query = "" if parsed.query is None else f"?{parsed.query}"
        port = "" if parsed.port is None else f":{parsed.port}"
        assert urls.host_of(found) == parsed.host_str
        assert urls.origin_of(found) == f"{parsed.scheme}://{parsed.host_str}{port}"
        assert urls.split(found) == (parsed.scheme, parsed.host_str, parsed.path + query)
        assert parsed.host_str is not None
        assert parsed.host_str.rstrip(".").endswith(urls.site_of(parsed.host_str))


@given(bases, hrefs)
def test_parents_are_ever_shorter_folders_of_the_same_origin(base: str, link: str) -> None:
    found = urls.resolve(base, [link])[0]
    if found:
        parents = urls.parents_of(found)
        assert parents == sorted(set(parents), key=len, reverse=True)
        assert all(parent.endswith("/") and found.startswith(parent) for parent in parents)
        if parents:
            assert urls.parents_of(parents[0]) == parents[1:]


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=30)), st.integers(0, 2**64 - 1))
def test_a_batch_of_keys_is_its_keys(texts: list[str], seed: int) -> None:
    assert urls.keys(texts, seed).tolist() == [urls.key(text, seed) for text in texts]


@pytest.mark.skipif(importlib.util.find_spec("ada_url") is None, reason="ada-url, the second opinion, is not installed")
@given(bases, hrefs)
def test_a_second_parser_agrees(base: str, link: str) -> None:
    """Known differences: ada encodes ^ in paths, refuses surrogates, and lets xn-- labels pass that are no Punycode."""
    import ada_url

    if "xn--" in link or not link.isprintable() or "\ufffd" in link:
        return
    try:
        second = ada_url.join_url(base, link).partition("#")[0]
    except ValueError:
        second = ""
    wanted = second.replace("%5E", "^") if second.startswith(("http://", "https://")) else None
    found = urls.resolve(base, [link])[0]
    assert (found and found.replace("%5E", "^")) == wanted
