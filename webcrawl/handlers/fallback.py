"""Requests that the lean handler leaves to Scrapy's own one: which, and why.

Rule kept: nothing that works with stock Scrapy stops working; what is not ours goes to the handler Scrapy would have
used (DOWNLOAD_HANDLERS_BASE), built when first needed; SOCKS to Scrapy's httpx handler, the only one that speaks it, if
httpx is installed. Each reason is logged once.
"""

from __future__ import annotations

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from scrapy.utils.misc import build_from_crawler, load_object

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.core.downloader.handlers import DownloadHandlerProtocol
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

HTTPX_HANDLER = "scrapy.core.downloader.handlers._httpx.HttpxDownloadHandler"


def reason_to_fall_back(method: str, meta: dict[str, Any]) -> str | None:
    """Why a request is not for the lean handler; None if it is.

    >>> reason_to_fall_back("GET", {"proxy": "socks5://127.0.0.1:1080"})
    'a socks5 proxy'
    """
    if method == "CONNECT":
        return "method CONNECT"
    if meta.get("bindaddress"):
        return "meta bindaddress"
    scheme, separator, _ = (meta.get("proxy") or "").partition("://")
    if separator and scheme.lower() != "http":
        return f"a {scheme.lower()} proxy"
    return None


class Fallback:
    """Scrapy's own handlers, by class, each built once."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._built: dict[str, DownloadHandlerProtocol] = {}
        self._said: set[str] = set()

    async def download_request(self, request: Request, reason: str) -> Response:
        """Let Scrapy's own handler do it."""
        path = self._path(request.url.partition(":")[0].lower(), reason)
        if path not in self._built:
            self._built[path] = cast("DownloadHandlerProtocol", build_from_crawler(load_object(path), self._crawler))
        if reason not in self._said:
            self._said.add(reason)
            self._say(reason, path, is_direct=not request.meta.get("proxy"))
        return await self._built[path].download_request(request)

    async def close(self) -> None:
        for handler in self._built.values():
            await handler.close()

    def _say(self, reason: str, path: str, *, is_direct: bool) -> None:
        logger.info("Handler fallback: Scrapy's own takes requests with %s. handler=%s", reason, path)
        if is_direct and getattr(self._crawler, "webcrawl_check_address", None) is not None:
            logger.warning(
                "Address check bypassed: requests with %s go to a handler that does not ask webcrawl_check_address: a"
                " page could lead them to a private address. Send them through a proxy, or do without.",
                reason,
            )

    def _path(self, scheme: str, reason: str) -> str:
        if reason.startswith("a socks") and (find_spec("httpx2") or find_spec("httpx")):
            return HTTPX_HANDLER
        return cast("str", self._crawler.settings["DOWNLOAD_HANDLERS_BASE"][scheme])
