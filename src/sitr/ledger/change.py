"""A change of promise: dated, with its reason, and shown by every report."""

from __future__ import annotations

from typing import NamedTuple

from ..display import shortened
from .entry import Entry

WORDS = {"raise": "raised", "replace": "replaced", "declare": "redeclared"}
LONGEST = 400  # characters of what changed in a report; all of it is in the entry


class Change(NamedTuple):
    """What an owner changed in a promise.

    Attributes:
        at: When.
        kind: Of the entry: "raise"; "replace", of a share; or "declare" where what the promise depends on was declared
            anew.
        what: The new promise, or what is declared otherwise.
        reason: Why.

    Example:
        >>> print(Change("2026-03-01T09:00:00+00:00", "raise", "ε = 2", "second wave"))
        raised on 2026-03-01 to ε = 2: second wave
    """

    at: str
    kind: str
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.verb} {self.text}"

    @property
    def verb(self) -> str:
        """What was done: "raised"."""
        return WORDS[self.kind]

    @property
    def text(self) -> str:
        """When, to what, and why."""
        what = f"({self.what})" if self.kind == "declare" else f"{'by' if self.kind == 'replace' else 'to'} {self.what}"
        return f"on {self.at[:10]} {what}: {self.reason}"


def is_change(entry: Entry) -> bool:
    """Whether an entry changes a promise; terms that are written down for the first time do not."""
    return entry.kind in ("raise", "replace") or (entry.kind == "declare" and "reason" in entry.record)


def changed_terms(entry: Entry) -> Change:
    """Return the change that an entry of terms makes."""
    what = shortened("; ".join(map(str, entry.record.get("changes", []))), LONGEST)
    return Change(entry.at, entry.kind, what, str(entry.record["reason"]))
