"""What a polite crawler must and must not fetch: compared with a crawler of a few lines that reads the real bytes."""

from __future__ import annotations

from urllib.parse import urldefrag, urljoin, urlsplit

import lxml.html
import pytest
from protego import Protego

from webcrawl.simulator.generated import GeneratedWeb

ROBOTS = ("disallow-all@0.1", "sections@0.2", "none@0.1", "agent-denied@0.1", "agent-allowed@0.1", "status:503@0.1")


def get(web, url):
    parts = urlsplit(url)
    answer = web.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""))
    assert answer is not None
    return answer


def rules(web, host):
    answer = get(web, f"http://{host}/robots.txt")
    if answer.status >= 500:
        return Protego.parse("User-agent: *\nDisallow: /")
    return Protego.parse(answer.body.decode() if answer.status == 200 else "")


def links(url, answer):
    if "nofollow" in answer.headers.decode():
        return
    page = lxml.html.fromstring(answer.body)
    if page.xpath("//meta[contains(@content, 'nofollow')]"):
        return
    for anchor in page.xpath("//a[not(@rel)]"):
        target = urldefrag(urljoin(url, anchor.get("href"))).url
        if target.startswith("http"):
            yield target


def crawl(web, agent):
    """All URLs that a polite crawler asks for."""
    parsers, asked, ahead = {}, set(), list(web.seeds)
    while ahead:
        url = ahead.pop()
        host = urlsplit(url).netloc
        if host not in parsers:
            parsers[host] = rules(web, host)
        if url in asked or not parsers[host].can_fetch(url, agent):
            continue
        asked.add(url)
        answer = get(web, url)
        if answer.location:
            ahead.append(answer.location)
        elif answer.status == 200 and answer.content_type.startswith("text/html"):
            ahead += links(url, answer)
    return asked


@pytest.mark.parametrize("agent", ["webcrawl", "other"])
def test_a_polite_crawler_fetches_what_it_must_and_nothing_that_it_must_not(agent):
    web = GeneratedWeb(pages=300, hosts=20, page_bytes=1000, robots=ROBOTS)
    asked = crawl(web, agent)
    assert asked & set(web.manifest()) == web.must_fetch(agent)
    assert not asked & web.must_not_fetch(agent)
    assert len(web.must_not_fetch(agent)) > 30
    assert all(web.allowed(url, agent) for url in asked)


def test_directives_and_rels_hide_pages():
    web = GeneratedWeb(
        pages=300, hosts=6, page_bytes=1000, links=12, directive_ratio=0.8, rel_ratio=0.3, agent="webcrawl"
    )
    wanted = web.must_fetch("webcrawl")
    assert wanted == crawl_words(web)
    assert len(wanted) < 300


def crawl_words(web):
    """As `crawl`, but X-Robots-Tag of another bot does not count."""
    asked, ahead = set(), list(web.seeds)
    while ahead:
        url = ahead.pop()
        if url in asked or "/private/" in url:
            continue
        asked.add(url)
        answer = get(web, url)
        if answer.location:
            ahead.append(answer.location)
        elif answer.status == 200 and answer.content_type.startswith("text/html"):
            headers = answer.headers.decode().replace("another-bot: none", "")
            head = answer.body.decode().partition("<title>")[0].lower()
            if not any(word in headers + head for word in ("nofollow", "none")):
                ahead += links_without_rel(url, answer)
    return asked & set(web.manifest())


def links_without_rel(url, answer):
    hrefs = lxml.html.fromstring(answer.body).xpath("//a[not(@rel)]/@href")
    targets = [urldefrag(urljoin(url, href)).url for href in hrefs]
    return [target for target in targets if target.startswith("http")]


def test_a_plain_web_is_the_manifest_without_the_private_pages():
    web = GeneratedWeb(pages=100, hosts=5)
    assert web.must_fetch("any") == set(web.manifest())
    assert web.must_not_fetch("any") == {f"http://{name}/private/" for name in web.host_names()}


def test_hosts_that_are_down_need_not_be_fetched():
    web = GeneratedWeb(pages=100, hosts=5, faults=("silent@garden-2.example", "busy,chance=0.5", "reset,first=3"))
    found = web.must_fetch("any")
    assert found and not any("garden-2" in url for url in found)


def test_changes_leave_pages_that_may_be_fetched_for_a_while():
    web = GeneratedWeb(pages=50, hosts=1, robots=("allow-all,fetches=1,then=disallow-all",))
    assert web.must_fetch("any") == web.must_not_fetch("any") == set()
    web = GeneratedWeb(pages=50, hosts=1, robots=("status:503,fetches=1",))
    assert len(web.must_fetch("any")) == 50 and len(web.must_not_fetch("any")) == 1


def test_urls_are_read_as_they_are_written():
    web = GeneratedWeb(pages=50, hosts=2)
    for url in ("http://harbour-1.example:80/private/", "https://harbour-1.example/private/#x"):
        assert not web.allowed(url, "any")
    assert web.allowed("http://harbour-1.example", "any")
    with pytest.raises(KeyError):
        web.allowed("http://no.example/", "any")
