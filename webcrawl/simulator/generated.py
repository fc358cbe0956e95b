"""A generated web: hosts, pages, links and bytes as pure functions of a seed and a few numbers.

Rules this file keeps:
- Same parameters, same bytes, on every machine and in every process; nothing is stored.
- Host sizes follow Zipf's law; the sizes add up to exactly `pages`.
- Every page is reached by links from the first host's home page: pages of a host form a tree with `FAN_OUT` children
  each (so 37,000 pages lie within five clicks of home), home pages form a tree of hosts.
- On top of the tree: a menu, breadcrumbs, links to popular and to random pages of the host, and to other hosts, mostly
  of the same topic.  Some hrefs are relative, some absolute, some have a fragment; a tenth of the pages have a query.
- A share of the pages link to a PDF file, to a URL that redirects and to one that does not exist.  Every home page
  links to /private/, which robots.txt forbids.  None of these is a page of the manifest.
- By rules, hosts have other robots.txt files (`robotsfiles.py`) and fail (`faults.py`); pages ask robots for more than
  that (`directives.py`); `allowed` and its neighbours know what follows for a crawler (`oracle.py`).

Costs: about 150 µs to render a page of 14 KB with 60 links.
"""

from __future__ import annotations

import math
import re
import struct
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from webcrawl.simulator import oracle
from webcrawl.simulator.addresses import Addresses
from webcrawl.simulator.answers import TEXT, Answer, CannotServeError, message, redirect
from webcrawl.simulator.directives import Directives, link_rel, page_directives
from webcrawl.simulator.faults import Faults
from webcrawl.simulator.mixing import mixed
from webcrawl.simulator.robotsfiles import DEFAULT_AGENT, PRODUCT_TOKEN, RobotsFiles, Site, text_of
from webcrawl.simulator.vocabulary import TOPICS, paragraphs, pick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FAN_OUT = 8  # children of a page in the tree of its host
HOST_FAN_OUT = 5  # hosts first linked from a home page
SECTIONS = 8  # the pages of a host's menu
NEIGHBOURS = 9  # links to other hosts on every page
MOST_HOSTS = 1_000_000
MOST_IN_SITEMAP = 50_000
RATIOS = ("file_ratio", "redirect_ratio", "broken_ratio", "directive_ratio", "rel_ratio")

_HOST = re.compile(r"[a-z]+-([1-9]\d{0,6})\.example")
_PAGE = re.compile(r"/(?:view\?id=|[a-z]+/[a-z]+-[a-z]+-)([1-9]\d{0,9})(?:&topic=[a-z]+|\.html)")
_EXTRA = re.compile(r"/(files|go|images)/[a-z]+-(\d{1,10})(?:\.pdf|\.png)?")


class Target(NamedTuple):
    """Where a link leads: the number of a host, its origin, a path on it (also as HTML), and the words to click on."""

    host: int
    origin: str
    path: str
    href: str
    title: str


class Layout(NamedTuple):
    """The links of one page by the part of the page that shows them."""

    menu: list[Target]
    crumbs: list[Target]
    children: list[Target]
    related: list[Target]
    elsewhere: list[Target]
    extras: list[Target]


