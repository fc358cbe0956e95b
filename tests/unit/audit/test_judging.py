"""Each violation is found where it was planted, and nothing else is.

Times are seconds after noon; a request lasts 0.1 s unless it says otherwise, and the pause wanted is 1 s.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.audit.logs import EPOCH, judged, kinds, request, robots_txt
from webcrawl.audit.judging import Allowances, Judge, Kind, Rules

EXACT = Rules(tolerance_seconds=0.0)
RULES = "User-agent: *\nDisallow: /private/\nUser-agent: slowbot\nCrawl-delay: 10\n"


def coarse(at: float, path: str = "/page", **changes):
    """A request in a log with whole seconds and no durations."""
    return request(at, path, **({"resolution_seconds": 1.0, "duration_seconds": None} | changes))


def test_a_polite_crawl_has_no_violation():
    records = [robots_txt(0), request(1.1), request(2.2), request(3.3, host="b.example", path="/robots.txt")]
    assert judged(records, robots={"a.example": RULES}) == []


# ------------------------------------------------------------------------------------------------------------- pauses


def test_a_short_pause_is_found_with_both_lines():
    (found,) = judged([robots_txt(), request(0, line=4), request(1.0, line=5)])
    assert (found.kind, found.record.line, found.note) == (Kind.GAP, 5, "0.900 s after the one before, 1 s wanted")
    assert found.earlier is not None
    assert found.earlier.line == 4


@pytest.mark.parametrize(
    ("delay", "gap", "is_kept"),
    [(0.5, 0.5, True), (0.5, 0.499, False), (1.0, 1.0, True), (1.5, 1.5, True), (1.5, 1.25, False), (1.0, 0.5, False)],
)
def test_half_second_edges(delay, gap, is_kept):
    rules = Rules(delay_seconds=delay, tolerance_seconds=0.0)
    records = [robots_txt(), request(0, duration_seconds=0.25), request(0.25 + gap)]
    assert (judged(records, rules) == []) is is_kept


def test_the_tolerance_is_forgiven_and_no_more():
    assert judged([robots_txt(), request(0), request(1.0951)]) == []
    assert kinds(judged([robots_txt(), request(0), request(1.0949)])) == [Kind.GAP]
    assert kinds(judged([robots_txt(), request(0), request(1.0951)], EXACT)) == [Kind.GAP]


def test_a_pause_runs_from_the_end_unless_told_otherwise():
    records = [robots_txt(), request(0, duration_seconds=5), request(5.5)]
    assert kinds(judged(records)) == [Kind.GAP]
    assert judged(records, Rules(is_gap_from_start=True)) == []


def test_hosts_do_not_disturb_each_other():
    assert judged([robots_txt(), robots_txt(host="b.example"), request(0), request(0, host="b.example")]) == []


def test_robots_txt_is_held_to_the_pause_unless_exempt():
    assert kinds(judged([robots_txt(0), request(0.5)])) == [Kind.GAP]
    assert judged([robots_txt(0), request(0.5)], Rules(is_robots_exempt=True)) == []


def test_crawl_delay_is_a_kind_of_its_own():
    records = [robots_txt(), request(0, agent="SlowBot/1"), request(5, agent="SlowBot/1")]
    (found,) = judged(records, robots={"a.example": RULES})
    assert (found.kind, found.note) == (Kind.CRAWL_DELAY, "4.900 s after the one before, 10 s wanted")
    assert judged(records, Rules(agent="examplebot"), robots={"a.example": RULES}) == []
    assert kinds(judged(records, Rules(delay_seconds=20), robots={"a.example": RULES})) == [Kind.GAP]


def test_without_a_pause_wanted_only_overlaps_are_wrong():
    rules = Rules(delay_seconds=0)
    assert judged([robots_txt(), request(0), request(0.1), request(0.2)], rules) == []
    assert kinds(judged([robots_txt(), request(0), request(0.05)], rules)) == [Kind.OVERLAP]


# ------------------------------------------------------------------------------------------------------ whole seconds


def test_whole_seconds_prove_what_they_can():
    """Two requests in neighbouring seconds may be two seconds apart, or nothing."""
    assert judged([robots_txt(), coarse(0), coarse(1)], Rules(delay_seconds=1.5)) == []
    assert judged([robots_txt(), coarse(0), coarse(1)], Rules(delay_seconds=1.999)) == []
    assert kinds(judged([robots_txt(), coarse(0), coarse(1)], Rules(delay_seconds=2.0, tolerance_seconds=0))) == [
        Kind.GAP
    ]


def test_many_requests_in_one_second_are_found_although_any_two_might_be_polite():
    assert judged([robots_txt(), coarse(0), coarse(0)]) == []
    assert Kind.GAP in kinds(judged([robots_txt(), coarse(0), coarse(0), coarse(0)]))


def test_a_crawl_that_is_too_fast_on_average_is_found():
    """Five requests in four seconds are possible with a pause of one second, nine are not."""
    assert judged([robots_txt(), *(coarse(second) for second in (0, 1, 2, 3, 3))]) == []
    assert Kind.GAP in kinds(judged([robots_txt(), *(coarse(half // 2) for half in range(9))]))


@given(
    st.lists(st.tuples(st.floats(1.0, 3.0), st.floats(0.0, 2.0)), min_size=1, max_size=20),
    st.sampled_from([1e-6, 1e-3, 0.1, 1.0]),
    st.booleans(),
)
def test_a_polite_crawl_is_never_accused_whatever_the_log_cuts_off(steps, resolution, is_end_logged):
    """True times are cut to the resolution, as servers do; starts or ends are logged."""
    now, records = EPOCH, [robots_txt(resolution_seconds=resolution)]
    for pause, duration in steps:
        true_at = now + (duration if is_end_logged else 0.0)
        logged_at = min(true_at, true_at // resolution * resolution)
        started_at = logged_at - duration if is_end_logged else logged_at
        record = request(0, logged_at=logged_at, started_at=started_at, duration_seconds=duration,
                         resolution_seconds=max(resolution, 2e-6))  # fmt: skip
        records.append(record)
        now += duration + pause
    assert judged(records) == []


# ----------------------------------------------------------------------------------------------------------- overlaps


def test_two_requests_that_overlap():
    found = judged([robots_txt(), request(0, duration_seconds=2, line=1), request(1.5, line=2)])
    assert kinds(found) == [Kind.OVERLAP, Kind.GAP]
    assert found[0].note == "while another of this host had not ended"
    assert found[1].note == "0.500 s before the end of the one before, 1 s after it wanted"


def test_one_long_request_overlaps_all_that_begin_meanwhile():
    records = [robots_txt(), request(0, duration_seconds=100), request(10), request(20), request(101)]
    assert kinds(judged(records)).count(Kind.OVERLAP) == 2


def test_overlaps_are_found_in_a_log_of_ends():
    """nginx's order: the long request is logged last."""
    records = [
        robots_txt(),
        request(10.1, started_at=EPOCH + 10),
        request(20.1, started_at=EPOCH + 20),
        request(100, started_at=EPOCH, duration_seconds=100),
    ]
    assert Kind.OVERLAP in kinds(judged(records))


