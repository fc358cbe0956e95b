"""Addresses: which page a link leads to, one spelling per page, and the names hidden inside a URL.

Rules kept here
- A URL that is sent is the one that was found: `resolve` follows the WHATWG URL standard as browsers do and changes
  nothing else but the fragment, which never leaves the client.
- A URL that is compared is the canonical one. Two pages must never share a canonical form unless every server we can
  think of treats them as one; a page with two canonical forms only costs a second fetch. So the rules are few:

    rule                                              reason
    WHATWG form: host lower-case and in ASCII,        browsers do it, so servers cannot tell the spellings apart
      default port gone, dot segments resolved
    fragment dropped                                  never sent (RFC 3986 §3.5)
    %7e and %7E are ~; hex digits upper-case          the same octets (RFC 3986 §6.2.2.1, §6.2.2.2)
    a lone % is %25                                   the only octet it can mean; keeps the form stable
    one trailing dot of the host dropped              the same name in the DNS (RFC 1034 §3.1)
    ? without a query dropped; empty && dropped       they name nothing
    parameters sorted by the bytes of their names     their order rarely matters; as Scrapy's fingerprints do
      repeated names keep their order                 it may matter: ?sort=date&sort=name
    blank values and unknown parameters kept          ?item=truck and ?item=bicycle are two pages, ?a and ?a= may be
    credentials, ;matrix parameters, + and case kept  they may select another page

  The rules are frozen for a run: a new rule is a new CANONICAL_VERSION, which is stored with the run.
- Canonical forms are fixed points: canonical(canonical(u)) == canonical(u).
- Functions other than `resolve` and `canonical` expect WHATWG form and look at the string only; they never parse.

Idea: one Rust parser (url-py) for whatever is hard, string operations for the rest. Most links have neither `%` nor
`?` and are already canonical, so the batch function only looks for those characters.

Not w3lib.canonicalize_url: it sorts repeated names by value, keeps `:80`, turns %20 into + and costs fifteen times as
much (23 µs against 1.5 µs for a URL with a query; `canonicals` takes 0.3 µs a link where one in ten has a query).
Costs besides, on the same two shared cores: resolve 0.7 µs a link, keys 0.2 µs (`tests/benchmarks/bench_links.py`).

Known difference from the standard: url-py refuses a host with an `xn--` label that is no Punycode; newer texts of the
standard let it pass. No such name can be registered, so the link is dropped.

Sources: WHATWG URL; RFC 3986 §6.2.2; Castillo 2004 §7.2.4, §7.3.3, §8.3.6 (kinds of pages); publicsuffix.org.
"""

import re
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt
from publicsuffixlist import PublicSuffixList
from url import URL, URLError
from xxhash import xxh3_64_intdigest

CANONICAL_VERSION = 1

# In WHATWG form http and https always have two slashes and a host, so six characters tell them from every other scheme.
_WEB = frozenset(("http:/", "https:"))

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX = "0123456789abcdefABCDEF"


# --- from link to URL


def resolve(base: str, hrefs: Sequence[str]) -> list[str | None]:
    """The URLs that links on the page at `base` lead to; None for what a crawler cannot fetch.

    Only http and https count; mailto, javascript and strings that are no URL at all give None.

    >>> resolve("http://en.wikipedia.org/wiki/Main_Page", ["/wiki/Wikipedia:About#top", "mailto:a@b.c"])
    ['http://en.wikipedia.org/wiki/Wikipedia:About', None]
    """
    join = _parsed(base).join
    try:
        found = [str(join(href)) for href in hrefs]
    except (URLError, UnicodeError):  # rare, so that the usual page pays for no try block a link
        found = [_joined(join, href) for href in hrefs]
    return [(u if "#" not in u else u[: u.index("#")]) if u[:6] in _WEB else None for u in found]


def _parsed(url: str) -> URL:
    try:
        return URL.parse(url)
    except (URLError, UnicodeError) as error:
        raise ValueError(f"{url!r} is no absolute URL ({error}). Write it in full: http://host/path.") from error


