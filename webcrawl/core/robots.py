"""robots.txt: what a file allows one agent to fetch, what an answer without a file means, and how long both hold.

Rules kept here (RFC 9309; `docs/robots.md` has the cases they were tried on and every known difference)
- A file never raises, whatever its bytes: what is no rule is skipped. The first 500 KiB count, up to the last line end
  (§2.5). Lines end with CR, LF or CRLF and with nothing else.
- An agent is called by its product token, and a group is ours if it names exactly this token, in any case (§2.2.1). All
  our groups together are the rules; without one, all groups of `*`; without those everything is allowed.
- A group ends where a User-agent line follows a rule. Nothing else ends it: not a blank line, not Crawl-delay, not
  Sitemap, not a line we do not know (§2.2.4).
- The pattern with the most octets decides, Allow wins a tie (§2.2.2); `*` and a final `$` are special (§2.2.3). A rule
  without a path is no rule. /robots.txt itself is always allowed.
- Paths are compared octet by octet in one spelling (§2.2.2): what is not ASCII or not allowed in a URL is
  percent-encoded, what needs no encoding is not. A reserved character equals its encoding, except that %2F, %3F and
  %23 in a path stay what they are: data, not structure. Behind the `?`, %2F is a slash.
- No limit of ours ever allows what the file forbids: a rule that is too much to ask is widened if it disallows and
  dropped if it allows, and lines beyond MAX_LINES count as one `Disallow: /`.
- 4xx is no file; 429, 5xx and silence are no permission (§2.3.1).

Idea: one regular expression finds the lines that matter, and rules that do not concern us are never built. Pages are
mostly allowed, so only the patterns that disallow are tried first, all plain ones in one `startswith`; a pattern with
`*` is tried only if its longest piece is in the path. The order of the rules matters only once one of them has matched.

Why not Protego's parser and matcher, which Scrapy brings along (0.7.0)? Given the rules of our groups only, over 3,986
real files on the same two shared cores, it takes 12 µs to ask for a URL and 24 for one with a query, against 3.2 and
4.0 here, and 15 KB of memory a file against 6.5; stock, its slowest file takes 220 ms to parse against 40. What it does
with index.html, with `$` and with %2A is inside its matcher, where no rewriting of a file reaches. It remains the
second opinion of the tests.

Costs: `tests/benchmarks/bench_robots.py`.

Sources: RFC 9309; RFC 3986 §2.2, §2.3 (reserved and unreserved characters); RFC 9111 §5.2.2.1 (max-age).
"""

import re
from array import array
from collections.abc import Iterable
from email.utils import mktime_tz, parsedate_tz
from enum import IntEnum
from functools import lru_cache
from itertools import product
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from url import URL, URLError

from webcrawl.core.identity import product_token

MAX_BYTES = 500 * 1024

# What a file may ask of us; the largest of 3,986 real files in brackets. Looking for a piece of m octets in a path of n
# can cost m·n steps, and both come from the site.
MAX_LINES = 20_000  # of plain rules; any other line that means something counts as three (19,128)
MAX_PATTERN_OCTETS = 4096  # of one rule (264)
MAX_ODD_RULES = 2000  # with anything but plain characters (623)
MAX_WILD_OCTETS = 32 * 1024  # of all rules with `*` or `$` together (24,714)
MAX_WILD_PATH = 2083  # longest path that such rules are tried on; the default of WEBCRAWL_LIMIT_URL_LENGTH
MAX_SITEMAPS = 2000  # (1,463)

HOUR_SECONDS = 3600.0
DAY_SECONDS = 24 * HOUR_SECONDS

_ROBOTS_PATH = "/robots.txt"


class Verdict(NamedTuple):
    """Whether a page may be fetched, and the line of the file that says so."""

    allowed: bool
    rule: str = ""  # as written, without its comment; empty: no rule matched
    line: int = 0  # from 1; 0: none


