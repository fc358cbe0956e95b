"""robots.txt of every kind, one for each host: what is answered, and what it permits.

Each kind is a function in the table `KINDS`.  It makes the answer together with the groups of rules that are in force
when a crawler has understood it (RFC 9309), so `permits` needs no parser: it knows what was generated.

- A 4xx answer, and more redirects than five, permit everything (2.3.1.2 and 2.3.1.3).
- 5xx, 429 and connections that fail permit nothing (2.3.1.4; 429 as Google reads it: come back later).
- Rules beyond the first 500 KiB are not in force (2.5 lets a crawler stop there).

A rule's `fetches=K` or `seconds=T` ends its time: after K fetches of the file, or T seconds after the first one, the
host's robots.txt is of the kind `then` (`private` if none is named).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from webcrawl.simulator.answers import HTML, RESET, SILENT, TEXT, Answer, CannotServeError, failure, message, redirect
from webcrawl.simulator.mixing import salted
from webcrawl.simulator.retryafter import is_form, retry_after
from webcrawl.simulator.rules import Rule, chooser, not_negative, read_rule

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATH = "/robots.txt"
DEFAULT_AGENT = "webcrawl"
LIMIT_BYTES = 500 << 10
MOST_REDIRECTS = 5
_KEYS = ("fetches", "seconds", "then", "max-age", "latency", "retry")
_HOP = re.compile(r"/robots-hop-(\d{1,3})\.txt")
_AWAY = re.compile(r"/robots-of-([a-z0-9.-]+)\.txt")
PRODUCT_TOKEN = re.compile(r"[A-Za-z_-]+")


class Group(NamedTuple):
    """Rules for some agents: (is it allowed, beginning of the path)."""

    agents: tuple[str, ...]
    rules: tuple[tuple[bool, str], ...]
    delay: str = ""


class Site(NamedTuple):
    """What a kind may know of its host: its name, the next host's, a directory, and how some pages in it begin."""

    name: str
    next_name: str
    section: str
    opened: str


@dataclass(frozen=True)
class Robots:
    """One robots.txt: what is answered and the groups in force; `hops` are the answers of what it redirects to."""

    answer: Answer
    groups: tuple[Group, ...] = ()
    hops: dict[tuple[str, str], Answer] = field(default_factory=dict)

    def rules_for(self, agent: str) -> Group | None:
        """The group of an agent token, else the one for all agents."""
        by_agent = {name.lower(): group for group in self.groups for name in group.agents}
        return by_agent.get(agent.lower()) or by_agent.get("*")

    def permits(self, path: str, agent: str) -> bool:
        """Whether an agent may fetch a path: the longest rule decides, and Allow among equals."""
        group = self.rules_for(agent)
        rules = group.rules if group else ()
        fitting = [(len(start), is_allowed) for is_allowed, start in rules if path.startswith(start)]
        return path == PATH or max(fitting, default=(0, True))[1]

    def delay_seconds(self, agent: str) -> float:
        """The Crawl-delay for an agent, or 0."""
        group = self.rules_for(agent)
        return float(group.delay) if group and group.delay else 0.0


PRIVATE = (Group(("*",), ((False, "/private/"),)),)
DENY_ALL = (Group(("*",), ((False, "/"),)),)
ALLOW_ALL = (Group(("*",), ((True, "/"),)),)


def text_of(groups: Sequence[Group]) -> str:
    """Groups as a robots.txt."""
    return "\n".join("".join(f"{line}\n" for line in _lines(group)) for group in groups)


def _lines(group: Group) -> list[str]:
    lines = [f"User-agent: {agent}" for agent in group.agents]
    lines += [f"{'Allow' if is_allowed else 'Disallow'}: {start}" for is_allowed, start in group.rules]
    return lines + ([f"Crawl-delay: {group.delay}"] if group.delay else [])


# The kinds


def _plain(groups: tuple[Group, ...], before: str = "", after: str = "") -> Robots:
    return Robots(Answer(200, (before + text_of(groups) + after).encode(), TEXT), groups)


def _raw(body: bytes, groups: tuple[Group, ...] = PRIVATE, content_type: str = TEXT) -> Robots:
    return Robots(Answer(200, body, content_type), groups)


def _private(site: Site, rule: Rule) -> Robots:
    return _plain(PRIVATE)


def _none(site: Site, rule: Rule) -> Robots:
    return Robots(message(404, f"There is no page {PATH} on {site.name}."))


def _empty(site: Site, rule: Rule) -> Robots:
    return _raw(b"", ())


def _allow_all(site: Site, rule: Rule) -> Robots:
    return _plain(ALLOW_ALL)


def _disallow_all(site: Site, rule: Rule) -> Robots:
    return _plain(DENY_ALL)


