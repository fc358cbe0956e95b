"""The seen-set: which 64-bit key is which id, exact on the key, for tens of millions of keys.

The idea: open addressing with linear probing in numpy, so that a page's sixty links are looked up by a dozen array
operations. The table is cut into segments by the top bits of the key. Each segment has its own size and doubles
alone, in place, inside a region of reserved address space (see `columns`): the largest step is the rehash of one
segment, 1.3 ms at ten million keys, so the event loop never waits for a table of 100 MB to be copied.

Costs: 12 bytes a cell at a load between 0.25 and 0.72, which is 25 to 29 bytes a key. Two different URLs share
a 64-bit key with probability 3e-6 in a crawl of ten million; keys are seeded per run, so collisions cannot be chosen.
Key 0 marks a free cell; whoever makes keys maps 0 to 1.
"""

from __future__ import annotations

import numpy as np

from webcrawl.core.columns import Array, cells_of, reserve

SEGMENT_BITS = 10
SEGMENTS = 1 << SEGMENT_BITS
REGION_BITS = 17
FIRST_CELLS = 64
EARLIEST, FULLEST = 0.5, 0.72  # each segment doubles at its own load between these: never all at once
FEW = 32  # below this, walking cell by cell in Python is cheaper than rounds of array operations
_TOP = np.uint64(64 - SEGMENT_BITS)


class SeenSet:
    """Maps uint64 keys to uint32 ids; `find` answers 0 for a key that is not there."""

    def __init__(self, region_bits: int = REGION_BITS) -> None:
        self._reserve(region_bits)
        self._cells = np.full(SEGMENTS, FIRST_CELLS, np.int64)
        self._masks = np.full(SEGMENTS, FIRST_CELLS - 1, np.uint64)
        self._masks_view = cells_of(self._masks)
        self._used = np.zeros(SEGMENTS, np.int64)
        self._loads = np.linspace(EARLIEST, FULLEST, SEGMENTS)
        self._limits = (self._cells * self._loads).astype(np.int64)

    def __len__(self) -> int:
        return int(self._used.sum())

    def bytes_used(self) -> int:
        """Bytes of the cells in use."""
        return int(self._cells.sum()) * 12

    def find(self, keys: Array) -> Array:
        """The id of each key, 0 where it is unknown."""
        segments = keys >> _TOP
        slots = self._slots(keys, segments)
        held = self._keys.take(slots)
        ids = self._ids.take(slots)
        searching = np.flatnonzero((held != keys) & (held != 0))
        if searching.size > FEW:
            self._find_many(keys[searching], searching, ids)
        else:
            for at in searching.tolist():
                ids[at] = self._ids_view[self._walk(int(keys[at]))]
        return ids

    def get(self, key: int) -> int:
        """The id of one key, 0 if it is unknown."""
        return self._ids_view[self._walk(key)]

    def _find_many(self, keys: Array, wanted: Array, ids: Array) -> None:
        segments = keys >> _TOP
        steps = np.uint64(0)
        while keys.size:
            steps += np.uint64(1)
            slots = self._slots(keys + steps, segments)
            held = self._keys.take(slots)
            ids[wanted] = self._ids.take(slots)
            left = (held != keys) & (held != 0)
            keys, wanted, segments = keys[left], wanted[left], segments[left]

    def _slots(self, keys: Array, segments: Array) -> Array:
        """The cell of each key in its segment; add n to the keys for the n-th cell after that."""
        index: Array = segments.view(np.int64)
        within: Array = (keys & self._masks.take(index)).view(np.int64)
        return (index << self._region_bits) + within

    def _walk(self, key: int) -> int:
        """The cell that holds `key`, or the free one where it belongs."""
        segment = key >> (64 - SEGMENT_BITS)
        base, mask, keys = segment << self._region_bits, self._masks_view[segment], self._keys_view
        place = key & mask
        while (held := keys[base + place]) and held != key:
            place = (place + 1) & mask
        return base + place

    def add(self, keys: Array, ids: Array) -> None:
        """Store keys that are not there yet, each key once in the batch."""
        segments = (keys >> _TOP).view(np.int64)
        np.add.at(self._used, segments, 1)
        full = segments[self._used.take(segments) > self._limits.take(segments)]
        for segment in dict.fromkeys(full.tolist()):
            self._double(segment)
        if keys.size > FEW:
            self._place(keys, ids)
        else:
            for key, number in zip(keys.tolist(), ids.tolist(), strict=True):
                cell = self._walk(key)
                self._keys_view[cell] = key
                self._ids_view[cell] = number

    def _place(self, keys: Array, ids: Array) -> None:
        segments = keys >> _TOP
        steps = np.uint64(0)
        while keys.size:
            slots = self._slots(keys + steps, segments)
            free = self._keys.take(slots) == 0
            self._keys[slots[free]] = keys[free]
            placed = self._keys.take(slots) == keys  # of two that want one cell, the last one got it
            self._ids[slots[placed]] = ids[placed]
            left = ~placed
            keys, ids, segments = keys[left], ids[left], segments[left]
            steps += np.uint64(1)

    def _double(self, segment: int) -> None:
        cells = int(self._cells[segment])
        while self._used[segment] > cells * self._loads[segment]:
            cells *= 2
        while cells > 1 << self._region_bits:
            self._enlarge_regions()
        keys, ids = self._take_out(segment)
        self._cells[segment] = cells
        self._masks[segment] = cells - 1
        self._limits[segment] = int(cells * self._loads[segment])
        self._place(keys, ids)

    def _take_out(self, segment: int) -> tuple[Array, Array]:
        base = segment << self._region_bits
        region = slice(base, base + int(self._cells[segment]))
        taken = np.flatnonzero(self._keys[region])
        keys, ids = self._keys[region][taken], self._ids[region][taken]
        self._keys[region] = 0
        self._ids[region] = 0
        return keys, ids

    def _reserve(self, region_bits: int) -> None:
        self._region_bits = region_bits
        self._keys = reserve(SEGMENTS << region_bits, np.uint64)
        self._ids = reserve(SEGMENTS << region_bits, np.uint32)
        self._keys_view, self._ids_view = cells_of(self._keys), cells_of(self._ids)

    def _enlarge_regions(self) -> None:
        """Every region has become too small (beyond 90 million keys): copy all to regions of twice the size."""
        old_keys, old_ids, old_bits = self._keys, self._ids, self._region_bits
        self._reserve(old_bits + 1)
        for segment, cells in enumerate(self._cells.tolist()):
            old, new = segment << old_bits, segment << self._region_bits
            self._keys[new : new + cells] = old_keys[old : old + cells]
            self._ids[new : new + cells] = old_ids[old : old + cells]