class _Wild(NamedTuple):
    """A pattern with `*` or `$`: `head` first, each of `parts` in this order, `tail` at the end."""

    needle: str  # the longest piece: a path without it cannot match
    head: str
    parts: tuple[str, ...] = ()
    tail: str | None = None  # None: anything may follow
    is_exact: bool = False  # `head` is the whole path

    def matches(self, path: str) -> bool:
        """Whether a path fits, in one walk from left to right: the first place of a piece leaves most to the others."""
        if self.is_exact:
            return path == self.head
        if not path.startswith(self.head):
            return False
        at = len(self.head)
        for part in self.parts:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return self.tail is None or path.endswith(self.tail, at)


_Pattern: TypeAlias = str | _Wild  # a plain string matches the paths that start with it

# Rank, pattern, line number, line as written. The rank is twice the octets of the pattern, plus one for Allow: the
# highest decides (RFC 9309 §2.2.2). A named tuple would take four times as long to make.
_Rule: TypeAlias = tuple[int, _Pattern, int, str]


class Robots:
    """One robots.txt as it applies to one agent; see the module's rules.

    >>> rules = parse(b"User-agent: *\\nDisallow: /private/\\nAllow: /private/map$", "webcrawl")
    >>> rules.allows("http://a.cl/private/x"), rules.allows("http://a.cl/private/map")
    (False, True)
    >>> rules.verdict("http://a.cl/private/x")
    Verdict(allowed=False, rule='Disallow: /private/', line=2)
    """

    __slots__ = (
        *("_allows", "_barred", "_barred_wild", "_lines", "_patterns", "_written"),
        *("crawl_delay", "group", "signals", "sitemaps"),
    )

    def __init__(
        self,
        rules: Iterable[_Rule] = (),
        crawl_delay: float | None = None,
        sitemaps: tuple[str, ...] = (),
        signals: tuple[str, ...] = (),
        group: str = "",
    ) -> None:
        ordered = sorted(rules, key=itemgetter(0), reverse=True)
        ranks, patterns, lines, written = zip(*ordered, strict=True) if ordered else ((), (), (), ())
        self._patterns: tuple[_Pattern, ...] = patterns
        self._allows = bytes([rank & 1 for rank in ranks])
        self._lines = array("I", lines)
        self._written = "\n".join(written)
        barred = [None if rank & 1 else pattern for rank, pattern in zip(ranks, patterns, strict=True)]
        self._barred = tuple([pattern for pattern in barred if type(pattern) is str])
        self._barred_wild = tuple(
            [(wild.needle, wild, place) for place, wild in enumerate(barred) if type(wild) is _Wild]
        )
        self.crawl_delay = crawl_delay  # seconds
        self.sitemaps = sitemaps
        self.signals = signals  # Content-Signal and Content-Usage lines, their names in lower case
        self.group = group  # whose rules these are: our token, "*", or "" if the file has no rules for us

    def allows(self, url: str) -> bool:
        """Whether the agent may fetch this page; a path alone will do for a URL."""
        plain = _PLAIN_URL(url)
        path = plain[1] if plain is not None else _path_of(url)
        if path.startswith(self._barred):
            return self._is_allowed(path)
        if self._barred_wild:
            if len(path) > MAX_WILD_PATH:
                return self._is_allowed(path)
            for needle, wild, place in self._barred_wild:
                if needle in path and wild.matches(path):  # so no rule that disallows stands before this place
                    return self._is_allowed(path, place)
        return True

    def verdict(self, url: str) -> Verdict:
        """The answer of `allows` with the line it rests on."""
        path = _path_of(url)
        place = self._deciding_place(path)
        if place < 0 or path == _ROBOTS_PATH:
            return Verdict(True)
        return Verdict(bool(self._allows[place]), self._written.split("\n")[place].strip(), self._lines[place])

    def rules(self) -> list[Verdict]:
        """Every rule in the order of the file, as the verdict it would give."""
        written = map(str.strip, self._written.split("\n"))
        found = map(Verdict, map(bool, self._allows), written, self._lines)
        return sorted(found, key=lambda verdict: verdict.line)

    def _is_allowed(self, path: str, barred_place: int = -1) -> bool:
        if path == _ROBOTS_PATH:
            return True
        if barred_place >= 0:
            return any(
                allows and _fits(pattern, path)
                for allows, pattern in zip(self._allows[:barred_place], self._patterns, strict=False)
            )
        place = self._deciding_place(path)
        return place < 0 or bool(self._allows[place])

    def _deciding_place(self, path: str) -> int:
        """Where the highest rule that matches stands; -1: no rule does."""
        if len(path) > MAX_WILD_PATH:
            return self._deciding_place_of_long(path)
        for place, pattern in enumerate(self._patterns):
            if path.startswith(pattern) if type(pattern) is str else _fits(pattern, path):
                return place
        return -1

    def _deciding_place_of_long(self, path: str) -> int:
        """The same for a path too long for wildcards, which then disallow by their head alone and allow nothing."""
        for place, pattern in enumerate(self._patterns):
            if isinstance(pattern, str):
                if path.startswith(pattern):
                    return place
            elif not self._allows[place] and not pattern.is_exact and path.startswith(pattern.head):
                return place
        return -1