def _joined(join: Callable[[str], URL], href: str) -> str:
    """One link, or the empty string; repairs what url-py refuses and the standard allows."""
    for spelling in (href, _repaired(href)):
        try:
            return str(join(spelling))
        except (URLError, UnicodeError):
            continue
    return ""


_SLASHES = re.compile(r"\A[\0- ]*[/\\]{2,}")
_IGNORED = str.maketrans("", "", "\t\n\r")


def _repaired(href: str) -> str:
    """The link with surplus slashes before its host gone, and with U+FFFD for halves of surrogate pairs."""
    whole = href.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _SLASHES.sub("//", whole.translate(_IGNORED), count=1)


# --- from URL to its one spelling


def canonical(url: str) -> str:
    """The one spelling of any absolute http or https URL; ValueError for everything else.

    >>> canonical("HTTP://Example.com:80/%7euser/../?b=2&a=%31#top")
    'http://example.com/?a=1&b=2'
    """
    form = str(_parsed(url))
    if form[:6] not in _WEB:
        raise ValueError(f"{url!r} is neither http nor https, so it cannot be fetched. Leave it out.")
    return _spelled(form)


def canonicals(urls: Sequence[str]) -> list[str]:
    """The one spelling of each URL; they must be in WHATWG form, as `resolve` gives them.

    One look at the whole batch mostly leaves only queries to look for in each URL: 0.3 µs a link instead of 0.9.
    """
    batch = "\n".join(urls)
    if "%" in batch or "./" in batch or ".:" in batch or "#" in batch:
        return [_spelled(url) for url in urls]
    return [_spelled(url) if "?" in url else url for url in urls]


def _spelled(url: str) -> str:
    url = url.partition("#")[0]
    if "%" in url:
        url = _PERCENT.sub(_octet, url)
    if "./" in url or ".:" in url:
        url = _without_final_dot(url)
    if "?" in url:
        path, _, query = url.partition("?")
        query = _sorted(query)
        return f"{path}?{query}" if query else path
    return url


_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2})?")


def _spelling(pair: str) -> str:
    character = chr(int(pair, 16))
    return character if character in _UNRESERVED else "%" + pair.upper()


_OCTETS = {"%" + a + b: _spelling(a + b) for a, b in product(_HEX, _HEX)} | {"%": "%25"}


def _octet(match: re.Match[str]) -> str:
    return _OCTETS[match[0]]


# Only one dot: `0x7f..` is a name, `0x7f.` would be read as 127.0.0.1.
_FINAL_DOT = re.compile(r"(https?://[^/]*[^/.@])\.(:\d+)?/")


def _without_final_dot(url: str) -> str:
    match = _FINAL_DOT.match(url)
    return f"{match[1]}{match[2] or ''}/{url[match.end() :]}" if match else url


def _sorted(query: str) -> str:
    if "&" not in query:
        return query
    return "&".join(sorted(filter(None, query.split("&")), key=_name))


def _name(parameter: str) -> str:
    return parameter.partition("=")[0]


# --- the names inside a URL


def host_of(url: str) -> str:
    """The host, without credentials and port; an IPv6 address keeps its brackets.

    >>> host_of("http://me@example.com:8080/a"), host_of("http://[::1]:80/")
    ('example.com', '[::1]')
    """
    authority = url[url.index("/") + 2 : url.index("/", 8)]  # 8: behind `https://`, and in `http://` behind one letter
    if "@" in authority:
        authority = authority.partition("@")[2]
    if ":" in authority and authority[-1] != "]":
        authority = authority.rpartition(":")[0]
    return authority


def origin_of(url: str) -> str:
    """Scheme, host and port, as in `http://example.com:8080`: what one robots.txt speaks for (RFC 9309 §2.3)."""
    scheme, _, authority, *_ = url.split("/", 3)
    if "@" in authority:
        authority = authority.partition("@")[2]
    return f"{scheme}//{authority}"


