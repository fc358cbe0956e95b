"""Chance without a generator: 64 well mixed bits of a few numbers, the same on every machine."""

from __future__ import annotations

import zlib

_MASK = 0xFFFFFFFFFFFFFFFF


def mixed(seed: int, host: int, number: int) -> int:
    """64 well mixed bits (the finaliser of splitmix64; Steele, Lea and Flood 2014)."""
    bits = (seed * 0x9E3779B97F4A7C15 + (host << 40) + number + 1) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 30) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


def fraction(seed: int, host: int, number: int) -> float:
    """A number in [0, 1), as if drawn by chance."""
    return (mixed(seed, host, number) >> 11) * 2**-53


def salted(seed: int, purpose: str) -> int:
    """Another seed for another purpose, so that two draws for the same page have nothing in common."""
    return seed + zlib.crc32(purpose.encode())
