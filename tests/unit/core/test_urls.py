"""Addresses: worked examples of the lectures, of RFC 3986 and of the WHATWG URL standard's own tests."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from webcrawl.core import urls
from webcrawl.core.urls import Kind

BASE = "http://example.org/foo/bar"


def resolved(base: str, href: str) -> str | None:
    return urls.resolve(base, [href])[0]


class TestResolve:
    @pytest.mark.parametrize(
        ("href", "url"),
        [
            ("x.html#sec", "http://example.org/foo/x.html"),
            ("", "http://example.org/foo/bar"),
            ("#top", "http://example.org/foo/bar"),
            ("?q", "http://example.org/foo/bar?q"),
            ("..", "http://example.org/"),
            ("../../../x", "http://example.org/x"),
            ("%2e%2E/x", "http://example.org/x"),
            ("//other.org", "http://other.org/"),
            ("///other.org/../path", "http://other.org/path"),
            ("///\\//\\//test", "http://test/"),
            ("\\x", "http://example.org/x"),
            (" \t/x\n", "http://example.org/x"),
            ("http://example\t.\norg", "http://example.org/"),
            ("http:x", "http://example.org/foo/x"),
            ("https:x", "https://x/"),
            ("HTTP://EXAMPLE.ORG:80/", "http://example.org/"),
            ("https://example.org:443/", "https://example.org/"),
            ("http://user:pass@foo:21/bar;par?b#c", "http://user:pass@foo:21/bar;par?b"),
            ("https://test:@test", "https://test@test/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[1::0:1]/", "http://[1::1]/"),
            ("http://faß.example/", "http://xn--fa-hia.example/"),
            ("http://ＧＯ.com", "http://go.com/"),
            ("a b?c d'", "http://example.org/foo/a%20b?c%20d%27"),
            ("é", "http://example.org/foo/%C3%A9"),
            ("half a pair: \ud800", "http://example.org/foo/half%20a%20pair:%20%EF%BF%BD"),
        ],
    )
    def test_leads_where_a_browser_would_go(self, href: str, url: str) -> None:
        assert resolved(BASE, href) == url

    @pytest.mark.parametrize(
        "href",
        [
            *("mailto:a@b.c", "javascript:void(0)", "data:text/html,x", "ftp://example.org/", "httpx://example.org/"),
            *("http://", "https://a b/", "http://[::1", "http://a:99999/", "http://1.2.3.4.5/", "http://%zz/"),
            "http:; ///x",  # broken in the host, not before it: nothing to repair
        ],
    )
    def test_what_cannot_be_fetched_is_none(self, href: str) -> None:
        assert resolved("https://h/", href) is None

    def test_a_colon_in_a_path_is_not_a_scheme(self) -> None:
        disclaimer = "/wiki/Wikipedia:General_disclaimer"
        assert resolved("http://en.wikipedia.org/wiki/Main_Page", disclaimer) == f"http://en.wikipedia.org{disclaimer}"

    def test_one_broken_link_does_not_cost_the_others(self) -> None:
        assert urls.resolve(BASE, ["a", "http://[", "b", "mailto:x"]) == [
            "http://example.org/foo/a",
            None,
            "http://example.org/foo/b",
            None,
        ]

    def test_a_label_that_is_no_punycode_is_refused_though_the_standard_allows_it(self) -> None:
        assert resolved(BASE, "http://a.b.c.xn--pokxncvks/") is None

    def test_a_base_that_is_no_url_is_an_error_that_says_so(self) -> None:
        with pytest.raises(ValueError, match=r"^'/relative' is no absolute URL .*Write it in full"):
            urls.resolve("/relative", ["x"])


class TestCanonical:
    @pytest.mark.parametrize(
        ("url", "form"),
        [
            ("http://example.com", "http://example.com/"),
            ("http://example.com/a#b", "http://example.com/a"),
            ("http://example.com/%7Euser/%c3%a9", "http://example.com/~user/%C3%A9"),
            ("http://example.com/a%2Fb", "http://example.com/a%2Fb"),
            ("http://example.com/100%", "http://example.com/100%25"),
            ("http://example.com/%%32%65", "http://example.com/%252e"),
            ("http://example.com/?", "http://example.com/"),
            ("http://example.com/?&&", "http://example.com/"),
            ("http://example.com/?b=2&a=1", "http://example.com/?a=1&b=2"),
            ("http://example.com/?b=2&a=9&b=1&a=", "http://example.com/?a=9&a=&b=2&b=1"),
            ("http://example.com/?a&b=", "http://example.com/?a&b="),
            ("http://example.com/?%62=1&a=2", "http://example.com/?a=2&b=1"),
            ("http://example.com/?B=1&a=2", "http://example.com/?B=1&a=2"),
            ("http://example.com/?q=a+b&r=a%20b", "http://example.com/?q=a+b&r=a%20b"),
            ("http://example.com./a./b.:c", "http://example.com/a./b.:c"),
            ("http://example.com.:8080/", "http://example.com:8080/"),
            ("http://0x7f../", "http://0x7f../"),
            ("http://./", "http://./"),
            ("http://me.@h/", "http://me.@h/"),
            ("http://me:pw@example.com/;v=1;u=2", "http://me:pw@example.com/;v=1;u=2"),
            ("HTTPS://EXAMPLE.com:443/a/./b/../c", "https://example.com/a/c"),
        ],
    )
    def test_rules(self, url: str, form: str) -> None:
        assert urls.canonical(url) == form

    def test_unknown_parameters_are_kept(self) -> None:
        shop = "http://www.company.com/items?item="
        assert urls.canonical(shop + "truck") != urls.canonical(shop + "bicycle")

    def test_a_batch_gives_what_one_by_one_gives(self) -> None:
        plain = ["http://a.b/c", "http://a.b/?y&x"]
        odd = [*plain, "http://a.b/%7e", "http://a.b./", "http://a.b.:1/", "http://a.b/#c"]
        assert urls.canonicals(plain) == [urls.canonical(url) for url in plain]
        assert urls.canonicals(odd) == [urls.canonical(url) for url in odd]
        assert [urls.canonicals([url])[0] for url in odd] == urls.canonicals(odd), "each mark is looked for"
        assert urls.canonicals([]) == []

    @pytest.mark.parametrize("url", ["", "example.com", "/a", "http://", "http://a b/", "http://\ud800/"])
    def test_what_is_no_url_is_an_error(self, url: str) -> None:
        with pytest.raises(ValueError, match="is no absolute URL"):
            urls.canonical(url)

    def test_other_schemes_are_an_error(self) -> None:
        with pytest.raises(ValueError, match="neither http nor https"):
            urls.canonical("mailto:a@b.c")

    def test_the_rules_have_a_version(self) -> None:
        assert urls.CANONICAL_VERSION == 1, "new rules need a new number, and these tests their new answers"


class TestNames:
    @pytest.mark.parametrize(
        ("url", "host", "origin"),
        [
            ("http://a/", "a", "http://a"),
            ("https://a/", "a", "https://a"),
            ("http://example.com/a:b@c", "example.com", "http://example.com"),
            ("https://me:pw@example.com:8443/?@:/", "example.com", "https://example.com:8443"),
            ("http://[::1]/", "[::1]", "http://[::1]"),
            ("http://u@[2001:db8::1]:81/", "[2001:db8::1]", "http://[2001:db8::1]:81"),
            ("http://127.0.0.1:8000/x", "127.0.0.1", "http://127.0.0.1:8000"),
        ],
    )
    def test_host_and_origin(self, url: str, host: str, origin: str) -> None:
        assert urls.host_of(url) == host
        assert urls.origin_of(url) == origin

    def test_scheme_host_and_resource(self) -> None:
        people = "http://www.cs.umass.edu/csinfo/people.html"
        assert urls.split(people) == ("http", "www.cs.umass.edu", "/csinfo/people.html")
        assert urls.split("https://a:1/?b=/#c") == ("https", "a", "/?b=/")

    @pytest.mark.parametrize(
        ("host", "site"),
        [
            ("www.dcc.uchile.cl", "uchile.cl"),
            ("www.bbc.co.uk", "bbc.co.uk"),
            ("bbc.co.uk", "bbc.co.uk"),
            ("co.uk", "co.uk"),
            ("someone.github.io", "someone.github.io"),
            ("a.b.xn--55qx5d.cn", "b.xn--55qx5d.cn"),
            ("localhost", "localhost"),
            ("h1.bench.test", "bench.test"),
            ("example.com.", "example.com"),
            ("10.1.2.3", "10.1.2.3"),
            ("[2001:db8::1]", "[2001:db8::1]"),
        ],
    )
    def test_site(self, host: str, site: str) -> None:
        assert urls.site_of(host) == site

    @pytest.mark.parametrize(
        ("url", "parents"),
        [
            ("http://foo.org/a/b/page.html", ["http://foo.org/a/b/", "http://foo.org/a/", "http://foo.org/"]),
            ("http://foo.org/a/b/", ["http://foo.org/a/", "http://foo.org/"]),
            ("http://foo.org/a?x=/b/", ["http://foo.org/"]),
            ("http://foo.org/?x", ["http://foo.org/"]),
            ("http://foo.org/", []),
        ],
    )
    def test_parents(self, url: str, parents: list[str]) -> None:
        assert urls.parents_of(url) == parents


class TestKind:
    @pytest.mark.parametrize(
        "resource",
        [
            *("?id=1", "a/b.html?x", "index.php", "INDEX.PHP3", "x.pl", "x.cfm", "x.asp", "x.aspx", "x.jsp", "x.jhtml"),
            *("x.cgi", "x.do", "x.jsp;jsessionid=1.2", "a.b.php"),
        ],
    )
    def test_programs_are_dynamic(self, resource: str) -> None:
        assert urls.kind_of("http://a.cl/" + resource) is Kind.DYNAMIC

    @pytest.mark.parametrize("resource", ["", "a", "php", "a.html", "a.shtml", "v1.php/", "a.pdf", "a;b=1.php", "x."])
    def test_files_are_static(self, resource: str) -> None:
        assert urls.kind_of("http://a.cl/" + resource) is Kind.STATIC

    def test_the_country_poland_is_not_perl(self) -> None:
        assert urls.kind_of("http://www.onet.pl/") is Kind.STATIC


class TestKeys:
    def test_a_batch_gives_what_one_by_one_gives(self) -> None:
        batch = ["http://a/", "http://b/", "http://a/"]
        found = urls.keys(batch, seed=7)
        assert found.dtype == np.uint64
        assert found.tolist() == [urls.key(url, 7) for url in batch]
        assert found[0] == found[2] != found[1]

    def test_the_seed_decides(self) -> None:
        assert urls.key("http://a/", 1) != urls.key("http://a/", 2)

    def test_a_stored_key_stays_what_it_was(self) -> None:
        assert urls.key("http://example.com/", 0) == 13364996003878346283

    def test_no_urls_no_keys(self) -> None:
        assert urls.keys([], 1).shape == (0,)

    def test_zero_is_no_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def zero(_data: bytes, _seed: int) -> int:
            return 0

        monkeypatch.setattr(urls, "xxh3_64_intdigest", zero)
        assert urls.key("http://a/", 1) == 1
        assert urls.keys(["http://a/"], 1).tolist() == [1]


@pytest.mark.shared_data
@pytest.mark.skipif("WEBCRAWL_SHARED_DATA" not in os.environ, reason="WEBCRAWL_SHARED_DATA names no folder of corpora")
def test_all_cases_of_the_web_platform_tests() -> None:
    """446 cases; the seven refusals are hosts with an xn-- label that is no Punycode."""
    lines = (Path(os.environ["WEBCRAWL_SHARED_DATA"]) / "urls/whatwg-http.jsonl").read_text("utf-8").splitlines()
    wrong = []
    for case in map(json.loads, lines):
        wanted = "" if case.get("failure") else case["href"].partition("#")[0]
        # Without a base the case is an absolute URL: a base of the other scheme then lends it nothing.
        base = case["base"] or ("http://other/" if case["input"].lower().startswith("https") else "https://other/")
        if base.startswith("http") and (resolved(base, case["input"]) or "") != wanted:
            wrong.append((case["input"], wanted))
    assert len(wrong) == 7
    assert all("xn--" in wanted for _, wanted in wrong)
