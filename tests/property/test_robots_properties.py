"""robots.txt of any bytes: never an error, one answer, and nobody else's groups change it."""

from __future__ import annotations

import re
from urllib.parse import quote

from hypothesis import assume, example, given
from hypothesis import strategies as st
from protego import Protego

from webcrawl.core import robots
from webcrawl.core.robots import parse

PIECES = [
    *(
        "User-agent: *\n",
        "User-agent: a\n",
        "user-agent: B/1.0\n",
        "Disallow: ",
        "Allow: ",
        "disallow:",
        "Crawl-delay: 1\n",
    ),
    *(
        "Sitemap: http://a/s\n",
        "Content-Signal: x=y\n",
        "/",
        "/a",
        "/A",
        "/b/",
        "*",
        "$",
        "?",
        "a=1",
        "#",
        " ",
        "\t",
        "\n",
    ),
    *(
        "\r",
        "\r\n",
        "\v",
        "\f",
        "\0",
        "\x85",
        "\u2028",
        "\ufeff",
        "é",
        "%",
        "%61",
        "%c3%A9",
        "%2f",
        "%2A",
        "%24",
        ":",
        "<html>",
    ),
]
files = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
bodies = st.one_of(st.binary(max_size=300), files.map(str.encode), files.map(lambda text: text.encode("utf-16")))
agents = st.sampled_from(["a", "B", "c/1.0 (+http://a/b)", "", "*"]) | st.text(max_size=8)
paths = st.lists(st.sampled_from([*"/aAb*$?=%é#:;", "%61", "%C3%a9", "%2F", "%2A", "robots.txt"]), max_size=8).map(
    "".join
)
urls = st.one_of(paths.map("http://h/".__add__), paths.map("https://h".__add__), paths, st.text(max_size=20))

# Characters that a rule may spell as they are or percent-encoded; they neither mean anything nor end a line.
plain = st.text(st.characters(categories=["L", "N"], exclude_characters="\x85"), min_size=1, max_size=6)


@given(bodies, agents, urls)
@example(b"User-agent: *\nDisallow: /\nAllow: /" + b"a" * 3000, "x", "/" + "a" * 3000)
def test_any_file_has_one_answer_to_any_url(body, agent, url):
    rules = parse(body, agent)
    verdict = rules.verdict(url)
    assert rules.allows(url) is verdict.allowed
    assert verdict.allowed or verdict.rule
    assert rules.crawl_delay is None or rules.crawl_delay >= 0
    assert all(rules.sitemaps) and all(rule.line for rule in rules.rules())


@given(files, files, paths.map("http://h/".__add__))
def test_the_line_of_a_verdict_is_in_the_file(before, behind, url):
    text = f"{before}\nUser-agent: a\nDisallow: /\n{behind}"
    assume("html" not in text)
    verdict = parse(text.encode(), "a").verdict(url)
    if verdict.line:
        line = re.split(r"\r\n|\r|\n", text)[verdict.line - 1]
        assert verdict.rule and verdict.rule in line
    else:
        assert verdict == (True, "", 0)


@given(files, urls)
def test_a_group_of_someone_else_changes_nothing(text, url):
    ours = f"{text}\nUser-agent: a\nDisallow: /a\n"
    with_other = parse(f"{ours}User-agent: other\nDisallow: /\nCrawl-delay: 99\n".encode(), "a")
    without = parse(ours.encode(), "a")
    assert with_other.verdict(url) == without.verdict(url)
    assert with_other.crawl_delay == without.crawl_delay


@given(files, urls, agents)
def test_the_case_of_names_means_nothing(text, url, agent):
    swapped = re.sub(r"(?m)^(user-agent: *)(\S*)", lambda match: match[1].upper() + match[2].swapcase(), text)
    assume(agent.isascii())
    assert parse(swapped.encode(), agent.swapcase()).allows(url) == parse(text.encode(), agent).allows(url)


@given(plain, plain, st.booleans(), st.booleans())
def test_the_spelling_of_a_path_means_nothing(name, rest, is_encoded_there, is_encoded_here):
    def spelled(text, is_encoded):
        return "".join(f"%{octet:02x}" for octet in text.encode()) if is_encoded else text

    rules = parse(f"User-agent: *\nDisallow: /{spelled(name, is_encoded_there)}\n".encode(), "a")
    assert not rules.allows(f"http://h/{spelled(name, is_encoded_here)}{rest}")
    assert not rules.allows(f"http://h/{quote(name)}")
    assert rules.allows(f"http://h/-{name}")


@given(st.lists(st.sampled_from(["a", "b", "ab", "*", "/"]), max_size=8).map("".join), st.booleans(),
       st.text("ab/", max_size=12))  # fmt: skip
def test_wildcards_are_those_of_a_regular_expression(pattern, is_anchored, path):
    anchor = "$" if is_anchored else ""
    rules = parse(f"User-agent: *\nDisallow: /{pattern}{anchor}\n".encode(), "a")
    second_opinion = Protego.parse(f"User-agent: *\nDisallow: /{pattern}{anchor}\n").can_fetch(f"http://h/{path}", "a")
    expression = "/" + ".*".join(map(re.escape, pattern.split("*"))) + (r"\Z" if is_anchored else "")
    assert rules.allows(f"http://h/{path}") == (re.match(expression, f"/{path}") is None) == second_opinion


@given(st.lists(st.tuples(st.booleans(), st.text("ab", max_size=4)), max_size=8), st.text("ab", max_size=6))
def test_the_longest_rule_decides(lines, path):
    text = "".join(f"{'Allow' if is_allow else 'Disallow'}: /{prefix}\n" for is_allow, prefix in lines)
    fitting = [(len(prefix), is_allow) for is_allow, prefix in lines if path.startswith(prefix)]
    assert (
        parse(f"User-agent: *\n{text}".encode(), "a").allows(f"http://h/{path}") == max(fitting, default=(0, True))[1]
    )


@given(urls)
def test_an_origin_is_the_origin_of_its_robots_txt(url):
    try:
        origin = robots.origin_of(url)
    except ValueError:
        return
    assert origin == robots.origin_of(robots.robots_url(url)) == robots.origin_of(origin)
