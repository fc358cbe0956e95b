"""Tools for testing what plugs into the crawler; no pytest needed.

`BenchFrontier` shows a frontier to a benchmark as five plain methods. `check_frontier` checks the promises of a
frontier in virtual time; `ModelFrontier` is the oracle it is compared with.
"""

from webcrawl.testing.bench import BenchFrontier
from webcrawl.testing.conformance import CHECKS, check_frontier
from webcrawl.testing.crawls import Answer, Check, EmbeddedCrawl, Fetch, Make, ModelCrawl, TestedCrawl, work
from webcrawl.testing.model import Manners, ModelFrontier

__all__ = [
    "CHECKS",
    "Answer",
    "BenchFrontier",
    "Check",
    "EmbeddedCrawl",
    "Fetch",
    "Make",
    "Manners",
    "ModelCrawl",
    "ModelFrontier",
    "TestedCrawl",
    "check_frontier",
    "work",
]
