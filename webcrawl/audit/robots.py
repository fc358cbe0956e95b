"""The auditor's own reader of robots.txt (RFC 9309).  It shares no code with the crawler's.

Rules kept:

- A group is one or more User-agent lines and the rules below them; all groups that name the agent's product token
  count together, else all groups for `*` (section 2.2.1).  Only Allow and Disallow end the list of names: lines of
  other kinds stand anywhere (section 2.2.4).
- The longest match decides, in octets; Allow wins a tie; `*` and a final `$` are special (sections 2.2.2, 2.2.3).
- Percent-encoding has one spelling before comparing: what need not be encoded is decoded, hexadecimal digits are large,
  octets outside ASCII are encoded.  An encoded slash is not a slash.
- Rules after the first 500 KiB do not count: a crawler need not read further (section 2.5).
- Crawl-delay is not in the RFC.  It belongs to the agents named above it; the longest counts.
- Bytes are read as Latin-1, one letter an octet, here and in the logs, so that encodings never matter.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from webcrawl.audit.records import ROBOTS_PATH

_TOKEN = re.compile(r"[A-Za-z_-]+|[\w-]+", re.ASCII)  # some names begin with a digit, against the RFC
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_TO_ENCODE = re.compile(r"[^!-~]")
_SPECIAL = re.compile(r"[*$]")
MOST_LETTERS = 500 * 1024
_BYTE_ORDER_MARK = "\xef\xbb\xbf"  # UTF-8's, read as Latin-1


@dataclass(frozen=True, slots=True)
class Rule:
    """One Allow or Disallow line."""

    is_allow: bool
    pattern: str  # in the one spelling
    regex: re.Pattern[str] | None  # None: a plain prefix

    def matches(self, path: str) -> bool:
        """Whether a path, in the one spelling, falls under this rule."""
        return path.startswith(self.pattern) if self.regex is None else self.regex.match(path) is not None


@dataclass(frozen=True, slots=True)
class Policy:
    """What one robots.txt says to one agent."""

    rules: tuple[Rule, ...] = ()
    crawl_delay_seconds: float = 0.0

    def forbidding(self, path: str) -> Rule | None:
        """The rule that forbids a path, if one does.

        >>> policy_for("User-agent: *\\nDisallow: /a\\nAllow: /a/b", "x").forbidding("/a/c").pattern
        '/a'
        """
        if not self.rules or path == ROBOTS_PATH:
            return None
        path = _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", one_spelling(path))
        best = max(
            (rule for rule in self.rules if rule.matches(path)),
            key=lambda rule: (len(rule.pattern), rule.is_allow),
            default=None,
        )
        return None if best is None or best.is_allow else best


@lru_cache(maxsize=4096)
def policy_for(text: str, token: str) -> Policy:
    """What a robots.txt says to the agent with this product token."""
    rules: dict[str, list[Rule]] = {}
    delays: dict[str, float] = {}
    names: list[str] = []
    is_naming = True
    for key, value in _lines(text):
        if key == "user-agent":
            if not is_naming:
                names = []
            is_naming = True
            names.append("*" if value == "*" else product_token(value))
            rules.setdefault(names[-1], [])
        elif key in ("allow", "disallow"):
            is_naming = False
            if value:
                for name in names:
                    rules[name].append(_rule(key == "allow", value))
        elif key == "crawl-delay":
            for name in names:
                delays[name] = max(delays.get(name, 0.0), _seconds(value))
    chosen = token.lower() if token.lower() in rules and token else "*"
    return Policy(tuple(rules.get(chosen, ())), delays.get(chosen, 0.0))


def product_token(text: str) -> str:
    """The name by which robots.txt calls an agent, in small letters.

    >>> product_token("ExampleBot/0.1 (+https://bot.example)")
    'examplebot'
    """
    match = _TOKEN.match(text)
    return match[0].lower() if match else ""


@lru_cache(maxsize=65536)
def token_of_agent(agent: str) -> str:
    """The token of a logged User-Agent, which is its first product."""
    return product_token(agent)


@lru_cache(maxsize=65536)
def is_product(token: str, agent: str) -> bool:
    """Whether a User-Agent names this product: first, or in a comment, but not inside the address of its page.

    >>> is_product("examplebot", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://a.example/bot)")
    True
    >>> is_product("bot", "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://a.example/bot)")
    False
    """
    return re.search(rf"(?:^|[\s(;,]){re.escape(token)}(?=$|[/\s);,])", agent, re.IGNORECASE) is not None


def one_spelling(path: str) -> str:
    """The one spelling of percent-encoding.

    >>> one_spelling("/%7euser/a%2fb/\\xe9")
    '/~user/a%2Fb/%E9'
    """
    path = _TO_ENCODE.sub(lambda match: "".join(f"%{octet:02X}" for octet in _octets(match[0])), path)
    return _ENCODED.sub(_decoded, path) if "%" in path else path


def _octets(letter: str) -> bytes:
    return letter.encode("latin-1") if letter < "\u0100" else letter.encode("utf-8", "replace")


def _decoded(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter in _UNRESERVED else match[0].upper()


def _lines(text: str) -> list[tuple[str, str]]:
    """Key and value of each line that has both."""
    found = []
    for line in re.split(r"[\r\n]+", text[:MOST_LETTERS].removeprefix(_BYTE_ORDER_MARK).removeprefix("\ufeff")):
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            found.append((key.strip().lower(), value.strip()))
    return found


def _rule(is_allow: bool, value: str) -> Rule:
    pattern = one_spelling(value)
    is_whole = pattern.endswith("$")
    if not is_whole and "*" not in pattern:
        return Rule(is_allow, _SPECIAL.sub("%24", pattern), None)
    parts = [_SPECIAL.sub("%24", part) for part in pattern[: -1 if is_whole else None].split("*")]
    # A star takes as little as it can, once: what follows is found with possessive steps, so hostile rules cost little.
    steps = "".join(f"(?>.*?{re.escape(part)})" for part in parts[1:-1])
    last = f".*{re.escape(parts[-1])}" if len(parts) > 1 else ""
    return Rule(
        is_allow,
        pattern,
        re.compile(f"{re.escape(parts[0])}{steps}{last}{chr(92) + 'Z' if is_whole else ''}", re.DOTALL),
    )


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
