"""Names to addresses: asked once, believed for a while, bounded."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest
from scrapy.exceptions import CannotResolveHostError

from webcrawl.handlers import dns
from webcrawl.handlers.dns import TTL_SECONDS, Resolver


@pytest.fixture
def asked(monkeypatch):
    """Names that reached the system, which knows all but gone.test."""
    names = []

    def getaddrinfo(host, *_, **__):
        names.append(host)
        if host == "gone.test":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 0)) for ip in ("192.0.2.1", "192.0.2.1", "192.0.2.2")]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def test_one_question_for_all_who_ask_and_then_from_memory(asked, monkeypatch):
    async def scene():
        resolver = Resolver()
        answers = await asyncio.gather(*(resolver.addresses("site.test") for _ in range(5)))
        assert answers == [["192.0.2.1", "192.0.2.2"]] * 5
        await resolver.addresses("site.test")
        assert asked == ["site.test"]
        later = time.monotonic() + TTL_SECONDS + 1
        monkeypatch.setattr(dns, "monotonic", lambda: later)
        await resolver.addresses("site.test")
        assert asked == ["site.test"] * 2

    asyncio.run(scene())


def test_addresses_are_their_own_answer(asked):
    assert asyncio.run(Resolver().addresses("192.0.2.7")) == ["192.0.2.7"]
    assert asyncio.run(Resolver().addresses("::1")) == ["::1"]
    assert asked == []


def test_failures_have_scrapys_name_and_are_not_remembered(asked):
    async def scene():
        resolver = Resolver()
        for _ in range(2):
            with pytest.raises(CannotResolveHostError, match=r"gone\.test"):
                await resolver.addresses("gone.test")

    asyncio.run(scene())
    assert asked == ["gone.test"] * 2


def test_memory_is_bounded(asked, monkeypatch):
    monkeypatch.setattr(dns, "NAMES_REMEMBERED", 2)

    async def scene():
        resolver = Resolver()
        for name in ("a.test", "b.test", "c.test", "a.test"):
            await resolver.addresses(name)

    asyncio.run(scene())
    assert asked == ["a.test", "b.test", "c.test", "a.test"]


def test_one_who_gives_up_does_not_take_the_answer_from_the_others(asked):
    async def scene():
        resolver = Resolver()
        impatient = asyncio.ensure_future(resolver.addresses("site.test"))
        patient = asyncio.ensure_future(resolver.addresses("site.test"))
        await asyncio.sleep(0)
        impatient.cancel()
        assert await patient == ["192.0.2.1", "192.0.2.2"]
        resolver.close()

    asyncio.run(scene())
