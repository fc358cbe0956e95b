"""Rows of the store, made from columns and reports; see `store` for what each table means."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from webcrawl.backends.embedded.arrivals import signed
from webcrawl.core.frontier import Report
from webcrawl.core.lifecycle import LEASED, READY
from webcrawl.core.pagetable import PageTable

Row = tuple[Any, ...]


def record_row(table: PageTable, report: Report, state: int, original: int, group: int, clock_offset: float) -> Row:
    """A visited page, for the table `records`."""
    page, visit, at = report.lease.page, report.visit, table.pages.at
    return (
        page,
        state,
        int(report.reason),
        at.visits[page],
        at.failures[page],
        at.depth[page],
        report.lease.score if table.unboosted is None else table.own_score(page),
        at.due[page],
        visit.ended_at + clock_offset,
        visit.status,
        visit.mime,
        visit.body_bytes,
        visit.text_bytes,
        signed(visit.content_hash),
        visit.latency_seconds,
        visit.total_seconds,
        original or None,
        group,
        visit.directives or None,
    )


def change_rows(table: PageTable, pages: Iterable[int]) -> Iterator[Row]:
    """Pages that were changed without a visit, as they are now: one may have been visited after it was changed."""
    at = table.pages.at
    for page in pages:
        state = READY if at.state[page] == LEASED else at.state[page]
        score = table.own_score(page)
        yield page, state, at.reason[page], at.visits[page], at.failures[page], at.depth[page], score, at.due[page]


def host_rows(table: PageTable, hosts: Iterable[int], clock_offset: float) -> Iterator[Row]:
    """Hosts as they are now, for an update of the table `hosts`."""
    at = table.hosts.at
    for host in hosts:
        counts = at.known[host], at.stored[host], at.failed[host], at.dynamic[host], at.body_bytes[host]
        wishes = at.crawl_delay[host], at.took[host], at.rest_seconds[host]
        health = at.incident_at[host] + clock_offset, at.steps[host], at.trouble[host], at.flags[host]
        yield host, at.next_at[host] + clock_offset, *counts, *wishes, *health
