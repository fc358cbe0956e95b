"""What a page or its headers ask of robots, beyond robots.txt: indexing, following links, keeping copies, uses.

Rules kept here
- Nothing raises, whatever a site sends; what is not understood is kept as text, never guessed.
- What is said to everyone and what is said to our product token add up, and what forbids wins: `noindex` beside `index`
  is noindex, `none` is noindex and nofollow. What is said to another robot is not for us.
- A header may name a robot anywhere (`googlebot: noindex, otherbot: nofollow`); the name holds until the next one or
  the end of this header. A date in `unavailable_after` may hold commas.
- Reservations of rights (Content-Signal, Content-Usage, TDM-Reservation, TDM-Policy) are reported, not interpreted:
  they speak of what is done with a page, which a crawler cannot know.
- One page's directives are small: longer texts are cut, further items dropped.

Sources: HTML §4.2.5.1 and §4.6.7.10 (meta names, rel nofollow); Google's robots meta tag and X-Robots-Tag reference;
W3C TDM Reservation Protocol; draft-ietf-aipref-attach (Content-Usage); contentsignals.org (Content-Signal).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 4096  # of one meta element or header
MAX_OTHER = 32  # further directives kept of one page
MAX_SIGNALS = 16
MAX_SIGNAL_CHARACTERS = 1000  # of one


@dataclass(frozen=True, slots=True)
class Directives:
    """What one page asks of us."""

    noindex: bool = False
    nofollow: bool = False
    noarchive: bool = False
    nosnippet: bool = False
    other: tuple[str, ...] = ()  # in lower case, as `noai`, `max-snippet: 50`, `unavailable_after: 25 jun 2030`
    signals: tuple[str, ...] = ()  # as `content-signal: search=yes, ai-train=no`, `tdm-reservation: 1`

    def words(self) -> list[str]:
        """Everything that was asked, one text each, in the order of the fields.

        >>> Directives(noindex=True, other=("noai",), signals=("tdm-reservation: 1",)).words()
        ['noindex', 'noai', 'tdm-reservation: 1']
        """
        return [*(wish for wish in _WISHES if getattr(self, wish)), *self.other, *self.signals]


NONE = Directives()

_WISHES = ("noindex", "nofollow", "noarchive", "nosnippet")

_NO_WISH = frozenset(("all", "index", "follow", "archive", "snippet", ""))
_MEANING = {
    "none": ("noindex", "nofollow"),
    "noindex": ("noindex",),
    "nofollow": ("nofollow",),
    "noarchive": ("noarchive",),
    "nocache": ("noarchive",),
    "nosnippet": ("nosnippet",),
    "max-snippet: 0": ("nosnippet",),
}
_VALUED = frozenset(("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"))
_SIGNAL_NAMES = frozenset(("content-signal", "content-usage", "tdm-reservation", "tdm-policy"))

HEADER_NAMES = frozenset(("x-robots-tag", *_SIGNAL_NAMES))


def meta_names(agent_token: str) -> frozenset[str]:
    """Names of the meta elements that may ask something of this agent, in lower case."""
    return frozenset(("robots", agent_token.strip().lower(), *_SIGNAL_NAMES)) - {""}


def page_directives(
    agent_token: str,
    metas: Iterable[tuple[str, str]] = (),
    headers: Iterable[tuple[str, str]] = (),
    robots_signals: Iterable[str] = (),
) -> Directives:
    """What a page asks of the agent with this product token.

    `metas` are names and contents of meta elements (what `core.parsing` calls `robots` is the content of all `robots`
    elements), `headers` names and values as received, `robots_signals` the `signals` of its robots.txt.

    >>> page_directives("webcrawl", [("robots", "noindex, noai")], [("X-Robots-Tag", "googlebot: nofollow")])
    Directives(noindex=True, nofollow=False, noarchive=False, nosnippet=False, other=('noai',), signals=())
    """
    token = agent_token.strip().lower()
    asked: dict[str, None] = {}
    signals: dict[str, None] = dict.fromkeys(filter(None, map(_short, robots_signals)))
    for name, content in metas:
        key = name.strip().lower()
        if key == "robots" or (token and key == token):
            asked.update(dict.fromkeys(_items(content)))
        elif key in _SIGNAL_NAMES:
            signals[f"{key}: {_short(content)}"] = None
    for name, value in headers:
        key = name.strip().lower()
        if key == "x-robots-tag":
            asked.update(dict.fromkeys(_items_for(token, value)))
        elif key in _SIGNAL_NAMES:
            signals[f"{key}: {_short(value)}"] = None
    return _directives(asked, signals) if asked or signals else NONE


def follows(rel: str, heeded: frozenset[str]) -> bool:
    """Whether a link with this `rel` is followed by who heeds these words.

    >>> follows("noopener NoFollow", frozenset({"nofollow"})), follows("ugc", frozenset({"nofollow"}))
    (False, True)
    """
    return not rel or heeded.isdisjoint(rel.lower().replace(",", " ").split())


def followed(links: Sequence[str], rels: Sequence[str], heeded: frozenset[str]) -> Sequence[str]:
    """The links that are followed by who heeds these words; `rels` has the `rel` of each.

    >>> followed(["http://a/", "http://b/"], ["ugc", "noopener"], frozenset({"nofollow", "ugc"}))
    ['http://b/']
    """
    if not heeded or not any(rels):
        return links
    verdicts = {rel: follows(rel, heeded) for rel in set(rels)}
    return [link for link, rel in zip(links, rels, strict=True) if verdicts[rel]]


def _directives(asked: Iterable[str], signals: Iterable[str]) -> Directives:
    meant = {meaning for item in asked for meaning in _MEANING.get(item, ())}
    other = [item for item in asked if item not in _MEANING and item not in _NO_WISH]
    return Directives(
        noindex="noindex" in meant,
        nofollow="nofollow" in meant,
        noarchive="noarchive" in meant,
        nosnippet="nosnippet" in meant,
        other=tuple(other[:MAX_OTHER]),
        signals=tuple(signal[:MAX_SIGNAL_CHARACTERS] for signal in signals)[:MAX_SIGNALS],
    )


_BLANKS = re.compile(r"\s+")


def _short(text: str) -> str:
    return _BLANKS.sub(" ", text[:MAX_CHARACTERS]).strip()


def _items(text: str) -> Iterator[str]:
    """The directives of one text, in lower case, one blank behind a colon."""
    date = ""
    for piece in _short(text).lower().replace(";", ",").split(","):
        item = piece.strip()
        if date and item[:1].isdigit():  # of `wed, 25 jun 2030` or `june 25, 2030`
            date = f"{date}, {item}"
            continue
        if date:
            yield date
        name, colon, value = item.partition(":")
        item = f"{name.strip()}: {value.strip()}" if colon else item
        date = item if "unavailable_after" in item else ""
        if not date:
            yield item
    if date:
        yield date


def _items_for(token: str, value: str) -> Iterator[str]:
    """The directives of one X-Robots-Tag that are said to everyone or to this robot."""
    is_ours = True
    for item in _items(value):
        name, colon, rest = item.partition(":")
        if colon and name not in _VALUED:
            is_ours = name in (token, "*")
            item = rest.strip()
            inner, inner_colon, inner_value = item.partition(":")
            item = f"{inner.strip()}: {inner_value.strip()}" if inner_colon else item
        if is_ours:
            yield item
