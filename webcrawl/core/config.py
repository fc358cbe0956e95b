"""Every setting of ours: declared once, typed, checked, and documented from the declaration.

Rules of this file:

1. A setting is declared in one place, with its default, its bounds, its unit, what it does and why this default.
   `docs/settings.md` is generated from here, so it cannot be wrong.
2. One frozen dataclass per concern. Adapters call `load(Politeness, crawler.settings)` once and hand the result down;
   no other file reads a setting of ours.
3. A value that cannot be used stops the start, and so does an unknown name: a mistyped setting that is silently ignored
   is a crawl nobody asked for.
4. A strategy's own settings sit beside the strategy, declared with the same `declare` and `setting`.

Where a default has a precedent it is named. "Castillo 2004" is C. Castillo, "Effective Web Crawling", PhD thesis,
University of Chile, 2004; its Table 7.1 lists the defaults of the WIRE crawler. "Mercator" is M. Najork and A. Heydon,
"High-Performance Web Crawling", 2001. "Heritrix" is the Internet Archive's crawler, version 3.
"""

from __future__ import annotations

import dataclasses
import difflib
import enum
import ipaddress
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from webcrawl.core.errors import SettingError
from webcrawl.core.identity import PRODUCT, is_token
from webcrawl.core.politeness import hours, pages_in_visit
from webcrawl.core.turns import group_rule

PREFIX = "WEBCRAWL_"

T = TypeVar("T")


class Source(Protocol):
    """Where values come from: Scrapy's settings, or any mapping. A missing name answers None."""

    def get(self, name: str, /) -> Any: ...


# ---------------------------------------------------------------------------------------------- declaring


