"""The spider `web`: follows links from seeds, one `Page` item per answer with a body.

    scrapy crawl web -a seeds=FILE_OR_URLS [-a scope=hosts|sites|all|REGEX] [-a add=true] -O pages.jsonl

The callback parses a page once and puts its links on the settlement; the frontier takes them in one batch when the page
is settled. No Request is made per link: on a page with sixty links that is most of what a stock spider costs.

What a page asks of robots (see `core.directives`) is noted in its record, whatever the settings say, and obeyed here:
which links are offered, whether there is an item, and whether it has a text.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import Spider
from scrapy.settings import SETTINGS_PRIORITIES
from w3lib.encoding import http_content_type_encoding
from xxhash import xxh3_64_intdigest, xxh3_128_hexdigest

from webcrawl import __version__, oneline
from webcrawl.assembly import Purpose
from webcrawl.core import config
from webcrawl.core.directives import HEADER_NAMES, NONE, Directives, followed, meta_names, page_directives
from webcrawl.core.errors import SeedError, SettingError
from webcrawl.core.identity import PRODUCT, mismatch, sender, user_agent
from webcrawl.core.lifecycle import Event
from webcrawl.core.outcomes import REDIRECT_STATUS, Outcome
from webcrawl.core.parsing import LARGE_BODY_BYTES, ParsedPage, parse_page
from webcrawl.core.reasons import Reason
from webcrawl.core.seeds import looks_like_urls, seeds_from_file, seeds_from_line
from webcrawl.core.urls import Kind, canonicals, host_of, resolve, site_of
from webcrawl.items import Page
from webcrawl.settlement import Settlement, current
from webcrawl.speed import SPIDER_SETTINGS

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
ARGUMENTS = ("seeds", "scope", "add")
KIND_NAMES = {int(kind): kind.name.lower() for kind in Kind}
DIRECTIVE_HEADERS = frozenset(name.title().encode() for name in HEADER_NAMES)  # as Scrapy spells them


class WebSpider(Spider):
    """Crawls the web from seeds; see the module for its arguments."""

    name = "web"

    @classmethod
    def update_settings(cls, settings: BaseSettings) -> None:
        """Settings that are right for this spider only, each with its reason in `webcrawl.speed`."""
        oneline.install()
        super().update_settings(settings)
        chosen = cls.custom_settings or {}
        for name, value in SPIDER_SETTINGS.items():
            if isinstance(value, dict):  # what the project and the spider chose stays
                settings.set(name, {**value, **settings.getdict(name)}, priority="spider")
            elif name not in chosen:
                settings.set(name, value, priority="spider")
        cls._translate(settings)

    @staticmethod
    def _translate(settings: BaseSettings) -> None:
        """Settings of ours that Scrapy has under other names; a value that cannot be used is refused at the start."""
        try:
            run, limits = config.load(config.Run, settings), config.load(config.Limits, settings)
        except SettingError:
            return  # the scheduler says it, in one sentence
        settings.set("DOWNLOAD_MAXSIZE", limits.page_bytes, priority="spider")
        _introduce(settings, run)

    def __init__(self, seeds: str = "", scope: str = "sites", add: str = "", **arguments: Any) -> None:
        super().__init__(**arguments)
        _check_arguments(arguments)
        if not seeds:
            raise SeedError(
                "No seeds were given, so there is nothing to crawl.",
                "",
                "Name a file or URLs: scrapy crawl web -a seeds=seeds.txt (or -a seeds=https://example.org/).",
            )
        if add.lower() not in ("", "true", "false", "1", "0"):
            raise SettingError(f"-a add={add} is neither true nor false.", "", "Use -a add=true, or leave it out.")
        self.purpose = Purpose(self.name, tuple(read_seeds(seeds)), scope, add.lower() in ("true", "1"))
        self._heed(config.Directives(), PRODUCT)

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        """The settings say what is obeyed, and by which name we are addressed."""
        spider = super().from_crawler(crawler, *args, **kwargs)
        run = config.load(config.Run, crawler.settings)
        spider._heed(config.load(config.Directives, crawler.settings), run.product_token)
        return spider

    def _heed(self, obeyed: config.Directives, token: str) -> None:
        self._obeyed, self._token = obeyed, token
        self._heeded_rels, self._meta_names = frozenset(obeyed.rel), meta_names(token)

    async def start(self) -> AsyncIterator[Any]:
        """Nothing: the scheduler offers the seeds to the frontier."""
        return
        yield  # type: ignore[unreachable]  # makes this an asynchronous generator

    def parse(self, response: Response, **kwargs: Any) -> Any:
        """One answer: its links go to the frontier, its page to the pipelines."""
        settlement = current()
        assert settlement is not None, "answers of this spider always belong to a lease"
        if response.status in REDIRECT_STATUS:
            self._redirect(response, settlement)
            return ()
        if not 200 <= response.status < 300 or not response.body:
            return ()
        assert settlement.visit is not None
        if settlement.visit.mime and settlement.visit.mime not in HTML_TYPES:
            return self._pages(response, settlement, None)
        if len(response.body) > LARGE_BODY_BYTES:
            return self._parse_in_thread(response, settlement)
        return self._pages(response, settlement, self._parsed(response))

    def page_failed(self, failure: Any) -> None:
        """No answer: the page's record says why, and the summary counts it; a log line a page would drown the rest."""

    async def _parse_in_thread(self, response: Response, settlement: Settlement) -> AsyncIterator[Page]:
        """A large page would stop the event loop for several milliseconds."""
        parsed = await asyncio.to_thread(self._parsed, response)
        for page in self._pages(response, settlement, parsed):
            yield page

    def _parsed(self, response: Response) -> ParsedPage:
        return parse_page(response.body, response.url, _charset(response), meta_names=self._meta_names)

    def _redirect(self, response: Response, settlement: Settlement) -> None:
        location = (response.headers.get(b"Location") or b"").decode("utf-8", "replace")
        target = resolve(response.url, [location])[0] if location else None
        if target is None:
            settlement.outcome = Outcome(Event.GIVE_UP, Reason.REDIRECT_LOST)
            return
        settlement.redirect = target
        settlement.outcome = Outcome(Event.STORE, Reason.ALIAS)

    def _pages(self, response: Response, settlement: Settlement, parsed: ParsedPage | None) -> tuple[Page, ...]:
        """Note what the crawl must know of an answer; its item, unless the page asks that there be none."""
        visit, obeyed = settlement.visit, self._obeyed
        assert visit is not None
        visit.content_hash = xxh3_64_intdigest(response.body) >> 1
        asked, words = self._note_wishes(response, settlement, parsed)
        if asked.noindex and obeyed.noindex == "obey":
            assert settlement.outcome is not None
            settlement.outcome = settlement.outcome._replace(reason=Reason.NOINDEX)
            return ()
        page = self._page(response, settlement, words)
        if parsed is not None:
            _describe(page, parsed, has_text=not (asked.noarchive and obeyed.noarchive == "obey"))
        return (page,)

    def _note_wishes(
        self, response: Response, settlement: Settlement, parsed: ParsedPage | None
    ) -> tuple[Directives, list[str]]:
        """What the page asks of robots goes into its record; links that it does not want followed are not offered."""
        visit = settlement.visit
        assert visit is not None
        asked = self._asked(response, settlement, parsed)
        words = asked.words() if asked is not NONE else []
        if words:
            visit.directives = json.dumps(words)
        if parsed is not None:
            visit.text_bytes = len(parsed.text)
            settlement.links = self._followed(parsed, asked)
            settlement.nofollow_links = len(parsed.links) - len(settlement.links)
        return asked, words

    def _asked(self, response: Response, settlement: Settlement, parsed: ParsedPage | None) -> Directives:
        metas = parsed.metas if parsed is not None else ()
        if DIRECTIVE_HEADERS.isdisjoint(response.headers):
            if not metas and not settlement.signals:
                return NONE
            return page_directives(self._token, metas, (), settlement.signals)
        headers = [
            (name.decode(), value.decode("latin-1"))
            for name in sorted(DIRECTIVE_HEADERS.intersection(response.headers))
            for value in response.headers.getlist(name)
        ]
        return page_directives(self._token, metas, headers, settlement.signals)

    def _followed(self, parsed: ParsedPage, asked: Directives) -> Sequence[str]:
        if asked.nofollow and self._obeyed.nofollow == "obey":
            return ()
        return followed(parsed.links, parsed.rels, self._heeded_rels)

    def _page(self, response: Response, settlement: Settlement, words: list[str]) -> Page:
        lease, visit = settlement.lease, settlement.visit
        assert visit is not None
        host = host_of(response.url)
        return Page(
            url=lease.url,
            final_url=response.url,
            canonical_url=canonicals([response.url])[0],
            host=host,
            site=site_of(host),
            status=response.status,
            fetched_at=datetime.fromtimestamp(visit.ended_at, UTC).isoformat(timespec="milliseconds"),
            visit=lease.visit + 1,
            depth=lease.depth,
            kind=KIND_NAMES[lease.kind],
            score=lease.score,
            content_type=visit.mime,
            charset="",
            body_bytes=visit.body_bytes,
            content_hash=xxh3_128_hexdigest(response.body),
            directives=words,
        )


