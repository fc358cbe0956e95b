"""Live control of the frontier: in force at once, on disk before it is acknowledged, the same when it is repeated."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.unit.backends.polite import DAY, PoliteCrawl, Said, Web, site, urls
from webcrawl.backends.embedded import Wishes, read_rules
from webcrawl.core.controls import Answer, Rules, parse
from webcrawl.core.filters.optout import CurrentOptOut, OptOut
from webcrawl.core.frontier import Empty, Lease, Offer, Wait
from webcrawl.core.lifecycle import State
from webcrawl.core.reasons import Reason

FILE = "http://a.test/robots.txt"
NO_FILE = Said(404)


def pages(count: int, host: str = "http://a.test", folder: str = "") -> list[str]:
    return [f"{host}/{folder}{number}" for number in range(count)]


def everything(url: str, now: float) -> Said:
    return NO_FILE if url.endswith("/robots.txt") else Said()


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[PoliteCrawl]:
    crawl = PoliteCrawl(tmp_path / "run")
    yield crawl
    crawl.close()


def control(crawl: PoliteCrawl, *words: str) -> Answer:
    """What the extension does, without an event loop."""
    answers: list[Answer] = []
    crawl.frontier.controls.apply(parse(list(words)), crawl.now, answers.append)
    settle(crawl)
    assert len(answers) == 1
    return answers[0]


def settle(crawl: PoliteCrawl) -> None:
    """Until every job has ended and everything is on disk."""
    gate = crawl.frontier._gate
    for _ in range(10_000):
        crawl.commit()
        if not gate._jobs:
            return
        gate.take_news(crawl.now)
        crawl.frontier.wait_for_selection()
    raise AssertionError("a job does not end")


def leases(crawl: PoliteCrawl) -> list[Lease]:
    answer = crawl.frontier.next(crawl.now)
    return answer if isinstance(answer, list) else []


def asked_pages(crawl: PoliteCrawl, web: Web = everything, **limits: float) -> list[str]:
    return [url for url in urls(crawl.work(web, **limits)) if not url.endswith("/robots.txt")]  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ block, unblock, drop


def test_a_blocked_host_is_asked_for_nothing_more(crawl: PoliteCrawl):
    crawl.offer(*pages(5), *pages(3, "http://b.test"))
    crawl.work(everything, visits=4)
    before = len([one for one in crawl.asked if one.url.startswith("http://a.test")])
    answer = control(crawl, "block", "a.test")
    assert answer.is_applied and not answer.warnings
    crawl.work(everything)
    assert len([one for one in crawl.asked if one.url.startswith("http://a.test")]) == before
    counts = crawl.frontier.counts()
    assert counts.reasons[Reason.BLOCKED] == answer.facts["pages"] == counts.refused == 5 - (before - 1)
    assert counts.pages == 3 + (before - 1)


def test_not_even_robots_txt_of_a_blocked_host_is_asked_for_and_unblocking_brings_all_back(crawl: PoliteCrawl):
    crawl.offer(*pages(3))
    assert isinstance(crawl.frontier.next(crawl.now), list)  # its robots.txt is under way
    crawl.offer(*pages(3, "http://b.test"))
    control(crawl, "block", ".test")
    assert crawl.frontier.counts().ready == 0
    assert control(crawl, "unblock", ".test").facts["pages"] == 6


def test_a_robots_txt_that_waits_is_called_off_and_comes_first_after_unblocking(crawl: PoliteCrawl):
    crawl.offer(pages(1)[0])
    crawl.frontier.controls.apply(parse(["block", "a.test"]), crawl.now, lambda answer: None)  # not through yet
    assert crawl.frontier._gate.veto is not None
    crawl.work(everything)
    assert crawl.asked == []
    control(crawl, "unblock", "a.test")
    assert urls(crawl.work(everything)) == [FILE, pages(1)[0]]


def test_links_found_later_to_a_blocked_host_are_refused_rows(crawl: PoliteCrawl):
    control(crawl, "block", "b.test")
    crawl.offer("http://a.test/")
    web = site({FILE: NO_FILE, "http://a.test/": Said(links=pages(4, "http://b.test"))})
    assert urls(crawl.work(web)) == [FILE, "http://a.test/"]
    assert crawl.frontier.counts().reasons[Reason.BLOCKED] == 4
    control(crawl, "unblock", "b.test")
    assert asked_pages(crawl) == pages(4, "http://b.test")


def test_a_pattern_blocks_its_pages_only(crawl: PoliteCrawl):
    crawl.offer(*pages(3, folder="no/"), *pages(3, folder="yes/"))
    control(crawl, "block", "a.test/no/*")
    assert asked_pages(crawl) == pages(3, folder="yes/")


def test_a_blocked_host_costs_nothing_after_its_pages_were_refused_once(crawl: PoliteCrawl):
    crawl.offer(*pages(2_500), "http://b.test/")
    control(crawl, "block", "a.test")
    assert crawl.frontier.counts().refused == 2_500
    assert crawl.frontier._ready.working.size == 1
    assert crawl.frontier._ready.outside == 0
    assert asked_pages(crawl) == ["http://b.test/"]


def test_dropping_says_nothing_about_what_is_found_later(crawl: PoliteCrawl):
    crawl.offer("http://a.test/", *pages(3, "http://b.test"))
    assert control(crawl, "drop", "b.test").facts["pages"] == 3
    web = site({FILE: NO_FILE, "http://a.test/": Said(links=[*pages(3, "http://b.test"), "http://b.test/new"])})
    assert urls(crawl.work(web)) == [FILE, "http://a.test/", "http://b.test/robots.txt", "http://b.test/new"]


def test_resting_pages_are_dropped_too(crawl: PoliteCrawl):
    crawl.offer(pages(1)[0])
    crawl.work(lambda url, now: NO_FILE if url == FILE else Said(500), visits=2)
    assert crawl.frontier.counts().resting == 1
    control(crawl, "drop", "a.test")
    assert crawl.work(everything) == []
    assert isinstance(crawl.frontier.next(crawl.now + DAY), Empty)


def test_a_page_that_is_held_when_it_is_dropped_is_not_asked_for(crawl: PoliteCrawl):
    """Its host's robots.txt is under way; the page waits for it outside every queue."""
    crawl.offer(*pages(2))
    [lease] = leases(crawl)
    while isinstance(crawl.frontier.next(crawl.now), list):
        pass
    control(crawl, "drop", "a.test")
    assert crawl.frontier.counts().ready == 0
    crawl._report(lease, NO_FILE)
    assert crawl.work(everything) == []
    assert crawl.frontier.counts().reasons[Reason.BLOCKED] == 2
    assert control(crawl, "retry", "blocked").facts["pages"] == 2
    assert asked_pages(crawl) == pages(2)


