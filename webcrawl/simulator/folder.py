"""A folder web: `<folder>/<host>/<path>` answers as that host, bytes unchanged.

Which file answers a URL: the exact file; else an index page of that directory (a URL without the last slash is
redirected to the one with it); else the name with .html, .html.en, .en or .htm added.  The query is ignored, as a
server of files does.  A `_manifest.json` beside the hosts may name seeds, redirects of URL prefixes and other names of
hosts; names that begin with `_` or `.` are no hosts.

Nothing outside the folder is read: encoded slashes, `.` and `..`, NULs and symbolic links that leave it are refused.
"""

from __future__ import annotations

import json
import mimetypes
import os
import re
import stat
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_to_bytes

from webcrawl.simulator.addresses import Addresses
from webcrawl.simulator.answers import Answer, CannotServeError, message, redirect
from webcrawl.simulator.faults import Faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

INDEX_NAMES = (b"index.html", b"index.htm", b"index.html.en", b"Index.html")
ADDED_SUFFIXES = (b".html", b".html.en", b".en", b".htm")
SEED = 1  # decides which hosts a rule for a share of them takes
LARGEST_FILE_BYTES = 64 << 20  # a file is read whole
_PAGE_NAME = re.compile(r"\.x?html?(\.(?!gz)[a-z]{2}(-[a-z]{2})?)?(\.(utf-?8|euc-kr|iso\S+))?$", re.IGNORECASE)
_ENCODED_SLASH = re.compile(rb"%(2f|5c)", re.IGNORECASE)
_TYPES = mimetypes.MimeTypes()  # Python's own table, so that answers do not depend on the machine


class FolderWeb:
    """The hosts in a folder.  `faults` are rules for hosts that fail; the hosts share `address_count` addresses."""

    robots_files = None  # robots.txt is a file like others

    def __init__(self, folder: Path, faults: Sequence[str] = (), address_count: int = 1) -> None:
        self.folder = folder
        self.faults = tuple(faults)
        self.address_count = address_count
        self._root = os.path.realpath(os.fsencode(folder))
        notes = _read_manifest(folder)
        self._host_notes: dict[str, Any] = notes.get("hosts", {})
        self._hosts = sorted(_host_folders(folder))
        if not self._hosts:
            raise CannotServeError(
                f"The folder {folder} holds no hosts, so there is no web to serve. "
                "Put each site into a folder named after its host, such as www.example.org/index.html."
            )
        known = set(self._hosts)
        self._aliases = {name: host for name, host in notes.get("host_aliases", {}).items() if host in known}
        self._moved = [
            (_without_scheme(rule["source"]), _without_scheme(rule["target"]))
            for rule in notes.get("redirects", ())
            if _without_scheme(rule["target"]).partition("/")[0] in known
        ]
        self._moved_hosts = {source.partition("/")[0] for source, _ in self._moved}
        self._names = known | self._aliases.keys() | self._moved_hosts
        self._numbers = {host: number for number, host in enumerate(self._hosts)}
        if self.fault_rules:
            self.fault_rules.check()
        self.addressing.check()

    @property
    def host_count(self) -> int:
        return len(self._hosts)

    @cached_property
    def page_count(self) -> int:
        noted = [self._host_notes.get(host, {}).get("html") for host in self._hosts]
        return sum(noted) if all(isinstance(count, int) for count in noted) else sum(1 for _ in self.manifest())

    @cached_property
    def seeds(self) -> tuple[str, ...]:
        noted = [url for host in self._hosts for url in self._host_notes.get(host, {}).get("seeds", ())]
        return tuple(noted) or tuple(f"http://{host}/" for host in self._hosts)

    def host_names(self) -> Iterator[str]:
        return iter(self._hosts)

    def manifest(self) -> Iterator[str]:
        """One URL for each HTML file; whether links lead to it is not known."""
        for host in self._hosts:
            base = self.folder / host
            for directory, folders, names in os.walk(base):
                folders.sort()
                below = os.path.relpath(directory, base)
                for name in sorted(filter(_PAGE_NAME.search, names)):
                    path = name if below == "." else f"{below}/{name}"
                    yield f"http://{host}/{quote(os.fsencode(path))}"

    def arguments(self) -> list[str]:
        rules = [f"--fault={rule}" for rule in self.faults]
        return [str(self.folder.absolute()), f"--address-count={self.address_count}", *rules]

    @cached_property
    def fault_rules(self) -> Faults | None:
        return Faults(self.faults, SEED, len(self._hosts), self.host_number) if self.faults else None

    @cached_property
    def addressing(self) -> Addresses:
        return Addresses(SEED, self.address_count, self.fault_rules)

    def host_number(self, name: str) -> int | None:
        return self._numbers.get(name)

    def address_of(self, host: str) -> str:
        """The address of the server that answers for a host; KeyError for a host that this web does not have."""
        return self.addressing.of(self._numbers[host])

    def addresses(self) -> dict[str, str]:
        """The addresses of all hosts by their names, for a DNS server in a test."""
        return {host: self.addressing.of(number) for host, number in self._numbers.items()}

    def answer(self, host: str, target: str) -> Answer | None:
        if host not in self._names:
            return None
        if host in self._aliases:
            return redirect(f"http://{self._aliases[host]}{target}")
        path, _, query = target.partition("?")
        if host in self._moved_hosts and (moved_to := self._moved_to(host + path)):
            return redirect(moved_to + ("?" + query if query else ""))
        return self._file_answer(host, path, query) or message(404, f"There is no file for {path} on {host}.")

    def _moved_to(self, address: str) -> str | None:
        for source, target in self._moved:
            if address.startswith(source):
                return f"http://{target}{address[len(source) :]}"
        return None

    def _file_answer(self, host: str, path: str, query: str) -> Answer | None:
        inside = _inside_path(path)
        if inside is None:
            return None
        asked = os.path.join(self._root, os.fsencode(host)) + inside
        file = self._file_for(asked)
        if file is not None:
            directory = asked.rstrip(b"/")
            if not path.endswith("/") and file.startswith(directory + b"/"):
                return redirect(f"http://{host}{path}/" + ("?" + query if query else ""))
            return self._read(file)
        if not path.endswith("/") and os.path.isdir(asked) and self._is_inside(asked):
            return redirect(f"http://{host}{path}/" + ("?" + query if query else ""))
        return None

    def _file_for(self, asked: bytes) -> bytes | None:
        """The path of the file that answers, before symbolic links are followed."""
        bare = asked.rstrip(b"/")
        exact = () if asked.endswith(b"/") else (bare,)
        indexes = (bare + b"/" + name for name in INDEX_NAMES)
        added = (bare + suffix for suffix in ADDED_SUFFIXES)
        return next((path for path in (*exact, *indexes, *added) if _is_regular(path)), None)

    def _is_inside(self, path: bytes) -> bool:
        return os.path.realpath(path).startswith(self._root + b"/")

    def _read(self, path: bytes) -> Answer | None:
        real = os.path.realpath(path)
        if not real.startswith(self._root + b"/"):
            return None
        try:
            descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                return None
            if facts.st_size > LARGEST_FILE_BYTES:
                return message(404, f"This file is larger than {LARGEST_FILE_BYTES >> 20} MiB and is not served.")
            return Answer(200, file.read(), content_type(os.fsdecode(path)))