def split(url: str) -> tuple[str, str, str]:
    """Scheme, host and resource; the port, if any, is in `origin_of`.

    >>> split("http://www.cs.umass.edu/csinfo/people.html")
    ('http', 'www.cs.umass.edu', '/csinfo/people.html')
    """
    scheme, _, _, resource = url.split("/", 3)
    return scheme[:-1], host_of(url), "/" + resource.partition("#")[0]


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


@lru_cache(maxsize=65536)
def site_of(host: str) -> str:
    """The registrable domain a host belongs to: one owner, so one site.

    Private suffixes count (each blog of a blog host is a site of its own). An IP address, and a name that is itself a
    public suffix, is its own site.

    >>> site_of("www.bbc.co.uk"), site_of("someone.github.io"), site_of("127.0.0.1")
    ('bbc.co.uk', 'someone.github.io', '127.0.0.1')
    """
    if host[-1:] == "]" or host.rpartition(".")[2].isdigit():  # WHATWG: a last label of digits is an IPv4 address
        return host
    name = host.rstrip(".")
    return _suffixes().privatesuffix(name) or name


class Kind(IntEnum):
    """Whether a page looks like a file or like the answer of a program."""

    STATIC = 0
    DYNAMIC = 1


_STATIC, _DYNAMIC = Kind.STATIC, Kind.DYNAMIC  # looking up a member costs as much as the rest of kind_of

# Programs that make up pages as they are asked (Castillo 2004, §7.2.4 and §8.3.6). Not .shtml: server-side includes
# dress up a file, they do not give it parameters, and such pages do not go on for ever.
DYNAMIC_EXTENSIONS = frozenset(
    (
        *("php", "php3", "php4", "php5", "php7", "phtml"),
        *("pl", "cgi", "fcgi"),  # Perl, and programs of any kind
        *("asp", "aspx", "ashx", "dll"),  # Microsoft
        *("jsp", "jspx", "jhtml", "do", "action"),  # Java
        *("cfm", "cfml"),  # ColdFusion
    )
)


def kind_of(url: str) -> Kind:
    """DYNAMIC for a URL with a query or with the extension of a Web language, else STATIC.

    >>> kind_of("http://a.cl/index.html").name, kind_of("http://a.cl/v.PHP").name, kind_of("http://a.cl/?p=1").name
    ('STATIC', 'DYNAMIC', 'DYNAMIC')
    """
    if "?" in url:
        return _DYNAMIC
    name = url[url.rfind("/") + 1 :]
    if "." not in name:
        return _STATIC
    return _DYNAMIC if name.partition(";")[0].rpartition(".")[2].lower() in DYNAMIC_EXTENSIONS else _STATIC


def parents_of(url: str) -> list[str]:
    """The folders above a page, nearest first: path-ascending crawling finds pages nobody links to.

    >>> parents_of("http://foo.org/a/b/page.html")
    ['http://foo.org/a/b/', 'http://foo.org/a/', 'http://foo.org/']
    """
    path = url.partition("#")[0].partition("?")[0]
    root = path.index("/", 8)
    ends = [i for i in range(len(path) - 1, root - 1, -1) if path[i] == "/"]
    return [path[: end + 1] for end in ends if end + 1 < len(url)]


# --- from canonical URL to key


def key(canonical_url: str, seed: int) -> int:
    """The 64-bit name of a page in this run; never 0, which tables use for an empty place.

    The seed is drawn per run, so nobody can prepare URLs that collide. Ten million URLs hold a collision by chance with
    probability 3e-6 (n²/2⁶⁵).
    """
    return xxh3_64_intdigest(canonical_url.encode(), seed) or 1


def keys(canonical_urls: Sequence[str], seed: int) -> npt.NDArray[np.uint64]:
    """`key` of each URL, in order."""
    digests = [xxh3_64_intdigest(url.encode(), seed) for url in canonical_urls]
    numbers = np.fromiter(digests, np.uint64, len(digests))
    return np.maximum(numbers, np.uint64(1), out=numbers)
