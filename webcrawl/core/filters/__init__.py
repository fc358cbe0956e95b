"""Rules that refuse a URL by its looks: one file each, plain values, no state.

A rule has ``refuse(url, host) -> Reason | None``. Rules that look only at the host say ``by_host = True``; their
verdicts are remembered per host. Rules that depend on what the crawl knows (depth, budgets) belong to the frontier.
"""

from __future__ import annotations

from typing import Protocol

from webcrawl.core.reasons import Reason

REMEMBERED_HOSTS = 100_000


class Rule(Protocol):
    """What every rule offers."""

    @property
    def by_host(self) -> bool:
        """Whether the host alone decides."""

    def refuse(self, url: str, host: str) -> Reason | None:
        """Why this URL is not taken, or None."""


class Admission:
    """All rules of a crawl, asked in order; the first refusal counts."""

    def __init__(self, rules: list[Rule]) -> None:
        self.renew(rules)

    def renew(self, rules: list[Rule]) -> None:
        """Go by these rules from now on."""
        self._host_rules = [rule for rule in rules if rule.by_host]
        self._url_rules = [rule for rule in rules if not rule.by_host]
        self._verdicts: dict[tuple[str, bool], Reason | None] = {}

    def refuse(self, url: str, host: str) -> Reason | None:
        """Why this URL is not taken, or None."""
        verdict = self._by_host(url, host)
        if verdict is not None:
            return verdict
        for rule in self._url_rules:
            if (reason := rule.refuse(url, host)) is not None:
                return reason
        return None

    def _by_host(self, url: str, host: str) -> Reason | None:
        memory = (host, url.startswith("https:"))
        if memory in self._verdicts:
            return self._verdicts[memory]
        if len(self._verdicts) >= REMEMBERED_HOSTS:
            self._verdicts.clear()
        reasons = (rule.refuse(url, host) for rule in self._host_rules)
        verdict = next((reason for reason in reasons if reason is not None), None)
        self._verdicts[memory] = verdict
        return verdict
