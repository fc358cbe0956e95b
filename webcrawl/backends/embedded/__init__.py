"""The embedded frontier: one machine, one process, one SQLite file beside the crawl's output."""

from webcrawl.backends.embedded.controls import Wishes, read_rules
from webcrawl.backends.embedded.frontier import EmbeddedFrontier, StaleLeaseError
from webcrawl.backends.embedded.robotsfiles import RobotsPolicy
from webcrawl.backends.embedded.rules import Rules
from webcrawl.backends.embedded.run import EmbeddedRun, Plugs

__all__ = [
    "EmbeddedFrontier",
    "EmbeddedRun",
    "Plugs",
    "RobotsPolicy",
    "Rules",
    "StaleLeaseError",
    "Wishes",
    "read_rules",
]
