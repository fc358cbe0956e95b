"""What a user can get wrong: one sentence that names the remedy, an exit code that is not 0, and no data made worse."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from webcrawl.backends.embedded import EmbeddedRun, Plugs, Rules
from webcrawl.clock import Clock
from webcrawl.core.errors import SeedError, SettingError
from webcrawl.core.filters import Admission
from webcrawl.core.politeness import HostPolicy
from webcrawl.core.strategies import strategy
from webcrawl.simulator.generated import GeneratedWeb
from webcrawl.simulator.serving import RunningServer, serve
from webcrawl.webspider import WebSpider

ROOT = Path(__file__).parents[2]
WEB = GeneratedWeb(pages=120, hosts=4)
OWN = "WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8,.example"
PROCESSES = 2  # at a time


@dataclass(frozen=True)
class Told:
    """How a crawl ended."""

    code: int
    text: str

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.text.splitlines() if "] ERROR: " in line or "] CRITICAL: " in line]

    def sentence(self) -> str:
        """The one that was said; nothing else was, and certainly no traceback."""
        assert "Traceback" not in self.text
        assert len(self.complaints) == 1, self.text
        return self.complaints[0].partition("] ERROR: ")[2]


def crawl(server: RunningServer | None, *arguments: str, path: str = "") -> Told:
    environment = {**os.environ, **(server.proxy_environment if server else {}), "PYTHONPATH": path}
    command = [sys.executable, "-m", "scrapy", "crawl", "web", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return Told(done.returncode, done.stderr)


def own(server: RunningServer, directory: Path, *more: str, seed: str = "", scope: str = "hosts") -> list[str]:
    """Arguments of a crawl of the simulated web."""
    about = ["-a", f"seeds={seed or server.seeds[0]}", "-a", f"scope={scope}", "-s", f"WEBCRAWL_DIR={directory}"]
    return [*about, "-s", "WEBCRAWL_POLITENESS=off", "-s", OWN, *more]


@pytest.fixture(scope="module")
def server():
    with serve(WEB) as running:
        yield running


@pytest.fixture(scope="module")
def base(server, tmp_path_factory):
    """The directory of a finished run of the first host."""
    directory = tmp_path_factory.mktemp("base") / "run"
    told = crawl(server, *own(server, directory))
    assert (told.code, told.complaints) == (0, [])
    return directory


@pytest.fixture
def run(base, tmp_path):
    """A copy of it, to be spoilt."""
    return Path(shutil.copytree(base, tmp_path / "run"))


def bytes_of(directory: Path) -> dict[str, bytes]:
    """What the run is made of; the lock and SQLite's index into its log say nothing about it."""
    names = ("frontier.sqlite", "claims.bin", "summary.json")
    return {name: (directory / name).read_bytes() for name in names if (directory / name).exists()}


# ------------------------------------------------------------------------------------ seeds and arguments


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "SEEDS holds no URL, so there is nothing to crawl. Give at least one, e.g. https://example.org/"),
        (b"# nothing\r\n\r\n", "SEEDS holds no URL, so there is nothing to crawl."),
        (b"\x7fELF\0\1\2", "SEEDS is not a list of URLs: it holds binary data. Give a text file with one URL a line."),
        (b"http://caf\xe9.example/", "SEEDS is not UTF-8 text: "),
        (
            b"http://a.example/\nwww.example.org\n",
            "SEEDS has a line that cannot be crawled: line 2: www.example.org. Only http and https addresses can be. ",
        ),
        (
            b"ftp://a/\nb\nc\nd\n",
            "SEEDS has 4 lines that cannot be crawled: line 1: ftp://a/; line 2: b; line 3: c and 1",
        ),
    ],
    ids=["empty", "comments only", "binary", "not UTF-8", "bad line", "bad lines"],
)
def test_seeds_that_cannot_be_used(tmp_path, content, sentence):
    seeds = tmp_path / "seeds"
    seeds.write_bytes(content)
    with pytest.raises(SeedError) as refusal:
        WebSpider(seeds=str(seeds))
    assert str(refusal.value).replace(str(seeds), "SEEDS").startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"add": "maybe"}, "-a add=maybe is neither true nor false. Use -a add=true, or leave it out."),
        (
            {"skope": "all"},
            "-a skope=... is no argument of the spider `web`. It would be ignored. Did you mean scope? ",
        ),
        ({"x": "1"}, "-a x=... is no argument of the spider `web`. It would be ignored. There are: seeds, scope, add."),
    ],
)
def test_arguments_that_cannot_be_used(arguments, sentence):
    with pytest.raises(SettingError) as refusal:
        WebSpider(seeds="http://a.example/", **arguments)
    assert str(refusal.value).startswith(sentence)


def test_arguments_of_tools_are_none_of_our_business():
    assert WebSpider(seeds="http://a.example/", _job="6487ec79").purpose.seeds == ("http://a.example/",)


# ------------------------------------------------------------------------------------ starts that are refused


