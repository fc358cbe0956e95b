"""Seeds: from a file or from a line of text to the URLs a crawl starts with."""

from __future__ import annotations

import re

from webcrawl.core.errors import SeedError
from webcrawl.core.urls import resolve

LONGEST_LIST = 3  # how many bad lines are named in an error

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def looks_like_urls(text: str) -> bool:
    """Whether ``-a seeds=`` was given URLs rather than the name of a file.

    >>> looks_like_urls("https://example.org/, https://example.net/"), looks_like_urls("seeds.txt")
    (True, False)
    """
    return bool(_SCHEME.match(text.strip()))


def seeds_from_line(text: str) -> list[str]:
    """URLs separated by commas or blanks. A comma inside a URL is kept if what follows it is no URL."""
    parts = re.split(r"\s+|,(?=\s*(?:[A-Za-z][A-Za-z0-9+.-]*://|$))", text.strip())
    return _checked([(0, part) for part in parts if part], "-a seeds")


def seeds_from_file(data: bytes, name: str) -> list[str]:
    """One URL a line; blank lines and lines that begin with # are left out; a BOM and CRLF do not matter."""
    if b"\0" in data[:65536]:
        raise SeedError(
            f"{name} is not a list of URLs: it holds binary data.", "", "Give a text file with one URL a line."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SeedError(f"{name} is not UTF-8 text: {error}.", "", "Save it as UTF-8, one URL a line.") from error
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return _checked([(number, line) for number, line in lines if line and not line.startswith("#")], name)


def _checked(lines: list[tuple[int, str]], name: str) -> list[str]:
    if not lines:
        raise SeedError(
            f"{name} holds no URL, so there is nothing to crawl.", "", "Give at least one, e.g. https://example.org/"
        )
    urls: dict[str, None] = {}
    bad = []
    for number, line in lines:
        url = resolve("http://seed.invalid/", [line])[0] if _SCHEME.match(line) else None
        if url is None:
            bad.append(f"line {number}: {line[:80]}" if number else line[:80])
        else:
            urls[url] = None
    if bad:
        more = f" and {len(bad) - LONGEST_LIST} more" if len(bad) > LONGEST_LIST else ""
        raise SeedError(
            f"{name} has {'a line' if len(bad) == 1 else f'{len(bad)} lines'} that cannot be crawled: "
            f"{'; '.join(bad[:LONGEST_LIST])}{more}.",
            "Only http and https addresses can be.",
            "Write each as http://... or https://..., or begin the line with # to leave it out.",
        )
    return list(urls)
