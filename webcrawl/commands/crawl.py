"""`scrapy crawl`, as in Scrapy; a crawl that failed after its start also ends with an exit code that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import crawl

from webcrawl.extensions.summary import FAILURES, Summary

if TYPE_CHECKING:
    import argparse

    from scrapy import Spider
    from scrapy.crawler import Crawler


class Command(crawl.Command):
    """Scrapy knows failed starts only: a full disk in the middle of a crawl would end with 0."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Crawl, then look at how it ended."""
        super().run(args, opts)
        if not self.exitcode and _has_failed(self._crawler):
            self.exitcode = 1

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._crawler = super()._create_crawler(spidercls)
        return self._crawler


def _has_failed(crawler: Crawler) -> bool:
    summary = crawler.get_extension(Summary)
    if summary is not None and summary.facts is not None:
        return summary.facts.has_failed
    return crawler.stats.get_value("finish_reason") in FAILURES
