"""HTML pages: worked examples of link extraction, charsets as the html5lib suite has them, and hostile pages."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from webcrawl.core.parsing import ParsedPage, Refresh, charset_name, decide_charset, parse_page

URL = "http://example.org/dir/page.html"
DIR = "http://example.org/dir/"


def parsed(html: str, url: str = URL) -> ParsedPage:
    return parse_page(html.encode(), url, "utf-8")


def links(html: str, url: str = URL) -> list[str]:
    return parsed(html, url).links


class TestWhatThePageSays:
    PAGE = """<!DOCTYPE html><html LANG=es-CL><head><title> A
        title &amp; more </title><meta name=Description content="In  short"><META NAME=robots CONTENT=NoIndex>
        <meta name=robots content="nofollow"><link rel="stylesheet" href=x.css>
        <link rel="Canonical" href="/the-page#top"></head><body>
        <script>var no = "<a href=script>";</script><style>p {}</style><p>One</p><p>two <b>th</b>ree</p>
        <table><tr><td>a<td>b</table><!-- <a href=comment>no</a> --><pre>x
  y</pre><textarea>z</textarea></body></html>"""

    def test_head(self) -> None:
        page = parsed(self.PAGE)
        assert page.title == "A title & more"
        assert page.lang == "es-CL"
        assert page.description == "In short"
        assert page.robots == "noindex, nofollow"
        assert page.canonical == "http://example.org/the-page"
        assert (page.url, page.base, page.charset) == (URL, URL, "UTF-8")

    def test_text_is_what_a_reader_sees(self) -> None:
        text = parsed(self.PAGE).text
        assert text.split() == ["One", "two", "three", "a", "b", "x", "y", "z"]
        assert text.splitlines()[0] == "One", "blocks are lines"
        assert "x\n  y" in text, "preformatted text stays"

    def test_bullets_and_pictures_are_not_text(self) -> None:
        assert parsed("<ul><li>a</li><li>b</li></ul><img alt=c>").text.split() == ["a", "b"]

    def test_text_and_anchors_can_be_left_out(self) -> None:
        page = parse_page(b"<p>text <a href=x>anchor</a>", URL, with_text=False, with_anchors=False)
        assert (page.text, page.links, page.anchors) == ("", [DIR + "x"], [""])

    def test_nothing_gives_nothing(self) -> None:
        page = parse_page(b"", URL, None)
        assert (page.title, page.text, page.lang, page.robots, page.description) == ("", "", "", "", "")
        assert page.canonical is None
        assert page.refresh is None
        assert page.links == page.anchors == page.rels == []

    def test_meta_elements_that_were_asked_for(self) -> None:
        html = (
            "<meta name=Robots content=NoIndex><meta name=' WebCrawl ' content='NoFollow'><meta name=webcrawl>"
            "<meta name=googlebot content=none><meta content=x><noscript><meta name=webcrawl content=none></noscript>"
        )
        page = parse_page(html.encode(), URL, meta_names=frozenset(("robots", "webcrawl")))
        assert page.metas == [("robots", "NoIndex"), ("webcrawl", "NoFollow"), ("webcrawl", "")]
        assert page.robots == "noindex"
        assert parsed(html).metas == []

    def test_the_title_of_a_drawing_is_not_the_title(self) -> None:
        assert parsed("<body><svg><title>logo</title></svg>").title == ""
        assert parsed("<body><svg><title>logo</title></svg><title>late</title>").title == "late"

    def test_a_canonical_link_in_the_body_is_not_believed(self) -> None:
        assert parsed("<body><p>comment: <link rel=canonical href=/spam>").canonical is None

    def test_a_noscript_image_does_not_end_the_head(self) -> None:
        head = "<head><noscript><img src=pixel></noscript><link rel=canonical href=/c>"
        assert parsed(head).canonical == "http://example.org/c"

    def test_a_canonical_link_that_cannot_be_fetched_is_none(self) -> None:
        assert parsed("<link rel=canonical href='http://['>").canonical is None

    @pytest.mark.parametrize(
        ("content", "refresh"),
        [
            ("5; url=/x", Refresh(5.0, "http://example.org/x")),
            ("0;URL='y#z'", Refresh(0.0, DIR + "y")),
            ("30", Refresh(30.0, URL)),
            ("0; url=javascript:go()", None),
            ("soon", None),
        ],
    )
    def test_refresh(self, content: str, refresh: Refresh | None) -> None:
        page = parsed(f'<meta http-equiv=Refresh content="{content}">')
        assert page.refresh == refresh
        assert page.links == ([refresh.url] if refresh else [])
        assert page.rels == (["refresh"] if refresh else [])

    def test_a_refresh_without_address_means_the_page_and_not_its_base(self) -> None:
        assert parsed("<base href=/b/><meta http-equiv=refresh content=30>").refresh == Refresh(30.0, URL)

    def test_a_refresh_that_is_also_a_link_is_listed_once(self) -> None:
        page = parsed('<meta http-equiv=refresh content="0; url=x"><a href=x>go</a>')
        assert (page.links, page.anchors, page.rels) == ([DIR + "x"], ["go"], [""])


class TestLinks:
    @pytest.mark.parametrize(
        ("html", "found"),
        [
            ('<A HREF="x.html#sec">', [DIR + "x.html"]),
            ("<a href='x.html'>", [DIR + "x.html"]),
            ("<a href=x.html class=c>", [DIR + "x.html"]),
            ('<a href = "x.html">', [DIR + "x.html"]),
            ('<a href="#top">', [URL]),
            ('<a href="">Blank</a>', [URL]),
            ("<abbr href=x>", []),
            ('<area href="m.html">', [DIR + "m.html"]),
            ("<!-- <a href=x> -->", []),
            ("<a href=mailto:a@b.c>m</a><a href=x>", [DIR + "x"]),
            ("<a href='http://['>m</a><a href=x>", [DIR + "x"]),
            ("<a name=x><a href>", [URL]),
            ("<iframe src=f></iframe><a href=x>", [DIR + "f", DIR + "x"]),
            ("<iframe href=no src=yes></iframe><a href=x src=no>", [DIR + "yes", DIR + "x"]),
            ("<frameset><frame src=one><frame src=two></frameset>", [DIR + "one", DIR + "two"]),
            ("<frameset><frame src=one><noframes><a href=two></noframes>", [DIR + "one", DIR + "two"]),
            ("<noscript><a href=menu>m</a></noscript><a href=x>", [DIR + "x", DIR + "menu"]),
            ("<template><a href=later></template>", []),
            ("<div><template shadowrootmode=open><a href=x></template>", [DIR + "x"]),
            ("<template shadowrootmode=open><template><a href=x></template></template>", []),
            ("<script>'<a href=x>'</script>", []),
            ("<svg><a href=drawn>", [DIR + "drawn"]),
            ("<a href=&#x2F;a&amp;b>", ["http://example.org/a&b"]),
            ("<a href=x><p><b><a href=y>", [DIR + "x", DIR + "y"]),
        ],
    )
    def test_what_is_a_link(self, html: str, found: list[str]) -> None:
        assert links(html) == found

    def test_which_tags_carry_links_can_be_chosen(self) -> None:
        html = "<a href=a></a><img src=i><link rel=next href=n><iframe src=f></iframe>"
        page = parse_page(html.encode(), URL, link_tags={"img": "src", "link": "href"})
        assert page.links == [DIR + "i", DIR + "n"]
        assert parse_page(html.encode(), URL, link_tags={}).links == []

    def test_base(self) -> None:
        html = "<base target=_top><base href=/other/><base href=/third/><a href=x>"
        assert links(html) == ["http://example.org/other/x"]
        assert parsed(html).base == "http://example.org/other/"

    @pytest.mark.parametrize("base", ["<base>", "<base href='data:,x'>", "<base href='http://['>"])
    def test_a_base_nobody_can_fetch_from_is_ignored(self, base: str) -> None:
        assert links(base + "<a href=x>") == [DIR + "x"]
        assert parsed(base, URL + "#part").base == URL

    def test_the_page_itself_has_no_fragment(self) -> None:
        assert parsed("<a href=''>", URL + "#part").links == [URL]
        assert parsed("", URL + "#part").base == URL

    def test_each_url_once_with_its_first_anchor(self) -> None:
        page = parsed("<a href=x>first</a> <a href=y>other</a> <a href=x>second</a> <a href=./x#c>third</a>")
        assert (page.links, page.anchors) == ([DIR + "x", DIR + "y"], ["first", "other"])

    def test_anchors(self) -> None:
        page = parsed(
            "<a href=1> two\n <b>words</b></a><a href=2><img alt='a picture'></a><a href=3 title=tip></a>"
            "<map><area href=4 alt=place></map><a href=5></a>"
        )
        assert page.anchors == ["two words", "a picture", "tip", "place", ""]

    def test_tidy_anchors_are_left_alone(self) -> None:
        assert parsed("<a href=1>one word</a><a href=2>two</a>").anchors == ["one word", "two"]
        assert parsed("<a href=1> one</a><a href=2>two</a>").anchors == ["one", "two"]
        assert parsed("<a href=1>one</a><a href=2>two </a>").anchors == ["one", "two"]

    def test_rel(self) -> None:
        page = parsed("<a href=1 rel='NoFollow ugc'>x</a><a href=2>y</a><a rel=me>z</a>")
        assert page.rels == ["nofollow ugc", ""]

    def test_one_plain_link_outweighs_a_marked_one(self) -> None:
        page = parsed("<a href=x rel=nofollow>a</a><a href=./x>b</a><a href=y rel=nofollow>")
        assert (page.links, page.rels, page.anchors) == ([DIR + "x", DIR + "y"], ["", "nofollow"], ["a", ""])

    def test_text_for_browsers_without_scripts_is_no_text(self) -> None:
        assert parsed("<p>a<noscript>Please <a href=x>enable</a></noscript>b").text == "ab"


def late_meta(size: int) -> bytes:
    return b"<!--".ljust(size, b"x") + b"--><meta charset=iso-8859-2>"


class TestCharset:
    """Most bodies are restated from html5lib-tests (encoding), with windows-1252 where nothing is declared."""

    @pytest.mark.parametrize(
        ("body", "charset"),
        [
            (b"<meta charset=iso8859-2>\xfe", "ISO-8859-2"),
            (b'<meta http-equiv="Content-Type" content="text/html; charset=euc-jp">\xfe', "EUC-JP"),
            (b'<meta content="text/html; charset=euc-jp" http-equiv=Content-Type>\xfe', "EUC-JP"),
            (b'<meta http-equiv="Content-Type " content="text/html; charset=iso8859-2">\xfe', "windows-1252"),
            (b'<meta charset="bogus"><meta charset="iso8859-2">\xfe', "ISO-8859-2"),
            (b'<p title="x><meta charset=iso8859-2>\xfe', "windows-1252"),
            (b"<!-- <meta charset=iso8859-2> -->\xfe", "windows-1252"),
            (b"<meta charset=euc-jp", "UTF-8"),
            (b'<meta charset="UTF-16">\xfe', "UTF-8"),
            (b"<meta charset=latin1>\xc3\xa9", "windows-1252"),
            (b"<meta charset=gb2312>\xfe", "GBK"),
            (late_meta(4096) + b"\xfe", "ISO-8859-2"),
            (late_meta(4096), "UTF-8"),
            (b"\xef\xbb\xbf<meta charset=iso-8859-1>", "UTF-8"),
            (b"\xff\xfe<\0p\0>\0", "UTF-16LE"),
            (b"\xfe\xff\0<\0p\0>", "UTF-16BE"),
            (b"plain", "UTF-8"),
            (b"caf\xc3\xa9", "UTF-8"),
            (b"caf\xe9 noir", "windows-1252"),
            (b"cut in a caf\xc3", "UTF-8"),
            (b"", "UTF-8"),
        ],
    )
    def test_undeclared(self, body: bytes, charset: str) -> None:
        assert decide_charset(body, None) == charset

    @pytest.mark.parametrize(
        ("declared", "charset"),
        [
            ("ISO-8859-1", "windows-1252"),
            (' "KOI8-R" ', "KOI8-R"),
            ("utf8", "UTF-8"),
            ("shift_jis", "Shift_JIS"),
            *((label, "ISO-8859-2") for label in ("bogus", "", "unicode_escape", "utf-7", "a\0b", "\ud800", "ü")),
        ],
    )
    def test_http_goes_before_meta_if_it_names_a_charset(self, declared: str, charset: str) -> None:
        assert decide_charset(b"<meta charset=iso-8859-2>", declared) == charset

    def test_a_mark_goes_before_http(self) -> None:
        page = parse_page("\ufeffé".encode(), URL, "koi8-r")
        assert (page.charset, page.text) == ("UTF-8", "é"), "and is no text"
        page = parse_page("\ufeff<title>é</title>".encode("utf-16-le"), URL, "utf-8")
        assert (page.charset, page.title) == ("UTF-16LE", "é")

    @pytest.mark.parametrize(
        ("label", "text"),
        [
            *(("utf-8", "日本 é"), ("euc-jp", "日本"), ("shift_jis", "日本"), ("gb18030", "中文"), ("big5", "中文")),
            *(("koi8-r", "Привет"), ("windows-1251", "Привет"), ("iso-8859-2", "Łódź"), ("euc-kr", "한국")),
            *(("utf-16le", "日本"), ("utf-16be", "日本"), ("windows-1252", "“café”")),
        ],
    )
    def test_text_in_many_charsets(self, label: str, text: str) -> None:
        page = parse_page(f"<title>{text}</title><a href=x>{text}</a>".encode(label), URL, label)
        assert (page.title, page.anchors) == (text, [text])
        assert page.charset == charset_name(label)

    @pytest.mark.parametrize("body", [b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc0\xaf", b"&#xD800;", b"\xff"])
    def test_what_utf8_forbids_is_replaced(self, body: bytes) -> None:
        text = parse_page(b"<p>" + body, URL, "utf-8").text
        assert "\ufffd" in text
        assert text.encode()  # no surrogates


class TestHostilePages:
    @pytest.mark.parametrize(
        "body",
        [
            b"<" * 1_000_000,
            b"<div>" * 100_000,
            b"<a href=x>" * 20_000,
            b"<b><i>" * 5_000 + b"</b></i>" * 5_000,
            b"<p " + b"a=b " * 50_000 + b">",
            b"<p " + b"".join(b"a%d=b " % i for i in range(20_000)) + b">",
            b"\0" * 10_000,
            b"<a href='" + b"\0\xff\xfe" * 100 + b"'>",
            b"<title>" * 1000,
            b"<table><tr><td>" * 5000,
            b"<noscript>" * 5000,
            b"<template>" * 5000,
            b"<div><template shadowrootmode=open>" * 5000,
            b"&" * 100_000,
            b"<!--" * 50_000,
            b"<svg><math>" * 5_000,
            b"<base href='//'><a href='//'>",
        ],
        ids=lambda body: repr(body[:12]),
    )
    def test_gives_a_page(self, body: bytes) -> None:
        page = parse_page(body, URL, None)
        assert len(page.links) == len(page.anchors) == len(page.rels)


def corpus(name: str) -> Path:
    return Path(os.environ["WEBCRAWL_SHARED_DATA"]) / name


shared_data = pytest.mark.skipif(
    "WEBCRAWL_SHARED_DATA" not in os.environ, reason="WEBCRAWL_SHARED_DATA names no folder of corpora"
)


@pytest.mark.shared_data
@shared_data
def test_all_charset_cases_of_html5lib() -> None:
    """83 bodies, each with a byte behind it that is no UTF-8, so that only declarations count; one needs scripts."""
    cases = map(json.loads, corpus("html/html5lib-encoding.jsonl").read_text("utf-8").splitlines())
    wrong = [
        case
        for case in cases
        if decide_charset(base64.b64decode(case["data_b64"]) + b"\xfe", None) != charset_name(case["encoding"])
    ]
    assert [case["scripted"] for case in wrong] == [True]
