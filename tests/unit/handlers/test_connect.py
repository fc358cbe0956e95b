"""The right to go to an address: asked after the name was resolved and before a connection is made."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from webcrawl.core.filters.safety import AllowedPeers
from webcrawl.handlers.connect import AddressRefused, Connector
from webcrawl.handlers.connection import Connection
from webcrawl.handlers.pool import Pool, Route

LOOPBACK = "127.0.0.1"


class FakeResolver:
    """Every name has this address: a public one that somebody lets point into our network."""

    async def addresses(self, host: str) -> list[str]:
        return [LOOPBACK]


async def connect(peers: AllowedPeers, host: str) -> None:
    """Connect to the host, and see that a server on this machine is what answers."""
    arrived = asyncio.Event()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        writer.close()

    server = await asyncio.start_server(accept, LOOPBACK, 0)
    port = server.sockets[0].getsockname()[1]
    route = Route(Pool(lambda connection: None), "http", host, port, f"{host}:{port}")
    connector = Connector(FakeResolver(), ssl.create_default_context, peers.check_address, None)
    opened: Connection | None = None
    try:
        opened = await connector.open(route)
        await asyncio.wait_for(arrived.wait(), 5)
    finally:
        if opened is not None:
            opened.abort()
        server.close()
        await server.wait_closed()
        assert arrived.is_set() is (opened is not None)


def test_a_public_name_with_a_private_address_is_not_connected_to() -> None:
    peers = AllowedPeers((), has_contact=True)
    assert peers.refuse("http://rebinding.example/", "rebinding.example") is None, "by its name nothing is wrong"
    with pytest.raises(AddressRefused, match=r"rebinding\.example resolves to 127\.0\.0\.1, a private address"):
        asyncio.run(connect(peers, "rebinding.example"))


def test_a_seed_with_a_public_name_is_no_exception() -> None:
    peers = AllowedPeers((), origins=frozenset({"http://rebinding.example"}), has_contact=True)
    with pytest.raises(AddressRefused):
        asyncio.run(connect(peers, "rebinding.example"))


@pytest.mark.parametrize(
    "peers",
    [
        AllowedPeers(("intranet",)),
        AllowedPeers(("127.0.0.0/8",)),
        AllowedPeers((), origins=frozenset({"http://intranet:8080"})),
    ],
    ids=["name", "network", "seed"],
)
def test_a_host_that_the_operator_named_is_connected_to(peers: AllowedPeers) -> None:
    asyncio.run(connect(peers, "intranet"))
