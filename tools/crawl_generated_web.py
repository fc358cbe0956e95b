"""What `make crawl` does without SEEDS: serve a generated web on loopback and crawl it, politeness off.

    python tools/crawl_generated_web.py [--dir DIR] [-- more arguments for scrapy crawl]

The hosts end in .example, a name that never exists on the real web (RFC 2606), and every request goes through the
server as a proxy, which forwards nothing: this crawl cannot leave the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DIRECTORY = Path("data/runs/generated")
SCRAPY = [sys.executable, "-m", "scrapy"]


@contextmanager
def served() -> Iterator[dict[str, Any]]:
    """A generated web; what it says of itself when it answers (proxy, seeds, hosts, pages). It ends with this program.

    It runs in a session of its own, so that Ctrl-C reaches the crawl and not the web that the crawl is closing on.
    """
    command = [*SCRAPY, "webserve", "--port", "0", "--json", "--until-eof"]
    server = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with server:
        assert server.stdout is not None
        line = server.stdout.readline()
        if not line:
            sys.exit("The generated web did not start; the reason is above.")
        yield json.loads(line)
        server.terminate()


def crawl(web: dict[str, Any], directory: Path, more: list[str]) -> int:
    command = [
        *(*SCRAPY, "crawl", "web", "-a", "seeds=" + ",".join(web["seeds"]), "-a", "scope=all"),
        *("-s", f"WEBCRAWL_DIR={directory}", "-s", "WEBCRAWL_POLITENESS=off"),
        *("-s", "WEBCRAWL_SAFETY_ALLOW=127.0.0.0/8,.example", "-O", str(directory / "pages.jsonl"), *more),
    ]
    environment = {name: value for name, value in os.environ.items() if name.lower() != "no_proxy"}
    typed = "make crawl" if directory == DIRECTORY else f"make crawl DIR={shlex.quote(str(directory))}"
    environment.update(http_proxy=web["proxy"], https_proxy=web["proxy"], WEBCRAWL_COMMAND=typed)
    crawler = subprocess.Popen(command, cwd=ROOT, env=environment)
    while True:
        try:
            return crawler.wait()
        except KeyboardInterrupt:  # the crawl heard it too and is closing in order
            continue


def main() -> int:
    parser = argparse.ArgumentParser(description="Crawl a generated web on this machine.")
    parser.add_argument("--dir", type=Path, default=DIRECTORY, help="run directory (%(default)s)")
    parser.add_argument("more", nargs="*", help="more arguments for scrapy crawl, after --")
    options = parser.parse_args()
    with served() as web:
        print(
            f"Crawling {web['pages']:,} generated pages on {web['hosts']:,} hosts; nothing leaves this machine.",
            flush=True,
        )
        return crawl(web, options.dir, options.more)


if __name__ == "__main__":
    sys.exit(main())
