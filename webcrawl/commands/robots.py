"""`scrapy robots`: whether robots.txt lets a robot fetch a page, and which line says so."""

from __future__ import annotations

import http.client
import json
import sys
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from urllib.parse import urljoin

from scrapy.commands import ScrapyCommand

from webcrawl.core import robots
from webcrawl.core.identity import PRODUCT, product_token
from webcrawl.core.robots import Answer, Robots, Verdict

if TYPE_CHECKING:
    import argparse
    from email.message import Message

MAX_REDIRECTS = 5  # RFC 9309 §2.3.1.2
TIMEOUT_SECONDS = 30.0


class CannotAnswer(Exception):
    """The command cannot say anything: its message is for the user."""


class Rules(NamedTuple):
    """What was found, and where."""

    robots: Robots
    source: str  # the file's name, or the URL that was read in the end
    how: str  # what happened on the way, for people
    origin: str = ""  # which pages the file speaks for; empty for a file on disk: any


class Command(ScrapyCommand):
    """Reads robots.txt from a file or from its host, with the rules that the crawler itself applies."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] FILE_OR_HOST [URL ...]"

    def short_desc(self) -> str:
        return "Say whether robots.txt allows URLs, and by which line"

    def long_desc(self) -> str:
        return (
            "Read robots.txt from a file, or fetch it from a host (over https, unless a URL says http) and say for "
            "each URL or path whether it may be fetched, by which rule and line. Without URLs: the rules that apply. "
            "Exit code: 0 if all are allowed, 1 if some are not, 2 if there is no answer."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--agent",
            default=PRODUCT,
            metavar="NAME",
            help=f"product token or whole User-Agent of the robot (default: {PRODUCT})",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            self.exitcode = _answer(args, opts.agent, opts.json)
        except CannotAnswer as problem:
            print(problem, file=sys.stderr)
            self.exitcode = 2


def _answer(args: list[str], agent: str, as_json: bool) -> int:
    unknown = next((word for word in args if word.startswith("--")), None)
    if unknown:
        raise CannotAnswer(f"{unknown} is no option of scrapy robots. See scrapy robots --help.")
    if not args:
        raise CannotAnswer("Say whose robots.txt: scrapy robots FILE_OR_HOST [URL ...].")
    if not product_token(agent):
        raise CannotAnswer(f"--agent {agent!r} has no product token. Give a name such as {PRODUCT}.")
    rules = find_rules(args[0], agent)
    verdicts = [(url, rules.robots.verdict(_checked(url, rules))) for url in args[1:]]
    if as_json:
        print(json.dumps(_facts(rules, agent, verdicts), ensure_ascii=False))
    else:
        print("\n".join(map(_harmless, _report(rules, agent, verdicts))))
    return 0 if all(verdict.allowed for _, verdict in verdicts) else 1


def _checked(url: str, rules: Rules) -> str:
    """The URL, if the file that was read speaks for it; a path alone is one of the same host."""
    if url.startswith("/"):
        return url
    try:
        origin = robots.origin_of(url)
    except ValueError as error:
        raise CannotAnswer(f"{error} A path alone must begin with a slash.") from error
    if rules.origin and origin != rules.origin:
        raise CannotAnswer(
            f"{url} belongs to {origin}, but this robots.txt speaks for {rules.origin} only. Ask that one."
        )
    return url


# --- for people and for programs


def _report(rules: Rules, agent: str, verdicts: list[tuple[str, Verdict]]) -> list[str]:
    lines = [f"{rules.source} ({rules.how}) for {product_token(agent)}: {_whose(rules.robots)}"]
    lines += [f"{'allowed' if verdict.allowed else 'disallowed':10}  {url}{_by(verdict)}" for url, verdict in verdicts]
    if not verdicts:
        lines += [f"line {rule.line:5}  {rule.rule}" for rule in rules.robots.rules() if rule.line]
    if rules.robots.crawl_delay is not None:
        lines.append(f"crawl-delay {rules.robots.crawl_delay:g} s")
    lines += [f"sitemap {sitemap}" for sitemap in rules.robots.sitemaps]
    return lines + list(rules.robots.signals)


def _harmless(line: str) -> str:
    """A line without the control characters by which a file could draw on a terminal."""
    return "".join([character if character.isprintable() else ascii(character)[1:-1] for character in line])


def _whose(found: Robots) -> str:
    if found is robots.DISALLOW_ALL:
        return "nothing may be fetched"
    return f"the rules of {found.group}" if found.group else "no rules, everything may be fetched"


def _by(verdict: Verdict) -> str:
    if not verdict.line:
        return f"  {verdict.rule}" if verdict.rule else ""
    return f"  by line {verdict.line}: {verdict.rule}"


def _facts(rules: Rules, agent: str, verdicts: list[tuple[str, Verdict]]) -> dict[str, Any]:
    return {
        "source": rules.source,
        "how": rules.how,
        "agent": product_token(agent),
        "group": rules.robots.group,
        "crawl_delay": rules.robots.crawl_delay,
        "sitemaps": rules.robots.sitemaps,
        "signals": rules.robots.signals,
        "rules": [{"line": rule.line, "rule": rule.rule} for rule in rules.robots.rules() if rule.line],
        "urls": [{"url": url, **verdict._asdict()} for url, verdict in verdicts],
    }


# --- where the rules come from


def find_rules(source: str, agent: str) -> Rules:
    """The rules of a file on disk, if there is one of this name, else of a host or of a URL's host."""
    if not source.startswith(("http://", "https://")) and Path(source).exists():
        return _read(source, agent)
    address = source if "://" in source else f"https://{source}"
    try:
        origin = robots.origin_of(address)
    except ValueError as error:
        raise CannotAnswer(f"{source!r} is neither a file nor a host: {error}") from error
    return _fetch(origin, agent)


