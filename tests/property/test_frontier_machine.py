"""The embedded frontier against the model: the same offers, visits, commits, kills and ends, in any order.

After every step both must agree on the state of every page and on the ledger; what comes out next must be the model's
choice. Pages that were under way at a kill run apart from the others (see `recovery`): for those only politeness is
checked. The disk is under the machine's control, so a kill loses exactly what was not let through.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from webcrawl.backends.embedded.writer import Group
from webcrawl.core.frontier import Empty, Lease, Offer, Report, Visit, Wait
from webcrawl.core.lifecycle import Event, State
from webcrawl.core.reasons import Reason
from webcrawl.testing import EmbeddedCrawl, Manners, ModelFrontier

START = 1_000_000.0
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # thousands of small runs: no need to wear out a disk
urls = st.builds("http://h{}.test/{}".format, st.integers(0, 3), st.sampled_from(["", *"abcdefgh", "?b&a", "?a&b"]))
EVENTS = [Event.STORE, Event.STORE, Event.STORE, Event.FAIL, Event.GIVE_UP, Event.RETURN, Event.REFUSE]


class HeldDisk:
    """Keeps groups from the writer until the machine lets them through."""

    def __init__(self, crawl: EmbeddedCrawl) -> None:
        self._writer = crawl.run.writer
        self._pass_on = self._writer.hand_over
        self._held: list[Group] = []
        self._writer.hand_over = self._held.append  # type: ignore[method-assign, assignment]

    def let_through(self) -> None:
        is_safe = threading.Event()
        for group in self._held:
            group.done.append(is_safe.set)
            is_safe.clear()
            self._pass_on(group)
            assert is_safe.wait(60), self._writer.failure
        self._held.clear()

    def let_go(self) -> None:
        self.let_through()
        self._writer.hand_over = self._pass_on  # type: ignore[method-assign]


class FrontierMachine(RuleBasedStateMachine):
    @initialize(
        order=st.sampled_from(["breadth_first", "depth_first", "random"]),
        delay=st.sampled_from([0.0, 3.0, 10.0]),
        connections=st.integers(1, 2),
    )
    def begin(self, order: str, delay: float, connections: int) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="webcrawl-machine-", dir=MEMORY))
        self.manners = Manners(order, delay, connections)
        self.now = START
        self.model = ModelFrontier(self.manners)
        self.leases: dict[int, tuple[Lease, Lease]] = {}
        self.suspects: set[int] = set()
        self.lives: Counter[int] = Counter()
        self.open()

    def open(self) -> None:
        self.crawl = EmbeddedCrawl(self.directory / "run", self.manners, self.now)
        self.disk = HeldDisk(self.crawl)
        self.copies = {self.crawl.run.recovered.commits: self.model.copy}
        self.suspects = {page for page, _, _ in self.crawl.run.recovered.suspects}

    def teardown(self) -> None:
        if hasattr(self, "crawl"):
            self.disk.let_go()
            self.crawl.close(self.now)
            shutil.rmtree(self.directory)

    # --- in

    @rule(found=st.lists(urls, min_size=1, max_size=4), depth=st.integers(0, 3), priority=st.sampled_from([0.0, 2.5]))
    def offer(self, found: list[str], depth: int, priority: float) -> None:
        offers = [Offer(url, depth=depth, priority=priority) for url in found]
        assert self.crawl.frontier.offer(offers, self.now) == self.model.offer(offers, self.now)

    # --- out

    @rule(seconds=st.sampled_from([0.125, 1.0, 4.0, 15.0]))
    def ask(self, seconds: float) -> None:
        self.now += seconds
        answer = self.crawl.next(self.now)
        if isinstance(answer, list) and answer[0].page in self.suspects:
            self.model.next(self.now, 0)
            assert self.model.may_be_asked(answer[0].page, self.now)
            self.take(answer[0], self.model.lease(answer[0].page, self.now))
            return
        expected = self.expect()
        if not isinstance(answer, list):
            assert not isinstance(expected, list), f"{answer} although {expected} may be asked for"
            assert isinstance(answer, Empty) <= isinstance(expected, Empty)
            return
        assert isinstance(expected, list)
        self.take(answer[0], expected[0])

    def expect(self) -> list[Lease] | Wait | Empty:
        """What the model would hand out if the suspects were not there; after a page that is not on disk was under way
        at a kill, those that are not on disk are not there either."""
        apart = set(self.suspects)
        if self.crawl.run.recovered.is_careful:
            apart.update(page for page in self.model.pages if page > self.crawl.run.writer.settled_page)
        hidden = [self.model.pages[page] for page in apart if self.model.pages[page].state is State.READY]
        for page in hidden:
            page.state = State.REFUSED
        answer = self.model.next(self.now)
        for page in hidden:
            page.state = State.READY
        return answer

    def take(self, ours: Lease, models: Lease) -> None:
        assert ours.page not in self.leases
        assert ours._replace(kind=0) == models, f"{ours} instead of {models}"
        self.leases[ours.page] = ours, models
        self.suspects.discard(ours.page)

    # --- back

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), event=st.sampled_from(EVENTS), links=st.lists(urls, max_size=5), back=st.integers(1, 30))
    def report(self, data: Any, event: Event, links: list[str], back: int) -> None:
        page = data.draw(st.sampled_from(sorted(self.leases)))
        ours, models = self.leases.pop(page)
        reason = Reason.NONE if event in (Event.STORE, Event.RETURN) else Reason.TIMEOUT
        due_at = self.now + back if event is Event.FAIL or (event is Event.STORE and back > 25) else 0.0
        visit = Visit(self.now - back / 16, 200, content_hash=(1 << 64) - page)
        for frontier, lease in ((self.crawl.frontier, ours), (self.model, models)):
            frontier.report(Report(lease, visit, event, reason, due_at, links), self.now)

    # --- the disk, and the ends

    @rule(lets_through=st.booleans())
    def flush(self, lets_through: bool) -> None:
        self.crawl.frontier.flush(self.now)
        self.model.flush(self.now)
        self.copies[self.crawl.frontier._group.number - 1] = self.model.copy
        if lets_through:
            self.disk.let_through()

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, -500.0]))
    def kill(self, seconds: float) -> None:
        under_way = set(self.leases)
        self.crawl.kill()
        self.end(seconds)
        self.lives.update(page for page in under_way if page in self.model.pages)
        self.set_aside()

    def end(self, seconds: float) -> None:
        self.now += seconds
        self.leases.clear()
        before, copies = self.model, self.copies
        self.open_after(before, copies)

    def open_after(self, before: ModelFrontier, copies: dict[int, bytes]) -> None:
        self.open()
        committed = self.crawl.run.recovered.commits
        copy = copies[max(number for number in copies if number <= committed)]
        self.model = before.reopened(self.now, copy)
        self.copies = {committed: self.model.copy}

    def set_aside(self) -> None:
        """What the frontier has set aside must have been under way at three kills or more."""
        columns = self.crawl.frontier.table.pages.at
        for number, page in self.model.pages.items():
            if columns.reason[number] == Reason.CRASHED and page.reason is not Reason.CRASHED:
                assert self.lives[number] >= 3
                page.state, page.reason = State.REFUSED, Reason.CRASHED
        self.model.flush(self.now)
        self.copies = dict.fromkeys(self.copies, self.model.copy)

    @rule(seconds=st.sampled_from([0.0, 2.0, -500.0]))
    def close(self, seconds: float) -> None:
        self.disk.let_go()
        self.crawl.close(self.now)
        self.model.stop(self.now)
        self.copies = {0: self.model.copy}
        self.end(seconds)

    # --- always

    @invariant()
    def same_states(self) -> None:
        if not hasattr(self, "crawl"):
            return
        counts, expected = self.crawl.frontier.counts(), self.model.counts()
        assert counts.adds_up(), counts.sentence()
        assert counts == expected
        columns = self.crawl.frontier.table.pages.at
        for number, page in self.model.pages.items():
            ours = columns.state[number], columns.reason[number], columns.visits[number], columns.failures[number]
            assert ours == (page.state, page.reason, page.visits, page.failures), page.url
            assert columns.depth[number] == page.depth

    @invariant()
    def no_host_is_asked_too_often(self) -> None:
        hosts = Counter(lease.host for lease, _ in getattr(self, "leases", {}).values())
        assert all(count <= self.manners.connections for count in hosts.values())


FrontierMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40)
TestFrontierMachine = FrontierMachine.TestCase
