"""Opt-out: hosts and pages whose owners asked us to stay away, listed in a file (WEBCRAWL_OPTOUT_FILE).

One entry a line; what follows a # is a comment:

    www.example.org                   this host
    .example.org                      this site: example.org and every host below it (*.example.org means the same)
    example.org/private/*             pages of a host; * stands for any characters
    .example.org/*?print=*            pages of a site

Rules kept:
- An entry is read in favour of who asked: it counts for http and https and for every port, a URL may be given with its
  scheme, and that of a start page (https://example.org/) stands for the host.
- Entries and URLs are compared in their canonical spelling, so %7E is no way around ~.
- A line that cannot be understood stops the start: an opt-out must not be lost without a word.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import ClassVar

from webcrawl.core.errors import SettingError
from webcrawl.core.filters import REMEMBERED_HOSTS
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import canonicals, host_of, resolve, split

Pieces = tuple[str, ...]  # a pattern, split at its asterisks

EVERYTHING: Pieces = ("", "")
WHOLE_HOST: tuple[Pieces, ...] = (EVERYTHING, ("/", ""))
LONGEST_LIST = 3

_COMMENT = re.compile(r"(?:^|\s)#.*")
_HOST = r"\w[^\s/?#@:*\[\]]*|\[[0-9a-f:.]+\]"
_ENTRY = re.compile(rf"(?:https?://)?(?P<site>\*?\.)?(?P<host>{_HOST})(?P<page>/\S*)?", re.IGNORECASE)


class OptOut:
    """Refuses the hosts and pages of a list.

    Not `by_host`: nobody else remembers its verdicts, so that a new list counts as soon as it takes the place of this.
    """

    by_host: ClassVar[bool] = False

    def __init__(self, lines: Iterable[str], reason: Reason = Reason.OPTED_OUT) -> None:
        """Raises ValueError for a line that is no entry; `parse_optout` says it to the operator."""
        self._reason = reason
        hosts: dict[str, list[Pieces]] = {}
        sites: dict[str, list[Pieces]] = {}
        for line in lines:
            if text := _COMMENT.sub("", line).strip():
                is_site, host, pieces = _entry(text)
                (sites if is_site else hosts).setdefault(host, []).append(pieces)
        self._hosts: Mapping[str, list[Pieces]] = hosts
        self._sites: Mapping[str, list[Pieces]] = sites
        self._of_host: dict[str, tuple[Pieces, ...]] = {}

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what is on the list."""
        return self._reason if self.covers(url, host) else None

    def covers(self, url: str, host: str) -> bool:
        """Whether a page is on the list."""
        patterns = self._patterns(host)
        if not patterns:
            return False
        resource = split(canonicals([url])[0])[2]
        return any(_matches(pieces, resource) for pieces in patterns)

    def refuse_host(self, host: str) -> Reason | None:
        """Refuse a host that is on the list with all its pages."""
        return self._reason if any(pieces in WHOLE_HOST for pieces in self._patterns(host)) else None

    def _patterns(self, host: str) -> tuple[Pieces, ...]:
        patterns = self._of_host.get(host)
        return self._remember(host) if patterns is None else patterns

    def _remember(self, host: str) -> tuple[Pieces, ...]:
        if len(self._of_host) >= REMEMBERED_HOSTS:
            self._of_host.clear()
        name = host.rstrip(".")
        found = [*self._hosts.get(name, ())]
        if self._sites:
            labels = name.split(".")
            for start in range(len(labels)):
                found += self._sites.get(".".join(labels[start:]), ())
        self._of_host[host] = tuple(found)
        return self._of_host[host]


class CurrentOptOut:
    """The list as it is at the moment; `rule` is replaced when the file has changed."""

    by_host: ClassVar[bool] = False

    def __init__(self, rule: OptOut) -> None:
        self.rule = rule

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what is on the list now."""
        return self.rule.refuse(url, host)


def spelled(entry: str) -> str:
    """An entry in its one spelling; ValueError for what is none.

    >>> spelled("https://Example.org/"), spelled("*.example.org"), spelled("example.org/%7Eme/*")
    ('example.org', '.example.org', 'example.org/~me/*')
    """
    is_site, host, pieces = _entry(entry.strip())
    return f"{'.' if is_site else ''}{host}{'' if pieces == EVERYTHING else '*'.join(pieces)}"


def parse_optout(text: str, name: str) -> OptOut:
    """The rule of a file's text; `name` is the file's, for the error."""
    lines = text.removeprefix("\ufeff").splitlines()
    bad = []
    for number, line in enumerate(lines, 1):
        try:
            OptOut([line])
        except ValueError:
            bad.append(f"line {number}: {line.strip()[:80]}")
    if bad:
        more = f" and {len(bad) - LONGEST_LIST} more" if len(bad) > LONGEST_LIST else ""
        raise SettingError(
            f"The opt-out list {name} has {'a line' if len(bad) == 1 else f'{len(bad)} lines'} that cannot be "
            f"understood: {'; '.join(bad[:LONGEST_LIST])}{more}.",
            "Somebody who asked us to stay away would be visited all the same.",
            "Write a host (www.example.org), a site (.example.org) or pages (example.org/private/*), without port, "
            "or begin the line with #.",
        )
    return OptOut(lines)


def _entry(text: str) -> tuple[bool, str, Pieces]:
    """Whether it is a site, its host and the pattern of its pages."""
    found = _ENTRY.fullmatch(text)
    if found is None or _is_network(text):
        raise ValueError(text)
    url = resolve("http://host.invalid/", [f"http://{found['host']}{found['page'] or '/'}"])[0]
    if url is None:
        raise ValueError(text)
    canonical = canonicals([url])[0]
    resource = split(canonical)[2]
    pieces = EVERYTHING if resource == "/" else tuple(resource.split("*"))
    return found["site"] is not None, host_of(canonical), pieces


def _is_network(text: str) -> bool:
    """10.0.0.0/8 would be read as a page of a host; what names resolve to is not looked at here."""
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _matches(pieces: Pieces, text: str) -> bool:
    """Whether a text is these pieces with anything in between; each is looked for once, so no pattern is slow."""
    first, *others = pieces
    if not others:
        return text == first
    last = others.pop()
    if not text.startswith(first):
        return False
    at = len(first)
    for piece in others:
        at = text.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return len(text) - at >= len(last) and text.endswith(last)
