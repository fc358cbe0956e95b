"""Progress and summary of real crawls: a panel on a terminal, plain text elsewhere, the facts in a file."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import RunningServer, serve

ROOT = Path(__file__).parents[2]
WEB = GeneratedWeb(pages=60, hosts=4)
ROWS, COLUMNS = 50, 500


@pytest.fixture(scope="module")
def server():
    with serve(WEB) as running:
        yield running


def command(server: RunningServer, directory: Path, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "scrapy", "crawl", "web", "-a", f"seeds={server.seeds[0]}", "-a", "scope=all"),
        *("-s", f"WEBCRAWL_DIR={directory}", "-s", "WEBCRAWL_POLITENESS=off"),
        *("-s", "WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8,.example", *more),
    ]


def environment(server: RunningServer) -> dict[str, str]:
    return {**os.environ, **server.proxy_environment, "TERM": "xterm-256color"}


class Terminal:
    """As much of a terminal as the panel needs: what is on the screen after all that was written to it."""

    CONTROL = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0

    def write(self, text: str) -> None:
        at = 0
        while at < len(text):
            control = self.CONTROL.match(text, at)
            if control is None:
                self.letter(text[at])
                at += 1
                continue
            self.control(control[1], control[2])
            at = control.end()

    def letter(self, letter: str) -> None:
        if letter == "\r":
            self.column = 0
        elif letter == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + letter + line[self.column + 1 :]
            self.column += 1

    def control(self, argument: str, name: str) -> None:
        if name == "A":
            self.row -= int(argument or 1)
        elif name == "K":
            assert argument == "2"
            self.lines[self.row] = ""
        else:
            assert name in "mhl", f"this terminal does not know {argument}{name}"


def on_a_terminal(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and everything written to a terminal by a process that has one as standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=theirs) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # Linux says so when the other side has gone
            pass
    os.close(ours)
    return process.returncode, b"".join(parts).decode()


def test_a_panel_on_a_terminal_with_the_log_above_it(server, tmp_path):
    run = command(server, tmp_path / "run", "-O", str(tmp_path / "pages.jsonl"), "-s", "WEBCRAWL_LIMIT_PAGES=40")
    plain = {name: value for name, value in environment(server).items() if name not in ("COLUMNS", "LINES")}
    code, written = on_a_terminal(run, plain)
    assert code == 0
    assert f"webcrawl, {tmp_path}/run" in written
    for words in ("stored, ", " pages/s now", " queued, ", " under way", " active, ", " waiting", "errors"):
        assert words in written, words
    assert "\x1b[?1049" not in written
    terminal = Terminal()
    terminal.write(written)
    screen = [line.rstrip() for line in terminal.lines]
    log = [line.partition("] INFO: ")[2] for line in screen if "] INFO: " in line]
    assert log[-3:] == [
        "Closing the crawl: 40 pages are stored",
        "Closing spider (page_limit)",
        "Spider closed (page_limit)",
    ]
    assert not [line for line in screen if " queued, " in line], "the panel makes room for the summary"
    text = "\n".join(screen)
    assert "The crawl has reached its number of pages (WEBCRAWL_LIMIT_PAGES)." in text
    assert re.search(r"\n  this session +40 pages, ", text)
    assert re.search(rf"\n  feed +{tmp_path}/pages\.jsonl \(", text)
    assert f"\n  {Path(sys.executable).name} -m scrapy crawl web -a seeds={server.seeds[0]} -a scope=all " in text
    assert text.count("The crawl has reached") == 1, "it is not in the log as well"


def test_plain_text_elsewhere_and_the_facts_in_a_file(server, tmp_path):
    """WEBCRAWL_PROGRESS=panel changes nothing where there is no terminal, FORCE_COLOR neither."""
    more = ("-O", str(tmp_path / "pages.jsonl"), "-s", "WEBCRAWL_PROGRESS=panel", "-s", "WEBCRAWL_EXCLUDE=/private/")
    run = command(server, tmp_path / "run", *more)
    done = subprocess.run(
        run, cwd=ROOT, env={**environment(server), "FORCE_COLOR": "1"}, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"\x1b" not in done.stderr
    text = done.stderr.decode()
    facts = json.loads((tmp_path / "run" / "summary.json").read_text())
    lines = (tmp_path / "pages.jsonl").read_bytes().splitlines()
    assert (facts["reason"], facts["failed"], facts["complete"], facts["resume"]) == ("finished", False, True, None)
    aliases = facts["pages_by_reason"]["stored"]["alias"]
    assert facts["session"]["pages"] == facts["run"]["pages"] == len(lines)
    assert facts["pages"]["stored"] == len(lines) + aliases
    assert list(facts["links_not_taken"]) == ["excluded"]
    assert facts["run"]["hosts"] == 4
    assert facts["feeds"] == [{"uri": str(tmp_path / "pages.jsonl"), "bytes": len(b"\n".join(lines)) + 1}]
    assert re.search(rf"\n  this session +{facts['session']['pages']} pages, ", text)
    assert re.search(rf"\n    excluded +{facts['links_not_taken']['excluded']}: its URL matches a pattern", text)
    assert "Nothing is left to do" in text
    assert "Dumping Scrapy stats" not in text
