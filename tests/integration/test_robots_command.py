"""`scrapy robots` as a user runs it: on files, and on a host on loopback that answers in every way."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from scrapy.cmdline import execute
from scrapy.settings import Settings

ROOT = Path(__file__).parents[2]
RULES = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2.5\n\nSitemap: http://a.cl/s.xml\n"


class Server(ThreadingHTTPServer):
    """A host on loopback."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Site)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}


class Site(BaseHTTPRequestHandler):
    """Answers with what the test has put into the server."""

    server: Server

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["User-Agent"]))
        status, headers, body = self.server.answers[self.path.removeprefix(self.server.origin)]
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ask(capsys, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    def asked(*words):
        with pytest.raises(SystemExit) as ended:
            execute(["scrapy", "robots", *words], Settings({"COMMANDS_MODULE": "webcrawl.commands"}))
        return ended.value.code, *capsys.readouterr()

    return asked


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "robots.txt"
    path.write_bytes(RULES)
    return str(path)


def test_as_a_program(file):
    command = [sys.executable, "-m", "scrapy", "robots", file, "/private/x", "http://a.cl/"]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "webcrawl.settings"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        f"{file} (79 bytes) for webcrawl: the rules of *",
        "disallowed  /private/x  by line 2: Disallow: /private/",
        "allowed     http://a.cl/",
        "crawl-delay 2.5 s",
        "sitemap http://a.cl/s.xml",
    ]


def test_a_file(ask, file):
    code, out, _ = ask(file, "/x")
    assert (code, out.splitlines()[1]) == (0, "allowed     /x")
    code, out, _ = ask(file)
    assert (code, out.splitlines()[1]) == (0, "line     2  Disallow: /private/")


def test_json(ask, file):
    code, out, _ = ask(file, "--json", "--agent", "FooBot/1.0", "/private/x")
    assert code == 1
    assert json.loads(out) == {
        "source": file,
        "how": "79 bytes",
        "agent": "FooBot",
        "group": "*",
        "crawl_delay": 2.5,
        "sitemaps": ["http://a.cl/s.xml"],
        "signals": [],
        "rules": [{"line": 2, "rule": "Disallow: /private/"}],
        "urls": [{"url": "/private/x", "allowed": False, "rule": "Disallow: /private/", "line": 2}],
    }


def test_a_file_cannot_draw_on_the_terminal(ask, tmp_path):
    (tmp_path / "r").write_bytes(b"User-agent: *\nDisallow: /\x1b[2J*\n")
    code, out, _ = ask(str(tmp_path / "r"))
    assert (code, out.splitlines()[1]) == (0, "line     2  Disallow: /\\x1b[2J*")


def test_a_host(ask, site):
    site.answers["/robots.txt"] = (200, {}, RULES)
    code, out, _ = ask(f"{site.origin}/some/page", f"{site.origin}/private/x", "--agent", "FooBot/1.0")
    assert code == 1
    assert out.splitlines()[0] == f"{site.origin}/robots.txt (200, 79 bytes) for FooBot: the rules of *"
    assert site.asked == [("/robots.txt", "FooBot/1.0")]


def test_a_packed_file(ask, site):
    site.answers["/robots.txt"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(RULES))
    assert ask(site.origin, "/private/x")[0] == 1


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, 0, "404: no file) for webcrawl: no rules, everything may be fetched"),
        (403, 0, "403: no file) for webcrawl: no rules, everything may be fetched"),
        (302, 0, "302 leads nowhere: no file) for webcrawl: no rules, everything may be fetched"),
        (429, 1, "429: not for now) for webcrawl: nothing may be fetched"),
        (503, 1, "503: not for now) for webcrawl: nothing may be fetched"),
    ],
)
def test_statuses(ask, site, status, code, words):
    site.answers["/robots.txt"] = (status, {}, b"User-agent: *\nDisallow: /x\n")
    found, out, _ = ask(site.origin, "/x")
    assert found == code
    assert words in out


def test_redirects_are_followed_five_times(ask, site):
    site.answers["/robots.txt"] = (301, {"Location": "/1"}, b"")
    for hop in range(1, 5):
        site.answers[f"/{hop}"] = (302, {"Location": f"{site.origin}/{hop + 1}"}, b"")
    site.answers["/5"] = (200, {}, RULES)
    assert ask(site.origin, "/private/x")[0] == 1
    site.answers["/5"] = (307, {"Location": "/5"}, b"")
    code, out, _ = ask(site.origin, "/private/x")
    assert code == 0
    assert "more than 5 redirects: no file" in out
    assert len(site.asked) == 12


def test_a_proxy_is_heeded(ask, site, monkeypatch):
    monkeypatch.setenv("http_proxy", site.origin)
    monkeypatch.setenv("no_proxy", "")
    site.answers["http://harbour.example/robots.txt"] = (200, {}, RULES)
    assert ask("http://harbour.example", "/private/x")[0] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Say whose robots.txt"),
        (["--jsno"], "--jsno is no option"),
        (["no such file"], "is neither a file nor a host"),
        (["."], "cannot be read"),
        (["http://127.0.0.1:1"], "does not answer"),
        ([__file__, "x"], "A path alone must begin with a slash"),
        ([__file__, "--agent", ""], "has no product token"),
    ],
)
def test_bad_input_is_one_sentence_on_stderr(ask, words, sentence):
    code, out, err = ask(*words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_a_file_speaks_for_its_own_origin(ask, site):
    site.answers["/robots.txt"] = (200, {}, RULES)
    code, _, err = ask(site.origin, "http://elsewhere.example/")
    assert code == 2
    assert "speaks for http://127.0.0.1" in err
