"""Hosts share server addresses."""

from __future__ import annotations

from collections import Counter

import pytest

from webcrawl.simulator import addresses
from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.folder import FolderWeb
from webcrawl.simulator.generated import GeneratedWeb


@pytest.fixture
def many(monkeypatch):
    monkeypatch.setattr(addresses, "has_further_loopback", lambda: True)


def test_without_more_addresses_all_hosts_share_one():
    web = GeneratedWeb(pages=20, hosts=10)
    assert set(web.addresses().values()) == {"127.0.0.1"}
    assert (web.addressing.listening, web.addressing.closed) == (("127.0.0.1",), ())


def test_hosts_are_spread_over_the_addresses(many):
    web = GeneratedWeb(pages=200, hosts=200, address_count=8)
    found = web.addresses()
    assert list(found) == list(web.host_names())
    assert all(web.address_of(host) == address for host, address in found.items())
    counts = Counter(found.values())
    assert set(counts) == set(web.addressing.listening) == {f"127.0.0.{number}" for number in range(1, 9)}
    assert min(counts.values()) > 10
    assert found != GeneratedWeb(pages=200, hosts=200, address_count=8, seed=2).addresses()


def test_hosts_that_refuse_have_an_address_where_nobody_listens(many):
    web = GeneratedWeb(pages=40, hosts=20, address_count=3, faults=("refuse@garden-2.example",))
    assert web.address_of("garden-2.example") == "127.0.0.4"
    assert web.addressing.closed == ("127.0.0.4",) and "127.0.0.4" not in web.addressing.listening
    assert list(web.addresses().values()).count("127.0.0.4") == 1


def test_a_system_with_one_loopback_address(monkeypatch):
    monkeypatch.setattr(addresses, "has_further_loopback", lambda: False)
    web = GeneratedWeb(pages=40, hosts=20, address_count=3, faults=("refuse",))
    assert set(web.addresses().values()) == {"127.0.0.1"}
    assert (web.addressing.listening, web.addressing.closed) == (("127.0.0.1",), ())


def test_folders_too(many, tmp_path):
    for name in "abcdefgh":
        (tmp_path / f"{name}.example").mkdir()
    web = FolderWeb(tmp_path, address_count=2, faults=("refuse@b.example",))
    assert set(web.addresses().values()) == {"127.0.0.1", "127.0.0.2", "127.0.0.3"}
    assert web.address_of("b.example") == "127.0.0.3"


def test_other_hosts_have_no_address():
    with pytest.raises(KeyError):
        GeneratedWeb(pages=4, hosts=2).address_of("no.example")


def test_impossible_numbers_are_refused():
    for count in (0, 201):
        with pytest.raises(CannotServeError, match=f"A web cannot have {count} server addresses. Choose 1 to 200"):
            GeneratedWeb(address_count=count)