def _introduce(settings: BaseSettings, run: config.Run) -> None:
    """User-Agent and From, which say who we are; what the operator set for either stays."""
    if _is_own_agent(settings):
        if complaint := mismatch(str(settings["USER_AGENT"]), run.product_token):
            logger.warning(complaint)
    else:
        ours = user_agent(run.product_token, __version__, run.contact)
        settings.set("USER_AGENT", ours, priority="spider")
    headers = settings.getdict("DEFAULT_REQUEST_HEADERS")
    if sender(run.contact) and "from" not in map(str.lower, headers):
        priority = max(settings.getpriority("DEFAULT_REQUEST_HEADERS") or 0, SETTINGS_PRIORITIES["spider"])
        settings.set("DEFAULT_REQUEST_HEADERS", {**headers, "From": sender(run.contact)}, priority)


def _is_own_agent(settings: BaseSettings) -> bool:
    """Whether the User-Agent is the operator's, and neither Scrapy's nor that of `webcrawl.settings`."""
    return bool(settings.getpriority("USER_AGENT")) and settings["USER_AGENT"] != user_agent(PRODUCT, __version__)


def _check_arguments(unknown: Iterable[str]) -> None:
    """Refuse arguments that this spider does not have; those with an underscore are of tools (scrapyd gives `_job`)."""
    for name in unknown:
        if not name.startswith("_"):
            near = difflib.get_close_matches(name, ARGUMENTS, n=1)
            raise SettingError(
                f"-a {name}=... is no argument of the spider `web`.",
                "It would be ignored.",
                f"{f'Did you mean {near[0]}? ' if near else ''}There are: {', '.join(ARGUMENTS)}.",
            )


def _describe(page: Page, parsed: ParsedPage, *, has_text: bool) -> None:
    page.charset = parsed.charset
    page.title = parsed.title
    page.text = parsed.text if has_text else ""
    page.language = parsed.lang
    page.description = parsed.description
    page.robots = parsed.robots
    page.canonical_link = parsed.canonical or ""
    page.links = [
        {"url": url, "anchor": anchor if has_text else "", "rel": rel}
        for url, anchor, rel in zip(parsed.links, parsed.anchors, parsed.rels, strict=True)
    ]


def _charset(response: Response) -> str | None:
    content_type = response.headers.get(b"Content-Type")
    return http_content_type_encoding(content_type.decode("latin-1")) if content_type else None


def read_seeds(seeds: str) -> list[str]:
    """URLs given on the command line, or those of a file."""
    if looks_like_urls(seeds):
        return seeds_from_line(seeds)
    path = Path(seeds)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SeedError(
            f"The seeds {seeds} cannot be read: {error.strerror or error}.",
            "",
            "Give a file with one URL a line, or URLs that begin with http:// or https://.",
        ) from error
    return seeds_from_file(data, seeds)
