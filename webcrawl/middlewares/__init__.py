"""Downloader and spider middlewares: doors through which Scrapy's traffic meets the rules in `webcrawl.core`."""
