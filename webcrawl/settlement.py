"""A settlement in the making: what has been learnt about a lease while its request goes through Scrapy.

Which lease a link, an item or an error belongs to is known through a context variable: it is set when the request is
handed out, and every task that Scrapy starts for that request inherits it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy import Request

    from webcrawl.core.frontier import Lease, Offer, RobotsAnswer, Visit
    from webcrawl.core.outcomes import Outcome


class Settlement:
    """Collects until the request is finished, then becomes one report."""

    __slots__ = (
        "answered",
        "child_keys",
        "children",
        "is_done",
        "lease",
        "links",
        "nofollow_links",
        "outcome",
        "outputs",
        "redirect",
        "request",
        "robots",
        "signals",
        "spider_failed",
        "visit",
    )

    def __init__(self, lease: Lease, request: Request) -> None:
        self.lease = lease
        self.request = request
        self.visit: Visit | None = None
        self.answered: Visit | None = None  # as the network saw it, whatever middlewares made of it
        self.outcome: Outcome | None = None
        self.links: Sequence[str] = ()
        self.nofollow_links = 0
        self.signals: tuple[str, ...] = ()  # of the robots.txt that allowed the visit
        self.redirect = ""
        self.robots: RobotsAnswer | None = None
        self.children: list[Offer] = []
        self.child_keys: set[int] = set()
        self.outputs: list[tuple[int, bytes]] = []
        self.spider_failed = False
        self.is_done = False


CURRENT: ContextVar[Settlement | None] = ContextVar("webcrawl_settlement", default=None)


def current() -> Settlement | None:
    """The settlement that the running code belongs to, if any and if it is still open."""
    settlement = CURRENT.get()
    return None if settlement is None or settlement.is_done else settlement
