"""Directives of pages and links: in their shares, in the bytes, and as `directives_of` says."""

from __future__ import annotations

import lxml.html
import pytest

from webcrawl.simulator.directives import WAYS, Directives
from webcrawl.simulator.generated import GeneratedWeb

WEB = GeneratedWeb(pages=600, hosts=6, page_bytes=2000, directive_ratio=0.3, rel_ratio=0.1, agent="my-bot")
PAGES = list(WEB.manifest())


def test_a_share_of_the_pages_has_directives_and_home_pages_have_none():
    found = [WEB.directives_of(url) for url in PAGES]
    assert 0.25 < sum(map(bool, [one.meta_name or one.lines for one in found])) / len(PAGES) < 0.35
    assert len(set(found)) > len(WAYS)  # TDM names the host
    assert all(WEB.directives_of(f"http://{name}/") == Directives() for name in WEB.host_names())


def test_pages_and_headers_say_what_directives_of_says():
    for url in PAGES:
        said = WEB.directives_of(url)
        host, slash, path = url.removeprefix("http://").partition("/")
        answer = WEB.answer(host, slash + path)
        assert answer is not None and answer.lines == said.lines
        assert all(f"{line}\r\n".encode() in answer.headers for line in said.lines)
        metas = lxml.html.fromstring(answer.body).xpath("//meta[@name != 'description']")
        found = [(meta.get("name"), meta.get("content")) for meta in metas]
        assert found == ([(said.meta_name, said.meta_content)] if said.meta_name else [])


@pytest.mark.parametrize(
    ("directives", "mine", "others"),
    [
        (Directives("robots", "none"), {"noindex", "nofollow"}, {"noindex", "nofollow"}),
        (Directives("ROBOTS", "NOINDEX,NOFOLLOW"), {"noindex", "nofollow"}, {"noindex", "nofollow"}),
        (Directives("my-bot", "noindex"), {"noindex"}, set()),
        (Directives(lines=("X-Robots-Tag: My-Bot: noindex, nofollow",)), {"noindex", "nofollow"}, set()),
        (Directives(lines=("X-Robots-Tag: another-bot: none", "X-Robots-Tag: noarchive")), {"noarchive"},
         {"noarchive", "noindex", "nofollow"}),
        (Directives(lines=("tdm-reservation: 1",)), set(), set()),
    ],
)  # fmt: skip
def test_words_for_an_agent(directives, mine, others):
    assert directives.words("my-bot") == mine
    assert directives.words("another-bot") == others


def test_some_links_have_a_rel_and_rel_of_knows_which():
    marks = {}
    for url in PAGES[::10]:
        page = lxml.html.fromstring(WEB.page(url), base_url=url)
        page.make_links_absolute()
        for anchor in page.xpath("//a[starts-with(@href, 'http')]"):
            marks[url, anchor.get("href").partition("#")[0]] = anchor.get("rel", "")
    assert all(WEB.rel_of(url, link) == rel for (url, link), rel in marks.items())
    assert 0.07 < sum(map(bool, marks.values())) / len(marks) < 0.13
    assert set(marks.values()) == {"", "nofollow", "ugc", "sponsored", "nofollow ugc"}


def test_without_them_the_pages_are_the_same_as_ever():
    plain = GeneratedWeb(pages=600, hosts=6, page_bytes=2000)
    bare = [url for url in PAGES if not WEB.directives_of(url).meta_name][:30]
    marked = GeneratedWeb(pages=600, hosts=6, page_bytes=2000, directive_ratio=0.3, agent="my-bot")
    assert [marked.page(url) for url in bare] == [plain.page(url) for url in bare]
    assert plain.links_of(PAGES[3]) == WEB.links_of(PAGES[3])
