"""The generated web: same parameters, same bytes; and every page can be found by following links."""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import urldefrag, urljoin, urlsplit

import lxml.html
import pytest

from webcrawl.simulator.answers import Answer, CannotServeError
from webcrawl.simulator.generated import GeneratedWeb

PINNED = """
from webcrawl.simulator.generated import GeneratedWeb
import hashlib
web = GeneratedWeb(pages=300, hosts=12, seed=7)
everything = hashlib.sha256()
for url in web.manifest():
    everything.update(url.encode() + web.page(url))
print(everything.hexdigest())
"""
PINNED_DIGEST = "cad97fcd30aae35fc201b90f4dd8114d81ebbf6dca20cac0aa75e37d724f8b75"


def get(web: GeneratedWeb, url: str) -> Answer:
    parts = urlsplit(url)
    answer = web.answer(parts.netloc, parts.path + (f"?{parts.query}" if parts.query else ""))
    assert answer is not None
    return answer


def links_on(url: str, body: bytes) -> list[str]:
    """The links of a page as a stranger's parser sees them."""
    page = lxml.html.fromstring(body)
    hrefs = [urljoin(url, href) for href in page.xpath("//a/@href")]
    return [urldefrag(href).url for href in hrefs if href.startswith("http")]


def walk(web: GeneratedWeb) -> dict[str, Answer]:
    """Every URL that following links and redirects from the seeds comes to, with its answer."""
    answers: dict[str, Answer] = {}
    ahead = list(web.seeds)
    while ahead:
        url = ahead.pop()
        if url in answers:
            continue
        answers[url] = answer = get(web, url)
        if answer.location:
            ahead.append(answer.location)
        elif answer.content_type.startswith("text/html"):
            ahead += links_on(url, answer.body)
    return answers