def test_blocks_survive_a_kill_and_are_the_same_when_they_are_repeated(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(3), *pages(2, "http://b.test"))
    first = control(crawl, "block", "a.test")
    assert (first.facts["pages"], control(crawl, "block", "a.test").facts["pages"]) == (3, 0)
    crawl.kill()
    assert read_rules(tmp_path / "run") == Rules(blocks=("a.test",))
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 100)
    crawl.offer("http://a.test/later")
    assert asked_pages(crawl) == pages(2, "http://b.test")
    control(crawl, "unblock", "a.test")
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 100)
    assert sorted(asked_pages(crawl)) == sorted([*pages(3), "http://a.test/later"])
    crawl.close()


def test_a_kill_before_the_pages_were_changed_leaves_the_rule_and_the_command_does_the_rest(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(3))
    control(crawl, "block", "a.test")
    answers: list[Answer] = []
    crawl.frontier.controls.apply(parse(["unblock", "a.test"]), crawl.now, answers.append)
    crawl.commit()  # the rule is gone from the store, the pages are still refused
    assert answers == []
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now)
    assert crawl.work(everything) == []
    assert control(crawl, "unblock", "a.test").facts["pages"] == 3
    assert asked_pages(crawl) == pages(3)
    crawl.close()


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        (("block", "nobody.test"), "No page of that host is known: nobody.test."),
        (("drop", ".nowhere.test"), "No page of a host of .nowhere.test is known."),
        (("block", "a.test/none/*"), "No known page is changed by this: a.test/none/*."),
        (("drop", "a.test/*?q={x}"), "No known page is changed by this: a.test/*?q={x}."),
        (("delay", "nobody.test", "60"), "No page of that host is known: nobody.test."),
        (("unblock", "a.test"), "a.test was not blocked; see `scrapy control list`."),
    ],
)
def test_a_target_that_matches_nothing_is_told(crawl: PoliteCrawl, words: tuple[str, ...], warning: str):
    crawl.offer(*pages(1))
    answer = control(crawl, *words)
    assert answer.is_applied and answer.warnings == [warning]