def test_an_overlap_within_the_resolution_is_not_proven():
    records = [
        robots_txt(),
        request(0, resolution_seconds=1.0, duration_seconds=0.9),
        request(0, resolution_seconds=1.0),
    ]
    assert Kind.OVERLAP not in kinds(judged(records, Rules(delay_seconds=0)))


def test_a_listed_host_may_have_several_connections():
    rules = Rules(connections=Allowances({"a.example": 2}))
    two = [robots_txt(), request(0, duration_seconds=5), request(1, duration_seconds=5)]
    assert judged(two, rules) == []
    assert kinds(judged([*two, request(2)], rules)) == [Kind.OVERLAP, Kind.GAP]
    assert judged([*two, request(6), request(7)], rules) == []
    assert kinds(judged([*two, request(5.5)], rules)) == [Kind.GAP]


def test_allowances_by_name():
    allowances = Allowances({"a.example": 2, ".example": 3, ".b.example": 4, "*": 5})
    hosts = ("a.example", "c.example:8000", "x.b.example", "b.example", "other.test")
    assert [allowances.of(host) for host in hosts] == [2, 3, 4, 4, 5]
    assert Allowances().of("a.example") == 1


# ------------------------------------------------------------------------------------------------------------- visits

VISITS = Rules(visit_pages=Allowances({"a.example": 3}))