def test_the_same_bytes_in_every_process_and_on_every_machine():
    found = subprocess.run(
        [sys.executable, "-c", PINNED], env={"PYTHONPATH": "."}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == PINNED_DIGEST


def test_another_seed_is_another_web():
    one, two = GeneratedWeb(pages=50, hosts=5, seed=1), GeneratedWeb(pages=50, hosts=5, seed=2)
    assert one.page(one.seeds[0]) != two.page(two.seeds[0])
    assert list(one.manifest()) != list(two.manifest())


@pytest.mark.parametrize(("pages", "hosts"), [(1, 1), (9, 9), (10, 1), (300, 12), (400, 90)])
def test_every_page_is_reached_by_links_from_the_seed(pages, hosts):
    web = GeneratedWeb(pages=pages, hosts=hosts, page_bytes=2000)
    manifest = list(web.manifest())
    assert len(set(manifest)) == len(manifest) == pages == web.page_count
    answers = walk(web)
    assert {url for url in manifest if url not in answers} == set()
    assert {answers[url].status for url in manifest} == {200}


def test_all_kinds_of_answers_are_met_in_their_shares():
    web = GeneratedWeb(pages=400, hosts=10, page_bytes=2000)
    answers, pages = walk(web), set(web.manifest())
    others = {url: answer for url, answer in answers.items() if url not in pages}
    counts = {status: sum(a.status == status for a in others.values()) for status in (200, 301, 302, 404)}
    pdfs = [answer for answer in others.values() if answer.content_type == "application/pdf"]
    private = [url for url in others if url.endswith("/private/")]
    assert counts[301] + counts[302] == 400 * web.redirect_ratio
    assert counts[301] and counts[302]
    assert counts[404] == 400 * web.broken_ratio
    assert len(pdfs) == 400 * web.file_ratio
    assert all(pdf.body.startswith(b"%PDF-1.4\n") for pdf in pdfs)
    assert len(private) == 10
    assert counts[200] == len(pdfs) + len(private)
    assert {answer.location for answer in others.values() if answer.location} <= pages
    assert 0.05 < sum("?" in url for url in pages) / len(pages) < 0.15


def test_links_of_says_what_a_parser_finds():
    web = GeneratedWeb(pages=200, hosts=8)
    for url in list(web.manifest())[::7]:
        assert sorted(web.links_of(url)) == sorted(links_on(url, web.page(url)))


def test_pages_have_the_size_and_the_number_of_links_asked_for():
    web = GeneratedWeb()
    urls = list(web.manifest())[::20]
    mean_bytes = sum(len(web.page(url)) for url in urls) / len(urls)
    mean_links = sum(len(web.links_of(url)) for url in urls) / len(urls)
    assert 13_000 < mean_bytes < 15_000
    assert 54 < mean_links < 64
    assert 300 < len(GeneratedWeb(links=0, page_bytes=0).page(urls[0])) < 5000


def test_pages_use_relative_and_absolute_links_and_look_like_pages():
    web = GeneratedWeb()
    url = list(web.manifest())[10]
    page = lxml.html.fromstring(web.page(url))
    hrefs = page.xpath("//a/@href")
    for start in ("http://harbour-1.example/", "../", "/", "mailto:"):
        assert any(href.startswith(start) for href in hrefs), start
    assert b'#part-0">' in b"".join(web.page(url) for url in list(web.manifest())[:20])
    assert page.findtext(".//title").endswith(" - Harbour 1")
    assert page.xpath("//h1") and page.xpath("//h2") and len(page.xpath("//main/p")) > 5


def test_host_sizes_follow_zipf_and_each_host_has_a_home_page():
    web = GeneratedWeb(pages=10_000, hosts=100)
    sizes = [web.host_size(host) for host in range(100)]
    assert sum(sizes) == 10_000
    assert min(sizes) >= 1
    assert 1.9 < sizes[0] / sizes[1] < 2.1
    names = list(web.host_names())
    assert len(set(names)) == 100
    assert [web.host_number(name) for name in names] == list(range(100))


def test_images_and_robots_files_exist_on_every_host():
    web = GeneratedWeb(pages=200, hosts=4)
    for name in web.host_names():
        robots = web.answer(name, "/robots.txt")
        assert robots is not None and robots.body == b"User-agent: *\nDisallow: /private/\n"
    [source] = lxml.html.fromstring(web.page(web.seeds[0])).xpath("//img/@src")
    image = get(web, urljoin(web.seeds[0], source))
    assert (image.content_type, image.body[:8]) == ("image/png", b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize(
    "target",
    ["", "//", "/x", "/view?id=1", "/view?id=99999999999999999999&topic=pier", "/go/harbour-9999", "/go/", "/files/",
     "/lighthouse", "/lighthouse/?x=1", "/images/garden-0.png", "/old/harbour-0.html", "*"],
)  # fmt: skip
def test_what_is_not_linked_does_not_exist(target):
    answer = GeneratedWeb(pages=100, hosts=3).answer("harbour-1.example", target)
    assert answer is not None and answer.status == 404


@pytest.mark.parametrize("name", ["", "harbour-0.example", "harbour-2.example", "harbour-01.example", "example",
                                  "harbour-1.example.", "harbour-99999999.example", "www.iana.org"])  # fmt: skip
def test_other_hosts_do_not_exist(name):
    assert GeneratedWeb(pages=100, hosts=3).answer(name, "/") is None


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ({"hosts": 0}, "A generated web cannot have 0 hosts. Choose 1 to 1000000 with --hosts."),
        (
            {"pages": 5},
            "5 pages are too few for 40 hosts, as every host has a home page. Raise --pages or lower --hosts.",
        ),
        ({"broken_ratio": 1.5}, "broken_ratio=1.5 is a share of the pages. Choose 0 to 1."),
        ({"rel_ratio": 2.0}, "rel_ratio=2.0 is a share of the links. Choose 0 to 1."),
        ({"agent": "a b"}, "The agent 'a b' is no product token. Choose letters, _ and - with --agent."),
        ({"seed": -1}, "The number of links, the bytes of a page and the seed cannot be negative or huge."),
    ],
)
def test_impossible_webs_are_refused_in_one_sentence(shape, sentence):
    with pytest.raises(CannotServeError) as refused:
        GeneratedWeb(**shape)
    assert str(refused.value) == sentence
