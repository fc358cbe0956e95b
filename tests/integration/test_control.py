"""`scrapy control` against real crawls: what the server sees after a command, also after kill -9."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.crawling import (
    PATIENCE_SECONDS,
    ROOT,
    Asked,
    Reply,
    Site,
    crawl_command,
    environment,
    finish,
    kill,
    page,
    serving,
    start,
)


def control(run: Path, *words: str, **options: str) -> tuple[int, dict[str, Any]]:
    """(exit code, answer) of `scrapy control WORDS --json`."""
    done = run_control(
        run, *words, "--json", *(part for name, value in options.items() for part in (f"--{name}", value))
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": done.stderr}


def run_control(run: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scrapy", "control", *words, "-s", f"WEBCRAWL_DIR={run}"]
    if "--wait" not in words:
        command += ["--wait", str(PATIENCE_SECONDS)]  # the machine may be busy
    return subprocess.run(
        command, cwd=ROOT, env=environment({}), capture_output=True, text=True, timeout=120, check=False
    )


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def endless(asked: Asked) -> Reply:
    """Hosts a.test and b.test that never end: every page leads to two more of its host."""
    number = int(asked.target.strip("/") or "1")
    return page(f"page {number}", f"/{2 * number}", f"/{2 * number + 1}", "http://a.test/1", "http://b.test/1")


def asked_of(site: Site, host: str, since: int = 0) -> list[str]:
    return [one.url for one in list(site.asked)[since:] if one.host == host]


SEEDS = "http://a.test/1 http://b.test/1"


@dataclass
class Crawls:
    """Crawls of one run on one site; the last one is ended with the test."""

    site: Site
    run: Path
    settings: dict[str, Any] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None

    def start(self, seeds: str = SEEDS, scope: str = "all") -> None:
        known = {"LOG_FILE": self.run.parent / "crawl.log", **self.settings}
        self.process = start(crawl_command(seeds, self.run, scope=scope, **known), self.site.environment)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            kill(self.process)

    def log(self) -> str:
        path = self.run.parent / "crawl.log"
        return path.read_text() if path.exists() else ""

    def log_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / "control" / "log.jsonl").read_text().splitlines()]


@pytest.fixture
def crawls(tmp_path: Path) -> Iterator[Crawls]:
    with serving(endless) as site:
        crawls = Crawls(site, tmp_path / "run")
        yield crawls
        crawls.kill()


def test_a_blocked_host_gets_no_further_request_until_it_is_unblocked(crawls: Crawls):
    site = crawls.site
    crawls.start()
    eventually(lambda: len(asked_of(site, "a.test")) > 5, "the crawl does not begin")
    code, answer = control(crawls.run, "block", "a.test")
    assert (code, answer["applied"], answer["warnings"]) == (0, True, [])
    assert answer["pages"] > 0
    since = len(site.asked)
    site.wait_for(since + 60)
    assert asked_of(site, "a.test", since) == []
    code, answer = control(crawls.run, "status")
    assert code == 0
    assert answer["rules"]["blocks"] == ["a.test"]
    assert answer["reasons"]["blocked"] > 0
    assert control(crawls.run, "unblock", "a.test")[0] == 0
    eventually(lambda: bool(asked_of(site, "a.test", since)), "nothing came back")
    assert [line["command"] for line in crawls.log_lines()] == ["block", "status", "unblock"]
    assert not list((crawls.run / "control").glob("*.json")), "commands and answers were taken away"


def test_a_paused_crawl_asks_for_nothing_and_goes_on_when_it_is_resumed(crawls: Crawls):
    site = crawls.site
    crawls.start()
    site.wait_for(20)
    assert control(crawls.run, "pause")[0] == 0
    assert control(crawls.run, "status")[1]["text"] == "The crawl is paused."
    since = len(site.asked)
    assert control(crawls.run, "status")[1]["text"] == "The crawl is paused."
    assert len(site.asked) == since
    crawls.kill()
    crawls.start()
    eventually(lambda: "The crawl is paused by `scrapy control`" in crawls.log(), "the restarted crawl says nothing")
    assert control(crawls.run, "status")[1]["rules"]["paused"]
    assert len(site.asked) == since
    assert control(crawls.run, "resume")[0] == 0
    site.wait_for(since + 20)


def test_kill_right_after_a_command_and_a_command_for_a_crawl_that_does_not_run(crawls: Crawls):
    site = crawls.site
    crawls.start()
    eventually(lambda: len(asked_of(site, "a.test")) > 5, "the crawl does not begin")
    code, _ = control(crawls.run, "block", "a.test")
    crawls.kill()
    assert code == 0
    code, answer = control(crawls.run, "delay", "b.test", "1", wait="0")
    assert code == 1
    assert answer["text"] == (
        f"No crawl answers, so none is running in {crawls.run}. The command will be applied at its next start."
    )
    done = run_control(crawls.run, "list")
    assert done.returncode == 0
    assert "block    a.test" in done.stdout
    assert "waiting  delay b.test 1" in done.stdout
    since = len(site.asked)
    crawls.start()
    eventually(lambda: len(asked_of(site, "b.test", since)) >= 2, "the crawl does not go on")
    assert asked_of(site, "a.test", since) == []
    code, answer = control(crawls.run, "status")
    assert answer["rules"]["delays"] == {"b.test": 1.0}
    assert [line["command"] for line in crawls.log_lines()] == ["block", "delay", "status"]


@dataclass
class Slow:
    """One page keeps the crawl open until it is let go; others are looked up."""

    pages: dict[str, Callable[[Asked], Reply]]
    go: threading.Event = field(default_factory=threading.Event)

    def __call__(self, asked: Asked) -> Reply:
        if asked.target == "/slow":
            self.go.wait(PATIENCE_SECONDS)
            return page("slow")
        found = self.pages.get(asked.url)
        return found(asked) if found else Reply(b"", 404)


def test_seeds_widen_the_scope_of_a_crawl_and_failures_are_put_back(tmp_path: Path):
    slow = Slow(
        {
            "http://a.test/1": lambda asked: page("one", "/sometimes"),
            "http://a.test/sometimes": lambda asked: page("now") if asked.count > 1 else Reply(b"", 404),
            "http://c.test/": lambda asked: page("three", "/more"),
            "http://c.test/more": lambda asked: page("more"),
        }
    )
    with serving(slow) as site:
        crawls = Crawls(site, tmp_path / "run")
        crawls.start("http://a.test/1 http://a.test/slow", scope="hosts")
        try:
            eventually(lambda: "http://a.test/sometimes" in site.urls, "the crawl does not begin")
            file = tmp_path / "more.txt"
            file.write_text("# more\nhttp://c.test/\nhttp://a.test/1\n")
            code, answer = control(crawls.run, "seeds", str(file))
            assert (code, answer["text"]) == (0, "2 seeds: 1 new, 1 known already.")
            eventually(lambda: "http://c.test/more" in site.urls, "the scope was not widened")
            code, answer = control(crawls.run, "retry", "not_found")
            assert (code, answer["pages"]) == (0, 1)
            eventually(lambda: site.urls.count("http://a.test/sometimes") == 2, "the page was not put back")
            slow.go.set()
            assert crawls.process is not None
            assert finish(crawls.process)[0] == 0
        finally:
            slow.go.set()
            crawls.kill()
        summary = json.loads((crawls.run / "summary.json").read_text())
        assert (summary["reason"], summary["pages"]["gone"]) == ("finished", 0)


def test_commands_that_wait_are_applied_to_a_finished_run_at_its_next_start(tmp_path: Path):
    answers = Slow({"http://a.test/": lambda asked: page("now") if asked.count > 1 else Reply(b"", 404)})
    with serving(answers) as site:
        crawls = Crawls(site, tmp_path / "run")
        for asked, pages in ((1, 0), (2, 2)):
            crawls.start("http://a.test/", scope="hosts")
            assert crawls.process is not None
            assert finish(crawls.process)[0] == 0
            assert site.urls.count("http://a.test/") == asked
            summary = json.loads((crawls.run / "summary.json").read_text())
            assert (summary["reason"], summary["run"]["pages"]) == ("finished", pages)
            if asked == 1:
                answers.pages["http://d.test/"] = lambda asked: page("d")
                assert control(crawls.run, "retry", "not_found", wait="0")[0] == 1
                assert control(crawls.run, "seeds", "http://d.test/", wait="0")[0] == 1


def test_a_changed_opt_out_list_counts_at_once_and_a_broken_one_changes_nothing(crawls: Crawls):
    site, file = crawls.site, crawls.run.parent / "optout.txt"
    file.write_text("# nobody\n")
    crawls.settings = {"WEBCRAWL_OPTOUT_FILE": file}
    crawls.start()
    eventually(lambda: len(asked_of(site, "a.test")) > 5, "the crawl does not begin")
    file.write_text("a.test\n")
    eventually(lambda: "The opt-out list was read again" in crawls.log(), "the list was not noticed")
    since = len(site.asked)
    file.write_text("a b c\n")
    eventually(lambda: "cannot be understood" in crawls.log(), "the broken list was not noticed")
    site.wait_for(since + 40)
    assert asked_of(site, "a.test", since + 1) == []  # one request may have been on its way
    file.write_text("# nobody\n")
    eventually(lambda: bool(asked_of(site, "a.test", since + 1)), "nobody came back")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("block",), "block takes 1 word and was given 0. Write: scrapy control block TARGET."),
        (("boost", "a.test", "5"), "'5' does not say how scores are to change."),
        (("seeds", "nowhere.txt"), "The seeds nowhere.txt cannot be read: No such file or directory."),
        (("pause",), "{run} holds no run. Name the directory of a crawl with -s WEBCRAWL_DIR=DIR."),
    ],
)
def test_bad_input_is_told_in_one_sentence(tmp_path: Path, words: tuple[str, ...], sentence: str):
    done = run_control(tmp_path / "run", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(sentence.format(run=tmp_path / "run"))
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_a_negative_amount_is_no_option(tmp_path: Path):
    done = run_control(tmp_path / "run", "boost", "a.test", "-5")
    assert "holds no run" in done.stderr
