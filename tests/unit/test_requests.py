"""Requests written down and read back: what comes back equals what went in, or the request says that it cannot be."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from scrapy import FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest

from webcrawl.requests import OURS, request_from_bytes, request_identity, request_to_bytes


class Reader(Spider):
    name = "reader"

    def page(self, response: Any, **kwargs: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...


SPIDER = Reader()

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters()),  # halves of surrogate pairs, too
    st.binary(max_size=20),
)
hashable = st.one_of(scalars, st.tuples(scalars, scalars), st.frozensets(scalars, max_size=3))
values = st.recursive(
    st.one_of(hashable, st.sets(hashable, max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.tuples(inner), st.dictionaries(hashable, inner, max_size=3)
    ),
    max_leaves=10,
)  # fmt: skip
names = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=5)
requests = st.builds(
    Request,
    url=st.sampled_from(["http://one.test/", "https://one.test/ä?ö=%20#part", "http://one.test"]),
    callback=st.sampled_from([None, SPIDER.page]),
    errback=st.sampled_from([None, SPIDER.failed]),
    method=st.sampled_from(["GET", "POST", "PUT"]),
    headers=st.dictionaries(names, st.lists(st.binary(max_size=9), min_size=1, max_size=2), max_size=2),
    body=st.binary(max_size=30),
    cookies=st.one_of(st.dictionaries(names, names), st.just([{"name": "a", "value": "b", "domain": "one.test"}])),
    meta=st.dictionaries(st.one_of(names, st.integers()), values, max_size=3),
    encoding=st.sampled_from(["utf-8", "latin-1"]),
    priority=st.integers(-100, 100),
    dont_filter=st.booleans(),
    flags=st.lists(names, max_size=2),
    cb_kwargs=st.dictionaries(names, values, max_size=3),
)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: 1 is not True, a list is no tuple."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            any(same(name, key) and same(one[name], other[key]) for key in other) for name in one
        )
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, set | frozenset):
        return len(one) == len(other) and all(any(same(each, found) for found in other) for each in one)
    return bool(one == other)


@given(requests)
def test_what_comes_back_is_what_went_in(request: Request) -> None:
    data = request_to_bytes(request, SPIDER)
    assert data is not None
    back = request_from_bytes(data, SPIDER)
    before, after = request.to_dict(spider=SPIDER), back.to_dict(spider=SPIDER)
    assert before.keys() == after.keys()
    for name in before:
        assert same(before[name], after[name]), name


def test_subclasses_come_back_as_such() -> None:
    form = FormRequest("http://one.test/", formdata={"a": "ü"}, callback=SPIDER.page)
    other = JsonRequest("http://one.test/", data={"a": 1})
    for request in (form, other):
        back = request_from_bytes(request_to_bytes(request, SPIDER) or b"", SPIDER)
        assert type(back) is type(request)
        assert (back.method, back.body, back.headers) == (request.method, request.body, request.headers)


def test_what_belongs_to_one_visit_is_left_out_and_what_the_user_chose_stays() -> None:
    request = Request("http://one.test/", meta={**dict.fromkeys(OURS, "x"), "download_timeout": 3, "proxy": "http://p"})
    data = request_to_bytes(request, SPIDER)
    assert data is not None
    assert request_from_bytes(data, SPIDER).meta == {"download_timeout": 3, "proxy": "http://p"}


Pair = namedtuple("Pair", "left right")


class Colour(StrEnum):
    RED = "red"


def looping() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Pair(1, 2),
        OrderedDict(a=1),
        defaultdict(list),
        Colour.RED,
        Item(),
        1j,
        looping(),
        lambda: 0,
        SPIDER,
        range(3),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_come_back_as_something_else_cannot_be_written_down(value: Any) -> None:
    assert request_to_bytes(Request("http://one.test/", cb_kwargs={"value": value}), SPIDER) is None
    assert request_to_bytes(Request("http://one.test/", meta={"deep": [{"value": value}]}), SPIDER) is None


@pytest.mark.parametrize("callback", [lambda response: None, request_to_bytes])
def test_callbacks_that_are_no_methods_of_the_spider_cannot_be_written_down(callback: Any) -> None:
    assert request_to_bytes(Request("http://one.test/", callback=callback), SPIDER) is None


def test_a_text_of_a_selector_is_a_text() -> None:
    (text,) = etree.fromstring("<a>word</a>").xpath("//text()")
    assert type(text) is not str
    back = request_from_bytes(request_to_bytes(Request("http://one.test/", meta={"t": text}), SPIDER) or b"", SPIDER)
    assert back.meta == {"t": "word"}


def test_identity() -> None:
    def identity(is_start: bool = False, **arguments: Any) -> bytes:
        return request_identity(Request("http://one.test/", **arguments), b"print", is_start)

    assert identity() == identity(is_start=True) == identity(callback=SPIDER.page, cb_kwargs={"a": 1}) == b"print"
    unfiltered = [
        identity(dont_filter=True),
        identity(is_start=True, dont_filter=True),
        identity(is_start=True, dont_filter=True, callback=SPIDER.page),
        identity(is_start=True, dont_filter=True, cb_kwargs={"a": 1, 2: b"", "c": "\ud800"}),
    ]
    assert len({*unfiltered, b"print"}) == 5
    assert identity(is_start=True, dont_filter=True, cb_kwargs={"a": 1, "b": 2}) == identity(
        is_start=True, dont_filter=True, cb_kwargs={"b": 2, "a": 1}
    )