def test_requests_beside_the_frontier_are_blocked_too(crawl: PoliteCrawl):
    control(crawl, "block", "a.test/*.png")
    assert crawl.frontier.ask_beside("http://a.test/i.png", crawl.now) is Reason.BLOCKED
    assert not isinstance(crawl.frontier.ask_beside("http://a.test/i.gif", crawl.now), Reason)


def test_a_block_of_a_host_that_is_not_known_holds_for_later(crawl: PoliteCrawl):
    control(crawl, "block", "a.test")
    crawl.offer(*pages(2))
    assert crawl.work(everything) == []


# ------------------------------------------------------------------------------------------------ delay


def gaps(crawl: PoliteCrawl) -> list[float]:
    return [late.start - early.end for early, late in pairwise(crawl.asked)]


def test_a_delay_holds_from_the_next_request_on_and_can_be_taken_back(crawl: PoliteCrawl):
    crawl.offer(*pages(5))
    crawl.work(everything, visits=2)
    assert control(crawl, "delay", "a.test", "60").is_applied
    crawl.work(everything, visits=2)
    assert gaps(crawl) == [10.0, 61.0, 60.0]  # the end of the last answer is known to a second
    control(crawl, "delay", "a.test", "default")
    crawl.work(everything)
    assert gaps(crawl)[-1] == 10.0


def test_a_delay_holds_after_a_kill_also_for_what_was_under_way(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(3))
    crawl.work(everything, visits=2)
    control(crawl, "delay", "a.test", "60")
    crawl.now += 100
    assert isinstance(crawl.frontier.next(crawl.now), list)
    crawl.kill()
    restarted = PoliteCrawl(tmp_path / "run", crawl.now)
    restarted.work(everything)
    assert restarted.asked[0].start == crawl.now + 60
    assert gaps(restarted) == [60.0] * len(gaps(restarted))
    restarted.close()


def test_a_delay_may_be_given_to_a_host_before_it_is_known(crawl: PoliteCrawl):
    control(crawl, "delay", "a.test", "60")
    crawl.offer(*pages(2))
    crawl.work(everything)
    assert gaps(crawl) == [60.0, 60.0]


