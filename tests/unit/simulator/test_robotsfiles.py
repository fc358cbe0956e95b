"""robots.txt of every kind: what is answered, and that its rules are the ones that are said to be in force."""

from __future__ import annotations

import lxml.etree
import pytest
from protego import Protego

from webcrawl.simulator.answers import Answer, CannotServeError
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.robotsfiles import KINDS, LIMIT_BYTES

HOST, OTHER = "harbour-1.example", "garden-2.example"
PATHS = ("/", "/private/", "/private/x", "/lighthouse/", "/lighthouse/salty-pier-9.html",
         "/lighthouse/calm-pier-9.html", "/view?id=17&topic=pier")  # fmt: skip
AGENTS = ("webcrawl", "WebCrawl", "another-bot", "else")


def web_with(*robots) -> GeneratedWeb:
    return GeneratedWeb(pages=120, hosts=4, page_bytes=2000, robots=robots)


def first_answer(rule) -> Answer:
    answer = web_with(rule).answer(HOST, "/robots.txt")
    assert answer is not None
    return answer


TEXTS = ("private", "empty", "allow-all", "disallow-all", "sections", "agent-denied", "agent-denied:else",
         "agent-allowed", "crawl-delay:2", "crawl-delay:0.5", "huge", "bom", "cr", "latin-1",
         "html", "sitemap", "signals")  # fmt: skip


@pytest.mark.parametrize("kind", TEXTS)
def test_a_strangers_parser_reads_what_is_said_to_be_in_force(kind):
    web = web_with(kind)
    answer = first_answer(kind)
    assert answer.status == 200
    encoding = "latin-1" if kind == "latin-1" else "utf-8-sig"
    parser = Protego.parse(answer.body[:LIMIT_BYTES].decode(encoding))
    for agent in AGENTS:
        for path in PATHS:
            url = f"http://{HOST}{path}"
            assert web.allowed(url, agent) == parser.can_fetch(url, agent), (agent, path)
        assert web.crawl_delay_seconds(HOST, agent) == (parser.crawl_delay(agent) or 0)
        assert web.allowed(f"http://{HOST}/robots.txt", agent)


def test_what_the_kinds_look_like():
    assert first_answer("bom").body.startswith(b"\xef\xbb\xbfUser-agent")
    assert b"\n" not in first_answer("cr").body and b"\r" in first_answer("cr").body
    assert b"h\xf6flich" in first_answer("latin-1").body
    assert first_answer("html").content_type.startswith("text/html")
    huge = first_answer("huge").body
    assert len(huge) > LIMIT_BYTES and huge.rstrip().endswith(b"Disallow: /") and huge.find(b"/view?") > LIMIT_BYTES
    assert first_answer("private,max-age=60").lines == ("Cache-Control: max-age=60",)
    assert first_answer("private,latency=2.5").delay_seconds == 2.5
    assert b"Content-Signal: search=yes" in first_answer("signals").body


@pytest.mark.parametrize(
    ("kind", "status", "is_allowed"),
    [("none", 404, True), ("status:401", 401, True), ("status:403", 403, True), ("status:410", 410, True),
     ("status:429", 429, False), ("status:500", 500, False), ("status:503", 503, False), ("reset", 520, False),
     ("silent", 524, False), ("redirect-loop", 301, True)],
)  # fmt: skip
def test_files_that_are_not_to_be_had(kind, status, is_allowed):
    assert first_answer(kind).status == status
    assert web_with(kind).allowed(f"http://{HOST}/private/", "webcrawl") == is_allowed
    assert first_answer(kind).ending == (kind if status > 511 else "")


def test_the_rules_in_force_can_be_had_as_text():
    web = web_with(f"status:503@{HOST}", f"none@{OTHER}")
    assert [web.robots_text(name) for name in (HOST, OTHER, "kitchen-3.example")] == [
        "User-agent: *\nDisallow: /\n",
        "",
        "User-agent: *\nDisallow: /private/\n",
    ]


def test_retry_after_of_a_robots_file():
    answer = first_answer("status:429,retry=120")
    assert b"Retry-After: 120\r\n" in answer.headers and answer.retry_after_seconds == 120
    assert b"Retry-After" not in first_answer("status:429").headers


def follow(web, url, most=20):
    """The URLs after each other to which a robots.txt redirects, and the last answer."""
    seen: list[str] = []
    for _ in range(most):
        host, _, path = url.removeprefix("http://").partition("/")
        answer = web.answer(host, "/" + path)
        if not answer.location:
            return seen, answer
        url = answer.location
        seen.append(url)
    return seen, None