def test_a_visit_of_a_listed_host_needs_no_pauses_inside():
    visit = [request(at) for at in (0, 0.2, 0.4)]
    later = [request(at) for at in (1.5, 1.7, 1.9)]
    assert judged([robots_txt(), *visit, *later], VISITS) == []
    assert kinds(judged([robots_txt(), *visit, *later])) == [Kind.GAP] * 4


def test_a_visit_that_is_too_long_and_a_pause_after_a_visit_that_is_too_short():
    assert kinds(judged([robots_txt(), *(request(at / 5) for at in range(4))], VISITS)) == [Kind.GAP]
    assert kinds(judged([robots_txt(), *(request(at) for at in (0, 0.2, 0.4, 1.4))], VISITS)) == [Kind.GAP]


def test_a_visit_is_one_connection_so_of_one_client_and_without_overlaps():
    assert kinds(judged([robots_txt(), request(0), request(0.2, client="192.0.2.2")], VISITS)) == [Kind.GAP]
    assert kinds(judged([robots_txt(), request(0), request(0.05)], VISITS)) == [Kind.OVERLAP, Kind.GAP]


def test_where_connections_are_logged_a_visit_is_one_of_them():
    first, same, other = request(0, connection="7"), request(0.2, connection="7"), request(0.2, connection="8")
    assert judged([robots_txt(), first, same], VISITS) == []
    assert kinds(judged([robots_txt(), first, other], VISITS)) == [Kind.GAP]


def test_crawl_delay_counts_inside_a_visit():
    robots = {"a.example": "User-agent: *\nCrawl-delay: 1"}
    assert kinds(judged([robots_txt(), request(0), request(0.2)], VISITS, robots)) == [Kind.GAP]


# ---------------------------------------------------------------------------------------------------------- addresses


def test_hosts_of_one_address_share_its_pause():
    rules = Rules(is_robots_first=False, address_delay_seconds=0.5)
    records = [request(0, address="192.0.2.80"), request(0.3, address="192.0.2.80", host="b.example")]
    (found,) = judged(records, rules)
    assert (found.kind, found.note) == (Kind.ADDRESS, "0.200 s after the one before, 0.5 s wanted for 192.0.2.80")
    assert judged([records[0], request(0.7, address="192.0.2.80", host="b.example")], rules) == []
    assert judged(records, Rules(is_robots_first=False)) == []


@pytest.mark.parametrize(
    ("hosts", "addresses"),
    [
        (("a.example", "b.example"), {"a.example": "192.0.2.80", "b.example": "192.0.2.80"}),
        (("a.example", "b.example"), {"*": "192.0.2.80"}),
        (("192.0.2.80:8000", "192.0.2.80:8001"), {}),
        (("192.0.2.80", "b.example"), {"b.example": "192.0.2.80"}),
    ],
)
def test_addresses_the_log_does_not_tell(hosts, addresses):
    rules = Rules(is_robots_first=False, address_delay_seconds=0.5, addresses=addresses)
    assert kinds(judged([request(0, host=hosts[0]), request(0.3, host=hosts[1])], rules)) == [Kind.ADDRESS]


def test_a_visit_does_not_break_the_pause_of_its_address():
    rules = Rules(address_delay_seconds=1.0, addresses={"*": "192.0.2.80"}, visit_pages=VISITS.visit_pages)
    visit = [robots_txt(), request(0), request(0.2)]
    assert judged(visit, rules) == []
    assert Kind.ADDRESS in kinds(judged([*visit, request(0.4, host="b.example")], rules))


# ------------------------------------------------------------------------------------------------------------- robots


def test_a_forbidden_path():
    (found,) = judged([robots_txt(), request(0, "/private/x")], robots={"a.example": RULES})
    assert (found.kind, found.note) == (Kind.ROBOTS, "forbidden by Disallow: /private/")
    assert judged([robots_txt(), request(0, "/private/x")], robots={"b.example": RULES}) == []
    assert judged([robots_txt(), request(0, "/private/x", agent="slowbot")], robots={"a.example": RULES}) == []
    slow = Rules(agent="slowbot")
    assert judged([robots_txt(), request(0, "/private/x")], slow, {"a.example": RULES}) == []