def test_only_own_hosts_may_be_hurried(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", wishes=Wishes(may_hurry=lambda host: host == "mine.test"))
    crawl.offer(*pages(2), *pages(2, "http://mine.test"))
    answer = control(crawl, "delay", "a.test", "2")
    assert not answer.is_applied
    assert answer.text.startswith("A delay of 2 s for a.test is below WEBCRAWL_POLITENESS_DELAY_SECONDS=10.")
    assert control(crawl, "delay", "mine.test", "2").is_applied
    crawl.work(everything)
    mine = [one for one in crawl.asked if "mine" in one.url]
    assert [late.start - early.end for early, late in pairwise(mine)] == [2.0, 2.0]
    crawl.close()


def test_a_delay_that_has_become_too_short_is_not_kept(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", wishes=Wishes(may_hurry=lambda host: True))
    crawl.offer(*pages(2))
    control(crawl, "delay", "a.test", "1")
    crawl.close()
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.work(everything)
    assert gaps(crawl) == [10.0, 10.0]
    crawl.close()


# ------------------------------------------------------------------------------------------------ boost


HOSTS = [f"http://{name}.test/" for name in "abcde"]


def deep(crawl: PoliteCrawl, *found: tuple[str, int]) -> None:
    crawl.frontier.offer([Offer(url, depth=depth) for url, depth in found], crawl.now)


def lowest_first(crawl: PoliteCrawl) -> list[str]:
    """The order within one host, where only scores decide."""
    return [url.removeprefix("http://a.test/") for url in asked_pages(crawl)]


def test_waiting_pages_and_pages_found_later_are_boosted(crawl: PoliteCrawl):
    deep(crawl, ("http://a.test/one", 1), ("http://a.test/x/deep", 5), ("http://a.test/two", 2))
    assert control(crawl, "boost", "a.test/x/*", "+10").facts["pages"] == 1
    deep(crawl, ("http://a.test/x/deeper", 9), ("http://a.test/zero", 0))
    assert lowest_first(crawl) == ["x/deep", "x/deeper", "zero", "one", "two"]


def test_a_boost_can_lower_and_be_taken_back(crawl: PoliteCrawl):
    deep(crawl, ("http://a.test/one", 1), ("http://a.test/two", 2), ("http://a.test/three", 3))
    control(crawl, "boost", "a.test/one", "-10")
    control(crawl, "boost", "a.test/two", "x0.1")
    control(crawl, "boost", "a.test/two", "default")
    assert lowest_first(crawl) == ["two", "three", "one"]


def test_a_boosted_host_comes_before_others_that_are_due(crawl: PoliteCrawl):
    deep(crawl, *((url, 3) for url in HOSTS))
    control(crawl, "boost", "e.test", "x2")
    control(crawl, "boost", "a.test", "-1")
    found = [lease.url for _ in range(5) for lease in leases(crawl)]
    assert found == [f"http://{name}.test/robots.txt" for name in "ebcda"]


def test_boosts_are_the_same_after_a_kill_and_are_not_applied_twice(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    deep(crawl, ("http://a.test/one", 1), ("http://a.test/x/5", 5), ("http://a.test/x/4", 4), ("http://a.test/0", 0))
    control(crawl, "boost", "a.test/x/*", "+3.5")
    control(crawl, "drop", "a.test/0")
    control(crawl, "retry", "blocked")  # rows with scores are written
    scores = crawl.frontier.table.pages.score[1:5].tolist()
    assert scores == [-1.0, -1.5, -0.5, 0.0]
    for _ in range(2):
        crawl.kill()
        crawl = PoliteCrawl(tmp_path / "run", crawl.now)
        answer = crawl.frontier.next(crawl.now)
        assert isinstance(answer, Wait), "nobody is asked before the boosts are applied"
        settle(crawl)
        assert crawl.frontier.table.pages.score[1:5].tolist() == scores
    assert lowest_first(crawl) == ["0", "x/4", "one", "x/5"]
    crawl.close()


def test_the_feed_and_the_store_see_the_score_with_and_without_the_boost(crawl: PoliteCrawl):
    deep(crawl, ("http://a.test/one", 1))
    control(crawl, "boost", "a.test", "+5")
    crawl.work(everything)
    crawl.commit()
    assert crawl.frontier.table.pages.score[1] == 4.0
    assert crawl.run.store.rows("SELECT score FROM records WHERE page = 1") == [(-1.0,)]


# ------------------------------------------------------------------------------------------------ pause, resume


def test_nobody_is_asked_while_the_crawl_is_paused_also_after_a_kill(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(2))
    control(crawl, "pause")
    assert crawl.frontier.next(crawl.now) == Wait(math.inf)
    assert crawl.frontier.is_busy, "it stays open"
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 1)
    assert crawl.frontier.next(crawl.now) == Wait(math.inf)
    control(crawl, "resume")
    assert asked_pages(crawl) == pages(2)
    assert not crawl.frontier.is_busy
    crawl.close()


def test_other_commands_are_carried_out_while_it_is_paused(crawl: PoliteCrawl):
    crawl.offer(*pages(2), *pages(2, "http://b.test"))
    control(crawl, "pause")
    answers: list[Answer] = []
    crawl.frontier.controls.apply(parse(["drop", "a.test"]), crawl.now, answers.append)
    for _ in range(10):
        crawl.frontier.next(crawl.now)
        crawl.commit()
        crawl.frontier.wait_for_selection()
    assert [answer.facts["pages"] for answer in answers] == [2]
    control(crawl, "resume")
    assert asked_pages(crawl) == pages(2, "http://b.test")


def test_status_tells_the_rules_and_the_ledger(crawl: PoliteCrawl):
    crawl.offer(*pages(2))
    control(crawl, "block", "a.test")
    control(crawl, "pause")
    answer = control(crawl, "status")
    assert answer.text == "The crawl is paused."
    assert answer.facts["rules"] == {"paused": True, "delays": {}, "blocks": ["a.test"], "boosts": {}}
    assert answer.facts["reasons"] == {"blocked": 2}


# ------------------------------------------------------------------------------------------------ retry


def test_pages_that_were_given_up_are_tried_again_with_all_their_attempts(crawl: PoliteCrawl):
    crawl.offer(*pages(2))
    crawl.work(lambda url, now: NO_FILE if url == FILE else Said(500), until=crawl.now + DAY)
    assert crawl.frontier.counts().reasons[Reason.HTTP_ERROR] == crawl.frontier.counts().gone == 2
    assert control(crawl, "retry", "http_error").facts["pages"] == 2
    assert crawl.frontier.table.pages.failures[1:3].tolist() == [0, 0]
    assert sorted(asked_pages(crawl)) == pages(2)
    assert crawl.frontier.counts().pages == 2


def test_a_host_that_was_given_up_is_tried_again(crawl: PoliteCrawl):
    crawl.offer(*pages(3))
    crawl.work(lambda url, now: Said(0), until=crawl.now + 60 * DAY)
    assert crawl.frontier.counts().reasons[Reason.HOST_GIVEN_UP] >= 3
    assert crawl.work(everything) == []
    control(crawl, "retry", "host_given_up")
    asked = urls(crawl.work(everything))
    assert asked[0] == FILE
    assert sorted(asked[1:]) == pages(3)


def test_retrying_what_robots_txt_refused_reads_it_again(crawl: PoliteCrawl):
    crawl.offer(*pages(3), "http://b.test/")
    deny = Said(200, b"User-agent: *\nDisallow: /\n")
    crawl.work(lambda url, now: deny if url == FILE else everything(url, now))
    assert crawl.frontier.counts().reasons[Reason.ROBOTS] == 3
    assert control(crawl, "retry", "robots").facts["pages"] == 3
    assert urls(crawl.work(everything)) == [FILE, *pages(3)], "and of nobody else"


def test_retrying_an_unreachable_robots_txt_does_not_wait_for_its_time(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run")
    crawl.offer(*pages(2))
    crawl.work(lambda url, now: Said(500), visits=1)
    crawl.work(everything, until=crawl.now + 20)
    assert crawl.frontier.counts().resting == 2
    control(crawl, "retry", "robots_unreachable")
    crawl.kill()
    crawl = PoliteCrawl(tmp_path / "run", crawl.now + 11)
    begun = crawl.now
    assert urls(crawl.work(everything)) == [FILE, *pages(2)]
    assert crawl.asked[0].start <= begun + 10
    crawl.close()


def test_many_pages_come_back_a_thousand_in_a_turn(crawl: PoliteCrawl):
    crawl.offer(*pages(2_500))
    control(crawl, "drop", "a.test")
    assert control(crawl, "retry", "blocked").facts["pages"] == 2_500
    assert crawl.frontier.counts().ready == 2_500


# ------------------------------------------------------------------------------------------------ the opt-out list


def replace_optout(crawl: PoliteCrawl, *lines: str) -> Answer:
    answers: list[Answer] = []
    crawl.frontier.controls.replace_optout(OptOut(lines), answers.append, crawl.now)
    settle(crawl)
    return answers[0]


def test_who_opts_out_is_asked_for_nothing_more_and_may_change_their_mind(tmp_path: Path):
    crawl = PoliteCrawl(tmp_path / "run", wishes=Wishes(CurrentOptOut(OptOut([]))))
    crawl.offer(*pages(3), *pages(2, "http://b.test"))
    replace_optout(crawl, "a.test", "b.test/1")
    assert asked_pages(crawl) == ["http://b.test/0"]
    assert crawl.frontier.counts().reasons[Reason.OPTED_OUT] == 4
    replace_optout(crawl, "a.test/2")
    assert sorted(asked_pages(crawl)) == ["http://a.test/0", "http://a.test/1", "http://b.test/1"]
    crawl.close()


@pytest.mark.parametrize(("lines", "expected"), [(("a.test/1",), ["http://a.test/0"]), (None, pages(2))])
def test_a_list_that_became_shorter_between_two_starts_brings_pages_back(
    tmp_path: Path, lines: tuple[str, ...] | None, expected: list[str]
):
    crawl = PoliteCrawl(tmp_path / "run", wishes=Wishes(CurrentOptOut(OptOut(["a.test"]))))
    crawl.offer(*pages(2))
    assert crawl.work(everything) == []
    crawl.kill()
    wishes = Wishes() if lines is None else Wishes(CurrentOptOut(OptOut(lines)))
    crawl = PoliteCrawl(tmp_path / "run", crawl.now, wishes=wishes)
    crawl.offer(*pages(2))
    assert asked_pages(crawl) == expected
    crawl.close()


# ------------------------------------------------------------------------------------------------ the hot path


def test_without_rules_nothing_is_asked_before_a_lease(crawl: PoliteCrawl):
    assert crawl.frontier._gate.veto is None
    assert crawl.frontier._silence is None
    control(crawl, "pause")
    control(crawl, "block", "a.test")
    control(crawl, "unblock", "a.test")
    control(crawl, "resume")
    assert crawl.frontier._gate.veto is None
    assert crawl.frontier._silence is None


# ------------------------------------------------------------------------------------------------ anything in any order


def check_books(crawl: PoliteCrawl) -> None:
    """What the frontier counts is what is there."""
    frontier = crawl.frontier
    pages, hosts = frontier.table.pages, frontier.table.hosts
    count = pages.count + 1
    ready = pages.state[:count] == int(State.READY)
    outside = np.flatnonzero(ready & ~pages.working[:count])
    assert frontier._ready.outside == len(outside)
    assert hosts.outside[: hosts.count + 1].sum() == len(outside)
    queued = {-entry[1] for queue in frontier._ready.working.hosts.values() for entry in queue.pages}
    assert len(queued) == frontier._ready.working.size == hosts.queued[: hosts.count + 1].sum()
    held = {page for waiting in frontier._gate._held.values() for page, _, _ in waiting}
    suspects = {page for page, _, _ in frontier._suspects}
    assert set(np.flatnonzero(ready & pages.working[:count]).tolist()) <= queued | held | suspects
    assert frontier.counts().adds_up()


@pytest.mark.parametrize("seed", range(6))
def test_any_commands_in_any_order_with_kills_between_them(tmp_path: Path, seed: int):
    """A host is asked for nothing while it is blocked, the books are right, and in the end everything was asked for."""
    rng = random.Random(seed)
    hosts = [f"h{number}.test" for number in range(4)]
    crawl = PoliteCrawl(tmp_path / "run")
    offered, blocked, done = set[str](), set[str](), list[str]()

    def work(until: float) -> None:
        begun = len(crawl.asked)
        crawl.work(everything, until=until)
        for lease in list(crawl.frontier._leases.values()):  # those that were under way then
            crawl._report(lease, everything(lease.url, crawl.now))
        found = crawl.asked[begun:]
        assert not [one.url for one in found if one.url.split("/")[2] in blocked]
        done.extend(one.url for one in found if not one.url.endswith("robots.txt"))

    for _ in range(40):
        host, choice = rng.choice(hosts), rng.randrange(9)
        if choice == 0:
            crawl.kill()
            crawl = PoliteCrawl(tmp_path / "run", crawl.now)
        elif choice == 1:
            control(crawl, "block", host)
            blocked.add(host)
        elif choice == 2:
            control(crawl, "unblock", host)
            blocked.discard(host)
        elif choice == 3:
            control(crawl, "drop", f"{host}/*{rng.randrange(10)}")
        elif choice == 4:
            control(crawl, "boost", f"{host}/*{rng.randrange(10)}", rng.choice(["x3", "x0.2", "+7", "-7", "default"]))
        elif choice == 5:
            control(crawl, "delay", host, rng.choice(["20", "40", "default"]))
        elif choice == 6:
            control(crawl, "retry", "blocked")
        else:
            urls = [f"http://{host}/{rng.randrange(300)}" for _ in range(10)]
            offered.update(urls)
            crawl.offer(*urls)
            crawl.commit()
        work(crawl.now + rng.choice([0.0, 15.0, 60.0]))
        check_books(crawl)
    for host in hosts:
        control(crawl, "unblock", host)
    blocked.clear()
    control(crawl, "retry", "blocked")
    work(math.inf)
    check_books(crawl)
    counts = crawl.frontier.counts()
    assert (set(done), counts.ready, counts.refused) == (offered, 0, 0)
    crawl.close()
