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

from webcrawl.backends.embedded import EmbeddedFrontier, EmbeddedRun, Plugs, RobotsPolicy, Rules, Wishes, read_rules
from webcrawl.backends.embedded.store import FILE_NAME, explain
from webcrawl.core import config, controls
from webcrawl.core.backoff import BackoffPolicy
from webcrawl.core.errors import RunError, SettingError, StoreError
from webcrawl.core.filters import Admission, Rule
from webcrawl.core.filters.optout import CurrentOptOut, OptOut, parse_optout
from webcrawl.core.filters.patterns import ExcludePatterns, IncludePatterns, LengthLimit, compiled
from webcrawl.core.filters.safety import AllowedPeers
from webcrawl.core.filters.scope import scope_rules
from webcrawl.core.names import Addresses, Dns
from webcrawl.core.politeness import HostPolicy, RetryPolicy, hours, pages_in_visit
from webcrawl.core.reasons import Reason
from webcrawl.core.strategies import names as strategy_names
from webcrawl.core.strategies import strategy
from webcrawl.core.turns import Sharing, group_rule
from webcrawl.core.urls import host_of, origin_of


@dataclass(frozen=True, slots=True)
class Choices:
    """Every setting of ours, loaded and checked."""

    run: config.Run
    safety: config.Safety
    politeness: config.Politeness
    backoff: config.Backoff
    robots: config.Robots
    directives: config.Directives
    dns: Dns
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
    scope: str
    seeds: list[str]  # of all sessions
    optout: CurrentOptOut | None

    @property
    def frontier(self) -> EmbeddedFrontier:
        """What may be fetched next."""
        return self.run.frontier

    def widen(self, seeds: Iterable[str]) -> None:
        """More seeds for a crawl that is under way: it is about them too, now and after a restart."""
        added = list(seeds)
        self.seeds = list(dict.fromkeys([*self.seeds, *added]))
        self.peers.except_origins(map(origin_of, added))
        self.admission.renew(_url_rules(self.choices, self.scope, self.seeds, self.peers, self.optout))
        self.frontier.group.meta.append(("seeds", json.dumps(self.seeds)))


def load_choices(settings: Any, names: Iterable[str]) -> Choices:
    """Load our settings from a settings object; unknown names with our prefix are refused."""
    strategy_names()
    config.check_names(names)
    return Choices(
        config.load(config.Run, settings),
        config.load(config.Safety, settings),
        config.load(config.Politeness, settings),
        config.load(config.Backoff, settings),
        config.load(config.Robots, settings),
        config.load(config.Directives, settings),
        config.load(Dns, settings),
        config.load(config.Frontier, settings),
        config.load(config.Retry, settings),
        config.load(config.Limits, settings),
    )


