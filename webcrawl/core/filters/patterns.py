"""Patterns and length: URLs the operator wants or does not want, by regular expression (Castillo 2004, §7.2.4)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from webcrawl.core.reasons import Reason


@dataclass(frozen=True)
class ExcludePatterns:
    """No URL in which one of these is found."""

    pattern: re.Pattern[str]
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what matches."""
        return Reason.EXCLUDED if self.pattern.search(url) else None


@dataclass(frozen=True)
class IncludePatterns:
    """Only URLs in which one of these is found."""

    pattern: re.Pattern[str]
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what does not match."""
        return None if self.pattern.search(url) else Reason.NOT_INCLUDED


@dataclass(frozen=True)
class LengthLimit:
    """No URL longer than this: endless ones are made by broken relative links and traps."""

    characters: int
    by_host: ClassVar[bool] = False

    def refuse(self, url: str, host: str) -> Reason | None:
        """Refuse what is longer."""
        return Reason.TOO_LONG if len(url) > self.characters else None


def any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern that finds any of several."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