SEED = ("-a", "seeds=http://harbour-1.example/")
STARTS: dict[str, tuple[tuple[str, ...], str]] = {  # FOLDER stands for a folder that exists
    "missing seeds file": (
        ("-a", "seeds=no-such-file.txt"),
        "The seeds no-such-file.txt cannot be read: No such file or directory. Give a file with one URL a line, or ",
    ),
    "unknown argument": (
        ("-a", "sedes=x"),
        "-a sedes=... is no argument of the spider `web`. It would be ignored. Did you mean seeds? There are: ",
    ),
    "unknown setting": (
        (*SEED, "-s", "WEBCRAWL_POLITENES_DELAY=3"),
        "WEBCRAWL_POLITENES_DELAY is no setting of webcrawl. A mistyped setting would be ignored and ",
    ),
    "out of range": (
        (*SEED, "-s", "WEBCRAWL_POLITENESS_DELAY_SECONDS=0.2"),
        "WEBCRAWL_POLITENESS_DELAY_SECONDS=0.2 is below 1.0. At that pace most sites will see an attack and block us.",
    ),
    "unknown strategy": (
        (*SEED, "-s", OWN, "-s", "WEBCRAWL_STRATEGY=breadth"),
        "WEBCRAWL_STRATEGY=breadth is not an ordering. Use one of breadth_first, ",
    ),
    "directory is a file": (
        (*SEED, "-s", OWN, "-s", "WEBCRAWL_DIR=FOLDER/a-file"),
        "The run directory cannot be used: [Errno 17] File exists: 'FOLDER/a-file'. Choose another one with ",
    ),
    "feed is a directory": (
        (*SEED, "-s", OWN, "-O", "FOLDER:jsonlines"),
        "A feed cannot be written: [Errno 21] Is a directory: 'FOLDER'",
    ),
    "public host without a contact": (
        SEED,
        "1 of 1 seeds lead to public hosts, e.g. harbour-1.example, and WEBCRAWL_CONTACT is not set. A webmaster who ",
    ),
    "contact that is none": (
        (*SEED, "-s", "WEBCRAWL_CONTACT=ask me"),
        "WEBCRAWL_CONTACT=ask me cannot be used. It is sent with every request, for the owners of the sites. Use a ",
    ),
    "agent that is none": (
        (*SEED, "-s", "WEBCRAWL_AGENT=my bot"),
        "WEBCRAWL_AGENT=my bot cannot be used. Webmasters address a crawler by this name in robots.txt ",
    ),
    "host on the opt-out list": (
        (*SEED, "-s", OWN, "-s", "WEBCRAWL_OPTOUT_FILE=FOLDER/optout.txt"),
        "1 of 1 seeds are refused, e.g. http://harbour-1.example/: its host or URL is on the opt-out list (WEBCRAWL_",
    ),
    "opt-out list that is missing": (
        (*SEED, "-s", OWN, "-s", "WEBCRAWL_OPTOUT_FILE=FOLDER/none.txt"),
        "The opt-out list WEBCRAWL_OPTOUT_FILE=FOLDER/none.txt cannot be read: No such file or directory. Hosts that ",
    ),
    "opt-out list with a bad line": (
        (*SEED, "-s", OWN, "-s", "WEBCRAWL_OPTOUT_FILE=FOLDER/bad-optout.txt"),
        "The opt-out list FOLDER/bad-optout.txt has a line that cannot be understood: line 2: leave us alone. Somebody",
    ),
}


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """All of them, some at a time: a process takes two seconds to say one sentence."""
    folder = tmp_path_factory.mktemp("starts")
    (folder / "a-file").touch()
    (folder / "optout.txt").write_text(".harbour-1.example  # wrote to us\n")
    (folder / "bad-optout.txt").write_text("a.example\nleave us alone\n")

    def start(name: str) -> Told:
        arguments = (argument.replace("FOLDER", str(folder)) for argument in STARTS[name][0])
        told = crawl(None, "-s", f"WEBCRAWL_DIR={folder / name}", *arguments)
        return Told(told.code, told.text.replace(str(folder), "FOLDER"))

    with ThreadPoolExecutor(PROCESSES) as pool:
        return dict(zip(STARTS, pool.map(start, STARTS), strict=True))


@pytest.mark.parametrize("name", STARTS)
def test_a_start_is_refused_in_one_sentence(starts, name):
    told = starts[name]
    assert told.code == 1
    assert told.sentence().startswith(STARTS[name][1])


def test_the_remedy_is_in_the_sentence(starts):
    assert "Did you mean WEBCRAWL_POLITENESS_DELAY_SECONDS? " in starts["unknown setting"].sentence()
    assert "Use 1.0 or more; for a host you own, list it in WEBCRAWL_SAFETY" in starts["out of range"].sentence()


def test_a_host_that_is_on_the_opt_out_list_is_not_asked(starts):
    assert "Nothing was fetched: every seed was refused." in starts["host on the opt-out list"].text


def test_who_has_not_said_who_they_are_is_told_how_to(starts):
    told = starts["public host without a contact"]
    assert "-s WEBCRAWL_CONTACT=https://example.org/our-crawler or -s WEBCRAWL_CONTACT=" in told.sentence()
    assert "for a host you own, list it in WEBCRAWL_SAFETY_ALLOW." in told.sentence()
    assert "New run in" not in told.text