def _fits(pattern: _Pattern, path: str) -> bool:
    if isinstance(pattern, str):
        return path.startswith(pattern)
    return pattern.needle in path and pattern.matches(path)


ALLOW_ALL = Robots()
DISALLOW_ALL = Robots([(2, "/", 0, "")])


# --- one spelling of paths (RFC 9309 §2.2.2)

# What stands for itself: unreserved and reserved characters (RFC 3986 §2.2, §2.3). Not `*` and `$`: in a path they are
# %2A and %24, which is how a rule can name them (RFC 9309 §2.2.3).
_KEPT = r"A-Za-z0-9_.~/?=&+,;:@!()\[\]'-"
_STRUCTURE = b"/?#*$"

_PLAIN_URL = re.compile(rf"https?://[^/?#]*+(/[{_KEPT}]*+)\Z").match  # WHATWG form without anything to spell anew
_AUTHORITY = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*+:)?//[^/?#]*+")
_PLAIN_PATH = re.compile(rf"/[{_KEPT}]*+".encode()).match
_ODD = re.compile(f"[^{_KEPT}]").search
_TO_SPELL = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^{_KEPT}]".encode())
_TO_SPELL_IN_PATTERN = re.compile(rf"%[0-9A-Fa-f]{{2}}|[^*{_KEPT}]".encode())


def _octet_spellings() -> dict[bytes, bytes]:
    """What an octet or a percent-encoded octet becomes."""
    encoded = {octet: b"%%%02X" % octet for octet in range(256)}
    spellings = {bytes((octet,)): code for octet, code in encoded.items()}
    for first, second in product("0123456789abcdefABCDEF", repeat=2):
        octet = int(first + second, 16)
        is_plain = octet < 128 and chr(octet).isprintable() and _ODD(chr(octet)) is None and octet not in _STRUCTURE
        spellings[f"%{first}{second}".encode()] = bytes((octet,)) if is_plain else encoded[octet]
    return spellings


_SPELLINGS = _octet_spellings()


def _spelled(path: bytes, to_spell: re.Pattern[bytes] = _TO_SPELL) -> str:
    spelled = to_spell.sub(lambda match: _SPELLINGS[match[0]], path).decode("ascii")
    if "%2F" in spelled and "?" in spelled:
        before, mark, query = spelled.partition("?")
        return before + mark + query.replace("%2F", "/")
    return spelled


def _path_of(url: str) -> str:
    """Path and query of a URL, or of a path, as they are compared."""
    authority = _AUTHORITY.match(url)
    path = (url[authority.end() :] if authority else url).partition("#")[0]
    if _ODD(path):
        path = _spelled(path.encode("utf-8", "surrogatepass"))
    return path if path[:1] == "/" else f"/{path}"


