"""One tree of errors, and messages in three parts."""

from __future__ import annotations

import inspect
import pickle

import pytest

from webcrawl.core import errors
from webcrawl.core.errors import ControlError, RunError, SeedError, SettingError, SiteError, StoreError, WebcrawlError

KINDS = [SettingError, SeedError, ControlError, SiteError, StoreError, RunError]


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_says_what_happened_why_it_matters_and_what_to_do(kind: type[WebcrawlError]) -> None:
    error = kind("The file is empty.", "There is nothing to crawl.", "Put one URL on each line.")
    assert str(error) == "The file is empty. There is nothing to crawl. Put one URL on each line."
    assert (error.what, error.why, error.remedy) == error.args


def test_a_part_that_is_left_out_leaves_no_gap() -> None:
    assert str(StoreError("Full.", remedy="Free some space.")) == "Full. Free some space."
    assert str(StoreError("Full.")) == "Full."


def test_every_error_of_the_module_is_in_the_one_tree() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    assert set(classes) == {WebcrawlError, *KINDS}
    assert all(issubclass(cls, WebcrawlError) and cls.__doc__ for cls in classes)


def test_an_error_crosses_a_process_boundary_whole() -> None:
    error = pickle.loads(pickle.dumps(RunError("In use.", "Two writers would damage it.", "Wait.")))
    assert isinstance(error, RunError)
    assert error.remedy == "Wait."
