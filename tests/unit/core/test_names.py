"""Names and addresses: how long an answer holds, what needs no question, when the resolver is broken."""

from __future__ import annotations

import math

import pytest

from webcrawl.core.config import load
from webcrawl.core.errors import SettingError
from webcrawl.core.names import (
    AddressHistory,
    Answer,
    Dns,
    LookupWindow,
    Resolution,
    Sighting,
    both_families,
    is_askable,
    lifetime_seconds,
    literal,
    parse_hosts,
    server_address,
    spelled,
    without_asking,
)

FOUND = ("192.0.2.1",)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        (Answer(FOUND, 300), 300),
        (Answer(FOUND, 0), 60),
        (Answer(FOUND, 10**9), 86_400),
        (Answer(FOUND, None), 300),
        (Answer(error="nxdomain", ttl_seconds=900), 900),
        (Answer(error="nodata", ttl_seconds=5), 60),
        (Answer(error="nxdomain", ttl_seconds=86_400), 3600),
        (Answer(error="nodata"), 300),
        (Answer(error="servfail", ttl_seconds=900), 30),
        (Answer(error="timeout"), 30),
        (Answer(error="malformed"), 30),
    ],
)
def test_lifetimes_are_those_of_the_answer_within_bounds(answer, seconds):
    assert lifetime_seconds(answer, Dns()) == seconds


def test_a_least_time_above_the_longest_does_not_win():
    dns = Dns(min_ttl_seconds=7200, negative_ttl_seconds=600, max_ttl_seconds=3600)
    assert lifetime_seconds(Answer(FOUND, 1), dns) == 3600
    assert lifetime_seconds(Answer(error="nxdomain", ttl_seconds=1), dns) == 600


@pytest.mark.parametrize(
    ("ipv4", "ipv6", "expected"),
    [
        (Answer(FOUND, 300), Answer(("2001:db8::1",), 60), Answer((*FOUND, "2001:db8::1"), 60)),
        (Answer(FOUND, 300), Answer(error="nodata", ttl_seconds=5), Answer(FOUND, 300)),
        (Answer(FOUND, 300), Answer(error="servfail"), Answer(FOUND, 300)),
        (Answer(error="nodata"), Answer(("2001:db8::1",), 60), Answer(("2001:db8::1",), 60)),
        (Answer(error="nodata", ttl_seconds=9), Answer(error="nodata", ttl_seconds=7), Answer((), 7, "nodata")),
        (Answer(error="nxdomain"), Answer(error="nodata"), Answer(error="nxdomain")),
        (Answer(error="nxdomain"), Answer(error="servfail"), Answer(error="servfail")),
        (Answer(error="malformed"), Answer(error="timeout"), Answer(error="timeout")),
        (Answer(), Answer(), Answer(error="nodata")),
    ],
)
def test_two_questions_make_one_answer(ipv4, ipv6, expected):
    assert both_families(ipv4, ipv6) == expected


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:0::1", "2001:db8::1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.0.0.0x1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("256.1.1.1", None),
        ("1.2.3.4.5", None),
        ("4294967296", None),
        ("1..2", None),
        ("", None),
        ("host1", None),
        ("0xsite.test", None),
        ("example.org", None),
    ],
)
def test_literals(host, address):
    assert literal(host) == address


def test_spelling():
    assert [spelled(host) for host in ("Example.ORG.", "[::1]", "a")] == ["example.org", "::1", "a"]


@pytest.mark.parametrize(
    "host",
    ["", ".", "a..b", "a" * 64 + ".test", "a." * 130 + "test", "x.invalid", "x.onion", "1.2.3.4.5", "bücher.test"],
)
def test_names_no_server_has(host):
    assert not is_askable(host)
    assert without_asking(host, {}) == Resolution(host, (), math.inf, "nxdomain")


def test_underscores_and_single_labels_may_be_asked():
    assert is_askable("my_blog.example.org") and is_askable("intranet") and is_askable("a" * 63 + ".test")


def test_hosts_file():
    text = (
        "127.0.0.1\tlocalhost here\n::1 localhost\nfe80::1%lo0 link\n# 192.0.2.9 no\n192.0.2.1 Site.Test # yes\nx\n\n"
    )
    hosts = parse_hosts(text)
    assert hosts == {
        "localhost": ("127.0.0.1", "::1"),
        "here": ("127.0.0.1",),
        "link": ("fe80::1",),
        "site.test": ("192.0.2.1",),
    }
    assert without_asking("site.test", hosts) == Resolution("site.test", ("192.0.2.1",), math.inf)


def test_localhost_needs_no_hosts_file():
    for host in ("localhost", "app.localhost"):
        assert without_asking(host, {}) == Resolution(host, ("127.0.0.1", "::1"), math.inf)
    assert without_asking("example.org", {}) is None


