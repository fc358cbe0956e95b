"""HTML pages: from bytes to title, text, links and what the page says about itself.

Rules kept here
- This is the only file that knows turbohtml, and it never raises on a page, however broken: tag soup gives what a
  browser would see.
- The charset is settled before a character is read: byte-order mark, then HTTP, then a `meta` in the first 1,024
  bytes, then UTF-8 if the bytes are UTF-8 (a last character cut in half is forgiven), then a later `meta`, then
  windows-1252. A label unknown to the WHATWG Encoding standard counts as absent. Text is Unicode without surrogates.
- Links come in order of appearance and each URL once, with its first anchor text: a frontier asks whether there is a
  link, not how many, and the first anchor is the one a reader meets. A copy without `rel` wins over one with it, since
  one plain link is enough to follow. What does not lead to http or https is left out; `href=""` and `href="#top"` lead
  to the page itself. Links in comments, scripts and templates are no links.
- We run no scripts, so links inside `noscript` and `noframes` count, after all others; their text ("please enable
  JavaScript") and their `meta` elements do not. The page is otherwise read as by a browser with scripts, which keeps a
  tracking image in a `noscript` from ending the head before its canonical link.
- `robots` and `description` are believed wherever they stand, the canonical link only in the head, where visitors'
  comments cannot put one.

Idea: one tree in C; ask it as few questions as possible. Attributes and anchor texts are the questions that come once
a link, so elements are found by tag name, `rel` is read only on pages that have one, and merged links are not asked for
their text. Blocks of text are separated by newlines and blanks are single except in `pre`: collapsing those as well
would cost more than the rendering (50 to 120 µs on a page of 14 KB, against 45), and who compares texts compares words.

Costs, on two shared cores: a page of 14 KB with 60 links takes 0.23 ms: decoding and tree 65 µs, text 50, resolving the
links 45 to 60, their attributes 12, their anchors 15 to 25, all else 25 (`tests/benchmarks/bench_links.py`). Parsing
holds the GIL, 15 ms a MB: see LARGE_BODY_BYTES.

Sources: WHATWG HTML §13.2 (parsing, prescan), §4.2 (base, meta refresh); WHATWG Encoding §4.2, §6; RFC 6596 (canonical
link); Castillo 2004 §7.2.3 (tolerant parsing, which tags carry links).
"""

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import turbohtml
from turbohtml import Document, Element, Namespace, Node, PlainText

from webcrawl.core.urls import resolve

# Above this a caller with an event loop does better to parse in a thread: the loop then stalls for one switch interval
# at a time instead of some 4 ms and more.
LARGE_BODY_BYTES = 262_144

# Which attribute of which element carries a link (Castillo 2004, Table 7.1 has it as a setting too).
LINK_TAGS: Mapping[str, str] = MappingProxyType({"a": "href", "area": "href", "frame": "src", "iframe": "src"})

PRESCAN_BYTES = 1024

_Key = TypeVar("_Key")

_TEXT = PlainText(layout="strict", bullet="", table_cell_separator=" ")
_UNSCRIPTED = ("noscript", "noframes")


class Refresh(NamedTuple):
    """A page's wish to be replaced by another (or by itself) after a while."""

    seconds: float
    url: str


@dataclass(slots=True)
class ParsedPage:
    """What one page says. `links`, `anchors` and `rels` are parallel; `base` is what its relative links start from.

    `metas` are names, in lower case, and contents of the meta elements that were asked for.
    """

    url: str
    base: str
    charset: str
    title: str
    text: str
    lang: str
    description: str
    robots: str
    canonical: str | None
    refresh: Refresh | None
    links: list[str]
    anchors: list[str]
    rels: list[str]
    metas: list[tuple[str, str]]


