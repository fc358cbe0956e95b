"""Where we may go: own hosts, private ones, public ones, and what names resolve to."""

from __future__ import annotations

import ipaddress

import pytest

from webcrawl.core.filters import Admission
from webcrawl.core.filters.safety import AllowedPeers, is_private_address, is_private_host
from webcrawl.core.reasons import Reason
from webcrawl.core.urls import host_of, origin_of, resolve

SEED = "http://127.0.0.1:8000/start"


def verdict(peers, url):
    return Admission([peers]).refuse(url, host_of(url))


def seeded(*seeds, allow=()):
    return AllowedPeers(allow, origins=frozenset(map(origin_of, seeds)), has_contact=True)


# ------------------------------------------------------------------------------------------------ the list


@pytest.mark.parametrize(
    ("host", "is_allowed"),
    [
        ("example.org", True),
        ("example.org.", True),
        ("www.example.org", False),
        ("a.test", True),
        ("a.b.test", True),
        ("test", False),
        ("nottest", False),
        ("xn--bcher-kva.org", True),
        ("a.xn--bcher-kva.com", True),
        ("127.0.0.1", True),
        ("127.255.0.1", True),
        ("128.0.0.1", False),
        ("localhost", True),
        ("my.localhost", True),
        ("[::1]", True),
        ("[::2]", False),
        ("[::ffff:127.0.0.1]", False),
        ("10.0.0.7", True),
        ("10.0.0.8", False),
        ("evil127.0.0.1.org", False),
    ],
)
def test_what_the_list_names(host, is_allowed):
    peers = AllowedPeers(("Example.org", ".test", "bücher.org", ".bücher.com", "127.0.0.0/8", "::1", "10.0.0.7"))
    assert peers.contains(host) is is_allowed
    assert (verdict(peers, f"http://{host}/") is None) is is_allowed
    assert peers.is_own(f"http://{host}/", host) is is_allowed


def test_behind_a_proxy_of_the_list_every_host_is_an_own_one():
    peers = AllowedPeers(("127.0.0.0/8",), lambda scheme, host: "127.0.0.1" if scheme == "http" else None)
    admission = Admission([peers])
    for host in ("anywhere.org", "intranet", "10.0.0.1"):
        assert admission.refuse(f"http://{host}/", host) is None
        assert peers.is_own(f"http://{host}/", host)
        assert admission.refuse(f"https://{host}/", host) is not None, "https has no proxy here"
        assert admission.refuse(f"http://{host}/", host) is None


def test_behind_another_proxy_the_host_is_judged():
    peers = AllowedPeers((".test",), lambda scheme, host: "proxy.example", has_contact=True)
    assert verdict(peers, "http://a.test/") is None
    assert verdict(peers, "http://anywhere.org/") is None
    assert not peers.is_own("http://anywhere.org/", "anywhere.org")
    assert verdict(peers, "http://169.254.169.254/latest/") is Reason.NOT_ALLOWED
    assert verdict(peers, "http://router.local/") is Reason.NOT_ALLOWED


def test_the_proxy_is_looked_for_once_a_host_and_scheme():
    asked = []
    peers = AllowedPeers((), lambda scheme, host: asked.append((scheme, host)), has_contact=True)
    for url in ("http://a.org/1", "http://a.org/2", "https://a.org/3", "http://b.org/4", "http://a.org:81/5"):
        peers.refuse(url, host_of(url))
    assert asked == [("http", "a.org"), ("https", "a.org"), ("http", "b.org")]


# ------------------------------------------------------------------------------------------------ private and public


@pytest.mark.parametrize(
    "text",
    """
    0.0.0.0 0.1.2.3 10.255.0.1 100.64.0.1 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.8
    192.0.2.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255
    :: ::1 ::127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 ::ffff:0:10.0.0.1 fe80::1 fe80::1%eth0 fec0::1 fc00::1
    fd12:3456::1 ff02::1 100::1 2001::1 2001:db8::1 3fff::1 4000::1
    64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b:1::8.8.8.8 2002:0a00:0001::1 2002:7f00:0001:: 2002:c0a8:0101::5
    """.split(),
)
def test_private_addresses(text):
    address = ipaddress.ip_address(text)
    assert is_private_address(address)
    if "%" not in text:
        url = resolve("http://x.test/", [f"http://[{text}]/" if ":" in text else f"http://{text}/"])[0]
        assert verdict(AllowedPeers((), has_contact=True), url) is Reason.NOT_ALLOWED


