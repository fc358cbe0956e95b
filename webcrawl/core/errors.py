"""Every error a user can meet, as one tree, split by whose fault it is.

A message has three parts: what happened (with the value), why it matters, what to do. A page that is not fetched is no
error: that is a reason (`core/reasons.py`). Our own mistakes are assertions, never one of these.
"""

from __future__ import annotations


class WebcrawlError(Exception):
    """The root: what happened, why it matters, what to do.

    >>> print(WebcrawlError("The disk is full.", "Nothing more can be settled.", "Free some space and resume."))
    The disk is full. Nothing more can be settled. Free some space and resume.

    A part that another one already says may be left out.
    """

    def __init__(self, what: str, why: str = "", remedy: str = "") -> None:
        super().__init__(what, why, remedy)
        self.what = what
        self.why = why
        self.remedy = remedy

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.why, self.remedy) if part)


class SettingError(WebcrawlError):
    """The operator gave a setting or argument that cannot be used: unknown, unreadable or out of range."""


class SeedError(WebcrawlError):
    """The operator gave seeds that cannot be used: unreadable, empty, binary, or not URLs."""


class ControlError(WebcrawlError):
    """The operator gave a command for a running crawl that cannot be used."""


class SiteError(WebcrawlError):
    """The web answered with something no rule covers."""


class StoreError(WebcrawlError):
    """The disk or the database failed: full, damaged, or not reachable."""


class RunError(WebcrawlError):
    """The run directory cannot be used: of a newer version, in use by another process, or made for another crawl."""