@dataclass(frozen=True)
class Setting:
    """One declared setting; the type of its default is its type."""

    name: str
    default: Any
    at_least: float | None
    at_most: float | None
    choices: tuple[str, ...]
    unit: str
    doc: str
    why: str
    harm: str
    instead: str
    separator: Literal["blanks", "lines"]
    each: Callable[[str], str] | None
    concern: type = object
    attribute: str = ""

    @property
    def rule(self) -> str:
        """What a value must be, in words: `a number, 1.0 or more`."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        return _KIND_WORDS[_kind(self)] + _bounds_words(self)


def setting(
    name: str,
    default: T,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
    unit: str = "",
    doc: str,
    why: str,
    harm: str = "",
    instead: str = "",
    separator: Literal["blanks", "lines"] = "blanks",
    each: Callable[[str], str] | None = None,
) -> T:
    """Declare one field of a settings class.

    `doc` says what it does and `why` why this default. `harm` is the second sentence of the error for a bad value
    (`doc` where nothing worse can be said), `instead` another way to what the user probably wants. A tuple given as one
    string is split at commas and blanks, or only at line ends. `each` checks a text, or every text of a tuple, and
    answers how it is spelled; it raises ValueError with the rule that was broken.
    """
    if isinstance(default, enum.Enum):
        choices = tuple(str(member.value) for member in type(default))
    declared = Setting(name, default, at_least, at_most, choices, unit, doc, why, harm, instead, separator, each)
    field: Any = dataclasses.field(default=default, metadata={PREFIX: declared})
    return field  # type: ignore[no-any-return]


_declared: dict[str, Setting] = {}
_of_class: dict[type, tuple[Setting, ...]] = {}


def declare(cls: type[T]) -> type[T]:
    """Class decorator, written above `@dataclass(frozen=True)`: put the settings of this class on the list."""
    assert dataclasses.is_dataclass(cls), f"write @dataclass(frozen=True) below @declare on {cls.__name__}"
    own = tuple(
        dataclasses.replace(field.metadata[PREFIX], concern=cls, attribute=field.name)
        for field in dataclasses.fields(cls)
        if PREFIX in field.metadata
    )
    for one in own:
        known = _declared.get(one.name)
        assert one.name.startswith(PREFIX), f"{one.name} must start with {PREFIX}"
        assert known is None or _path(known.concern) == _path(cls), f"{one.name} is declared twice"
        assert _parse(one, one.default) == one.default, f"the default of {one.name} breaks its own rule"
        _declared[one.name] = one
    _of_class[cls] = own
    return cls


def _path(cls: type) -> str:
    """A module that is imported a second time may declare its settings again; another class may not."""
    return f"{cls.__module__}.{cls.__qualname__}"


def all_settings() -> tuple[Setting, ...]:
    """Every setting declared so far, in the order of declaration.

    Settings of a strategy are declared when its module is imported: import the strategies first.
    """
    return tuple(_declared.values())


# ------------------------------------------------------------------------------------------------ loading


def load(cls: type[T], settings: Source) -> T:
    """One concern's settings, parsed and checked; a name that is not set, or set to None, has its default.

    >>> load(Politeness, {"WEBCRAWL_POLITENESS_DELAY_SECONDS": "30"}).delay_seconds
    30.0
    """
    values = {}
    for one in _of_class[cls]:
        raw = settings.get(one.name)
        if raw is not None:
            values[one.attribute] = _parse(one, raw)
    return cls(**values)


def check_names(names: Iterable[str]) -> None:
    """Refuse names that carry our prefix and are no setting; names of others are none of our business."""
    unknown = sorted(name for name in names if name.upper().startswith(PREFIX) and name not in _declared)
    if not unknown:
        return
    does = "is no setting" if len(unknown) == 1 else "are no settings"
    raise SettingError(
        f"{', '.join(map(_shown, unknown))} {does} of webcrawl.",
        "A mistyped setting would be ignored and the crawl would run with the default.",
        _did_you_mean(unknown[0].upper(), _declared) + "docs/settings.md lists them all.",
    )


def set_by(settings: Source, name: str) -> str:
    """Who set this name: default, addon, project, spider or command line, as far as the source can tell."""
    getpriority = getattr(settings, "getpriority", None)
    if getpriority is None:
        return "default" if settings.get(name) is None else "given"
    priority = getpriority(name)
    return "default" if priority is None else _PRIORITY_WORDS.get(priority, f"priority {priority}")


# The numbers of scrapy.settings.SETTINGS_PRIORITIES; core does not import Scrapy.
_PRIORITY_WORDS = {0: "default", 10: "command", 15: "addon", 20: "project", 30: "spider", 40: "command line"}


# ------------------------------------------------------------------------------------------------ parsing

_BOOLEANS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_KIND_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text", tuple: "a list of texts"}


def _kind(one: Setting) -> type:
    return next(kind for kind in _KIND_WORDS if isinstance(one.default, kind))


def _parse(one: Setting, raw: object) -> Any:
    if one.choices:
        return _choice(one, raw)
    value = _PARSERS[_kind(one)](one, raw)
    if isinstance(value, (int, float)):
        _check_bounds(one, value)
    return value


def _choice(one: Setting, raw: object) -> Any:
    # `WEBCRAWL_POLITENESS = False` in a settings file means what it says.
    text = ("on" if raw else "off") if isinstance(raw, bool) else str(raw).strip().lower()
    if text not in one.choices:
        raise _refusal(one, raw, f"is not {one.rule}", _did_you_mean(text, one.choices) + f"Use {one.rule}")
    return type(one.default)(text)


def _boolean(one: Setting, raw: object) -> bool:
    value = _BOOLEANS.get(str(raw).strip().lower())
    if value is None:
        raise _refusal(one, raw, "is neither true nor false", "Use true or false (also yes/no, on/off, 1/0)")
    return value


def _float(one: Setting, raw: object) -> float:
    try:
        value = math.nan if isinstance(raw, bool) else float(raw)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise _refusal(one, raw, f"is not {_KIND_WORDS[_kind(one)]}", f"Use {one.rule}")
    return value


def _integer(one: Setting, raw: object) -> int:
    """Whole numbers, also written 100_000 or 1e6."""
    try:
        return int(str(raw).strip())
    except ValueError:
        value = _float(one, raw)
    if not value.is_integer():
        raise _refusal(one, raw, "is not a whole number", f"Use {one.rule}")
    return int(value)


def _text(one: Setting, raw: object) -> str:
    return _checked(one, str(raw).strip(), raw)


def _texts(one: Setting, raw: object) -> tuple[str, ...]:
    if isinstance(raw, str):
        parts = raw.splitlines() if one.separator == "lines" else re.split(r"[,\s]+", raw)
    elif isinstance(raw, (list, tuple, set, frozenset)):
        parts = [str(part) for part in raw]
    else:
        raise _refusal(one, raw, "is not a list", "Use a list, or one text")
    return tuple(_checked(one, part.strip(), part) for part in parts if part.strip())


def _checked(one: Setting, text: str, raw: object) -> str:
    """Nothing said (the empty text) is always allowed."""
    if one.each is None or not text:
        return text
    try:
        return one.each(text)
    except ValueError as error:
        raise _refusal(one, raw, "cannot be used", str(error)) from None


_PARSERS: dict[type, Callable[[Setting, object], Any]] = {
    bool: _boolean,
    int: _integer,
    float: _float,
    str: _text,
    tuple: _texts,
}


def _check_bounds(one: Setting, value: float) -> None:
    if one.at_least is not None and value < one.at_least:
        raise _refusal(one, value, f"is below {one.at_least}", _use_words(one))
    if one.at_most is not None and value > one.at_most:
        raise _refusal(one, value, f"is above {one.at_most}", _use_words(one))


def _use_words(one: Setting) -> str:
    if one.at_least is None or one.at_most is None:
        return f"Use {one.at_least} or more" if one.at_most is None else f"Use {one.at_most} or less"
    return f"Use a value from {one.at_least} to {one.at_most}"


def _bounds_words(one: Setting) -> str:
    if one.at_least is None and one.at_most is None:
        return ""
    return _use_words(one).removeprefix("Use").replace(" a value from", " from").replace(" ", ", ", 1)


def _refusal(one: Setting, raw: object, what: str, remedy: str) -> SettingError:
    instead = f"; {one.instead}" if one.instead else ""
    why = one.harm or f"It means: {one.doc}"
    return SettingError(f"{one.name}={_shown(raw)} {what}.", why, f"{remedy}{instead}.")


def _shown(raw: object) -> str:
    """A value fit for a terminal: on one line, without control characters, not too long."""
    text = str(raw)
    text = text if text.isprintable() and text.strip() else repr(text)
    return text if len(text) <= 80 else text[:77] + "..."


def _did_you_mean(text: str, known: Iterable[str]) -> str:
    spellings = {name.removesuffix("_SECONDS"): name for name in known}  # the unit is what people leave out
    spellings |= {name: name for name in spellings.values()}
    near = difflib.get_close_matches(text, spellings, n=1)
    return f"Did you mean {spellings[near[0]]}? " if near else ""


# -------------------------------------------------------------------------------------- texts that have a form


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"As a regular expression it fails: {error}. Correct it") from None
    return text


_WEB_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(?:[/?#][!-'*-;=?-~]*)?", re.IGNORECASE)
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# As HTML's <input type=email> takes them, but the domain has a dot.
_EMAIL_ADDRESS = re.compile(rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{_LABEL}(?:\.{_LABEL})+")


def _contact(text: str) -> str:
    """ASCII only, and nothing that could end the comment it is sent in or begin another header."""
    if not _WEB_ADDRESS.fullmatch(text) and not _EMAIL_ADDRESS.fullmatch(text):
        raise ValueError(
            "Use a web address (https://example.org/our-crawler) or an e-mail address (crawler@example.org), in ASCII, "
            "without blanks and parentheses"
        )
    return text


def _agent(text: str) -> str:
    if not is_token(text):
        raise ValueError("Use letters, digits, - and _ only, as in my-crawler; the version is added")
    return text


def _host_or_network(text: str) -> str:
    """`intranet.example`, `.example` (and everything below), `192.0.2.7`, `10.0.0.0/8`, `::1`; lower case."""
    try:
        return str(ipaddress.ip_network(text.strip("[]"), strict=False))
    except ValueError:
        pass
    if "/" in text or ":" in text or not re.fullmatch(r"\.?[^\W_][\w-]*(\.[\w-]+)*\.?", text):
        raise ValueError(
            "Name a host (intranet.example), a suffix with its dot (.example) or a network (10.0.0.0/8), "
            "without scheme, port, path and asterisk"
        )
    return text.lower().rstrip(".")


# ------------------------------------------------------------------------------------------------- the list


@declare
@dataclass(frozen=True)
class Run:
    """One crawl and its directory: where it lives, how safely it is stored, when it ends."""

    directory: str = setting(
        "WEBCRAWL_DIR",
        "",
        doc="Directory of the run: its store, its output positions, its reports.",
        why="Empty means data/runs/<spider> beside scrapy.cfg (in the current folder where there is none), so that the "
        "same command a second time resumes.",
    )
    contact: str = setting(
        "WEBCRAWL_CONTACT",
        "",
        each=_contact,
        doc="Web address or e-mail address at which webmasters can reach you, shown in the User-Agent; an e-mail "
        "address in the From header too. Without it public hosts are refused.",
        why="Only you know it. Castillo 2004 (appendix A) asks crawlers to name one, and so does Heritrix's profile.",
        harm="It is sent with every request, for the owners of the sites.",
    )
    agent: str = setting(
        "WEBCRAWL_AGENT",
        PRODUCT,
        each=_agent,
        doc="Product token: the name in front of the User-Agent, and the one robots.txt groups are matched with. "
        "Letters, digits, - and _.",
        why="The name of this program. Choose your own if webmasters shall be able to tell your crawl from others.",
        harm="Webmasters address a crawler by this name in robots.txt (RFC 9309 §2.2.1).",
    )
    end_wait_seconds: float = setting(
        "WEBCRAWL_END_WAIT_SECONDS",
        900.0,
        at_least=0.0,
        unit="seconds",
        doc="A run with nothing to fetch now stays open if something falls due within this time.",
        why="Long enough for the retries of the default settings, short enough that a host that sleeps for hours does "
        "not hold the run open. What was not fetched stays in the store for the next start.",
    )
    forever: bool = setting(
        "WEBCRAWL_FOREVER",
        False,
        doc="Keep the run open however long the next page takes to fall due.",
        why="Most crawls should end; a crawl that keeps a collection fresh should not.",
    )
    sync: str = setting(
        "WEBCRAWL_SYNC",
        "full",
        choices=("full", "normal"),
        doc="What a commit survives: full = power loss, normal = kill -9 of the crawl but perhaps not power loss.",
        why="A crawl takes days and a commit milliseconds, off the event loop: safety first.",
    )
    commit_seconds: float = setting(
        "WEBCRAWL_COMMIT_SECONDS",
        0.1,
        at_least=0.01,
        at_most=5.0,
        unit="seconds",
        doc="Longest time a settled page waits for its commit.",
        why="Pages settled in this time share one commit; a crash costs at most this much work, fetched again.",
    )
    commit_pages: int = setting(
        "WEBCRAWL_COMMIT_PAGES",
        500,
        at_least=1,
        at_most=10_000,
        unit="pages",
        doc="Most pages settled in one commit.",
        why="Enough to make the cost of a commit per page small, few enough to bound what waits in memory.",
    )
    progress: str = setting(
        "WEBCRAWL_PROGRESS",
        "auto",
        choices=("auto", "panel", "log", "off"),
        doc="How progress is shown: a live panel, one log line a minute, or not at all; auto = panel on a terminal, "
        "log elsewhere.",
        why="A panel written into a file is unreadable, and a log line a minute is too little on a terminal.",
    )

    @property
    def product_token(self) -> str:
        """WEBCRAWL_AGENT; an empty one means nothing was said."""
        return self.agent or PRODUCT


@declare
@dataclass(frozen=True)
class Safety:
    """Where the crawl may go although a host is not public, and where not although it is."""

    allow: tuple[str, ...] = setting(
        "WEBCRAWL_SAFETY_ALLOW",
        (),
        each=_host_or_network,
        doc="Your own hosts: names (intranet.example), suffixes (.example) and networks (127.0.0.0/8).",
        why="Nothing is yours until you say so. Links lead anywhere, also to the router and the database next door, so "
        "private addresses are refused unless they are named here or given as a seed. WIRE blocks 127.0.0.1 for the "
        "same reason (Castillo 2004, Table 7.1).",
        harm="A name that is misread here could open a private network to the crawl.",
    )
    optout_file: str = setting(
        "WEBCRAWL_OPTOUT_FILE",
        "",
        doc="File of hosts (www.example.org), sites (.example.org) and pages (example.org/private/*) that are never "
        "fetched, one a line.",
        why="Nobody has asked you to stay away yet. When somebody does, one line is enough.",
    )


def _rel_word(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z-]+", text):
        raise ValueError("Use words as they stand in rel, such as nofollow, ugc and sponsored")
    return text.lower()


def _quiet_hours(text: str) -> str:
    hours(text)
    return text


def _host_and_pages(text: str) -> str:
    pages_in_visit(text)
    return text


def _group(text: str) -> str:
    group_rule(text)
    return text


@declare
@dataclass(frozen=True)
class Politeness:
    """How often we may knock on one host's door (Castillo 2004, §4.2.1, Table 7.1)."""

    mode: str = setting(
        "WEBCRAWL_POLITENESS",
        "on",
        choices=("on", "off"),
        doc="off = no delay, many connections a host, no robots.txt, and only for hosts in WEBCRAWL_SAFETY_ALLOW; all "
        "other hosts are still crawled politely.",
        why="The web is not ours. Off is for a web of your own: a test, a mirror, the generated web.",
    )
    delay_seconds: float = setting(
        "WEBCRAWL_POLITENESS_DELAY_SECONDS",
        15.0,
        at_least=1.0,
        unit="seconds",
        doc="Pause between the end of one request to a host and the start of the next.",
        why="Castillo 2004, Table 7.1: 15 s. Mercator waits ten times as long as the last download took; Heritrix "
        "five times, between 3 and 30 s.",
        harm="At that pace most sites will see an attack and block us.",
        instead="for a host you own, list it in WEBCRAWL_SAFETY_ALLOW",
    )
    large_site_delay_seconds: float = setting(
        "WEBCRAWL_POLITENESS_LARGE_SITE_DELAY_SECONDS",
        5.0,
        at_least=1.0,
        unit="seconds",
        doc="The same pause for hosts of which more than WEBCRAWL_POLITENESS_LARGE_SITE_PAGES pages are stored, if it "
        "is shorter.",
        why="Castillo 2004, §7.2.2: 5 s for sites of more than 100 pages. A large site is used to visitors; at 15 s "
        "100,000 pages take 17 days.",
        harm="At that pace most sites will see an attack and block us.",
    )
    large_site_pages: int = setting(
        "WEBCRAWL_POLITENESS_LARGE_SITE_PAGES",
        100,
        at_least=1,
        unit="pages",
        doc="From how many stored pages on a host counts as large.",
        why="Castillo 2004, §7.2.2.",
    )
    delay_factor: float = setting(
        "WEBCRAWL_POLITENESS_DELAY_FACTOR",
        10.0,
        at_least=0.0,
        doc="The pause is at least so many times as long as the last fetch took; 0 switches it off.",
        why="Mercator: 10. A server that answers slowly is busy, and is asked less often.",
    )
    delay_factor_most_seconds: float = setting(
        "WEBCRAWL_POLITENESS_DELAY_FACTOR_MOST_SECONDS",
        120.0,
        at_least=0.0,
        unit="seconds",
        doc="The longest pause that WEBCRAWL_POLITENESS_DELAY_FACTOR asks for.",
        why="One answer that took a minute must not stop a host for ten.",
    )
    crawl_delay_most_seconds: float = setting(
        "WEBCRAWL_POLITENESS_CRAWL_DELAY_MOST_SECONDS",
        0.0,
        at_least=0.0,
        unit="seconds",
        doc="The longest Crawl-delay of a robots.txt that is kept in full; 0: every one is.",
        why="The webmaster knows best. Nutch skips hosts that ask for more than 30 s, Heritrix keeps 300 s.",
        harm="A host would be asked more often than it wishes.",
    )
    pages_per_visit: tuple[str, ...] = setting(
        "WEBCRAWL_POLITENESS_PAGES_PER_VISIT",
        (),
        each=_host_and_pages,
        doc="Hosts that may be asked for several pages in a row, over one connection, before they rest: a.example=10.",
        why="Castillo 2004, §4.2.2: large search engines take one page per connection. More is for hosts that agreed.",
    )
    address_delay_seconds: float = setting(
        "WEBCRAWL_POLITENESS_ADDRESS_DELAY_SECONDS",
        0.5,
        at_least=0.0,
        unit="seconds",
        doc="Pause between requests to one address, whichever of its hosts they are for, and one request at a time; 0 "
        "switches it off. Behind a proxy addresses are not known.",
        why="Many hosts live at one address (Castillo 2004, §A.1.2). BUbiNG's sample configuration has 0.5 s.",
    )
    site_delay_seconds: float = setting(
        "WEBCRAWL_POLITENESS_SITE_DELAY_SECONDS",
        0.0,
        at_least=0.0,
        unit="seconds",
        doc="The same for the hosts of one site (registrable domain); 0 switches it off.",
        why="Hosts of one site often live on many servers: their addresses tell more.",
    )
    groups: tuple[str, ...] = setting(
        "WEBCRAWL_POLITENESS_GROUPS",
        (),
        separator="lines",
        each=_group,
        doc="Groups of hosts with a pause of their own, one a line: a name, seconds, hosts and .suffixes.",
        why="Only the operator knows which hosts have one owner.",
    )
    jitter: float = setting(
        "WEBCRAWL_POLITENESS_JITTER",
        0.0,
        at_least=0.0,
        at_most=1.0,
        doc="Every pause is made longer by a random part of up to this share of it.",
        why="Nobody needs it to be polite; it hides the clockwork.",
    )
    quiet_hours: tuple[str, ...] = setting(
        "WEBCRAWL_POLITENESS_QUIET_HOURS",
        (),
        each=_quiet_hours,
        doc="Hours of the day in which nobody is asked, in UTC: 08:00-18:00.",
        why="Some webmasters ask for the night; by default every hour is as good.",
    )
    off_connections: int = setting(
        "WEBCRAWL_POLITENESS_OFF_CONNECTIONS",
        16,
        at_least=1,
        at_most=1000,
        unit="connections",
        doc="Connections at a time to one host when politeness is off for it.",
        why="Enough to keep a server on the same machine busy. A polite crawl has one connection a host, always.",
    )

    @property
    def is_on(self) -> bool:
        return self.mode == "on"


