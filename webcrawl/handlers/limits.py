"""What may end a download early: its size, or a receiver of headers_received and bytes_received.

Rules kept: the same exceptions and log texts as Scrapy's own handlers, checked while bytes come in; with nobody
listening and no size reached, the connection never calls in here.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from pydispatch import dispatcher
from scrapy import signals
from scrapy.exceptions import DownloadCancelledError
from scrapy.http import Headers
from scrapy.utils._download_handlers import check_stop_download, get_maxsize_msg, get_warnsize_msg

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from webcrawl.handlers.connection import Connection

logger = logging.getLogger(__name__)

_ANY = id(dispatcher.Any)


def has_listeners(sender: object) -> bool:
    """Whether anybody may hear headers_received or bytes_received; two dictionary look-ups where nobody does."""
    connections = dispatcher.connections
    for key in (id(sender), _ANY):
        heard = connections.get(key)
        if heard and (signals.headers_received in heard or signals.bytes_received in heard or dispatcher.Any in heard):
            return True
    return False


class Limits:
    """Supervises exchanges that share two sizes; zero means no limit, as in Scrapy."""

    __slots__ = ("_crawler", "_maxsize", "_warnsize", "alarm_bytes", "is_listening")

    def __init__(self, crawler: Crawler, maxsize: int, warnsize: int, *, is_listening: bool) -> None:
        self._crawler = crawler
        self._maxsize = maxsize or sys.maxsize
        self._warnsize = warnsize or sys.maxsize
        self.alarm_bytes = min(self._maxsize, self._warnsize)
        self.is_listening = is_listening

    def head_received(self, connection: Connection) -> None:
        """Raise if the announced size is too large or a receiver wants no body."""
        said = connection.headers.get(b"Content-Length")
        length = int(said[0]) if said else None
        if length is not None and not connection.is_head and connection.status != 304:
            self._judge(connection, length, expected=True)
        if self.is_listening:
            headers = Headers(connection.headers)
            self._ask(signals.headers_received, connection, headers=headers, body_length=length)

    def body_received(self, connection: Connection, data: bytes) -> None:
        """Raise if the body has grown too large or a receiver has had enough."""
        if self.is_listening:
            self._ask(signals.bytes_received, connection, data=data)
        if connection.body_bytes > connection.alarm_bytes:
            self._judge(connection, connection.body_bytes, expected=False)

    def _judge(self, connection: Connection, size: int, *, expected: bool) -> None:
        if size > self._maxsize:
            message = get_maxsize_msg(size, self._maxsize, connection.request, expected=expected)
            logger.warning(message)
            raise DownloadCancelledError(message)
        if size > self._warnsize and connection.alarm_bytes < self._maxsize:
            connection.alarm_bytes = self._maxsize  # one warning per response
            logger.warning(get_warnsize_msg(size, self._warnsize, connection.request, expected=expected))

    def _ask(self, signal: object, connection: Connection, **facts: object) -> None:
        stop = check_stop_download(signal, self._crawler, connection.request, **facts)
        if stop is not None:
            raise stop