@pytest.mark.parametrize(
    "text",
    """
    8.8.8.8 100.63.255.255 100.128.0.1 172.15.255.255 172.32.0.1 192.0.1.1 198.17.255.255 198.20.0.1 223.255.255.255
    2606:4700::1111 2a00:1450::200e 2001:200::1 2001:4860:4860::8888 64:ff9b::8.8.8.8 2002:0808:0808::1
    """.split(),
)
def test_public_addresses(text):
    assert not is_private_address(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    ("host", "is_private"),
    [
        ("localhost", True),
        ("localhost.", True),
        ("LOCALHOST", True),
        ("a.localhost", True),
        ("printer.local", True),
        ("db.internal", True),
        ("nas.home.arpa", True),
        ("intranet", True),
        ("intranet.", True),
        ("local", True),
        ("mylocalhost.org", False),
        ("notlocal.example", False),
        ("local.example.org", False),
        ("home.arpa.org", False),
        ("example.org", False),
    ],
)
def test_names_that_only_their_own_network_knows(host, is_private):
    assert is_private_host(host) is is_private


@pytest.mark.parametrize("spelling", ["0x7f.1", "2130706433", "0177.0.0.1", "127.1", "127.0.0.1.", "①②⑦.0.0.1"])
def test_no_spelling_hides_an_address(spelling):
    assert AllowedPeers((), has_contact=True).refuse_url(f"http://{spelling}/") is Reason.NOT_ALLOWED
    assert AllowedPeers((), has_contact=True).refuse_url(f"HTTP://{spelling}/") is Reason.NOT_ALLOWED


def test_public_hosts_need_a_contact():
    assert verdict(AllowedPeers(()), "http://example.org/") is Reason.NO_CONTACT
    assert verdict(AllowedPeers((), has_contact=True), "http://example.org/") is None
    assert verdict(AllowedPeers(("example.org",)), "http://example.org/") is None, "an own host needs none"


def test_private_hosts_are_refused_with_and_without_a_contact():
    for has_contact in (False, True):
        assert verdict(AllowedPeers((), has_contact=has_contact), "http://127.0.0.1/") is Reason.NOT_ALLOWED


def test_what_has_no_host_passes():
    assert AllowedPeers(()).refuse_url("data:text/plain,hello") is None


# ------------------------------------------------------------------------------------------------ seeds


@pytest.mark.parametrize(
    ("url", "is_taken"),
    [
        ("http://127.0.0.1:8000/other?page", True),
        ("http://me@127.0.0.1:8000/", True),
        ("http://127.0.0.1/", False),
        ("http://127.0.0.1:8001/", False),
        ("https://127.0.0.1:8000/", False),
        ("http://localhost:8000/", False),
        ("http://intranet/wiki", True),
        ("http://intranet:8080/", False),
        ("http://10.0.0.1/", False),
        ("http://example.org/", True),
        ("http://example.org:8080/", True),
    ],
)
def test_a_private_origin_is_open_if_it_is_a_seed(url, is_taken):
    admission = Admission([seeded(SEED, "http://intranet/", "http://example.org/")])
    for _ in range(2):  # verdicts on hosts may be remembered
        admission.refuse(SEED, host_of(SEED))
        assert admission.refuse(url, host_of(url)) == (None if is_taken else Reason.NOT_ALLOWED)


def test_verdicts_are_by_host_unless_a_port_counts():
    assert seeded("http://example.org/").by_host
    assert seeded(SEED, allow=("127.0.0.0/8",)).by_host
    assert not seeded(SEED).by_host


# ------------------------------------------------------------------------------------------------ resolved addresses


@pytest.mark.parametrize(
    ("host", "ip", "is_fine"),
    [
        ("example.org", "93.184.216.34", True),
        ("example.org", "127.0.0.1", False),
        ("example.org", "::ffff:127.0.0.1", False),
        ("example.org", "169.254.169.254", False),
        ("example.org", "fe80::1%eth0", False),
        ("example.org", "no address", False),
        ("seed.org", "127.0.0.1", False),
        ("own.org", "10.0.0.1", True),
        ("other.org", "10.1.0.1", True),
        ("intranet", "192.168.0.1", True),
        ("Intranet.", "192.168.0.1", True),
        ("::1", "::1", True),
        ("router", "192.168.0.1", False),
    ],
)
def test_what_a_name_resolves_to_is_judged_again(host, ip, is_fine):
    peers = seeded("http://intranet/", "http://[::1]:81/", "http://seed.org/", allow=("own.org", "10.1.0.0/16"))
    assert (peers.check_address(host, ip) is None) is is_fine


def test_the_refusal_of_an_address_names_the_remedy():
    sentence = seeded().check_address("wiki.example.org", "10.0.0.1")
    assert sentence == (
        "wiki.example.org resolves to 10.0.0.1, a private address, and a page must not lead the crawl into a private "
        "network. For a host you own, add it: -s WEBCRAWL_SAFETY_ALLOW=wiki.example.org"
    )
