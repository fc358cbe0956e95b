"""The server's end of TLS inside a CONNECT tunnel, as bytes in and bytes out.

Done on memory buffers rather than with the event loop's own TLS, because bytes of the client that came together with
its CONNECT request must not be lost.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Tunnel:
    """Deciphers what the client sends and enciphers what is sent to it; `write` takes bytes for the network."""

    def __init__(self, context: ssl.SSLContext, write: Callable[[bytes], None]) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._write = write
        self._is_open = False

    def receive(self, data: bytes) -> bytes:
        """The plain bytes that became readable; ssl.SSLError when the client does not speak TLS or has ended it."""
        self._incoming.write(data)
        try:
            if not self._is_open:
                self._tls.do_handshake()
                self._is_open = True
            return self._read()
        except ssl.SSLWantReadError:
            return b""
        finally:
            self._push()

    def _read(self) -> bytes:
        plain = b""
        try:
            while chunk := self._tls.read(1 << 16):
                plain += chunk
        except ssl.SSLWantReadError:
            return plain
        raise ssl.SSLZeroReturnError("the client ended the tunnel")

    def send(self, plain: bytes) -> None:
        self._tls.write(plain)
        self._push()

    def _push(self) -> None:
        if data := self._outgoing.read():
            self._write(data)
