"""The guard against the network guards."""

from __future__ import annotations

import socket

import pytest


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("198.51.100.7", 53)])
def test_a_connection_beyond_this_machine_fails_the_test(address: tuple[str, int]) -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        pytest.raises(pytest.fail.Exception, match=r"Tests talk to 127\.0\.0\.1 only"),
    ):
        datagrams.connect(address)


def test_loopback_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()
