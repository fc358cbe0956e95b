"""A web served by a child process, for tests, benchmarks and `make crawl`.

    with serve(GeneratedWeb(pages=500, hosts=10)) as server:
        crawl(server.seeds, proxy=server.proxy_url)

The child says when it answers (no waiting by sleeping) and ends with the `with` block, or when this process dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from webcrawl.simulator.answers import CannotServeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webcrawl.simulator.answers import Web

_IMPORT_ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 5


@dataclass(frozen=True)
class RunningServer:
    """Where the web is: `proxy_url` for http_proxy and https_proxy; the port also answers directly, by Host field."""

    proxy_url: str
    port: int
    seeds: tuple[str, ...]
    host_count: int
    page_count: int
    pid: int

    @property
    def proxy_environment(self) -> dict[str, str]:
        """Environment variables that send a crawler to this web."""
        return {"http_proxy": self.proxy_url, "https_proxy": self.proxy_url, "no_proxy": ""}


@contextlib.contextmanager
def serve(
    web: Web, port: int = 0, log: str | os.PathLike[str] | None = None, latency_seconds: float = 0.0
) -> Iterator[RunningServer]:
    """Serves a web while the block runs."""
    command = [sys.executable, "-m", "webcrawl.simulator", f"--port={port}", f"--latency={latency_seconds}"]
    command += ["--json", "--until-eof", *([f"--log={os.fspath(log)}"] if log else []), *web.arguments()]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield _await_ready(child)
    finally:
        _stop(child)


def _environment() -> dict[str, str]:
    paths = [str(_IMPORT_ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _await_ready(child: subprocess.Popen[str]) -> RunningServer:
    assert child.stdout and child.stderr
    line = child.stdout.readline()
    if not line:
        raise CannotServeError(child.stderr.read().strip() or "The server ended before it answered.")
    facts = json.loads(line)
    return RunningServer(
        facts["proxy"], facts["port"], tuple(facts["seeds"]), facts["hosts"], facts["pages"], facts["pid"]
    )


def _stop(child: subprocess.Popen[str]) -> None:
    """Closing its standard input ends the child; it is killed if it does not listen."""
    try:
        child.communicate(timeout=_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
