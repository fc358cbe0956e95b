"""Scope: which part of the web this crawl is about: the seeds' hosts, their sites, everything, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from webcrawl.core.errors import SettingError
from webcrawl.core.filters import Rule
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, site_of


@dataclass(frozen=True)
class HostScope:
    """Only these hosts."""

    hosts: frozenset[str]
    by_host: ClassVar[bool] = True

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse every other host."""
        return None if host in self.hosts else Reason.OUT_OF_SCOPE


@dataclass(frozen=True)
class SiteScope:
    """Only hosts of these registrable domains."""

    sites: frozenset[str]
    by_host: ClassVar[bool] = True

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse every other site."""
        return None if site_of(host) in self.sites else Reason.OUT_OF_SCOPE


@dataclass(frozen=True)
class PatternScope:
    """Only URLs in which this pattern is found."""

    pattern: re.Pattern[str]
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what does not match."""
        return None if self.pattern.search(url) else Reason.OUT_OF_SCOPE


def scope_rules(scope: str, seeds: Iterable[str]) -> list[Rule]:
    """The rules of ``-a scope=hosts|sites|all|REGEX``."""
    if scope == "all":
        return []
    hosts = frozenset(host_of(seed) for seed in seeds)
    if scope == "hosts":
        return [HostScope(hosts)]
    if scope == "sites":
        return [SiteScope(frozenset(site_of(host) for host in hosts))]
    try:
        return [PatternScope(re.compile(scope))]
    except re.error as error:
        raise SettingError(
            f"-a scope={scope} is neither hosts, sites nor all, and no regular expression: {error}.",
            "",
            "Use one of the three words, or a pattern such as '^https?://[^/]*\\.example\\.org/'.",
        ) from error