@dataclass(frozen=True)
class GeneratedWeb:
    """A web of `pages` pages on `hosts` hosts.  Hosts and their pages have numbers from 0; page 0 is the home page.

    `robots` and `faults` are rules (see `rules.py`), `agent` is the token that X-Robots-Tag and meta elements name.
    """

    pages: int = 2000
    hosts: int = 40
    seed: int = 1
    links: int = 60
    page_bytes: int = 14_000
    file_ratio: float = 0.05
    redirect_ratio: float = 0.02
    broken_ratio: float = 0.01
    directive_ratio: float = 0.0
    rel_ratio: float = 0.0
    agent: str = DEFAULT_AGENT
    address_count: int = 1
    robots: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= MOST_HOSTS:
            raise CannotServeError(
                f"A generated web cannot have {self.hosts} hosts. Choose 1 to {MOST_HOSTS} with --hosts."
            )
        if self.pages < self.hosts:
            raise CannotServeError(
                f"{self.pages} pages are too few for {self.hosts} hosts, as every host has a home page. "
                "Raise --pages or lower --hosts."
            )
        if self.links < 0 or self.page_bytes < 0 or not 0 <= self.seed < 1 << 63:
            raise CannotServeError("The number of links, the bytes of a page and the seed cannot be negative or huge.")
        for name in RATIOS:
            if not 0 <= getattr(self, name) <= 1:
                what = "links" if name == "rel_ratio" else "pages"
                raise CannotServeError(f"{name}={getattr(self, name)} is a share of the {what}. Choose 0 to 1.")
        if not PRODUCT_TOKEN.fullmatch(self.agent):
            raise CannotServeError(
                f"The agent {self.agent!r} is no product token. Choose letters, _ and - with --agent."
            )
        for part in (self.robots_files, self.fault_rules, self.addressing):
            if part is not None:
                part.check()

    # What exists

    @property
    def host_count(self) -> int:
        return self.hosts

    @property
    def page_count(self) -> int:
        return self.pages

    @cached_property
    def seeds(self) -> tuple[str, ...]:
        return (self.origin(0) + "/",)

    def host_names(self) -> Iterator[str]:
        return map(self.host_name, range(self.hosts))

    def manifest(self) -> Iterator[str]:
        """The URLs of all pages: what a crawler that honours robots.txt finds, without files and redirects."""
        for host in range(self.hosts):
            origin = self.origin(host)
            for number in range(self.host_size(host)):
                yield origin + self.target(host, number).path

    def arguments(self) -> list[str]:
        names = ("pages", "hosts", "seed", "links", "page_bytes", *RATIOS, "agent", "address_count")
        numbers = [f"--{name.replace('_', '-')}={getattr(self, name)}" for name in names]
        return [*numbers, *(f"--robots={rule}" for rule in self.robots), *(f"--fault={rule}" for rule in self.faults)]

    @cached_property
    def _starts(self) -> list[int]:
        """How many pages all hosts before a host have; one number more than there are hosts."""
        reach = list(accumulate((1 / rank for rank in range(1, self.hosts + 1)), initial=0.0))
        spread = (self.pages - self.hosts) / reach[-1]
        return [host + round(spread * share) for host, share in enumerate(reach)]

    def host_size(self, host: int) -> int:
        """The number of pages of a host."""
        return self._starts[host + 1] - self._starts[host]

    def host_name(self, host: int) -> str:
        nouns = TOPICS[host % len(TOPICS)].nouns
        return f"{nouns[host // len(TOPICS) % len(nouns)]}-{host + 1}.example"

    def host_number(self, name: str) -> int | None:
        """The number of the host with this name, or None."""
        match = _HOST.fullmatch(name)
        number = int(match[1]) - 1 if match else self.hosts
        return number if number < self.hosts and self.host_name(number) == name else None

    def origin(self, host: int) -> str:
        return "http://" + self.host_name(host)

    @cached_property
    def target(self) -> Callable[[int, int], Target]:
        """Path and title of a page, by host and number."""
        return lru_cache(maxsize=1 << 16)(self._target)

    def _target(self, host: int, number: int) -> Target:
        topic = TOPICS[host % len(TOPICS)]
        nouns = topic.nouns
        if number == 0:
            return self._at(host, "/", self.host_name(host).partition(".")[0].replace("-", " ").capitalize())
        if number <= SECTIONS:
            return self._at(host, f"/{nouns[number]}/", nouns[number].capitalize())
        bits = mixed(self.seed, host, number)
        noun = nouns[bits % len(nouns)]
        adjective = topic.adjectives[(bits >> 20) % len(topic.adjectives)]
        title = f"{adjective.capitalize()} {noun} {number}"
        section = nouns[1 + number % SECTIONS]
        if number % 10 == 7:
            return self._at(host, f"/view?id={number}&topic={section}", title)
        return self._at(host, f"/{section}/{adjective}-{noun}-{number}.html", title)

    def _at(self, host: int, path: str, title: str) -> Target:
        return Target(host, self.origin(host), path, path.replace("&", "&amp;"), title)

    def page_number(self, host: int, path: str) -> int | None:
        """The number of the page of a host that has this path (with query), or None."""
        if path == "/":
            return 0
        if match := _PAGE.fullmatch(path):
            number = int(match[1])
            return number if number < self.host_size(host) and self.target(host, number).path == path else None
        for number in range(1, min(SECTIONS + 1, self.host_size(host))):
            if self.target(host, number).path == path:
                return number
        return None

    def _extras(self, host: int, ratio: float) -> int:
        """How many extras a host has, when all hosts together have `ratio` of the number of pages."""
        return int(self._starts[host + 1] * ratio) - int(self._starts[host] * ratio)

    # Rules

    @cached_property
    def robots_files(self) -> RobotsFiles | None:
        """The robots.txt files, if they are made by rules."""
        if not self.robots:
            return None
        return RobotsFiles(tuple(self.robots), self.seed, self.hosts, self.host_number, self._site)

    @cached_property
    def fault_rules(self) -> Faults | None:
        return Faults(tuple(self.faults), self.seed, self.hosts, self.host_number) if self.faults else None

    @cached_property
    def addressing(self) -> Addresses:
        return Addresses(self.seed, self.address_count, self.fault_rules)

    def _site(self, host: int) -> Site:
        topic = TOPICS[host % len(TOPICS)]
        section = f"/{topic.nouns[1]}/"
        return Site(
            self.host_name(host), self.host_name((host + 1) % self.hosts), section, section + topic.adjectives[0]
        )

    def address_of(self, host: str) -> str:
        """The address of the server that answers for a host; KeyError for a host that this web does not have."""
        number = self.host_number(host)
        if number is None:
            raise KeyError(host)
        return self.addressing.of(number)

    def addresses(self) -> dict[str, str]:
        """The addresses of all hosts by their names, for a DNS server in a test."""
        return {self.host_name(host): self.addressing.of(host) for host in range(self.hosts)}

    def robots_kind(self, host: str) -> str:
        """Which robots.txt a host has: the rule for it, without its WHERE."""
        return oracle.phases_of(self, oracle.split(self, f"http://{host}/")[0]).kind

    def robots_text(self, host: str) -> str:
        """The rules of a host that are in force in the end, as a robots.txt for an auditor; not what was served."""
        return text_of(oracle.phases_of(self, oracle.split(self, f"http://{host}/")[0]).after.groups)

    def allowed(self, url: str, agent: str, fetches: float = math.inf, seconds: float = math.inf) -> bool:
        """Whether robots.txt permits an agent token to fetch a URL: after all changes, or as its n-th fetch said."""
        return oracle.allowed(self, url, agent, fetches, seconds)

    def crawl_delay_seconds(self, host: str, agent: str) -> float:
        """The Crawl-delay that a host asks of an agent token in the end, or 0."""
        number, _ = oracle.split(self, f"http://{host}/")
        return oracle.phases_of(self, number).after.delay_seconds(agent)

    def must_fetch(self, agent: str, seeds: Iterable[str] = ()) -> set[str]:
        """The pages that a polite crawler with this agent token has to find from the seeds."""
        return oracle.must_fetch(self, agent, seeds or self.seeds)

    def must_not_fetch(self, agent: str) -> set[str]:
        """The pages, and private ones, that a polite crawler with this agent token never fetches."""
        return set(oracle.must_not_fetch(self, agent))

    def directives_of(self, url: str) -> Directives:
        """What a page says to robots, in meta elements and header fields."""
        return self._directives(*self._find(url))

    def rel_of(self, url: str, link: str) -> str:
        """The rel of all links from a page to a URL."""
        return link_rel(self.seed, self.rel_ratio, *self._find(url), link) if self.rel_ratio else ""

    def _directives(self, host: int, number: int) -> Directives:
        return page_directives(self.seed, self.directive_ratio, host, number, self.host_name(host), self.agent)

    # Links

    def links_of(self, url: str) -> tuple[str, ...]:
        """All links of a page, absolute and without fragments, by the part of the page; repeated ones are kept."""
        host, number = self._find(url)
        parts = self._layout(host, number, Random(mixed(self.seed, host, number)).random)
        return tuple(link.origin + link.path for part in parts for link in part)

    def _find(self, url: str) -> tuple[int, int]:
        name, slash, rest = url.removeprefix("http://").partition("/")
        host = self.host_number(name)
        number = None if host is None else self.page_number(host, slash + rest)
        if host is None or number is None:
            raise KeyError(url)
        return host, number

    def _layout(self, host: int, number: int, chance: Callable[[], float]) -> Layout:
        size, target = self.host_size(host), self.target
        menu = [target(host, other) for other in range(min(SECTIONS + 1, size))]
        crumbs = [menu[0], target(host, (number - 1) // FAN_OUT)] if number else []
        first = FAN_OUT * number + 1
        children = [target(host, other) for other in range(first, min(first + FAN_OUT, size))]
        extras = self._page_extras(host, number)
        free = max(0, self.links - len(menu) - len(crumbs) - len(children) - len(extras) - NEIGHBOURS)
        related = [target(host, _popular(chance, size)) for _ in range(min(free, size))]
        elsewhere = [self._neighbour(host, chance) for _ in range(NEIGHBOURS + (free - len(related)) // 2)]
        if number == 0:
            first = HOST_FAN_OUT * host + 1
            elsewhere += [target(other, 0) for other in range(first, min(first + HOST_FAN_OUT, self.hosts))]
        return Layout(menu, crumbs, children, related, elsewhere, extras)

    def _neighbour(self, host: int, chance: Callable[[], float]) -> Target:
        """A page of some other host: half of them of the same topic, large hosts more often, mostly a home page."""
        other = int((self.hosts + 1) ** chance()) - 1
        if chance() < 0.5:
            other = min(other - other % len(TOPICS) + host % len(TOPICS), self.hosts - 1)
        return self.target(other, 0 if chance() < 0.6 else _popular(chance, self.host_size(other)))

    def _page_extras(self, host: int, number: int) -> list[Target]:
        """Links to what is not a page: page n of a host links to its file, redirect and broken link n, if there are."""
        extras = [self._at(host, "/private/", "Members only")] if number == 0 else []
        if number < self._extras(host, self.file_ratio):
            extras.append(self._at(host, self._extra_path(host, "files", number), "Download the report"))
        if number < self._extras(host, self.redirect_ratio):
            extras.append(self._at(host, self._extra_path(host, "go", number), "Our partner"))
        if number < self._extras(host, self.broken_ratio):
            extras.append(self._at(host, self._extra_path(host, "old", number), "Last year's edition"))
        return extras

    def _extra_path(self, host: int, kind: str, number: int) -> str:
        noun = TOPICS[host % len(TOPICS)].nouns[0]
        suffix = {"files": ".pdf", "images": ".png", "old": ".html"}.get(kind, "")
        return f"/{kind}/{noun}-{number}{suffix}"

    # Bytes

    def page(self, url: str) -> bytes:
        """The bytes of a page; KeyError when the manifest does not have it."""
        return self.render(*self._find(url))

    def render(self, host: int, number: int) -> bytes:
        """The bytes of a page, by host and number."""
        chance = Random(mixed(self.seed, host, number)).random
        layout = self._layout(host, number, chance)
        anchor = self._anchors(self.target(host, number), chance)
        if self.rel_ratio:
            anchor = self._marked(host, number, anchor)
        before = self._head(host, number, chance) + self._navigation(layout, anchor)
        before += f"<main>\n<h1>{self.target(host, number).title}</h1>\n{self._image(host, number)}"
        after = self._ending(host, layout, anchor)
        related = [anchor(link) for link in layout.related]
        text_bytes = self.page_bytes - len(before) - len(after) - sum(map(len, related))
        return (before + self._article(host, related, text_bytes, chance) + after).encode()

    def _head(self, host: int, number: int, chance: Callable[[], float]) -> str:
        description = _first_words(pick(chance, paragraphs(self.seed, host % len(TOPICS))))
        name = self.target(host, 0).title
        meta = self._meta(host, number) if self.directive_ratio else ""
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{meta}'
            f"<title>{self.target(host, number).title} - {name}</title>\n"
            f'<meta name="description" content="{description}">\n<link rel="stylesheet" href="/style.css">\n</head>\n'
            f"<body>\n<header>\n<p>{name}</p>\n"
        )

    def _meta(self, host: int, number: int) -> str:
        name, content, _ = self._directives(host, number)
        return f'<meta name="{name}" content="{content}">\n' if name else ""

    def _marked(self, host: int, number: int, anchor: Callable[[Target], str]) -> Callable[[Target], str]:
        """Links as `anchor` writes them, some with a rel."""

        def marked(link: Target) -> str:
            rel = link_rel(self.seed, self.rel_ratio, host, number, link.origin + link.path)
            return anchor(link).replace("<a ", f'<a rel="{rel}" ', 1) if rel else anchor(link)

        return marked

    @staticmethod
    def _navigation(layout: Layout, anchor: Callable[[Target], str]) -> str:
        menu = "".join([f"<li>{anchor(link)}</li>\n" for link in layout.menu])
        crumbs = " &gt; ".join([anchor(link) for link in layout.crumbs])
        return f'<nav><ul>\n{menu}</ul></nav>\n</header>\n<p class="crumbs">{crumbs}</p>\n'

    def _image(self, host: int, number: int) -> str:
        images = self._extras(host, self.file_ratio)
        return f'<img src="{self._extra_path(host, "images", number % images)}" alt="">\n' if images else ""

    def _ending(self, host: int, layout: Layout, anchor: Callable[[Target], str]) -> str:
        children = "".join([f"<li>{anchor(link)}</li>\n" for link in layout.children])
        elsewhere = "".join([f"<p>{anchor(link)}</p>\n" for link in layout.elsewhere])
        extras = "".join([f"<p>{anchor(link)}</p>\n" for link in layout.extras])
        return (
            (f"<h2>More on this</h2>\n<ul>\n{children}</ul>\n" if children else "")
            + f"</main>\n<aside>\n<h2>Elsewhere</h2>\n{elsewhere}</aside>\n<footer>\n{extras}"
            f"<p>Written for {self.target(host, 0).title}. "
            f'<a href="mailto:desk@{self.host_name(host)}">Write to us</a></p>\n'
            "</footer>\n</body>\n</html>\n"
        )

    def _article(self, host: int, anchors: list[str], text_bytes: int, chance: Callable[[], float]) -> str:
        """Headings and paragraphs, half to one and a half times `text_bytes` long, with the links strewn in."""
        topic = host % len(TOPICS)
        pool = paragraphs(self.seed, topic)
        wanted = max(1, round(text_bytes * (0.5 + chance()) / (_mean_length(self.seed, topic) + 30)))
        parts = []
        for done in range(wanted):
            text = pool[int(chance() * len(pool))]
            if done % 5 == 0:
                parts.append(f'<h2 id="part-{done // 5}">{_first_words(text)}</h2>\n')
            see = anchors[done * len(anchors) // wanted : (done + 1) * len(anchors) // wanted]
            more = f" See {', '.join(see)}." if see else ""
            parts.append(f"<p>{text}{more}</p>\n")
        return "".join(parts)

    @staticmethod
    def _anchors(here: Target, chance: Callable[[], float]) -> Callable[[Target], str]:
        """How links are written on a page: the ways that real pages use, each in its share."""
        up = ".." if here.path.count("/") > 1 else "."
        here_host = here.host

        def anchor(link: Target) -> str:
            host, origin, _, href, title = link
            way = chance()
            if host != here_host or way < 0.15:
                return f'<a href="{origin}{href}">{title}</a>'
            if way < 0.4:
                return f'<a href="{up}{href}">{title}</a>'
            return f'<a href="{href}#part-0">{title}</a>' if way < 0.45 else f'<a href="{href}">{title}</a>'

        return anchor

    # Answers

    def answer(self, host: str, target: str) -> Answer | None:
        host_number = self.host_number(host)
        if host_number is None:
            return None
        number = self.page_number(host_number, target)
        if number is not None:
            lines = self._directives(host_number, number).lines if self.directive_ratio else ()
            return Answer(200, self.render(host_number, number), lines=lines)
        if self.robots_files is not None and (robots := self._robots_answer(host_number, target)):
            return robots
        if target in _FIXED:
            return _FIXED[target]
        return self._extra_answer(host_number, target) or message(404, f"There is no page {target} on {host}.")

    def _robots_answer(self, host: int, target: str) -> Answer | None:
        """The first robots.txt of a host, what it redirects to, and the sitemap that it names."""
        assert self.robots_files is not None
        if target == "/robots.txt":
            return self.robots_files.answer(host, fetch=1, seconds=0.0, now=0.0)
        if target == "/sitemap.xml" and self.robots_files.phases(host).rule.name == "sitemap":
            return Answer(200, self._sitemap(host).encode(), "application/xml")
        return self.robots_files.hop_answer(self.host_name(host), target)

    def _sitemap(self, host: int) -> str:
        numbers = range(min(self.host_size(host), MOST_IN_SITEMAP))
        urls = "".join(f"<url><loc>{self.origin(host)}{self.target(host, page).href}</loc></url>\n" for page in numbers)
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{urls}</urlset>\n'
        )

    def _extra_answer(self, host: int, path: str) -> Answer | None:
        match = _EXTRA.fullmatch(path)
        if match is None:
            return None
        kind, number = match[1], int(match[2])
        if path != self._extra_path(host, kind, number):
            return None
        if number >= self._extras(host, self.redirect_ratio if kind == "go" else self.file_ratio):
            return None
        if kind == "go":
            return redirect(self._moved_to(host, number), 301 + number % 2)
        if kind == "files":
            return Answer(200, _pdf(f"Report {number} of {self.host_name(host)}"), "application/pdf")
        return Answer(200, _png(mixed(self.seed, host, number)), "image/png")

    def _moved_to(self, host: int, number: int) -> str:
        page = mixed(self.seed + 1, host, number) % self.pages
        other = bisect_right(self._starts, page) - 1
        return self.origin(other) + self.target(other, page - self._starts[other]).path


_FIXED = {
    "/robots.txt": Answer(200, b"User-agent: *\nDisallow: /private/\n", TEXT),
    "/style.css": Answer(200, b"body { max-width: 40em; margin: auto; font-family: serif }\n", "text/css"),
    "/private/": Answer(
        200,
        b"<!DOCTYPE html>\n<html><head><title>Members only</title></head>\n<body><h1>Members only</h1>\n"
        b"<p>robots.txt asks crawlers not to read this page.</p></body></html>\n",
    ),
}


def _popular(chance: Callable[[], float], size: int) -> int:
    """A page number below `size`: one half of the draws prefers small numbers (Zipf), the other half prefers none."""
    return int((size + 1) ** chance()) - 1 if chance() < 0.5 else int(size * chance())


def _first_words(text: str) -> str:
    return text.partition(".")[0].partition("?")[0].partition(";")[0]


@lru_cache(maxsize=4 * len(TOPICS))
def _mean_length(seed: int, topic: int) -> float:
    pool = paragraphs(seed, topic)
    return sum(map(len, pool)) / len(pool)


def _png(colour: int) -> bytes:
    """A picture of 8 x 8 equal pixels; stored, not compressed, so that every zlib writes the same bytes."""
    rows = (b"\0" + colour.to_bytes(8, "big")[:3] * 8) * 8
    data = b"\x78\x01\x01" + struct.pack("<HH", len(rows), len(rows) ^ 0xFFFF) + rows + _big_endian(zlib.adler32(rows))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _big_endian(len(body)) + kind + body + _big_endian(zlib.crc32(kind + body)) for kind, body in chunks
    )


def _big_endian(value: int) -> bytes:
    return struct.pack(">I", value)


def _pdf(line: str) -> bytes:
    """A document of one page with one line of text."""
    text = f"BT /F1 18 Tf 72 720 Td ({line}) Tj ET"
    fonts = "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
    objects = (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font {fonts} >> >>",
        f"<< /Length {len(text)} >>\nstream\n{text}\nendstream",
    )
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        f"{out}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    ).encode()