def parse_page(
    body: bytes,
    url: str,
    declared_charset: str | None = None,
    *,
    link_tags: Mapping[str, str] = LINK_TAGS,
    meta_names: frozenset[str] = frozenset(),
    with_text: bool = True,
    with_anchors: bool = True,
) -> ParsedPage:
    """Everything the crawler wants to know of an HTML page, in one pass.

    `url` is the page's own address in WHATWG form, `declared_charset` what HTTP said. Who needs no text or no anchors
    saves a fifth and a tenth of the time and gets empty strings.
    """
    document, charset = _document(body, declared_charset)
    base = _base(document, url)
    robots, description, metas = _metas(document, meta_names)
    refresh = _refresh(document, url, base)
    links, anchors, rels = _links(document, base, link_tags, with_anchors)
    if refresh and refresh.url not in links:
        links.append(refresh.url)
        anchors.append("")
        rels.append("refresh")
    return ParsedPage(
        url=url,
        base=base,
        charset=charset,
        title=_title(document),
        text=document.to_text(_TEXT) if with_text else "",
        lang=_attribute(document.root, "lang"),
        description=description,
        robots=robots,
        canonical=_canonical(document, base),
        refresh=refresh,
        links=links,
        anchors=anchors,
        rels=rels,
        metas=metas,
    )


# --- bytes to tree


def _document(body: bytes, declared: str | None) -> tuple[Document, str]:
    """The tree, and the WHATWG name of the charset it was read in."""
    charset = decide_charset(body, declared)
    if charset == "UTF-8":  # Python's decoder is the faster one
        text = body.decode("utf-8", "replace").removeprefix("\ufeff")
        document = turbohtml.parse(text, positions=False, scripting=True, allow_declarative_shadow_roots=False)
    else:
        document = turbohtml.parse(
            body, encoding=charset, positions=False, scripting=True, allow_declarative_shadow_roots=False
        )
    _settle_templates(document)
    return document, charset


def _settle_templates(document: Document) -> None:
    """Templates go, since only scripts use them, except those browsers unpack unasked (declarative shadow roots)."""
    for template in document.find_all("template"):
        if template.attr("shadowrootmode") is None:
            template.decompose()
        else:
            template.unwrap()


def decide_charset(body: bytes, declared: str | None) -> str:
    """The WHATWG name of the charset a page is written in; the order is in the module's rules.

    >>> decide_charset(b"<meta charset=latin1>", None), decide_charset(b"<meta charset=latin1>", "utf8")
    ('windows-1252', 'UTF-8')
    """
    marked = _marked(body)
    if marked is None and declared:
        marked = charset_name(declared)
    return marked or _sniffed(body)


def _marked(body: bytes) -> str | None:
    if body[:3] == codecs.BOM_UTF8:
        return "UTF-8"
    return {codecs.BOM_UTF16_LE: "UTF-16LE", codecs.BOM_UTF16_BE: "UTF-16BE"}.get(body[:2])


@lru_cache(maxsize=1024)
def charset_name(label: str) -> str | None:
    """The WHATWG name of a charset label, or None.

    >>> charset_name(" Latin1 "), charset_name("unicode_escape")
    ('windows-1252', None)
    """
    try:
        return turbohtml.parse(b"", encoding=label.strip(" \t\"'")).encoding
    except (LookupError, ValueError):  # unknown; not even text
        return None


def _sniffed(body: bytes) -> str:
    head = turbohtml.parse(body[:PRESCAN_BYTES], positions=False)
    if head.encoding_confidence == "certain":
        return head.encoding or "UTF-8"
    if _is_utf8(body):
        return "UTF-8"
    return turbohtml.parse(body, positions=False).encoding or "windows-1252"


def _is_utf8(body: bytes) -> bool:
    try:
        codecs.utf_8_decode(body, "strict", False)  # not final: a body cut at a size limit may end inside a character
    except UnicodeDecodeError:
        return False
    return True


# --- what the page says about itself


def _attribute(element: Element | None, name: str) -> str:
    return (element.attr(name) or "") if element is not None else ""


def _words(text: str) -> str:
    return " ".join(text.split())


def _title(document: Document) -> str:
    found = document.find("title")
    if found is not None and found.namespace is not Namespace.HTML:  # of a drawing; look for the page's own
        found = next((title for title in document.find_all("title") if title.namespace is Namespace.HTML), None)
    return _words(found.text) if found is not None else ""


def _base(document: Document, url: str) -> str:
    """The first `base` that has an address, if it can be fetched from; else the page's own URL without fragment."""
    if document.find("base") is None:
        return url.partition("#")[0]
    href = _attribute(document.select_one("base[href]"), "href")
    return resolve(url, [href])[0] or url.partition("#")[0]


