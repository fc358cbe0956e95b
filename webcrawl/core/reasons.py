"""Every reason why a page is not fetched, or was given up, with its sentence.

Nothing says no without a reason. Two kinds:
- A reason of a URL depends only on the URL and the settings. Such links get no row of their own: they are counted
  per reason and host, and the verdict can be computed again at any time.
- A reason of a page depends on what the crawl knows (its depth, its host's budget, what the server answered). Such
  pages are rows with the reason in them, so that a change of what is known can bring them back.
The numbers are stored: never renumber.
"""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Why not. The value is stored in the run; the name, in lower case, is used in stats and logs."""

    NONE = 0
    # of a URL
    OUT_OF_SCOPE = 1
    NOT_ALLOWED = 2
    EXCLUDED = 3
    NOT_INCLUDED = 4
    TOO_LONG = 5
    HOST_FULL = 6
    NO_CONTACT = 7
    OPTED_OUT = 8
    NOFOLLOW = 9
    # of a page
    TOO_DEEP = 20
    HOST_LIMIT = 21
    CRASHED = 22
    IGNORED = 23
    ROBOTS = 24
    ROBOTS_UNREACHABLE = 25
    HOST_GIVEN_UP = 26
    BLOCKED = 27
    # of an answer, or of none
    NOT_FOUND = 40
    HTTP_ERROR = 41
    TIMEOUT = 42
    UNREACHABLE = 43
    NO_SUCH_HOST = 44
    BROKEN_ANSWER = 45
    TOO_LARGE = 46
    REDIRECT_LOST = 47
    SPIDER_ERROR = 48
    ADDRESS_REFUSED = 49
    # of a page that is settled all the same
    ALIAS = 60
    ROBOTS_FILE = 61
    NOINDEX = 62

    @property
    def key(self) -> str:
        """The name in stats, logs and exports: `too_deep`."""
        return self.name.lower()

    @property
    def sentence(self) -> str:
        """The same for people."""
        return SENTENCES[self]


SENTENCES: dict[Reason, str] = {
    Reason.NONE: "nothing speaks against it",
    Reason.OUT_OF_SCOPE: "its host is outside the scope of this crawl (-a scope=...)",
    Reason.NOT_ALLOWED: "its host is private, and neither in WEBCRAWL_SAFETY_ALLOW nor that of a seed",
    Reason.EXCLUDED: "its URL matches a pattern of WEBCRAWL_EXCLUDE",
    Reason.NOT_INCLUDED: "its URL matches no pattern of WEBCRAWL_INCLUDE",
    Reason.TOO_LONG: "its URL is longer than WEBCRAWL_LIMIT_URL_LENGTH",
    Reason.HOST_FULL: "its host already has WEBCRAWL_LIMIT_URLS_PER_HOST known URLs",
    Reason.NO_CONTACT: "its host is public, and WEBCRAWL_CONTACT does not say whom its webmaster can reach",
    Reason.OPTED_OUT: "its host or URL is on the opt-out list (WEBCRAWL_OPTOUT_FILE)",
    Reason.NOFOLLOW: "a page that links to it asks robots not to follow",
    Reason.TOO_DEEP: "it lies deeper than WEBCRAWL_LIMIT_DEPTH links below its host's start page",
    Reason.HOST_LIMIT: "WEBCRAWL_LIMIT_PAGES_PER_HOST pages of its host are stored",
    Reason.CRASHED: "the crawler died three times while this page was under way",
    Reason.IGNORED: "a middleware or the spider chose to ignore it",
    Reason.ROBOTS: "its host's robots.txt forbids it",
    Reason.ROBOTS_UNREACHABLE: "its host's robots.txt could not be had, which forbids everything for now",
    Reason.HOST_GIVEN_UP: "its host has not answered for days and was given up",
    Reason.BLOCKED: "it was blocked or dropped by `scrapy control`",
    Reason.NOT_FOUND: "the server says that it does not exist (404 or 410)",
    Reason.HTTP_ERROR: "the server answered with an error",
    Reason.TIMEOUT: "the server did not answer in time",
    Reason.UNREACHABLE: "no connection to the server could be made, or it broke",
    Reason.NO_SUCH_HOST: "the host name could not be resolved",
    Reason.BROKEN_ANSWER: "the answer could not be understood or was cut short",
    Reason.TOO_LARGE: "the body is larger than WEBCRAWL_LIMIT_PAGE_BYTES",
    Reason.REDIRECT_LOST: "it redirects to nowhere: no target, or one that cannot be crawled",
    Reason.SPIDER_ERROR: "the spider failed on it",
    Reason.ADDRESS_REFUSED: "its host resolves to an address that must not be crawled",
    Reason.ALIAS: "it redirects to another page, which counts instead",
    Reason.ROBOTS_FILE: "it is a robots.txt, which is read but is no page",
    Reason.NOINDEX: "it asks robots not to index it, so it gives no item (WEBCRAWL_DIRECTIVES_NOINDEX)",
}
