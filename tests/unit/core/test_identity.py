"""What we call ourselves."""

from __future__ import annotations

import pytest

from webcrawl.core.identity import is_token, mismatch, product_token, sender, user_agent


def test_the_contact_is_part_of_the_user_agent():
    assert user_agent("webcrawl", "0.1.0", "me@a.example") == "webcrawl/0.1.0 (+me@a.example)"
    assert user_agent("webcrawl", "0.1.0") == "webcrawl/0.1.0"


@pytest.mark.parametrize(
    ("contact", "expected"),
    [("me@a.example", "me@a.example"), ("https://a.example/", ""), ("HTTP://a.example/@me", ""), ("", "")],
)
def test_the_sender_is_an_e_mail_address(contact, expected):
    assert sender(contact) == expected


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("webcrawl/0.1.0 (+https://a.example/)", "webcrawl"),
        ("webcrawl", "webcrawl"),
        ("  mybot  (x/y)", "mybot"),
        ("Mozilla/5.0 (compatible; mybot/1)", "mybot"),
        ("my\tbot", "my"),
        ("/1", ""),
        ("", ""),
    ],
)
def test_product_token(agent, token):
    assert product_token(agent) == token


def test_what_we_build_carries_its_token():
    assert product_token(user_agent("my-bot", "1", "me@a.example")) == "my-bot"
    assert mismatch(user_agent("my-bot", "1"), "my-bot") == ""
    assert mismatch("WebCrawl/2", "webcrawl") == ""


def test_a_user_agent_of_another_name_is_said_with_the_remedy():
    assert mismatch("mybot/2 (x)", "webcrawl") == (
        "USER_AGENT=mybot/2 (x) does not begin with webcrawl, the name under which robots.txt is obeyed: a webmaster "
        "who forbids mybot something is not heard. To be known by one name, set WEBCRAWL_AGENT=mybot or begin it with "
        "webcrawl/."
    )
    assert "To be known by one name, begin it with webcrawl/." in mismatch("my.bot/2", "webcrawl")
    assert mismatch("webcrawler/1", "webcrawl") != "", "a longer name is another name"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("webcrawl", True), ("MJ12bot", True), ("a-b_c", True), ("", False), ("a b", False), ("ä", False)],
)
def test_names_that_sites_can_use(text, expected):
    assert is_token(text) is expected