def content_type(name: str) -> str:
    """The type of a file by its name; language and charset suffixes (index.html.de) are looked through.

    >>> content_type("index.html.de"), content_type("data.tar.gz"), content_type("README")
    ('text/html', 'application/gzip', 'application/octet-stream')
    """
    if _PAGE_NAME.search(name):
        return "application/xhtml+xml" if ".xhtml" in name.lower() else "text/html"
    kind, packed = _TYPES.guess_type(name.replace("\\", "/").rpartition("/")[2])
    if packed:
        return "application/gzip" if packed == "gzip" else f"application/x-{packed}"
    return kind or "application/octet-stream"


def _inside_path(path: str) -> bytes | None:
    """The decoded path, below its host's folder for certain; None for tricks."""
    raw = path.encode("latin-1", "replace")
    if not raw.startswith(b"/") or _ENCODED_SLASH.search(raw):
        return None
    parts = unquote_to_bytes(raw).split(b"/")
    if any(part in (b".", b"..") or b"\0" in part for part in parts):
        return None
    kept = [part for part in parts if part]
    return b"/" + b"/".join(kept) + (b"/" if kept and not parts[-1] else b"")


def _is_regular(path: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _host_folders(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as found:
            for item in found:
                if item.name[0] not in "._" and item.name == item.name.lower() and item.is_dir():
                    yield item.name
    except OSError as problem:
        raise CannotServeError(
            f"The folder {folder} cannot be read ({problem.strerror}), so there is no web to serve. "
            "Name a folder that holds one folder for each host, or none for a generated web."
        ) from problem


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        notes = json.loads((folder / "_manifest.json").read_bytes())
    except OSError:
        return {}
    except ValueError as problem:
        raise CannotServeError(
            f"{folder}/_manifest.json is not JSON ({problem}), so its seeds and redirects are unknown. "
            "Make it again or delete it."
        ) from problem
    if not isinstance(notes, dict):
        raise CannotServeError(f"{folder}/_manifest.json is not a JSON object. Make it again or delete it.")
    return notes


def _without_scheme(url: str) -> str:
    return url.partition("://")[2]
