"""For all tests: no network beyond this machine, no proxy from outside, and Hypothesis without a clock."""

from __future__ import annotations

import ipaddress
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# The machine may be busy with other things: a slow example is no failure. Examples that failed once are replayed.
settings.register_profile("webcrawl", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("webcrawl")


def is_local(address: object) -> bool:
    """Loopback addresses, and what is no internet address at all (a Unix socket)."""
    if not isinstance(address, tuple):
        return True
    host = str(address[0]).partition("%")[0]
    if host in ("", "localhost", "0.0.0.0", "::"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def refuse_the_network(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook sees every connection Python opens, also those of libraries. It cannot see other processes."""
    if event in ("socket.connect", "socket.sendto") and not is_local(arguments[1]):
        pytest.fail(f"A test tried to reach {arguments[1]}. Tests talk to 127.0.0.1 only: use webcrawl.simulator.")


sys.addaudithook(refuse_the_network)


@pytest.fixture(autouse=True)
def no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy or a Scrapy project of the user's shell must not decide what a test does."""
    for name in list(os.environ):
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "scrapy_settings_module"):
            monkeypatch.delenv(name)
