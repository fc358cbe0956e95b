"""Output files belong to a run by what they are, not by how they are spelled; other people's bytes are never cut."""

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from webcrawl.testing import EmbeddedCrawl, Manners

NOW = 1_000_000.0


def write(crawl: EmbeddedCrawl, path: Path, data: bytes, overwrite: bool = False) -> None:
    feed = crawl.run.feed(str(path), path, "jsonlines", overwrite=overwrite)
    crawl.frontier.output(feed.number, data)
    crawl.commit(NOW)


def test_another_spelling_of_a_path_is_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    crawl = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)
    for path in (tmp_path / "feed.jsonl", Path("feed.jsonl"), tmp_path / "link" / ".." / tmp_path.name / "feed.jsonl"):
        write(crawl, path, b"line\n", overwrite=True)
    crawl.close(NOW)
    assert (tmp_path / "feed.jsonl").read_bytes() == b"line\n" * 3


def test_what_others_appended_after_a_clean_end_stays(tmp_path: Path) -> None:
    path = tmp_path / "shared.jsonl"
    for name in ("one", "two", "one"):
        crawl = EmbeddedCrawl(tmp_path / name, Manners(), NOW)
        write(crawl, path, f"{name}\n".encode())
        crawl.close(NOW)
    assert path.read_bytes() == b"one\ntwo\none\n"


def test_what_was_not_settled_at_a_kill_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    crawl = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)
    write(crawl, path, b"settled\n")
    crawl.kill()
    with path.open("ab") as file:
        file.write(b"torn")
    crawl = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)
    assert crawl.run.recovered.cut_bytes == 4
    assert path.read_bytes() == b"settled\n"
    crawl.close(NOW)


def test_a_directory_that_is_there_keeps_its_rights(tmp_path: Path) -> None:
    directory = tmp_path / "mine"
    directory.mkdir(mode=0o755)
    os.chmod(directory, 0o755)
    EmbeddedCrawl(directory, Manners(), NOW).close(NOW)
    assert directory.stat().st_mode & 0o777 == 0o755
    EmbeddedCrawl(tmp_path / "new", Manners(), NOW).close(NOW)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_read_ends_the_crawl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crawl = EmbeddedCrawl(tmp_path / "run", Manners(), NOW)

    def broken(pages: object) -> None:
        raise apsw.IOError("disk I/O error")

    monkeypatch.setattr(crawl.run.store, "urls", broken)
    crawl.frontier._ready.refill.start([1])
    crawl.frontier.wait_for_selection()
    assert "disk I/O error" in str(crawl.run.writer.failure)
    crawl.kill()
