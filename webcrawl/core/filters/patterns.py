"""Patterns and length: URLs the operator wants or does not want, by regular expression (Castillo 2004, §7.2.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from webcrawl.core.reasons import Reason

Patterns = tuple[re.Pattern[str], ...]


@dataclass(frozen=True)
class ExcludePatterns:
    """No URL in which one of these is found."""

    patterns: Patterns
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what matches."""
        return Reason.EXCLUDED if any(pattern.search(url) for pattern in self.patterns) else None


@dataclass(frozen=True)
class IncludePatterns:
    """Only URLs in which one of these is found."""

    patterns: Patterns
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what does not match."""
        return None if any(pattern.search(url) for pattern in self.patterns) else Reason.NOT_INCLUDED


@dataclass(frozen=True)
class LengthLimit:
    """No URL longer than this: endless ones are made by broken relative links and traps."""

    characters: int
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what is longer."""
        return Reason.TOO_LONG if len(url) > self.characters else None


def compiled(patterns: tuple[str, ...]) -> Patterns:
    """Each on its own: joined into one, flags such as (?i) and back references would mean something else."""
    return tuple(re.compile(pattern) for pattern in patterns)
