"""Identity: what we call ourselves in every request, so that a webmaster can forbid us things and write to us.

The product token is the name that robots.txt knows us by (RFC 9309 §2.2.1); the contact follows in a comment, as
Castillo 2004 (appendix A) asks and as most large crawlers do.
"""

from __future__ import annotations

import re

PRODUCT = "webcrawl"


def user_agent(token: str, version: str, contact: str = "") -> str:
    """The User-Agent header (RFC 9110 §10.1.5).

    >>> user_agent("webcrawl", "0.1.0", "https://example.org/our-crawler")
    'webcrawl/0.1.0 (+https://example.org/our-crawler)'
    """
    product = f"{token}/{version}"
    return f"{product} (+{contact})" if contact else product


def sender(contact: str) -> str:
    """The From header (RFC 9110 §10.1.2), which is an e-mail address; empty if the contact is none.

    >>> sender("crawler@example.org"), sender("https://example.org/@crawler")
    ('crawler@example.org', '')
    """
    return "" if not contact or contact.lower().startswith(("http://", "https://")) else contact


_PRODUCT = re.compile(r"(?:\s++|/\S*+|\([^)]*+\)?+)*+([^/\s(]*+)")
_COMPATIBLE = re.compile(r"\bcompatible\s*+;\s*+([^;/)\s]++)", re.IGNORECASE)


def product_token(agent: str) -> str:
    """The name by which sites call an agent (RFC 9309 §2.2.1): the first word, unless that is only Mozilla.

    >>> product_token("webcrawl/0.1 (+http://example.com/bot)"), product_token("Mozilla/5.0 (compatible; FooBot/2.1)")
    ('webcrawl', 'FooBot')
    """
    first = _PRODUCT.match(agent)
    if first is None or first[1].lower() != "mozilla":
        return first[1] if first else ""
    second = _COMPATIBLE.search(agent) or _PRODUCT.match(agent, first.end())
    return (second[1] if second else "") or first[1]


def mismatch(user_agent: str, token: str) -> str:
    """What is wrong with a User-Agent of the operator's own; empty if it carries the token."""
    name = product_token(user_agent)
    if name.lower() == token.lower():
        return ""
    advice = f"set WEBCRAWL_AGENT={name} or " if is_token(name) else ""
    return (
        f"USER_AGENT={user_agent} does not begin with {token}, the name under which robots.txt is obeyed: a webmaster "
        f"who forbids {name or 'it'} something is not heard. To be known by one name, {advice}begin it with {token}/."
    )


def is_token(text: str) -> bool:
    """Whether sites can call an agent by this name.

    RFC 9309 §2.2.1 has letters, - and _ only; digits are taken too, because well-known agents have them (MJ12bot) and
    webmasters write them.
    """
    return re.fullmatch(r"[A-Za-z0-9_-]+", text) is not None