@pytest.mark.parametrize(
    ("kind", "hops", "is_allowed"), [("redirect", 1, False), ("redirect:5", 5, False), ("redirect:6", 6, True)]
)
def test_redirects_lead_to_the_rules(kind, hops, is_allowed):
    web = web_with(f"{kind}@{HOST}")
    seen, answer = follow(web, f"http://{HOST}/robots.txt")
    assert len(seen) == hops and all(HOST in url for url in seen)
    assert answer is not None and answer.body == b"User-agent: *\nDisallow: /private/\n"
    assert web.allowed(f"http://{HOST}/private/", "webcrawl") == is_allowed
    [no_hop] = [web.answer(HOST, f"/robots-hop-{hops + 1}.txt")]
    assert no_hop is not None and no_hop.status == 404


def test_a_redirect_to_another_host_and_a_loop():
    web = web_with(f"redirect-away@{HOST}", f"redirect-loop@{OTHER}")
    seen, answer = follow(web, f"http://{HOST}/robots.txt")
    assert seen == [f"http://{OTHER}/robots-of-{HOST}.txt"] and answer is not None and b"/private/" in answer.body
    assert not web.allowed(f"http://{HOST}/private/", "webcrawl")
    assert follow(web, f"http://{OTHER}/robots.txt")[1] is None
    for host, path in (
        (HOST, f"/robots-of-{HOST}.txt"),
        (OTHER, "/robots-of-no.example.txt"),
        (HOST, "/robots-hop-1.txt"),
    ):
        nothing = web.answer(host, path)
        assert nothing is not None and nothing.status == 404


@pytest.mark.parametrize(("rule", "before", "after"), [
    ("allow-all,fetches=2,then=disallow-all", True, False), ("disallow-all,fetches=2,then=allow-all", False, True),
    ("status:503,fetches=2", False, True), ("reset,fetches=2,then=none", False, True),
])  # fmt: skip
def test_a_file_changes_after_some_fetches(rule, before, after):
    web, url = web_with(rule), f"http://{HOST}/lighthouse/"
    assert [web.allowed(url, "webcrawl", fetch, 0) for fetch in (1, 2, 3)] == [before, before, after]
    assert web.allowed(url, "webcrawl") == after


def test_a_file_changes_after_some_seconds():
    web, url = web_with("allow-all,seconds=5,then=disallow-all"), f"http://{HOST}/"
    assert [web.allowed(url, "webcrawl", 9, seconds) for seconds in (0, 4.9, 5)] == [True, True, False]


def test_the_sitemap_that_is_named_holds_the_pages_of_the_host():
    web = web_with("sitemap")
    assert b"Sitemap: http://harbour-1.example/sitemap.xml\n" in first_answer("sitemap").body
    answer = web.answer(HOST, "/sitemap.xml")
    assert answer is not None
    found = lxml.etree.fromstring(answer.body).xpath("//*[local-name()='loc']/text()")
    assert found == [url for url in web.manifest() if HOST in url]
    none = web_with("private").answer(HOST, "/sitemap.xml")
    assert none is not None and none.status == 404


def test_every_kind_can_be_given_to_a_share_of_the_hosts():
    rules = tuple(f"{kind}:503@0.04" if kind == "status" else f"{kind}@0.04" for kind in KINDS)
    web = GeneratedWeb(pages=400, hosts=100, robots=rules)
    kinds = [web.robots_kind(name).partition(":")[0] for name in web.host_names()]
    assert {kinds.count(kind) for kind in KINDS if kind != "private"} == {4}
    assert kinds.count("private") == 100 - 4 * (len(KINDS) - 1)
    assert GeneratedWeb(pages=4, hosts=4).robots_kind(HOST) == "private"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("status:200", "The rule 'status:200' needs the status of an error, such as status:503."),
        ("status", "The rule 'status' needs the status of an error, such as status:503."),
        ("agent-denied:a/b", "The rule 'agent-denied:a/b' names 'a/b', which is no product token (letters, _ and -)."),
        ("crawl-delay:x", "The rule 'crawl-delay:x' needs a number of 0 or more where it has 'x'."),
        ("none,then=empty", "The rule 'none,then=empty' never comes to its then. Add fetches=K or seconds=T."),
        ("none,retry=soon", "The rule 'none,retry=soon' needs retry=SECONDS, date+SECONDS, past or absurd."),
    ],
)
def test_impossible_rules_are_refused_in_one_sentence(rule, sentence):
    with pytest.raises(CannotServeError) as refused:
        web_with(rule)
    assert str(refused.value) == sentence
