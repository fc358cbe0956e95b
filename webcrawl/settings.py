"""The Scrapy project's settings: which components, in which order. A reader's first stop.

One owner per concern: where a part of ours takes the place of one of Scrapy's, Scrapy's is set to None here with the
name of ours beside it. Our own settings have the prefix WEBCRAWL_ and are described in docs/settings.md.
"""

from scrapy.settings import default_settings

from webcrawl import __version__
from webcrawl.core.identity import user_agent
from webcrawl.speed import event_loop

BOT_NAME = "webcrawl"
SPIDER_MODULES = ["spiders"]
NEWSPIDER_MODULE = "spiders"
COMMANDS_MODULE = "webcrawl.commands"
USER_AGENT = user_agent(BOT_NAME, __version__)  # the spider `web` adds WEBCRAWL_CONTACT

# What next, and when: the frontier alone. Scrapy's own delays and limits per host must not interfere.
SCHEDULER = "webcrawl.scheduler.FrontierScheduler"
DUPEFILTER_CLASS = "scrapy.dupefilters.BaseDupeFilter"  # the frontier's seen-set
CONCURRENT_REQUESTS = 64
CONCURRENT_REQUESTS_PER_DOMAIN = 100_000
DOWNLOAD_DELAY = 0
DOWNLOAD_SLOTS = {"webcrawl": {"concurrency": 100_000, "delay": 0, "randomize_delay": False}}
AUTOTHROTTLE_ENABLED = False
ROBOTSTXT_OBEY = False  # the frontier reads robots.txt

# A small HTTP/1.1 client; what it does not do goes to Scrapy's own (docs/http.md has the figures).
DOWNLOAD_HANDLERS = {
    "http": "webcrawl.handlers.http.LeanHttpHandler",
    "https": "webcrawl.handlers.http.LeanHttpHandler",
}
DOWNLOAD_TIMEOUT = 60
DOWNLOAD_MAXSIZE = 10_000_000
DOWNLOAD_WARNSIZE = 0

# In the base lists, so that a project's or a spider's own list adds to them instead of replacing them.
DOWNLOADER_MIDDLEWARES_BASE = {
    **default_settings.DOWNLOADER_MIDDLEWARES_BASE,
    "webcrawl.middlewares.outcome.OutcomeMiddleware": 20,
    "webcrawl.middlewares.robots.RobotsMiddleware": 990,  # nearest to the network: redirects ask for their own turn
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,  # the frontier, and RobotsMiddleware
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,  # a page that failed rests in the frontier
}
EXTENSIONS_BASE = {
    **default_settings.EXTENSIONS_BASE,
    "webcrawl.extensions.feeds.SettledFeeds": 0,
    "scrapy.extensions.feedexport.FeedExporter": None,  # SettledFeeds
    "webcrawl.speed.GarbageTuning": 0,
    "scrapy.extensions.spiderstate.SpiderState": None,
    "webcrawl.extensions.progress.Progress": 0,
    "scrapy.extensions.logstats.LogStats": None,  # Progress
    "webcrawl.extensions.summary.Summary": 0,
    "webcrawl.extensions.control.Control": 0,
}
STATS_DUMP = False  # Summary says it in words; `-s STATS_DUMP=True` shows Scrapy's own figures
FEED_EXPORT_ENCODING = "utf-8"

# Nobody needs a shell in a running crawler.
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False

ASYNCIO_EVENT_LOOP = event_loop()
LOG_LEVEL = "INFO"