def _pattern(value: bytes) -> tuple[int, _Pattern]:
    """The octets of a rule's path in the spelling that is compared, and the path taken apart."""
    anchor = "$" if value.endswith(b"$") else ""
    spelled = _spelled(value.removesuffix(b"$"), _TO_SPELL_IN_PATTERN)
    octets = len(spelled) + len(anchor)
    bare = spelled.rstrip("*")
    is_anchored = bool(anchor) and len(bare) == len(spelled)  # in `*$` the star has already eaten the end
    if "*" not in bare:
        return octets, _Wild(bare, bare, is_exact=True) if is_anchored else bare
    head, *rest = bare.split("*")
    parts = tuple(filter(None, rest))
    needle = max((head, *parts), key=len)
    return octets, _Wild(needle, head, parts[:-1], parts[-1]) if is_anchored else _Wild(needle, head, parts)


# --- from bytes to lines

_BLANKS = b" \t\f\v\0"
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")

# What matters in a file: a run of lines that are plain rules, since most are; or one other line, its name in the
# spellings that Google's parser and Protego accept. Without a colon it must have one word (as in Google's parser), or
# prose would become rules. The quantifiers are possessive, so that no line takes more than linear time; the line feed
# is in front of everything, as the engine then skips to the next one.
_MATTER = re.compile(
    rb"""
    \n B*+ (?=[acdsu])
    (?: ( RULE (?: \n B*+ RULE )*+ )
    |
    ( allow | diss?all?[ao]w | diasllow | user[ \t-]?agent
    | site-?maps? | crawl[ \t-]?delay | content-(?:signal|usage) )
    (?: B*+ : | (?= B*+ [^\s\#]*+ B*+ [\n\#] ) (?= [ \t\f\v\n\#] ) )
    B*+ ([^\n\#]*+) )
    """.replace(b"RULE", rb"(?:dis)?allow B*+ : B*+ /[KEPT]*+ B*+ (?=[\n\#])")
    .replace(b"KEPT", _KEPT.encode())
    .replace(b"B", rb"[ \t\f\v]"),
    re.IGNORECASE | re.VERBOSE,
)