def assemble(
    choices: Choices,
    purpose: Purpose,
    root: Path,
    addresses: Addresses,
    now: float,
    on_ready: Callable[[], None],
    on_failure: Callable[[StoreError], None],
) -> Crawl:
    """Open the run and make its frontier; the seeds are not offered yet."""
    _check_contact(_peers(choices, purpose.seeds), purpose.seeds)
    directory = Path(choices.run.directory) if choices.run.directory else default_directory(root, purpose.spider)
    run = EmbeddedRun(directory.absolute())
    try:
        is_resumed = _check_purpose(run, purpose)
        seeds = [*_known_seeds(run), *purpose.seeds]
        peers = _peers(choices, seeds)
        optout = CurrentOptOut(read_optout(choices.safety.optout_file)) if choices.safety.optout_file else None
        admission = Admission(_url_rules(choices, purpose.scope, seeds, peers, optout))
        plugs = Plugs(
            rules=_rules(choices),
            scorer=strategy(choices.frontier.strategy),
            admission=admission,
            policy=_host_policy(choices.politeness),
            sync=choices.run.sync,
            own=HostPolicy(0.0, choices.politeness.off_connections),
            is_own=_never if choices.politeness.is_on else lambda name: _is_own(peers, name),
            backoff=BackoffPolicy(**vars(choices.backoff)),
            pages_per_visit=dict(pages_in_visit(text) for text in choices.politeness.pages_per_visit),
            robots=_robots_policy(choices, peers),
            quiet=tuple(hours(text) for text in choices.politeness.quiet_hours),
            sharing=_sharing(choices.politeness),
            addresses=addresses,
            wishes=Wishes(optout, lambda name: peers.is_own(f"http://{name}/", name)),
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
    seeds = list(dict.fromkeys(seeds))
    return Crawl(run, choices, retry, admission, peers, is_resumed, purpose.scope, seeds, optout)


def default_directory(root: Path, spider: str) -> Path:
    """Where a spider's run is kept unless WEBCRAWL_DIR says otherwise."""
    return root / "data" / "runs" / spider


def stored_controls(directory: Path) -> controls.Rules:
    """What `scrapy control` has set for a run, which may be at work in another process."""
    if not (directory / FILE_NAME).exists():
        raise RunError(f"{directory} holds no run.", "", "Name the directory of a crawl with -s WEBCRAWL_DIR=DIR.")
    try:
        return read_rules(directory)
    except apsw.Error as error:
        raise explain(directory / FILE_NAME, error) from error


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
    return HostPolicy(
        politeness.delay_seconds,
        large_delay_seconds=politeness.large_site_delay_seconds,
        large_pages=politeness.large_site_pages,
        factor=politeness.delay_factor,
        factor_most_seconds=politeness.delay_factor_most_seconds,
        crawl_delay_most_seconds=politeness.crawl_delay_most_seconds,
        jitter=politeness.jitter,
    )


def _robots_policy(choices: Choices, peers: AllowedPeers) -> RobotsPolicy:
    robots = choices.robots
    return RobotsPolicy(
        choices.run.product_token,
        least_seconds=robots.least_seconds,
        most_seconds=robots.most_seconds,
        retry_seconds=robots.retry_seconds,
        may_go=lambda url: peers.refuse_url(url) is None,
    )


def _sharing(politeness: config.Politeness) -> Sharing:
    groups = tuple(group_rule(text) for text in politeness.groups)
    return Sharing(politeness.address_delay_seconds, politeness.site_delay_seconds, groups)


def _is_own(peers: AllowedPeers, name: str) -> bool:
    """Politeness is off for this host: over http and over https, for which there may be different proxies."""
    return all(peers.is_own(f"{scheme}://{name}/", name) for scheme in ("http", "https"))


def _never(name: str) -> bool:
    """Politeness is on for everybody."""
    return False


def _url_rules(
    choices: Choices, scope: str, seeds: list[str], peers: AllowedPeers, optout: CurrentOptOut | None
) -> list[Rule]:
    limits = choices.limits
    rules: list[Rule] = [peers]
    if optout is not None:
        rules.append(optout)
    rules += scope_rules(scope, seeds)
    if limits.url_length:
        rules.append(LengthLimit(limits.url_length))
    if limits.exclude:
        rules.append(ExcludePatterns(compiled(limits.exclude)))
    if limits.include:
        rules.append(IncludePatterns(compiled(limits.include)))
    return rules


def _peers(choices: Choices, seeds: Iterable[str]) -> AllowedPeers:
    origins = frozenset(map(origin_of, seeds))
    return AllowedPeers(choices.safety.allow, proxy_finder(), origins, has_contact=bool(choices.run.contact))


def _check_contact(peers: AllowedPeers, seeds: tuple[str, ...]) -> None:
    """Refuse to start a crawl of public hosts whose webmasters could reach nobody."""
    public = [seed for seed in seeds if peers.refuse(seed, host_of(seed)) is Reason.NO_CONTACT]
    if public:
        raise SettingError(
            f"{len(public)} of {len(seeds)} seeds lead to public hosts, e.g. {host_of(public[0])}, and "
            "WEBCRAWL_CONTACT is not set.",
            "A webmaster who is troubled by the crawl must be able to reach you.",
            "Name a web page or an e-mail address: -s WEBCRAWL_CONTACT=https://example.org/our-crawler or "
            "-s WEBCRAWL_CONTACT=crawler@example.org; for a host you own, list it in WEBCRAWL_SAFETY_ALLOW.",
        )


def read_optout(path: str) -> OptOut:
    """The rule of WEBCRAWL_OPTOUT_FILE as the file is now."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SettingError(
            f"The opt-out list WEBCRAWL_OPTOUT_FILE={path} cannot be read: {why}.",
            "Hosts that asked us to stay away would be visited.",
            "Name a text file with one host, site or URL a line.",
        ) from error
    return parse_optout(text, path)


def proxy_finder() -> Callable[[str, str], str | None]:
    """Answers the host of the environment's proxy, as Scrapy's HttpProxyMiddleware chooses it; None: no proxy."""
    proxies = urllib.request.getproxies()

    def proxy_for(scheme: str, host: str) -> str | None:
        url = proxies.get(scheme)
        if not url or urllib.request.proxy_bypass(host):
            return None
        return urlsplit(url if "://" in url else f"http://{url}").hostname

    return proxy_for


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