@declare
@dataclass(frozen=True)
class Backoff:
    """How long a host is left alone that asks for time, or does not answer (Castillo 2004, appendix A)."""

    first_seconds: float = setting(
        "WEBCRAWL_BACKOFF_FIRST_SECONDS",
        60.0,
        at_least=1.0,
        unit="seconds",
        doc="Pause after 429, 503 without Retry-After, or no answer; doubled with every further incident.",
        why="StormCrawler's default. A Retry-After of the server is kept instead, whatever it says.",
    )
    most_seconds: float = setting(
        "WEBCRAWL_BACKOFF_MOST_SECONDS",
        86_400.0,
        at_least=1.0,
        unit="seconds",
        doc="The longest of these pauses.",
        why="A day; StormCrawler's default.",
    )
    forgive_seconds: float = setting(
        "WEBCRAWL_BACKOFF_FORGIVE_SECONDS",
        1_800.0,
        at_least=0.0,
        unit="seconds",
        doc="After so long without an incident the next one starts with the first pause again.",
        why="Half an hour; Nutch and StormCrawler agree on it.",
    )
    jitter: float = setting(
        "WEBCRAWL_BACKOFF_JITTER",
        0.1,
        at_least=0.0,
        at_most=1.0,
        doc="These pauses are made longer by a random part of up to this share, so that hosts come back one by one.",
        why="StormCrawler's default.",
    )
    tries: int = setting(
        "WEBCRAWL_BACKOFF_TRIES",
        5,
        at_least=1,
        at_most=100,
        unit="incidents",
        doc="Incidents in a row without a normal answer, until the host is put to sleep.",
        why="With the first pause that is half an hour: longer than a restart or a deployment.",
    )
    sleep_seconds: float = setting(
        "WEBCRAWL_BACKOFF_SLEEP_SECONDS",
        43_200.0,
        at_least=60.0,
        unit="seconds",
        doc="How long a host sleeps before it is tried once more.",
        why="Castillo 2004, §A.1.1: servers that are down for days come back; 12 hours between attempts.",
    )
    sleeps: int = setting(
        "WEBCRAWL_BACKOFF_SLEEPS",
        3,
        at_least=0,
        at_most=1000,
        unit="sleeps",
        doc="Sleeps after which a host that still does not answer is given up; its pages say so.",
        why="A day and a half. The thesis does not print a number.",
    )
    no_name_sleep_seconds: float = setting(
        "WEBCRAWL_BACKOFF_NO_NAME_SLEEP_SECONDS",
        604_800.0,
        at_least=60.0,
        unit="seconds",
        doc="How long a host sleeps whose name cannot be resolved; then it is tried once more.",
        why="Castillo 2004, §A.2.2: a week, because owners notice a wrong record only when caches run out.",
    )


