"""What a page says to robots beyond robots.txt: meta elements, header fields, and rel on links.

One of the ways of `WAYS` is drawn for each page that has any; home pages have none, so that every host can be entered.
Sources: the robots meta element and X-Robots-Tag as search engines document them, Content-Signal
(contentsignals.org), TDMRep (W3C community group report, 2024), rel values of links (HTML, and Google 2019).
"""

from __future__ import annotations

from typing import NamedTuple

from webcrawl.simulator.mixing import fraction, mixed, salted

OTHER_AGENT = "another-bot"
RELS = ("nofollow", "ugc", "sponsored", "nofollow ugc")


class Directives(NamedTuple):
    """The directives of one page: name and content of a meta element, and header lines."""

    meta_name: str = ""
    meta_content: str = ""
    lines: tuple[str, ...] = ()

    def words(self, agent: str) -> frozenset[str]:
        """What holds for an agent token, of noindex, nofollow and noarchive.

        >>> sorted(Directives(lines=("X-Robots-Tag: none",)).words("webcrawl"))
        ['nofollow', 'noindex']
        """
        said = self.meta_content if self.meta_name.lower() in {"robots", agent.lower()} else ""
        for line in self.lines:
            name, _, value = line.partition(": ")
            named, _, rest = value.partition(": ")
            if name == "X-Robots-Tag":
                said += "," + (value if not rest else rest if named.lower() == agent.lower() else "")
        words = {word.strip().lower() for word in said.split(",")} - {""}
        return frozenset(words - {"none"} | ({"noindex", "nofollow"} if "none" in words else set()))


NO_DIRECTIVES = Directives()
WAYS = (
    Directives("robots", "noindex"),
    Directives("robots", "nofollow"),
    Directives("robots", "noarchive"),
    Directives("robots", "none"),
    Directives("ROBOTS", "NOINDEX,NOFOLLOW"),
    Directives("{agent}", "noindex"),
    Directives(lines=("X-Robots-Tag: noindex",)),
    Directives(lines=("X-Robots-Tag: nofollow",)),
    Directives(lines=("X-Robots-Tag: noarchive",)),
    Directives(lines=("X-Robots-Tag: none",)),
    Directives(lines=("X-Robots-Tag: {agent}: noindex, nofollow",)),
    Directives(lines=(f"X-Robots-Tag: {OTHER_AGENT}: none", "X-Robots-Tag: noarchive")),
    Directives(lines=("Content-Signal: search=yes, ai-input=no, ai-train=no",)),
    Directives(lines=("tdm-reservation: 1", "tdm-policy: http://{host}/tdm-policy.json")),
)


def page_directives(seed: int, ratio: float, host: int, number: int, host_name: str, agent: str) -> Directives:
    """The directives of a page, by the numbers of its host and itself."""
    seed = salted(seed, "directives")
    if number == 0 or fraction(seed, host, number) >= ratio:
        return NO_DIRECTIVES
    way = WAYS[mixed(seed + 1, host, number) % len(WAYS)]
    facts = {"host": host_name, "agent": agent}
    lines = tuple(line.format(**facts) for line in way.lines)
    return Directives(way.meta_name.format(**facts), way.meta_content, lines)


def link_rel(seed: int, ratio: float, host: int, number: int, url: str) -> str:
    """The rel of the links from a page to a URL, or nothing."""
    seed = salted(seed, url)
    if fraction(seed, host, number) >= ratio:
        return ""
    return RELS[mixed(seed + 1, host, number) % len(RELS)]
