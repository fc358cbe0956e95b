"""The folder web: which file answers, and that nothing outside the folder does."""

from __future__ import annotations

import json
import os

import pytest

from webcrawl.simulator.answers import CannotServeError
from webcrawl.simulator.folder import FolderWeb, content_type


@pytest.fixture
def folder(tmp_path):
    files = {
        "a.example/index.html": b"home",
        "a.example/docs/index.html": b"docs",
        "a.example/docs/page.html": b"page\r\n\xff",
        "a.example/named/guide.html.en": b"guide",
        "a.example/named.html": b"named",
        "a.example/bare/file.txt": b"text",
        "a.example/sp ace/%41.html": b"odd",
        "a.example/img.png": b"png",
        "b.example/de/index.html.de": b"deutsch",
        "b.example/index.htm": b"b",
        "_debs/x.html": b"no host",
        ".hidden/x.html": b"no host",
    }
    for name, body in files.items():
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    (tmp_path / "secret.html").write_bytes(b"secret")
    return tmp_path / "web"


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("a.example/", b"home"),
        ("a.example/index.html?any=query", b"home"),
        ("a.example/docs/", b"docs"),
        ("a.example//docs//page.html", b"page\r\n\xff"),
        ("a.example/docs/page", b"page\r\n\xff"),
        ("a.example/named/guide", b"guide"),
        ("a.example/named/guide.html", b"guide"),
        ("a.example/named", b"named"),
        ("a.example/sp%20ace/%2541.html", b"odd"),
        ("b.example/", b"b"),
        ("b.example/de/index.html.de", b"deutsch"),
    ],
)
def test_which_file_answers(folder, url, body):
    host, slash, path = url.partition("/")
    answer = FolderWeb(folder).answer(host, slash + path)
    assert answer is not None
    assert (answer.status, answer.body) == (200, body)


def test_a_directory_without_the_last_slash_is_redirected(folder):
    web = FolderWeb(folder)
    for path, location in (("/docs?x=1", "http://a.example/docs/?x=1"), ("/bare", "http://a.example/bare/")):
        answer = web.answer("a.example", path)
        assert answer is not None
        assert (answer.status, answer.location) == (301, location)
    listing = web.answer("a.example", "/bare/")
    assert listing is not None and listing.status == 404


@pytest.mark.parametrize(
    "path",
    ["/../../secret.html", "/..%2f..%2fsecret.html", "/%2e%2e/%2e%2e/secret.html", "/docs/../index.html",
     "/./index.html", "/docs%2Fpage.html", "/docs%5cpage.html", "/index.html%00", "/%00", "/out.html", "/outside",
     "/outside/secret.html", "/fifo", "docs/", "", "*", "/" + "x" * 5000, "/loop/loop", "/\N{SNOWMAN}"],
)  # fmt: skip
def test_path_tricks_are_refused(folder, path):
    site = folder / "a.example"
    (site / "out.html").symlink_to(folder.parent / "secret.html")
    (site / "outside").symlink_to(folder.parent, target_is_directory=True)
    (site / "loop").symlink_to("loop")
    os.mkfifo(site / "fifo")
    answer = FolderWeb(folder).answer("a.example", path)
    assert answer is not None and answer.status == 404


def test_symbolic_links_inside_the_folder_work(folder):
    (folder / "b.example" / "same.html").symlink_to(folder / "a.example" / "index.html")
    answer = FolderWeb(folder).answer("b.example", "/same.html")
    assert answer is not None and answer.body == b"home"


@pytest.mark.parametrize("host", ["", "..", ".", "_debs", ".hidden", "c.example", "a.example/docs"])
def test_other_names_are_no_hosts(folder, host):
    assert FolderWeb(folder).answer(host, "/x.html") is None


def test_manifest_counts_and_seeds_come_from_the_files(folder):
    web = FolderWeb(folder)
    assert list(web.host_names()) == ["a.example", "b.example"]
    assert "http://a.example/sp%20ace/%2541.html" in set(web.manifest())
    assert web.page_count == len(list(web.manifest())) == 8
    assert web.seeds == ("http://a.example/", "http://b.example/")
    for url in web.manifest():
        host, slash, path = url.removeprefix("http://").partition("/")
        answer = web.answer(host, slash + path)
        assert answer is not None and answer.status == 200


def test_the_manifest_file_names_seeds_redirects_and_aliases(folder):
    notes = {
        "hosts": {"a.example": {"seeds": ["http://a.example/docs/"], "html": 6}, "b.example": {"seeds": [], "html": 2}},
        "redirects": [
            {"source": "http://old.example/d/", "target": "http://a.example/docs/"},
            {"source": "http://a.example/gone/", "target": "http://absent.example/"},
        ],
        "host_aliases": {"www.a.example": "a.example", "www.absent.example": "absent.example"},
    }
    (folder / "_manifest.json").write_text(json.dumps(notes))
    web = FolderWeb(folder)
    assert web.seeds == ("http://a.example/docs/",)
    assert web.page_count == 8
    expected = {
        ("www.a.example", "/docs/?x"): "http://a.example/docs/?x",
        ("old.example", "/d/page.html?x"): "http://a.example/docs/page.html?x",
    }
    for (host, target), location in expected.items():
        answer = web.answer(host, target)
        assert answer is not None and answer.location == location
    elsewhere, not_moved = web.answer("old.example", "/e"), web.answer("a.example", "/gone/x")
    assert elsewhere is not None and elsewhere.status == 404
    assert not_moved is not None and not_moved.status == 404
    assert web.answer("www.absent.example", "/") is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [("x.html", "text/html"), ("x.HTM", "text/html"), ("index.html.pt-br", "text/html"),
     ("x.xhtml", "application/xhtml+xml"), ("a.png", "image/png"), ("a.pdf", "application/pdf"), ("a.css", "text/css"),
     ("a.html.gz", "application/gzip"), ("README", "application/octet-stream")],
)  # fmt: skip
def test_content_types(name, kind):
    assert content_type(name) == kind


def test_large_files_are_not_read(folder, monkeypatch):
    monkeypatch.setattr("webcrawl.simulator.folder.LARGEST_FILE_BYTES", 3)
    answer = FolderWeb(folder).answer("a.example", "/index.html")
    assert answer is not None and answer.status == 404


def test_folders_that_are_no_web_are_refused_in_one_sentence(tmp_path):
    missing, empty, bad = tmp_path / "missing", tmp_path / "empty", tmp_path / "bad"
    empty.mkdir()
    (bad / "a.example").mkdir(parents=True)
    (bad / "_manifest.json").write_text("{")
    for folder, start in (
        (missing, f"The folder {missing} cannot be read (No such file or directory), so there is no web to serve."),
        (empty, f"The folder {empty} holds no hosts, so there is no web to serve."),
        (bad, f"{bad}/_manifest.json is not JSON"),
    ):
        with pytest.raises(CannotServeError) as refused:
            FolderWeb(folder)
        assert str(refused.value).startswith(start)
