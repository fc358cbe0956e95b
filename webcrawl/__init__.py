"""A polite, durable, importance-first web crawler on Scrapy, after WIRE (Castillo, "Effective Web Crawling", 2004)."""

__version__ = "0.1.0"
