"""Items: what a crawl gives to pipelines and feeds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Page:
    """One answer with a body. A feed holds one of these per settled visit; (`url`, `visit`) is its key."""

    url: str  # as it was found and asked for
    final_url: (
        str  # as it answered; a redirect is a page of its own, so this is the same unless a middleware changed it
    )
    canonical_url: str  # the spelling by which pages are compared
    host: str
    site: str
    status: int
    fetched_at: str  # UTC, ISO 8601
    visit: int  # 1 for the first
    depth: int  # links from the host's start page
    kind: str  # static or dynamic
    score: float
    content_type: str
    charset: str
    body_bytes: int
    content_hash: str  # XXH3-128 of the body
    title: str = ""
    text: str = ""
    language: str = ""  # as declared by the page
    description: str = ""
    robots: str = ""  # the page's meta robots
    directives: list[str] = field(default_factory=list)  # all it asks of us, headers and robots.txt included
    canonical_link: str = ""  # what the page calls its own address
    links: list[dict[str, str]] = field(default_factory=list)  # url, anchor, rel
