"""What a polite crawler must and must not fetch from a generated web.

This file and `robotsfiles.py` know what was generated and read no robots.txt, so a crawler can be compared with them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from webcrawl.simulator.robotsfiles import DEFAULT_PHASES, Phases

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webcrawl.simulator.generated import GeneratedWeb


def phases_of(web: GeneratedWeb, host: int) -> Phases:
    """The robots.txt of a host before and after its change."""
    return web.robots_files.phases(host) if web.robots_files else DEFAULT_PHASES


def split(web: GeneratedWeb, url: str) -> tuple[int, str]:
    """Number of the host, and path with query; KeyError for a host that this web does not have."""
    name, slash, rest = url.partition("#")[0].partition("://")[2].partition("/")
    host = web.host_number(name.removesuffix(":80"))
    if host is None:
        raise KeyError(url)
    return host, (slash or "/") + rest


def allowed(web: GeneratedWeb, url: str, agent: str, fetches: float, seconds: float) -> bool:
    """Whether the n-th answer of the host's robots.txt permits an agent to fetch a URL."""
    host, path = split(web, url)
    return phases_of(web, host).at(fetches, seconds).permits(path, agent)


def must_not_fetch(web: GeneratedWeb, agent: str) -> Iterator[str]:
    """All pages, and the private ones, that no version of their robots.txt permits to an agent."""
    for host in range(web.hosts):
        _, before, after, *_ = phases_of(web, host)
        paths = [web.target(host, number).path for number in range(web.host_size(host))]
        for path in (*paths, "/private/"):
            if not (before.permits(path, agent) or after.permits(path, agent)):
                yield web.origin(host) + path


def must_fetch(web: GeneratedWeb, agent: str, seeds: Iterable[str]) -> set[str]:
    """The pages that are to be found from the seeds by links that may be followed.

    Not through hosts that are down for ever, pages with nofollow for this agent, or links with a rel; robots.txt in its
    last version.
    """
    pages: set[str] = set()
    ahead = list(seeds)
    while ahead:
        url = ahead.pop()
        if url in pages or not _can_fetch(web, url, agent):
            continue
        host, path = split(web, url)
        number = web.page_number(host, path)
        if number is None:
            ahead += _moved_to(web, url)
        else:
            pages.add(url)
            ahead += _followed(web, url, agent)
    return pages


def _can_fetch(web: GeneratedWeb, url: str, agent: str) -> bool:
    host, _ = split(web, url)
    is_down = web.fault_rules is not None and web.fault_rules.is_down(host)
    return not is_down and allowed(web, url, agent, math.inf, math.inf)


def _moved_to(web: GeneratedWeb, url: str) -> list[str]:
    host, path = split(web, url)
    answer = web.answer(web.host_name(host), path) if path.startswith("/go/") else None
    return [answer.location] if answer is not None and answer.location else []


def _followed(web: GeneratedWeb, url: str, agent: str) -> list[str]:
    if "nofollow" in web.directives_of(url).words(agent):
        return []
    return [link for link in web.links_of(url) if not web.rel_of(url, link)]