def _sections(site: Site, rule: Rule) -> Robots:
    """One directory and all pages with a query are closed; some pages of the directory are open again."""
    closed = ((False, "/private/"), (False, site.section), (False, "/view?"))
    return _plain((Group(("*",), (*closed, (True, site.opened))),))


def _agent_denied(site: Site, rule: Rule) -> Robots:
    return _plain((Group((_token(rule),), ((False, "/"),)), *PRIVATE))


def _agent_allowed(site: Site, rule: Rule) -> Robots:
    return _plain((*DENY_ALL, Group((_token(rule), "another-bot"), ((True, "/"), (False, "/private/")))))


def _token(rule: Rule) -> str:
    token = rule.argument or DEFAULT_AGENT
    if not PRODUCT_TOKEN.fullmatch(token):
        raise CannotServeError(f"The rule {rule.text!r} names {token!r}, which is no product token (letters, _ and -).")
    return token


def _crawl_delay(site: Site, rule: Rule) -> Robots:
    seconds = rule.argument or "1"
    not_negative(seconds, rule)
    return _plain((PRIVATE[0]._replace(delay=seconds),))


def _huge(site: Site, rule: Rule) -> Robots:
    filler = "# Nothing to see in this line, and there are many of them.\n"
    beyond = "Disallow: /view?\n\nUser-agent: *\nDisallow: /\n"
    return _plain(PRIVATE, after=filler * (LIMIT_BYTES // len(filler) + 1) + beyond)


def _bom(site: Site, rule: Rule) -> Robots:
    return _raw(b"\xef\xbb\xbf" + text_of(PRIVATE).encode())


def _cr(site: Site, rule: Rule) -> Robots:
    return _raw(text_of(PRIVATE).replace("\n", "\r").encode())


def _latin_1(site: Site, rule: Rule) -> Robots:
    """Bytes that are no UTF-8, in a comment and in a rule for what does not exist."""
    body = "# Bitte höflich sein\n" + text_of(PRIVATE) + "Disallow: /café/\n"
    return _raw(body.encode("latin-1"), content_type="text/plain")


def _html(site: Site, rule: Rule) -> Robots:
    return _raw(message(404, "Disallow: / is what a robots.txt could say, if this were one.").body, (), HTML)


def _sitemap(site: Site, rule: Rule) -> Robots:
    return _plain(PRIVATE, f"Sitemap: http://{site.name}/sitemap.xml\n", f"\nsitemap: http://{site.name}/news.xml\n")


def _signals(site: Site, rule: Rule) -> Robots:
    return _plain(PRIVATE, after="Content-Signal: search=yes, ai-input=no, ai-train=no\n")


def _status(site: Site, rule: Rule) -> Robots:
    status = int(rule.argument) if re.fullmatch(r"[45]\d\d", rule.argument, re.ASCII) else 0
    if status not in list(HTTPStatus):
        raise CannotServeError(f"The rule {rule.text!r} needs the status of an error, such as status:503.")
    is_unreachable = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS
    return Robots(message(status, "robots.txt is not to be had."), DENY_ALL if is_unreachable else ())


def _reset(site: Site, rule: Rule) -> Robots:
    return Robots(failure(RESET), DENY_ALL)


def _silent(site: Site, rule: Rule) -> Robots:
    return Robots(failure(SILENT), DENY_ALL)


def _redirect(site: Site, rule: Rule) -> Robots:
    count = int(not_negative(rule.argument or "1", rule))
    origin = f"http://{site.name}"
    answers = [redirect(f"{origin}/robots-hop-{hop}.txt", 301 + hop % 2) for hop in range(1, count + 1)]
    first, *rest = *answers, _plain(PRIVATE).answer
    hops = {(site.name, f"/robots-hop-{hop}.txt"): answer for hop, answer in enumerate(rest, 1)}
    return Robots(first, PRIVATE if count <= MOST_REDIRECTS else (), hops)


def _redirect_away(site: Site, rule: Rule) -> Robots:
    path = f"/robots-of-{site.name}.txt"
    moved = redirect(f"http://{site.next_name}{path}")
    return Robots(moved, PRIVATE, {(site.next_name, path): _plain(PRIVATE).answer})


def _redirect_loop(site: Site, rule: Rule) -> Robots:
    path = "/robots-hop-1.txt"
    back = redirect(f"http://{site.name}{PATH}")
    return Robots(redirect(f"http://{site.name}{path}"), (), {(site.name, path): back})


KINDS: dict[str, Callable[[Site, Rule], Robots]] = {
    "private": _private, "none": _none, "empty": _empty, "allow-all": _allow_all, "disallow-all": _disallow_all,
    "sections": _sections, "agent-denied": _agent_denied, "agent-allowed": _agent_allowed,
    "crawl-delay": _crawl_delay, "huge": _huge, "bom": _bom, "cr": _cr, "latin-1": _latin_1, "html": _html,
    "sitemap": _sitemap, "signals": _signals, "status": _status, "reset": _reset, "silent": _silent,
    "redirect": _redirect, "redirect-away": _redirect_away, "redirect-loop": _redirect_loop,
}  # fmt: skip


# Which host has which


class Phases(NamedTuple):
    """The robots.txt of a host before and after its change; without one they are the same."""

    rule: Rule
    before: Robots
    after: Robots
    fetches: float = math.inf
    seconds: float = math.inf

    @property
    def kind(self) -> str:
        """The rule without its WHERE."""
        return self.rule.text.partition("@")[0]

    def at(self, fetch: float, seconds: float) -> Robots:
        """What the n-th fetch gets (from 1), so many seconds after the first one."""
        return self.before if fetch <= self.fetches and seconds < self.seconds else self.after


@dataclass(frozen=True)
class RobotsFiles:
    """The robots.txt files of all hosts by the rules for them; hosts without a rule have the kind `private`."""

    texts: tuple[str, ...]
    seed: int
    hosts: int
    host_number: Callable[[str], int | None]
    site_of: Callable[[int], Site]

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(_read(text) for text in self.texts)

    @cached_property
    def _choose(self) -> Callable[[int], int | None]:
        return chooser(self.rules, salted(self.seed, "robots"), self.hosts, self.host_number)

    def check(self) -> None:
        """Raises if a rule is no rule, names no host, or the shares are more than all hosts."""
        self._choose(0)
        for rule in self.rules:
            _phases(rule, self.site_of(0))

    def phases(self, host: int) -> Phases:
        """The robots.txt of a host, before and after its change."""
        return self._kept_phases(host)

    @cached_property
    def _kept_phases(self) -> Callable[[int], Phases]:
        return lru_cache(maxsize=256)(self._made_phases)

    def _made_phases(self, host: int) -> Phases:
        place = self._choose(host)
        return _phases(_DEFAULT_RULE if place is None else self.rules[place], self.site_of(host))

    def answer(self, host: int, fetch: float, seconds: float, now: float) -> Answer:
        """The answer to the n-th request for /robots.txt (from 1); `now` is the instant, for dates in Retry-After."""
        phases = self.phases(host)
        found, options = phases.at(fetch, seconds), phases.rule.options
        answer = found.answer
        if found is phases.before and "retry" in options:
            sent = retry_after(options["retry"], now, int(fetch) - 1)
            answer = replace(answer, retry_after_text=sent.text, retry_after_seconds=sent.seconds)
        return answer

    def hop_answer(self, host: str, target: str) -> Answer | None:
        """The answer of a URL to which a robots.txt redirects, or None."""
        away = _AWAY.fullmatch(target)
        if not (away or _HOP.fullmatch(target)):
            return None
        owner = self.host_number(away[1] if away else host)
        if owner is None:
            return None
        phases = self.phases(owner)
        return phases.before.hops.get((host, target)) or phases.after.hops.get((host, target))


def _read(text: str) -> Rule:
    rule = read_rule(text, KINDS, _KEYS)
    if "retry" in rule.options and not is_form(rule.options["retry"]):
        raise CannotServeError(f"The rule {text!r} needs retry=SECONDS, date+SECONDS, past or absurd.")
    if "then" in rule.options and not {"fetches", "seconds"} & set(rule.options):
        raise CannotServeError(f"The rule {text!r} never comes to its then. Add fetches=K or seconds=T.")
    return rule


_DEFAULT_RULE = Rule("private", "private")


def _phases(rule: Rule, site: Site) -> Phases:
    before = _with_options(KINDS[rule.name](site, rule), rule)
    fetches, seconds = rule.number("fetches", math.inf), rule.number("seconds", math.inf)
    if math.isinf(fetches) and math.isinf(seconds):
        return Phases(rule, before, before)
    later = read_rule(rule.options.get("then", "private"), KINDS, ())
    return Phases(rule, before, _with_options(KINDS[later.name](site, later), rule), fetches, seconds)


def _with_options(robots: Robots, rule: Rule) -> Robots:
    """The same with Cache-Control and a latency, if the rule asks for them."""
    age = rule.number("max-age", -1)
    lines = (f"Cache-Control: max-age={age:.0f}",) if age >= 0 else ()
    answer = replace(robots.answer, lines=lines, delay_seconds=rule.number("latency", 0.0))
    return replace(robots, answer=answer)


DEFAULT_PHASES = _phases(_DEFAULT_RULE, Site("", "", "", ""))
