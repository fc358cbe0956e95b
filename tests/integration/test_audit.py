"""`scrapy audit` as people run it: a process, its output and its exit code."""

from __future__ import annotations

import argparse
import gzip
import http.client
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from scrapy.settings import Settings

from tests.unit.audit.logs import combined_line, own_line
from webcrawl.commands import audit
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import serve

ROOT = Path(__file__).parents[2]
POLITE = own_line(0, "/robots.txt") + own_line(2) + own_line(4, "/other")
DISALLOW = "User-agent: *\nDisallow: /private/\nCrawl-delay: 3\n"

# One violation of each kind, each on a host of its own; the log begins with robots.txt of all.
HOSTS = ("gap", "overlap", "robots", "retry", "delay", "one", "two")
PLANTED = "".join(
    own_line(at / 100, "/robots.txt", seconds=0.01, host=f"{host}.example") for at, host in enumerate(HOSTS)
)
PLANTED += "".join(
    [
        own_line(10, host="blind.example"),
        own_line(20, host="gap.example"),
        own_line(20.5, host="gap.example"),
        own_line(30, host="overlap.example", seconds=5),
        own_line(33, host="overlap.example", seconds=0.5),
        own_line(40, "/private/x", host="robots.example"),
        own_line(50, status=503, host="retry.example", retry="30"),
        own_line(60, host="retry.example"),
        own_line(70, host="delay.example"),
        own_line(72, host="delay.example"),
        own_line(80, host="one.example"),
        own_line(80.2, host="two.example"),
    ]
)


def run(*arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "audit", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False, timeout=100)


def test_a_polite_log_passes(tmp_path):
    log = tmp_path / "access.log"
    log.write_text(POLITE)
    done = run(log)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "Polite: 3 requests to 1 host and no violation."
    assert "No robots files were given" in done.stdout
    assert "\x1b" not in done.stdout


def test_each_planted_violation_is_found_with_its_line(tmp_path):
    log, robots = tmp_path / "access.log", tmp_path / "robots"
    log.write_text(PLANTED)
    robots.mkdir()
    for name in ("robots.example.txt", "https_delay.example_443.txt"):
        (robots / name).write_text(DISALLOW)
    options = ["--robots", robots, "--address", "one.example=192.0.2.1", "--address", "two.example=192.0.2.1"]
    options += ["--address-delay", "0.5"]
    done = run(log, *options, "--json")
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    first = len(HOSTS)
    assert {(one["kind"], one["line"]) for one in found["found"]} == {
        ("blind", first + 1),
        ("gap", first + 3),
        ("overlap", first + 5),
        ("gap", first + 5),
        ("robots", first + 6),
        ("retry-after", first + 8),
        ("crawl-delay", first + 10),
        ("address", first + 12),
    } | {("address", 7)}
    assert {one["file"] for one in found["found"]} == {str(log)}
    text = run(log, *options, "--show", "1")
    assert text.returncode == 1
    assert f"{log}:{first + 6}  robots.example/private/x  forbidden by Disallow: /private/" in text.stdout
    assert text.stdout.splitlines()[-1].startswith("Not polite: 19 requests to 8 hosts and 9 violations (2 gap, ")


def test_a_server_s_log_with_other_visitors_from_standard_input_and_compressed(tmp_path):
    other = combined_line(3, agent="Mozilla/5.0") * 5
    ours = combined_line(0, "/robots.txt") + other + combined_line(5)
    (tmp_path / "one.gz").write_bytes(gzip.compress(ours.encode()))
    done = run(
        tmp_path / "one.gz", "-", "--agent", "ExampleBot/1.0", "--host", "a.example", text=combined_line(2) + other
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Polite: 3 requests to 1 host" in done.stdout
    assert "10 lines of other user agents" in done.stdout
    assert "Times are logged to 1 s" in done.stdout


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        (POLITE + "nonsense\n", (), "-:4 is no line of an access log"),
        (combined_line(0), (), "-:1 does not say which host was asked"),
        (POLITE, ("--agent", "OtherBot"), "No line is of the agent 'OtherBot' (3 lines of others)"),
        ("", (), "No request was found in 0 lines"),
        (POLITE, ("--robots", "no/such/folder"), "The folder no/such/folder of robots files cannot be read"),
        (POLITE, ("--delay", "soon"), "'soon' is no number of seconds"),
        (POLITE, ("--visit", "a.example"), "'a.example' is not of the form HOST=N"),
    ],
)
def test_bad_input_is_told_in_one_sentence(text, options, sentence):
    done = run("-", *options, text=text)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_no_log_is_a_usage_error():
    done = run()
    assert done.returncode == 2
    assert "audit needs at least one access log." in done.stdout + done.stderr


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(conflict_handler="resolve")
    command = audit.Command()
    command.settings = Settings()
    command.add_options(parser)
    return parser.parse_args(arguments)


def test_listed_hosts_may_have_visits_and_connections(tmp_path):
    log = tmp_path / "access.log"
    log.write_text(own_line(-9, "/robots.txt") + "".join(own_line(at / 5) for at in range(3)))
    assert not audit.judge_logs([str(log)], options()).is_polite
    assert audit.judge_logs([str(log)], options("--visit", "a.example=3")).is_polite
    assert not audit.judge_logs([str(log)], options("--visit", "b.example=3")).is_polite
    assert audit.judge_logs([str(log)], options("--connections", "*=4")).is_polite


def test_on_a_terminal_the_same_is_said_in_colour(tmp_path):
    log = tmp_path / "access.log"
    log.write_text(own_line(0, "/\x1b[31mx[bold]"))
    console = Console(file=io.StringIO(), force_terminal=True, width=200, color_system="standard", legacy_windows=False)
    audit.show(audit.judge_logs([str(log)], options()), console)
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "a.example/?[31mx[bold]" in shown
    assert "Not polite: 1 request to 1 host and 1 violation (1 blind)." in shown


def test_a_real_log_of_the_simulated_web(tmp_path):
    log, robots = tmp_path / "access.log", tmp_path / "robots"
    robots.mkdir()
    with serve(GeneratedWeb(pages=20, hosts=2), log=log) as server:
        host = server.seeds[0].split("/")[2]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        for path in ("/robots.txt", "/", "/private/"):
            connection.request("GET", path, headers={"Host": host, "User-Agent": "ExampleBot/1.0"})
            body = connection.getresponse().read()
            if path == "/robots.txt":
                (robots / host).write_bytes(body)
        connection.close()
    found = json.loads(run(log, "--robots", robots, "--delay", "0", "--json").stdout)
    assert found["requests"] == 3
    assert [(one["kind"], one["path"]) for one in found["found"]] == [("robots", "/private/")]
    assert len(found["notes"]) == 1