@declare
@dataclass(frozen=True)
class Robots:
    """How long a robots.txt is believed (RFC 9309, §2.4)."""

    most_seconds: float = setting(
        "WEBCRAWL_ROBOTS_MOST_SECONDS",
        86_400.0,
        at_least=60.0,
        at_most=86_400.0,
        unit="seconds",
        doc="The longest time until a robots.txt is asked for again.",
        why="RFC 9309, §2.4: not more than 24 hours.",
    )
    least_seconds: float = setting(
        "WEBCRAWL_ROBOTS_LEAST_SECONDS",
        3_600.0,
        at_least=0.0,
        at_most=86_400.0,
        unit="seconds",
        doc="The shortest such time, whatever its Cache-Control says.",
        why="A file that is asked for before every page is a burden of its own.",
    )
    retry_seconds: float = setting(
        "WEBCRAWL_ROBOTS_RETRY_SECONDS",
        600.0,
        at_least=1.0,
        unit="seconds",
        doc="Pause before a robots.txt that could not be had is tried again; doubled each time, up to a day.",
        why="Until then nothing of that origin may be fetched (RFC 9309, §2.3.1.4), and most failures are short.",
    )


@declare
@dataclass(frozen=True)
class Directives:
    """What is done with what pages ask of robots beyond robots.txt: meta elements, X-Robots-Tag, rel of links."""

    nofollow: str = setting(
        "WEBCRAWL_DIRECTIVES_NOFOLLOW",
        "obey",
        choices=("obey", "ignore"),
        doc="obey = no link of a page that says nofollow (or none) is taken from there, its meta refresh included.",
        why="It is the webmaster's word about a whole page. Nutch, StormCrawler and Heritrix obey it too; some web "
        "archives ignore it, because site owners set it by mistake.",
    )
    rel: tuple[str, ...] = setting(
        "WEBCRAWL_DIRECTIVES_REL",
        ("nofollow", "ugc", "sponsored"),
        each=_rel_word,
        doc="Words in the rel of a link for which it is not taken; empty: all links are.",
        why="Whoever writes one of them does not vouch for the target (HTML, §4.6.7; Google treats all three as hints, "
        '"Evolving nofollow", 2019), and a crawl that fetches important pages first has better links to spend its '
        "visits on; calendars, filters and logins are behind such links too. Nutch and StormCrawler heed nofollow, "
        "Heritrix heeds none unless told to. One plain link from anywhere is enough to be fetched.",
    )
    noindex: str = setting(
        "WEBCRAWL_DIRECTIVES_NOINDEX",
        "obey",
        choices=("obey", "ignore"),
        doc="obey = a page that says noindex (or none) is fetched, its links are taken and its record is kept, but it "
        "gives no item: it is in no feed.",
        why="What is in a feed is found again, which the page asks to prevent; Nutch reads no text of such pages and "
        "StormCrawler does not index them. Archives, whose use is another one, keep them: choose ignore if yours is.",
    )
    noarchive: str = setting(
        "WEBCRAWL_DIRECTIVES_NOARCHIVE",
        "obey",
        choices=("obey", "ignore"),
        doc="obey = the item of a page that says noarchive (or nocache) has no text and no anchor texts; its other "
        "fields are there, and `directives` says why.",
        why="A feed is a copy that others may read. Nutch by default shows no copy of such pages.",
    )