def _lines_of(body: bytes) -> bytes:
    """The part of a file that counts, with one line feed before and behind each line."""
    if body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        body = body[: 2 * MAX_BYTES].decode("utf-16", "replace").encode("utf-8", "replace")
    if len(body) > MAX_BYTES:
        body = body[: max(body.rfind(b"\n", 0, MAX_BYTES + 1), body.rfind(b"\r", 0, MAX_BYTES + 1), 0)]
    mark = next((part for part in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef") if body.startswith(part)), b"")
    body = body[len(mark) :]  # half a byte-order mark is met too
    if b"\r" in body:
        body = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b"\n" + body + b"\n"


def _shown(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")


# --- from lines to the rules of one agent


def parse(body: bytes, agent: str) -> Robots:
    """What a file says to an agent, given by its product token or its whole User-Agent. Never raises.

    A page of HTML served in place of the file says nothing, even if a line of it looks like a rule.
    """
    text = _lines_of(body)
    if text[:256].lstrip().lower().startswith(_MARKUP):
        return ALLOW_ALL
    group, sitemaps = _group_of(text, product_token(agent).lower())
    if not (group.is_named or sitemaps):
        return ALLOW_ALL
    return Robots(group.rules, group.crawl_delay, sitemaps, tuple(group.signals), group.name if group.is_named else "")


class _Group:
    """What all groups of one name say together."""

    __slots__ = ("crawl_delay", "is_named", "name", "odd_rules", "rules", "signals", "widened", "wild_octets")

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_named = False
        self.rules: list[_Rule] = []
        self.odd_rules = self.wild_octets = 0
        self.widened: set[bytes] = set()
        self.crawl_delay: float | None = None
        self.signals: list[str] = []

    def add_rule(self, is_allow: bool, value: bytes, line: int, written: str) -> None:
        """A rule that may be not plain, within the limits of what may be asked of us."""
        if value[:1] not in (b"/", b"*"):  # it fits no path
            return
        is_wild = b"*" in value or value.endswith(b"$")
        self.odd_rules += 1
        self.wild_octets += len(value) if is_wild else 0
        is_too_much = self.odd_rules > MAX_ODD_RULES or (is_wild and self.wild_octets > MAX_WILD_OCTETS)
        if is_too_much or len(value) > MAX_PATTERN_OCTETS:
            value = _plain_head(value)
            if is_allow or value in self.widened:
                return
            self.widened.add(value)
        octets, pattern = _pattern(value)
        self.rules.append((2 * octets + is_allow, pattern, line, written))

    def add_delay(self, value: bytes) -> None:
        """The longest Crawl-delay counts: it is the polite one."""
        number = _NUMBER.match(value)
        if number:
            self.crawl_delay = max(self.crawl_delay or 0.0, float(number[0].replace(b",", b".")))


def _plain_head(value: bytes) -> bytes:
    """A plain path above everything that an odd pattern fits."""
    plain = _PLAIN_PATH(value)
    return plain[0][:MAX_PATTERN_OCTETS] if plain else b"*"


_NUMBER = re.compile(rb"\d{1,9}(?:[.,]\d{1,9})?|\.\d{1,9}")
_AGENT, _ALLOW, _DISALLOW, _SITEMAP = b"uads"  # the first letters of the names
_LOWER = 0x20


def _group_of(text: bytes, token: str) -> tuple[_Group, tuple[str, ...]]:
    """The groups of the agent, or else those of everyone; and the sitemaps, which are everyone's."""
    ours, everyone = _Group(token), _Group("*")
    current: list[_Group] = []
    sitemaps: dict[str, None] = {}
    is_naming = False
    line = counted = read = 0
    for match in _MATTER.finditer(text):
        if read >= MAX_LINES:
            break
        run, name, value = match.groups()
        start = match.start() + 1
        line += text.count(b"\n", counted, start)
        counted = start
        if run:
            is_naming = False
            read += _add_run(current, run.decode("ascii"), line, MAX_LINES - read)
            continue
        read += 3  # that is how much longer it takes
        if name[0] | _LOWER == _AGENT:
            current = _named(value, (ours, everyone), current if is_naming else [])
            is_naming = True
        elif name[0] | _LOWER == _SITEMAP:
            if len(sitemaps) < MAX_SITEMAPS:
                sitemaps[_shown(value.strip(_BLANKS))] = None
        else:
            is_naming = _add_line(current, name.lower(), value.strip(_BLANKS), line, match[0]) and is_naming
    if read >= MAX_LINES:
        _close(ours if ours.is_named else everyone)
    sitemaps.pop("", None)
    return ours if ours.is_named else everyone, tuple(sitemaps)


def _close(group: _Group) -> None:
    """The rest of a file that is too long, read as the worst it can say."""
    group.rules.append((2, "/", 0, f"(rules beyond {MAX_LINES:,} lines are not read)"))
    group.is_named = True


def _add_run(groups: list[_Group], run: str, line: int, limit: int) -> int:
    """Plain rules, all at once: a third of the time of one by one. Returns how many."""
    lines = [*map(str.strip, run.split("\n", limit)[:limit])]
    rules: list[_Rule] = [
        (2 * (len(rule) - (at := rule.index("/"))) + (rule[0] in "aA"), rule[at:], number, rule)
        for number, rule in enumerate(lines, line)
    ]
    for group in groups:
        group.rules += rules
    return len(lines)


def _add_line(groups: list[_Group], name: bytes, value: bytes, line: int, written: bytes) -> bool:
    """A rule that is not plain or a record that is not of the RFC; whether more User-agent lines may follow."""
    if name[0] in (_ALLOW, _DISALLOW):
        for group in groups:
            group.add_rule(name[0] == _ALLOW, value, line, _shown(written[1:]))
        return False
    for group in groups:
        if name.startswith(b"crawl"):
            group.add_delay(value)
        else:
            group.signals.append(f"{_shown(name)}: {_shown(value)}")
    return True


def _named(value: bytes, groups: tuple[_Group, _Group], current: list[_Group]) -> list[_Group]:
    """The groups that rules now belong to, after one more User-agent line."""
    text = _shown(value).lower()
    if "*" not in text and groups[0].name not in text:  # most lines name others
        return current
    names = _agents(text)
    for group in groups:
        if group.name in names and group not in current:
            group.is_named = True
            current = [*current, group]
    return current


def _agents(text: str) -> list[str]:
    """Who is named in a User-agent line: one product token by the RFC, several in some files."""
    words = text.replace(",", " ").split()
    return [word if word == "*" else word.partition("/")[0].replace("*", "") for word in words]


# --- what an answer means, and how long it holds


class Answer(IntEnum):
    """What the status of /robots.txt means (RFC 9309 §2.3.1)."""

    RULES = 0  # parse the body
    ALLOW_ALL = 1  # there is no file
    UNREACHABLE = 2  # nobody knows: fetch nothing for now
    REDIRECT = 3  # ask there; more than five in a row, or no address, is ALLOW_ALL (§2.3.1.2)


def judge_answer(status: int) -> Answer:
    """What a status code means. Who asks with If-Modified-Since must look for 304 first.

    >>> judge_answer(404).name, judge_answer(429).name, judge_answer(503).name
    ('ALLOW_ALL', 'UNREACHABLE', 'UNREACHABLE')
    """
    if 200 <= status < 300:
        return Answer.RULES
    if 300 <= status < 400:
        return Answer.REDIRECT
    if 400 <= status < 500 and status != 429:  # too many requests: there is a server, and it asks for less
        return Answer.ALLOW_ALL
    return Answer.UNREACHABLE


_MAX_AGE = re.compile(r'(?:^|[,\s])max-age\s*=\s*"?(\d{1,12})', re.IGNORECASE)
_NOT_KEPT = re.compile(r"(?:^|[,\s])no-(?:store|cache)(?![\w-])", re.IGNORECASE)


def expires_at(
    fetched_at: float,
    cache_control: str = "",
    *,
    expires: str = "",
    least_seconds: float = HOUR_SECONDS,
    most_seconds: float = DAY_SECONDS,
) -> float:
    """When a file must be asked for again: after 24 hours, or as soon as its headers say (RFC 9309 §2.4).

    Cache-Control goes before Expires (RFC 9111 §5.3); an Expires that is no date is in the past. Several Cache-Control
    headers are joined by commas. The bounds hold for every answer: a file asked for before each page costs the site
    more than a rule that comes an hour late.
    """
    seconds = _fresh_seconds(fetched_at, cache_control, expires)
    if seconds is None:
        return fetched_at + most_seconds
    return fetched_at + min(max(seconds, least_seconds), most_seconds)


def _fresh_seconds(fetched_at: float, cache_control: str, expires: str) -> float | None:
    if _NOT_KEPT.search(cache_control):
        return 0.0
    age = _MAX_AGE.search(cache_control)
    if age:
        return float(age[1])
    if not expires:
        return None
    try:
        date = parsedate_tz(expires)
        return mktime_tz(date) - fetched_at if date else 0.0
    except (ValueError, OverflowError, TypeError, IndexError):  # what the standard library says to years like 99999
        return 0.0


# --- which file speaks for a page


def robots_url(url: str) -> str:
    """The address of the file that speaks for a page (RFC 9309 §2.3).

    >>> robots_url("HTTPS://www.Example.com:443/a?b")
    'https://www.example.com/robots.txt'
    """
    return origin_of(url) + _ROBOTS_PATH


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL: what one file speaks for. ValueError if it is no http or https URL.

    `urls.origin_of` takes WHATWG form only; this one takes any spelling and remembers it.

    >>> origin_of("http://Example.com:8080/a"), origin_of("http://[2001:DB8::1]:80/")
    ('http://example.com:8080', 'http://[2001:db8::1]')
    """
    end = url.find("/", 8)  # 8: behind `https://`, and in `http://` behind one letter
    return _origin(url[:end] if end > 0 else url)


@lru_cache(maxsize=65536)
def _origin(start: str) -> str:
    try:
        parsed = URL.parse(start)
    except (URLError, UnicodeError) as error:
        raise ValueError(f"{start!r} is no absolute URL ({error}). Write it in full: http://host/path.") from error
    if parsed.scheme not in ("http", "https"):
        raise ValueError(f"{start!r} is neither http nor https, so no robots.txt speaks for it. Leave it out.")
    port = "" if parsed.port is None else f":{parsed.port}"
    return f"{parsed.scheme}://{parsed.host_str}{port}"
