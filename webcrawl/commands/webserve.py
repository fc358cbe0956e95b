"""`scrapy webserve`: a web without the internet, to crawl on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from webcrawl.simulator import program

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """Serves a generated web or a folder of sites on loopback, until Ctrl-C.  Runs no crawler."""

    requires_project = False
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_ENABLED": False}

    def syntax(self) -> str:
        return "[options] [FOLDER]"

    def short_desc(self) -> str:
        return "Serve a web without the internet, generated or from a folder"

    def long_desc(self) -> str:
        return (
            "Serve a web on 127.0.0.1: a generated one, or FOLDER with one folder for each host. Use the address as "
            "http_proxy and https_proxy of a crawl; nothing is forwarded to the real network."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        program.add_options(parser)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) > 1:
            raise UsageError("webserve serves one FOLDER at most.", print_help=False)
        self.exitcode = program.run(args[0] if args else None, opts)