# ------------------------------------------------------------------------------------- runs that are refused


def execute(run: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(run / "frontier.sqlite")
    with connection:
        connection.execute(statement, values)
    connection.close()


def refused(server: RunningServer, run: Path, *more: str, **changes: str) -> str:
    """The sentence; and that not a byte of the run has changed."""
    before = bytes_of(run)
    told = crawl(server, *own(server, run, *more, **changes))
    assert told.code == 1
    assert bytes_of(run) == before
    return told.sentence()


def test_a_run_of_a_newer_version(server, run):
    execute(run, "UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    sentence = refused(server, run)
    assert sentence.startswith(f"{run}/frontier.sqlite was written by a newer webcrawl (its schema is 99, ours is ")
    assert sentence.endswith("Upgrade webcrawl, or choose another directory with -s WEBCRAWL_DIR=DIR.")


def test_a_run_that_another_process_works_on(server, run):
    with (run / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4242")
        lock.flush()
        sentence = refused(server, run)
    assert sentence == (
        f"{run} is in use by another process (pid 4242). Two crawls in one run would fetch pages twice. Wait for it to "
        "end, stop it, or give this crawl its own directory with -s WEBCRAWL_DIR=DIR."
    )


def test_a_damaged_store(server, run):
    store = run / "frontier.sqlite"
    with store.open("r+b") as file:
        file.seek(8192)
        file.write(b"\x55" * (store.stat().st_size - 8192))
    sentence = refused(server, run)
    assert sentence.startswith(f"{store} is damaged: ")
    assert "Going on could make it worse, so nothing was written. Restore it from a copy, " in sentence


def test_other_seeds_are_refused_or_added(server, run):
    other = WEB.origin(2) + "/"
    sentence = refused(server, run, seed=other)
    assert sentence == (
        f"{run} holds a run with other seeds. Mixing two crawls would make both useless. Give this one its own "
        "directory with -s WEBCRAWL_DIR=DIR, or add the seeds to that run with -a add=true."
    )
    before = json.loads((run / "summary.json").read_text())
    told = crawl(server, *own(server, run, "-a", "add=true", seed=other))
    after = json.loads((run / "summary.json").read_text())
    assert (told.code, told.complaints) == (0, [])
    assert after["run"]["sessions"] == 2
    assert after["run"]["pages"] == before["run"]["pages"] + after["session"]["pages"] > before["run"]["pages"]


# ------------------------------------------------------------------------------------ while the crawl runs


FULL_DISK = """
import errno
from webcrawl.backends.embedded.writer import FeedFile

class FullDisk:
    '''An add-on that lets a disk fill up in the middle of a line.'''

    def update_settings(self, settings):
        append, self.left = FeedFile.append, 300_000

        def limited(feed, data):
            append(feed, data[: self.left])
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")

        FeedFile.append = limited
"""


def urls_in(feed: Path) -> list[str]:
    return [json.loads(line)["url"] for line in feed.read_bytes().splitlines()]


def test_a_full_disk_ends_the_crawl_and_not_the_data(server, tmp_path):
    (tmp_path / "fulldisk.py").write_text(FULL_DISK)
    run, feed = tmp_path / "run", tmp_path / "pages.jsonl"
    arguments = own(server, run, "-O", str(feed), "-s", "WEBCRAWL_COMMIT_PAGES=5", scope="all")
    told = crawl(server, *arguments, "-s", 'ADDONS={"fulldisk.FullDisk": 1}', path=str(tmp_path))
    assert told.code == 1
    assert told.sentence() == (
        f"Closing the crawl: The disk that holds {run} is full. Pages fetched since the last commit are not settled "
        "and will be fetched again. Free some space and start the same command: it resumes."
    )
    facts = json.loads((run / "summary.json").read_text())
    assert (facts["reason"], facts["failed"], facts["complete"]) == ("store_failed", True, False)
    settled = urls_in(feed)
    assert 0 < len(settled) < facts["session"]["pages"]

    told = crawl(server, *arguments)
    assert (told.code, told.complaints) == (0, [])
    everything = urls_in(feed)
    assert everything[: len(settled)] == settled
    assert len(everything) == len(set(everything))
    assert set(WEB.manifest()) <= set(everything)


# ------------------------------------------------------------------------------------------------- the clock


def test_a_clock_that_is_set_moves_no_pause(monkeypatch):
    clock = Clock()
    before, real = clock.now(), time.time
    monkeypatch.setattr(time, "time", lambda: real() - 86_400)
    assert before <= clock.now() < before + 3600
    assert clock.drift() == pytest.approx(-86_400, abs=1)


def test_a_clock_set_back_between_two_sessions_lets_no_host_wait_for_years(run):
    now = time.time()
    execute(run, "UPDATE hosts SET next_at = ?", now + 10 * 365 * 86_400)
    opened = EmbeddedRun(run)
    opened.start(Plugs(Rules(), strategy("breadth_first"), Admission([]), HostPolicy(15.0)), now)
    hosts = opened.frontier.table.hosts
    assert hosts.next_at[1 : hosts.count + 1].max() == now + 15.0
    opened.close("finished", now)
