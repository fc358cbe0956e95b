"""Columns: zero until written, ids from 1, nothing lost when the reservation is doubled, memory only where written."""

from __future__ import annotations

import numpy as np
import pytest

from webcrawl.core.columns import Columns, reserve


def test_ids_are_dense_from_one():
    columns = Columns(8, score=np.float32)
    assert [columns.append(2), columns.append(3)] == [1, 3]
    assert columns.count == 5
    assert not columns.score[:6].any()


def test_doubling_keeps_every_cell_and_the_views():
    columns = Columns(4, host=np.uint32, is_known=np.bool_)
    for number in range(1, 40):
        page = columns.append(1)
        columns.at.host[page] = number * 7
        columns.is_known[page] = number % 2
    assert columns.cells == 64
    assert columns.host[:40].tolist() == [number * 7 for number in range(40)]
    assert [columns.at.is_known[number] for number in range(40)] == [bool(number % 2) for number in range(40)]
    columns.at.host[5] = 1
    assert columns.host[5] == 1, "array and view must be the same cells"


def test_one_large_append_doubles_as_often_as_needed():
    columns = Columns(4, host=np.uint32)
    columns.append(100)
    columns.host[100] = 9
    assert columns.cells == 128


def test_unknown_columns_are_named():
    with pytest.raises(AttributeError, match="no column 'depht'; there are host, depth"):
        _ = Columns(4, host=np.uint32, depth=np.uint8).depht


def test_a_reservation_uses_memory_only_where_written():
    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    before = resident()
    cells = reserve(1 << 27, np.uint64)  # 1 GiB
    cells[:: 1 << 22] = 1
    assert resident() - before < 1 << 20
    assert int(cells.sum()) == 32


def test_bytes_used_counts_cells_in_use():
    columns = Columns(64, host=np.uint32, score=np.float64)
    columns.append(9)
    assert columns.bytes_used() == 10 * 12
