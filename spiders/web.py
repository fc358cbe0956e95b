"""The broad crawl: `scrapy crawl web`. The spider lives in the library, so that it can be used without this project."""

from webcrawl.webspider import WebSpider


class Web(WebSpider):
    """Named here because Scrapy lists the classes a project's own modules define."""
