"""The command line of the server, shared by `scrapy webserve` and `python -m webcrawl.simulator`.

Exit codes: 0 when stopped (Ctrl-C, SIGTERM), 2 when the web cannot be served; then one sentence on standard error says
why.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webcrawl.simulator.answers import CannotServeError, Web
from webcrawl.simulator.folder import FolderWeb
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.server import Server, listen

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

DEFAULT_PORT = 8000
SHOWN_SEEDS = 3
_SHAPE = {
    "pages": (int, "pages in all hosts together"),
    "hosts": (int, "number of hosts"),
    "seed": (int, "another seed, another web"),
    "links": (int, "links on a page, about"),
    "page_bytes": (int, "mean size of a page, about"),
    "file_ratio": (float, "PDF files, as a share of the pages"),
    "redirect_ratio": (float, "URLs that redirect, as a share of the pages"),
    "broken_ratio": (float, "links to nowhere, as a share of the pages"),
    "directive_ratio": (float, "pages with meta robots, X-Robots-Tag and the like, as a share of the pages"),
    "rel_ratio": (float, "links with rel nofollow, ugc or sponsored, as a share of the links"),
    "agent": (str, "the robot that X-Robots-Tag and meta elements name"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declares the options; the folder is the one positional argument and is declared by the caller."""
    web = parser.add_argument_group("the generated web (when no FOLDER is given)")
    for name, (kind, text) in _SHAPE.items():
        default = getattr(GeneratedWeb, name)
        metavar = "TOKEN" if kind is str else "N"
        web.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar=metavar, help=f"{text} (default {default})")
    web.add_argument(
        "--robots", action="append", metavar="RULE", help="kinds of robots.txt, such as crawl-delay:2@0.1; repeatable"
    )
    serving = parser.add_argument_group("serving")
    serving.add_argument(
        "--fault", action="append", dest="faults", metavar="RULE", default=[],
        help="hosts that fail, such as busy:503,retry=30,chance=0.1@0.5; repeatable",
    )  # fmt: skip
    serving.add_argument(
        "--address-count", type=int, default=1, metavar="N",
        help="over so many loopback addresses the hosts are spread (default %(default)s)",
    )  # fmt: skip
    serving.add_argument(
        "--port", type=int, default=DEFAULT_PORT, metavar="N", help="0 picks a free one (default %(default)s)"
    )
    serving.add_argument(
        "--latency", type=float, default=0.0, metavar="SECONDS", help="wait before each answer (default %(default)s)"
    )
    serving.add_argument("--log", type=Path, metavar="FILE", help="append an access log to this file")
    serving.add_argument(
        "--ready-file", type=Path, metavar="FILE", help="write address and seeds here, as JSON, once answering"
    )
    serving.add_argument("--json", action="store_true", help="print JSON lines instead of text")
    serving.add_argument("--until-eof", action="store_true", help="end when standard input is closed")


def chosen_web(folder: str | None, options: argparse.Namespace) -> Web:
    """The web that the command line asks for."""
    shape = {name: getattr(options, name) for name in (*_SHAPE, "robots") if getattr(options, name) is not None}
    if folder is None:
        shape["robots"] = tuple(shape.get("robots", ()))
        return GeneratedWeb(**shape, faults=tuple(options.faults), address_count=options.address_count)
    if shape:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in shape)
        raise CannotServeError(
            f"A folder was named ({folder}), but {names} shape a generated web, so one of the two would be ignored. "
            "Leave out the folder or these options."
        )
    return FolderWeb(Path(folder), options.faults, options.address_count)


def run(folder: str | None, options: argparse.Namespace) -> int:
    """Serves until stopped; returns the exit code."""
    try:
        _check_options(options)
        web = chosen_web(folder, options)
        with contextlib.ExitStack() as opened:
            listener = opened.enter_context(contextlib.closing(listen(options.port)))
            more = listen_more(web, listener.getsockname()[1], opened)
            _remove(options.ready_file)  # of a run that was killed
            server = Server(web, listener, options.log, options.latency, more)
            opened.enter_context(contextlib.closing(server))
            run_loop(_serve(server, options))
    except CannotServeError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def listen_more(web: Web, port: int, opened: contextlib.ExitStack) -> list[socket.socket]:
    """Sockets on the further addresses of a web; where nobody may listen, the port is only taken."""
    for address in web.addressing.closed:
        opened.enter_context(contextlib.closing(listen(port, address, is_open=False)))
    return [opened.enter_context(contextlib.closing(listen(port, address))) for address in web.addressing.listening[1:]]