@declare
@dataclass(frozen=True)
class Frontier:
    """What is fetched next: how many pages are chosen at a time, and in which order."""

    batch_pages: int = setting(
        "WEBCRAWL_BATCH_PAGES",
        100_000,
        at_least=1,
        at_most=10_000_000,
        unit="pages",
        doc="Pages of the long-term choice: the best of the whole frontier, kept in memory to be fetched next.",
        why="Castillo 2004, Table 7.1: K = 100,000.",
    )
    batch_pages_per_host: int = setting(
        "WEBCRAWL_BATCH_PAGES_PER_HOST",
        500,
        at_least=1,
        at_most=10_000_000,
        unit="pages",
        doc="Most pages of one host in a batch.",
        why="Castillo 2004, Table 7.1: 500. A host with a million pages must not fill the batch.",
    )
    strategy: str = setting(
        "WEBCRAWL_STRATEGY",
        "breadth_first",
        doc="The order of the crawl: the name of a file in webcrawl/core/strategies.",
        why="Breadth first finds good pages early and needs to know nothing beforehand (Najork and Wiener, "
        '"Breadth-First Crawling Yields High-Quality Pages", 2001).',
    )
    random_seed: int = setting(
        "WEBCRAWL_RANDOM_SEED",
        1,
        at_least=0,
        at_most=2**63 - 1,
        doc="Seed of every random choice.",
        why="A fixed seed makes two crawls of the same answers take the same decisions.",
    )


