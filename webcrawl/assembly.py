"""From settings to one wired crawl: the only file that picks a backend.

Everything a crawl is made of is decided here: the run directory, what it is about, the rules a URL must pass, the
ordering, the pauses. Adapters get the result and never read a setting of ours themselves.
"""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import apsw

from webcrawl.backends.embedded import EmbeddedFrontier, EmbeddedRun, Plugs, Rules
from webcrawl.backends.embedded.store import explain
from webcrawl.core import config
from webcrawl.core.errors import RunError, StoreError
from webcrawl.core.filters import Admission, Rule
from webcrawl.core.filters.patterns import ExcludePatterns, IncludePatterns, LengthLimit, compiled
from webcrawl.core.filters.safety import AllowedPeers
from webcrawl.core.filters.scope import scope_rules
from webcrawl.core.politeness import HostPolicy, RetryPolicy
from webcrawl.core.strategies import names as strategy_names
from webcrawl.core.strategies import strategy


@dataclass(frozen=True, slots=True)
class Choices:
    """Every setting of ours, loaded and checked."""

    run: config.Run
    safety: config.Safety
    politeness: config.Politeness
    frontier: config.Frontier
    retry: config.Retry
    limits: config.Limits


@dataclass(frozen=True, slots=True)
class Purpose:
    """What a run is about; the same purpose resumes it."""

    spider: str
    seeds: tuple[str, ...] = ()
    scope: str = "all"
    adds: bool = False  # -a add=true: more seeds for an existing run


@dataclass(slots=True)
class Crawl:
    """One wired crawl."""

    run: EmbeddedRun
    choices: Choices
    retry: RetryPolicy
    admission: Admission
    peers: AllowedPeers
    is_resumed: bool

    @property
    def frontier(self) -> EmbeddedFrontier:
        """What may be fetched next."""
        return self.run.frontier


def load_choices(settings: Any, names: Iterable[str]) -> Choices:
    """Load our settings from a settings object; unknown names with our prefix are refused."""
    strategy_names()
    config.check_names(names)
    return Choices(
        config.load(config.Run, settings),
        config.load(config.Safety, settings),
        config.load(config.Politeness, settings),
        config.load(config.Frontier, settings),
        config.load(config.Retry, settings),
        config.load(config.Limits, settings),
    )


def assemble(
    choices: Choices,
    purpose: Purpose,
    root: Path,
    now: float,
    on_ready: Callable[[], None],
    on_failure: Callable[[StoreError], None],
) -> Crawl:
    """Open the run and make its frontier; the seeds are not offered yet."""
    directory = Path(choices.run.directory) if choices.run.directory else root / "data" / "runs" / purpose.spider
    run = EmbeddedRun(directory.absolute())
    try:
        is_resumed = _check_purpose(run, purpose)
        peers = AllowedPeers(choices.safety.allow, _proxy_for)
        admission = Admission(_url_rules(choices, purpose, run, peers))
        plugs = Plugs(
            rules=_rules(choices),
            scorer=strategy(choices.frontier.strategy),
            admission=admission,
            policy=_host_policy(choices.politeness),
            sync=choices.run.sync,
            on_ready=on_ready,
            on_failure=on_failure,
        )
        run.start(plugs, now)
    except BaseException as error:
        run.abandon()
        if isinstance(error, apsw.Error):
            raise explain(run.store.path, error) from error
        raise
    retry = RetryPolicy(choices.retry.times, choices.retry.delay_seconds)
    return Crawl(run, choices, retry, admission, peers, is_resumed)


def _rules(choices: Choices) -> Rules:
    limits, frontier = choices.limits, choices.frontier
    return Rules(
        batch_pages=frontier.batch_pages,
        pages_per_host_in_batch=frontier.batch_pages_per_host,
        urls_per_host=limits.urls_per_host,
        pages_per_host=limits.pages_per_host,
        depth=limits.depth,
        commit_pages=choices.run.commit_pages,
        random_seed=frontier.random_seed,
    )


def _host_policy(politeness: config.Politeness) -> HostPolicy:
    if politeness.is_on:
        return HostPolicy(politeness.delay_seconds)
    return HostPolicy(0.0, politeness.off_connections)


def _url_rules(choices: Choices, purpose: Purpose, run: EmbeddedRun, peers: AllowedPeers) -> list[Rule]:
    limits = choices.limits
    rules: list[Rule] = [peers]
    rules += scope_rules(purpose.scope, [*_known_seeds(run), *purpose.seeds])
    if limits.url_length:
        rules.append(LengthLimit(limits.url_length))
    if limits.exclude:
        rules.append(ExcludePatterns(compiled(limits.exclude)))
    if limits.include:
        rules.append(IncludePatterns(compiled(limits.include)))
    return rules


def _proxy_for(scheme: str, host: str) -> str | None:
    """The host of the environment's proxy for a URL, as Scrapy's HttpProxyMiddleware chooses it; None: no proxy."""
    url = urllib.request.getproxies().get(scheme)
    if not url or urllib.request.proxy_bypass(host):
        return None
    return urlsplit(url if "://" in url else f"http://{url}").hostname


# ------------------------------------------------------------------------------------------------ what a run is about


def _check_purpose(run: EmbeddedRun, purpose: Purpose) -> bool:
    """Whether the run exists already; a run that is about something else is refused.

    A run without pages has not begun (a typing error in the scope, seeds that were refused) and may be about anything.
    """
    found = run.store.meta("purpose") if run.store.last_page() else None
    wanted = {"spider": purpose.spider, "seeds": _digest(purpose.seeds), "scope": purpose.scope}
    if found is None:
        _note_purpose(run, wanted, purpose.seeds)
        return False
    known = json.loads(found)
    if known == wanted:
        return True
    if purpose.adds and known["spider"] == purpose.spider:
        _note_purpose(run, wanted, [*_known_seeds(run), *purpose.seeds])
        return True
    differing = " and ".join(name for name in ("spider", "seeds", "scope") if known.get(name) != wanted[name])
    raise RunError(
        f"{run.directory} holds a run with other {differing}.",
        "Mixing two crawls would make both useless.",
        "Give this one its own directory with -s WEBCRAWL_DIR=DIR, or add the seeds to that run with -a add=true.",
    )


def _note_purpose(run: EmbeddedRun, wanted: dict[str, str], seeds: Iterable[str]) -> None:
    run.store.set_meta(purpose=json.dumps(wanted), seeds=json.dumps(list(dict.fromkeys(seeds))))


def _known_seeds(run: EmbeddedRun) -> list[str]:
    seeds: list[str] = json.loads(run.store.meta("seeds") or "[]")
    return seeds


def _digest(seeds: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(sorted(seeds)).encode()).hexdigest()