def _check_options(options: argparse.Namespace) -> None:
    if not 0 <= options.latency < 3600:
        raise CannotServeError(
            f"A latency of {options.latency} seconds makes no sense for a web server. Choose 0 to 3600 with --latency."
        )


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine on uvloop where that is installed, else on asyncio's own loop."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        asyncio.run(work)
        return
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(work)


async def _serve(server: Server, options: argparse.Namespace) -> None:
    stopped = _stop_event(options.until_eof)
    _allow_many_connections()
    answering = await server.start()
    try:
        _announce(server, options)
        await stopped.wait()
    finally:
        for one in answering:
            one.close()  # uvloop does not end while a server listens
        _remove(options.ready_file)
    _say_goodbye(server, options)


def _stop_event(until_eof: bool) -> asyncio.Event:
    """Set by Ctrl-C, by SIGTERM and, if asked for, when whoever holds our standard input is gone."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)

    def read() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            stopped.set()

    if until_eof:
        loop.add_reader(0, read)
    return stopped


def _allow_many_connections() -> None:
    """A crawler may keep a connection for each host open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def facts(server: Server) -> dict[str, Any]:
    """What a program needs to know to crawl this web."""
    web = server.web
    return {
        "event": "ready", "url": server.url + "/", "proxy": server.url, "port": server.port, "pid": os.getpid(),
        "hosts": web.host_count, "pages": web.page_count, "seeds": list(web.seeds),
    }  # fmt: skip


def _announce(server: Server, options: argparse.Namespace) -> None:
    known = facts(server)
    if options.ready_file:
        draft = options.ready_file.with_name(options.ready_file.name + f".{os.getpid()}")
        try:
            draft.write_text(json.dumps(known) + "\n")
            draft.replace(options.ready_file)
        except OSError as problem:
            raise CannotServeError(
                f"The ready file {options.ready_file} cannot be written ({problem.strerror}), so nobody would learn "
                "that the server answers. Choose another file with --ready-file."
            ) from problem
    print(json.dumps(known) if options.json else _greeting(server), flush=True)


def _remove(file: Path | None) -> None:
    with contextlib.suppress(OSError):
        if file is not None:
            file.unlink()


def _greeting(server: Server) -> str:
    web = server.web
    seeds = [f"Seed: {url}" for url in web.seeds[:SHOWN_SEEDS]]
    if len(web.seeds) > SHOWN_SEEDS:
        seeds.append(f"All {len(web.seeds):,} seeds: {server.url}/seeds.txt")
    crawl = [f"  {line}" for line in server.how_to_crawl().splitlines()]
    return "\n".join(
        [
            f"A web of {web.host_count:,} hosts and {web.page_count:,} pages answers at {server.url}/",
            "Nothing is forwarded to the real network.",
            *seeds,
            "Crawl it from another terminal:",
            *crawl,
            "Ctrl-C ends it.",
        ]
    )


def _say_goodbye(server: Server, options: argparse.Namespace) -> None:
    count = server.request_count
    sentence = f"\n{count:,} request{'' if count == 1 else 's'} answered."
    text = json.dumps({"event": "ended", "requests": count}) if options.json else sentence
    with contextlib.suppress(OSError):  # whoever read our output may be gone
        print(text, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The program `python -m webcrawl.simulator`."""
    parser = argparse.ArgumentParser(
        prog="python -m webcrawl.simulator", description="Serve a web without the internet."
    )
    parser.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="holds one folder for each host; none: a generated web"
    )
    add_options(parser)
    options = parser.parse_args(arguments)
    return run(options.folder, options)