@declare
@dataclass(frozen=True)
class Retry:
    """What happens to a page that could not be fetched."""

    times: int = setting(
        "WEBCRAWL_RETRY_TIMES",
        2,
        at_least=0,
        at_most=20,
        unit="retries",
        doc="Further attempts at a page that failed in a way that may pass.",
        why="Scrapy's own default (RETRY_TIMES). Heritrix tries 30 times, fifteen minutes apart.",
    )
    delay_seconds: float = setting(
        "WEBCRAWL_RETRY_DELAY_SECONDS",
        60.0,
        at_least=0.0,
        unit="seconds",
        doc="Pause before a failed page is tried again.",
        why="Most short failures pass within a minute, and the default run is still open then "
        "(WEBCRAWL_END_WAIT_SECONDS). Castillo 2004 (appendix A) waits hours, for servers that are down for days.",
    )


@declare
@dataclass(frozen=True)
class Limits:
    """Where the crawl stops; 0 means no limit unless the setting says otherwise."""

    pages: int = setting(
        "WEBCRAWL_LIMIT_PAGES",
        0,
        at_least=0,
        unit="pages",
        doc="End the run after this many pages; 0 = no limit.",
        why="You decide when to stop; the run can be resumed with a higher limit.",
    )
    seconds: float = setting(
        "WEBCRAWL_LIMIT_SECONDS",
        0.0,
        at_least=0.0,
        unit="seconds",
        doc="End the run after this time; 0 = no limit.",
        why="You decide when to stop.",
    )
    bytes: int = setting(
        "WEBCRAWL_LIMIT_BYTES",
        0,
        at_least=0,
        unit="bytes",
        doc="End the run after this many bytes of bodies received; 0 = no limit.",
        why="You know what your connection costs.",
    )
    depth: int = setting(
        "WEBCRAWL_LIMIT_DEPTH",
        0,
        at_least=0,
        unit="links",
        doc="Refuse pages more links than this away from their host's start page; 0 = no limit.",
        why="What a good depth is depends on the crawl.",
    )
    pages_per_host: int = setting(
        "WEBCRAWL_LIMIT_PAGES_PER_HOST",
        0,
        at_least=0,
        unit="pages",
        doc="Fetch at most this many pages of one host; 0 = no limit.",
        why="WEBCRAWL_LIMIT_URLS_PER_HOST already bounds a host that never ends.",
    )
    urls_per_host: int = setting(
        "WEBCRAWL_LIMIT_URLS_PER_HOST",
        25_000,
        at_least=0,
        unit="URLs",
        doc="Remember at most this many URLs of one host, fetched or not; further ones are only counted. 0 = no limit.",
        why="Castillo 2004, Table 7.1: 25,000. It bounds the memory a host can take, whatever it links to.",
    )
    url_length: int = setting(
        "WEBCRAWL_LIMIT_URL_LENGTH",
        2083,
        at_least=1,
        at_most=1_000_000,
        unit="characters",
        doc="Refuse longer URLs.",
        why="The longest URL of Internet Explorer, and the limit of Heritrix: longer ones are almost always traps.",
    )
    page_bytes: int = setting(
        "WEBCRAWL_LIMIT_PAGE_BYTES",
        10_000_000,
        at_least=1,
        unit="bytes",
        doc="Give up a body that is longer than this.",
        why="Castillo 2004, Table 7.1 takes 400,000 bytes; pages have grown since, and memory too.",
    )
    include: tuple[str, ...] = setting(
        "WEBCRAWL_INCLUDE",
        (),
        separator="lines",
        each=_regex,
        doc="Regular expressions, one a line; if there are any, only URLs in which one of them is found are fetched.",
        why="The scope of the crawl (-a scope) is usually enough.",
    )
    exclude: tuple[str, ...] = setting(
        "WEBCRAWL_EXCLUDE",
        (),
        separator="lines",
        each=_regex,
        doc="Regular expressions, one a line; URLs in which one of them is found are not fetched.",
        why="Nothing is excluded until you say so.",
    )
    min_free_disk_bytes: int = setting(
        "WEBCRAWL_MIN_FREE_DISK_BYTES",
        100_000_000,
        at_least=0,
        unit="bytes",
        doc="End the run, in order, when the disk of the run directory has less space left; 0 = do not look.",
        why="Enough to close the run, and to log in and clean up.",
    )