def _metas(document: Document, names: frozenset[str]) -> tuple[str, str, list[tuple[str, str]]]:
    """All `robots` directives, in lower case with commas between; the first description; elements of these names."""
    robots: list[str] = []
    metas: list[tuple[str, str]] = []
    description = ""
    for meta in document.find_all("meta"):
        name = (meta.attr("name") or "").strip().lower()
        if name in names:
            metas.append((name, _attribute(meta, "content")))
        if name == "robots":
            robots.append(_attribute(meta, "content").strip().lower())
        elif name == "description" and not description:
            description = _words(_attribute(meta, "content"))
    return ", ".join(robots), description, metas


def _canonical(document: Document, base: str) -> str | None:
    head = document.find("head")
    for link in head.find_all("link") if head is not None else ():
        if "canonical" in _attribute(link, "rel").lower().split() and (href := link.attr("href")):
            return resolve(base, [href])[0]
    return None


def _refresh(document: Document, url: str, base: str) -> Refresh | None:
    wish = document.meta_refresh()
    if wish is None:
        return None
    seconds, href = wish
    target = resolve(base, [href])[0] if href else resolve(url, [""])[0]
    return Refresh(seconds, target) if target else None


# --- links


def _links(
    document: Document, base: str, tags: Mapping[str, str], with_anchors: bool
) -> tuple[list[str], list[str], list[str]]:
    elements, hrefs = _carriers(document, tags)
    for box in _boxes(document):
        more_elements, more_hrefs = _carriers(turbohtml.parse_fragment(box.text, positions=False), tags)
        elements, hrefs = [*elements, *more_elements], [*hrefs, *more_hrefs]
        box.decompose()
    by_href = _firsts(hrefs, elements)  # a third of the links of real pages repeat an earlier one letter by letter
    found = resolve(base, list(by_href))
    by_url = _firsts(found, by_href.values())
    by_url.pop(None, None)
    links = [link for link in by_url if link]
    anchors = _anchors(list(by_url.values())) if with_anchors else [""] * len(links)
    if document.select_one("a[rel],area[rel]") is None:
        return links, anchors, [""] * len(links)
    plain_hrefs = {href for href, element in zip(hrefs, elements, strict=True) if not element.attr("rel")}
    plain = {url for href, url in zip(by_href, found, strict=True) if href in plain_hrefs}
    return links, anchors, ["" if url in plain else _attribute(by_url[url], "rel").lower() for url in links]


def _firsts(names: Iterable[_Key], elements: Iterable[Element]) -> dict[_Key, Element]:
    """The first element of each name, in order of appearance."""
    first: dict[_Key, Element] = {}
    list(map(first.setdefault, names, elements))  # a loop in C
    return first


def _boxes(document: Document) -> Iterable[Element]:
    """What is meant for browsers without scripts or frames; a browser with them keeps it as text."""
    return [box for tag in _UNSCRIPTED for box in document.find_all(tag)]


def _carriers(root: Node, tags: Mapping[str, str]) -> tuple[Sequence[Element], Sequence[str]]:
    """The elements with a link, in order of appearance, and their links."""
    groups = [(found, name) for tag, name in tags.items() if (found := root.find_all(tag))]
    if len(groups) == 1:
        elements, name = groups[0]
        values = [element.attr(name) for element in elements]
    else:  # only now the order between tags matters, and a selector takes three times as long as a name
        elements = root.select(_selector(tuple(tags.items()))) if groups else []
        values = [element.attr(tags[element.tag]) for element in elements]
    if None in values:
        elements = [element for element, value in zip(elements, values, strict=True) if value is not None]
    return elements, [value for value in values if value is not None]


@lru_cache(maxsize=64)
def _selector(tags: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f"{tag}[{name}]" for tag, name in tags)


def _anchors(elements: Sequence[Element]) -> list[str]:
    texts = [element.text for element in elements]
    if _is_ragged("\0".join(texts)):
        texts = [_words(text) for text in texts]
    if "" in texts:
        texts = [text or _caption(element) for text, element in zip(texts, elements, strict=True)]
    return texts


def _is_ragged(texts: str) -> bool:
    """Whether any of the texts joined by NUL has blanks to collapse; asking once for all saves half of their time."""
    framed = f"\0{texts}\0"
    return any(blank in framed for blank in ("\n", "  ", "\t", "\0 ", " \0"))


def _caption(element: Element) -> str:
    """For a link without text: what stands in for its picture."""
    return _words(_attribute(element, "alt") or _attribute(element.find("img"), "alt") or _attribute(element, "title"))
