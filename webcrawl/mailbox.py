"""The folder `control/` of a run, in which commands for a running crawl and its answers are left.

    ID.json          a command that waits; ids sort by time
    ID.answer.json   what became of it; whoever gave the command takes it away
    log.jsonl        everything that was done, one line each

Files appear under a name that nobody looks at and are renamed, so nobody reads half of one. A command is taken away
only when everything it does is on disk; until then the next start finds it again.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from pathlib import Path
from typing import Any

FOLDER = "control"
LOG = "log.jsonl"
ANSWER = ".answer.json"
MOST_URLS = 100  # of a list of seeds in the log
STALE_SECONDS = 86_400.0  # nobody has come for an answer


class Mailbox:
    """Both sides of the folder: the command that posts and the crawl that answers."""

    def __init__(self, run: Path) -> None:
        self.path = run / FOLDER
        self.path.mkdir(mode=0o700, exist_ok=True)

    # ------------------------------------------------------------------------------------------------ who commands

    def post(self, facts: dict[str, Any]) -> str:
        """Leave a command; its id."""
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}"
        self._leave(f"{name}.json", facts, is_kept=True)
        return name

    def take_answer(self, name: str) -> dict[str, Any] | None:
        """The answer to a command, once; None: not yet."""
        path = self.path / f"{name}{ANSWER}"
        try:
            answer: dict[str, Any] = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        path.unlink(missing_ok=True)
        return answer

    def withdraw(self, name: str) -> None:
        """Take a command back that nobody has answered."""
        (self.path / f"{name}.json").unlink(missing_ok=True)

    # ------------------------------------------------------------------------------------------------ who is commanded

    def waiting(self) -> list[str]:
        """Ids of the commands that wait, oldest first. An empty folder costs 16 µs."""
        with os.scandir(self.path) as entries:
            names = [entry.name for entry in entries]
        return sorted(
            name.removesuffix(".json")
            for name in names
            if name.endswith(".json") and not name.endswith(ANSWER) and not name.startswith(".")
        )

    def size_bytes(self, name: str) -> int:
        """How long a command is."""
        return (self.path / f"{name}.json").stat().st_size

    def read(self, name: str) -> Any:
        """What a command says; ValueError if it is no JSON."""
        return json.loads((self.path / f"{name}.json").read_bytes())

    def answer(self, name: str, command: dict[str, Any], answer: dict[str, Any]) -> None:
        """A command was dealt with: say so in the log and to who gave it, then take it away."""
        urls = {"urls": command["urls"][:MOST_URLS]} if "urls" in command else {}
        line = {"at": time.time(), "id": name, **command, **urls, "answer": answer}
        with (self.path / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._leave(f"{name}{ANSWER}", answer)
        self.withdraw(name)

    def clear(self, now: float) -> None:
        """Take answers away that nobody has come for, and what was never finished."""
        for path in self.path.iterdir():
            is_ours = path.name.endswith(ANSWER) or path.name.startswith(".")
            if is_ours and path.stat().st_mtime < now - STALE_SECONDS:
                path.unlink(missing_ok=True)

    def _leave(self, name: str, facts: dict[str, Any], is_kept: bool = False) -> None:
        """Write a file at once; `is_kept`: it must survive a power cut."""
        draft = self.path / f".{name}"
        with draft.open("wb") as file:
            file.write(json.dumps(facts).encode())
            if is_kept:
                file.flush()
                os.fsync(file.fileno())
        draft.rename(self.path / name)