def _read(name: str, agent: str) -> Rules:
    try:
        with Path(name).open("rb") as file:
            body = file.read(robots.MAX_BYTES * 2 + 2)
    except OSError as error:
        raise CannotAnswer(f"{name} cannot be read: {error.strerror}. Give a robots.txt or a host.") from error
    return Rules(robots.parse(body, agent), name, f"{len(body):,} bytes")


def _fetch(origin: str, agent: str) -> Rules:
    """The rules of an origin, by way of at most five redirects, which may leave it (RFC 9309 §2.3.1)."""
    url = f"{origin}/robots.txt"
    for _ in range(MAX_REDIRECTS + 1):
        status, headers, body = _get(url, agent)
        answer = robots.judge_answer(status)
        if answer is Answer.RULES:
            return Rules(robots.parse(body, agent), url, f"{status}, {len(body):,} bytes", origin)
        if answer is Answer.ALLOW_ALL:
            return Rules(robots.ALLOW_ALL, url, f"{status}: no file", origin)
        if answer is Answer.UNREACHABLE:
            return Rules(robots.DISALLOW_ALL, url, f"{status}: not for now", origin)
        target = urljoin(url, headers.get("Location") or "")
        if not target.startswith(("http://", "https://")) or not headers.get("Location"):
            return Rules(robots.ALLOW_ALL, url, f"{status} leads nowhere: no file", origin)
        url = target
    return Rules(robots.ALLOW_ALL, url, f"more than {MAX_REDIRECTS} redirects: no file", origin)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def _get(url: str, agent: str) -> tuple[int, Message, bytes]:
    """One exchange, whatever its status; http_proxy and https_proxy are heeded by urllib."""
    request = urllib.request.Request(url, headers={"User-Agent": agent, "Accept-Encoding": "gzip"})  # noqa: S310
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        try:
            response = opener.open(request, timeout=TIMEOUT_SECONDS)
        except urllib.error.HTTPError as error:  # any status but 2xx
            response = error
        with response:
            return (
                response.status,
                response.headers,
                _decoded(response.headers, response.read(robots.MAX_BYTES * 2 + 2)),
            )
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise CannotAnswer(
            f"{url} does not answer ({reason}). As long as it does not, RFC 9309 lets a robot fetch nothing there. If "
            "only the scheme is wrong, write the address with http:// or https://."
        ) from error


def _decoded(headers: Message, body: bytes) -> bytes:
    if headers.get("Content-Encoding", "").strip().lower() not in ("gzip", "x-gzip"):
        return body
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(body, robots.MAX_BYTES * 2 + 2)
    except zlib.error:
        return body