def test_pages_before_robots_txt():
    (found,) = judged([request(0), robots_txt(5)])
    assert (found.kind, found.note) == (Kind.BLIND, "robots.txt had not been asked for")
    assert kinds(judged([request(0), request(5)])) == [Kind.BLIND] * 2
    assert judged([request(0), robots_txt(5)], Rules(is_robots_first=False)) == []


def test_pages_while_robots_txt_is_under_way():
    found = judged([robots_txt(0, duration_seconds=5), request(2)])
    assert kinds(found) == [Kind.BLIND, Kind.OVERLAP, Kind.GAP]
    assert found[0].note == "robots.txt was answered 3.000 s later"


@pytest.mark.parametrize("status", [500, 503, 429, 499])
def test_pages_while_robots_txt_gives_errors(status):
    (found,) = judged([robots_txt(0, status=status), request(5)])
    assert (found.kind, found.note) == (Kind.BLIND, f"robots.txt had answered {status}")
    assert judged([robots_txt(0, status=status), robots_txt(5), request(10)]) == []


@pytest.mark.parametrize("status", [200, 301, 304, 403, 404])
def test_answers_that_tell(status):
    assert judged([robots_txt(0, status=status), request(5)]) == []


def test_who_was_told_may_go_on_with_that_copy():
    assert judged([robots_txt(0), robots_txt(5, status=503), request(10)]) == []


def test_in_whole_seconds_a_page_of_the_same_second_is_not_proven_blind():
    rules = Rules(delay_seconds=0)
    assert judged([coarse(0), coarse(0, "/robots.txt"), coarse(0)], rules) == []
    assert kinds(judged([coarse(0), coarse(1, "/robots.txt"), coarse(1)], rules)) == [Kind.BLIND]


# -------------------------------------------------------------------------------------------------------- Retry-After


@pytest.mark.parametrize("status", [429, 503, 301, 200])
def test_a_request_before_retry_after_is_over(status):
    records = [robots_txt(), request(0, status=status, retry_after_seconds=10.0, line=3), request(9)]
    (found,) = judged(records)
    assert (found.kind, found.note) == (Kind.RETRY, f"1.100 s before the Retry-After of a {status} ended")
    assert found.earlier is not None
    assert found.earlier.line == 3
    assert judged([*records[:2], request(10.0951)]) == []
    assert kinds(judged([*records[:2], robots_txt(5)])) == [Kind.RETRY]
    assert judged([*records[:2], robots_txt(5)], Rules(is_robots_exempt=True)) == []


def test_a_request_already_under_way_is_no_violation():
    rules = Rules(connections=Allowances({"*": 2}))
    slow = request(0, status=503, duration_seconds=3, retry_after_seconds=10.0)
    assert judged([robots_txt(), robots_txt(), slow, request(1)], rules) == []


def test_retry_after_of_several_answers():
    waits = [request(at, status=503, retry_after_seconds=10.0) for at in (0, 30, 60)]
    assert judged([robots_txt(), *waits, request(71)]) == []
    assert kinds(judged([robots_txt(), *waits, request(69)])) == [Kind.RETRY]
    storm = [request(at, status=503, retry_after_seconds=10.0) for at in range(0, 200, 2)]
    assert kinds(judged([robots_txt(), *storm])) == [Kind.RETRY] * 99
    judge = Judge(Rules())
    for record in storm:
        judge.judge(record)
    assert len(judge.hosts["a.example"].waits) == 1


def test_retry_after_that_the_log_does_not_tell_can_be_assumed():
    records = [robots_txt(), request(0, status=429, retry_after_seconds=None), request(5)]
    assert judged(records) == []
    assert kinds(judged(records, Rules(assumed_retry_after_seconds=60))) == [Kind.RETRY]


def test_what_is_remembered_does_not_grow_with_lines():
    judge = Judge(Rules(delay_seconds=0))
    for number in range(1000):
        judge.judge(request(number / 4, status=503 if number % 2 else 200))
    host = judge.hosts["a.example"]
    assert len(host.undecided) <= 1
    assert len(judge.hosts) == len(judge.clients) == 1