def test_errors_are_told_in_words():
    assert Resolution("site.test", FOUND, 0.0).why == ""
    gone = Resolution("site.test", (), 0.0, "nxdomain")
    assert (gone.why, gone.is_temporary) == ("the name does not exist", False)
    assert Resolution("site.test", (), 0.0, "servfail").is_temporary


# ---------------------------------------------------------------------------------------------- history


def test_history_tells_changes_and_ignores_the_order():
    history = AddressHistory(hosts=10)
    assert history.note("site.test", ("192.0.2.1", "192.0.2.2"), 1.0)
    assert not history.note("site.test", ("192.0.2.2", "192.0.2.1"), 2.0)
    assert history.note("site.test", ("192.0.2.3",), 3.0)
    assert history.of("site.test") == (
        Sighting(("192.0.2.1", "192.0.2.2"), 1.0, 2.0),
        Sighting(("192.0.2.3",), 3.0, 3.0),
    )
    assert history.of("other.test") == ()


def test_history_is_bounded():
    history = AddressHistory(hosts=2, sightings=3)
    for n in range(10):
        history.note("a.test", (f"192.0.2.{n}",), float(n))
    assert [one.addresses for one in history.of("a.test")] == [("192.0.2.7",), ("192.0.2.8",), ("192.0.2.9",)]
    history.note("b.test", FOUND, 11.0)
    history.note("c.test", FOUND, 12.0)
    assert history.of("a.test") == () and history.of("c.test")


# ---------------------------------------------------------------------------------------------- a broken resolver


def noted(window, errors, now):
    for error in errors:
        window.note(error, now)
    return window


def test_nine_of_ten_failures_are_a_broken_resolver():
    assert not noted(LookupWindow(), ["timeout"] * 49, 1000.0).is_broken(1000.0)
    assert noted(LookupWindow(), ["timeout"] * 50, 1000.0).is_broken(1000.0)
    assert noted(LookupWindow(), ["timeout"] * 90 + [""] * 10, 1000.0).is_broken(1000.0)
    assert not noted(LookupWindow(), ["timeout"] * 89 + [""] * 11, 1000.0).is_broken(1000.0)


def test_hosts_that_do_not_exist_count_too():
    assert noted(LookupWindow(), ["nxdomain"] * 50, 1000.0).is_broken(1000.0)


def test_old_look_ups_are_forgotten():
    window = noted(LookupWindow(), ["timeout"] * 50, 1000.0)
    assert window.is_broken(1294.0)
    assert not window.is_broken(1300.0)
    assert not noted(window, ["timeout"] * 49, 1300.0).is_broken(1300.0)
    assert noted(window, ["timeout"], 1301.0).is_broken(1301.0)


def test_the_window_needs_the_same_memory_for_any_number_of_look_ups():
    window = LookupWindow()
    for second in range(10_000):
        window.note("timeout", float(second))
    assert len(window._slots) <= LookupWindow.SLOTS


def test_a_share_of_zero_never_stops():
    assert not noted(LookupWindow(share=0.0), ["timeout"] * 500, 1.0).is_broken(1.0)


def test_the_sentence_says_what_happened_and_what_to_do():
    window = noted(LookupWindow(), ["timeout"] * 45 + ["nxdomain"] * 3 + [""] * 2, 1000.0)
    assert window.sentence(1000.0) == (
        "48 of 50 name look-ups in 5 minutes failed (45 timeout, 3 nxdomain). The name server is probably down or "
        "overloaded, and going on would write off every host as dead. Check it, ask it less at once "
        "(WEBCRAWL_DNS_CONCURRENT_LOOKUPS) or name another (WEBCRAWL_DNS_SERVERS), then resume; if the hosts really do "
        "not exist, set WEBCRAWL_DNS_STOP_SHARE=0."
    )


# ---------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("text", "server"),
    [
        ("192.0.2.53", ("192.0.2.53", 53)),
        ("192.0.2.53:5353", ("192.0.2.53", 5353)),
        ("2001:db8::53", ("2001:db8::53", 53)),
        ("[2001:db8::53]", ("2001:db8::53", 53)),
        ("[2001:db8::53]:5353", ("2001:db8::53", 5353)),
    ],
)
def test_servers(text, server):
    assert server_address(text) == server


@pytest.mark.parametrize("text", ["dns.example", "192.0.2.53:0", "192.0.2.53:x", "192.0.2.53:99999", "[::1]:"])
def test_servers_that_are_none(text):
    with pytest.raises(SettingError, match=r"WEBCRAWL_DNS_SERVERS=.* Name the address of a server"):
        load(Dns, {"WEBCRAWL_DNS_SERVERS": text})


def test_settings_are_read():
    dns = load(Dns, {"WEBCRAWL_DNS_SERVERS": "192.0.2.53, 192.0.2.54:5353", "WEBCRAWL_DNS_TRIES": "5"})
    assert (dns.servers, dns.tries) == (("192.0.2.53", "192.0.2.54:5353"), 5)
