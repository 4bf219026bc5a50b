"""What leaves: values with their errors, what they cost, and whether that was charged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ._version import __version__
from .accounting import Event
from .units import Adjacency

NOT_PRIVATE = "NOT PRIVATE: made for a test"
IN_MEMORY = "The ledger is in memory: no charge outlives this process, and no budget is kept beyond it."


@dataclass(frozen=True)
class Release:
    """One answer that may leave.

    Attributes:
        value: The noisy answer: a number, an array, a name, or None where a mechanism declined.
        error95: What the noise alone stays within, 95 times in 100; None where no number says it.
        event: What was done, for the accountant.
        entry: Where a ledger charged it; None: not charged.
        private: False where noise was seeded or left out: then the value protects nobody.
        time: When it was made.
        version: The version of sitr that made it.

    Example:
        >>> from sitr.accounting import PureDP
        >>> print(Release(value=3, error95=2.0, event=PureDP(epsilon=1.0)))
        3 (± 2 with 95 %), not charged
    """

    value: Any
    error95: Any
    event: Event
    entry: str | None = None
    private: bool = True
    time: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)
    version: str = __version__

    @property
    def adjacency(self) -> Adjacency | None:
        """The relation between neighbours that the event speaks of."""
        return self.event.adjacency

    def __str__(self) -> str:
        error = f" (± {self.error95:.4g} with 95 %)" if isinstance(self.error95, (int, float)) else ""
        charged = f"entry {self.entry}" if self.entry else "not charged"
        return f"{self.value}{error}, {charged}{'' if self.private else f'; {NOT_PRIVATE}'}"


@dataclass(frozen=True)
class Paid(Release, ABC):
    """What a ledger charged for, and keeps: whoever asks for it again by its id has the same for nothing.

    Attributes:
        notes: Remarks for people.
        operation: The id under which the ledger keeps it.
        kept: Whether it was given before, and is given again for nothing.
        lasting: Whether the ledger that it was charged to outlives the process; one in memory does not.
        left: What its budgets had left after it, in words; what was kept does not say.
    """

    notes: tuple[str, ...] = ()
    operation: str | None = None
    kept: bool = field(default=False, compare=False)
    lasting: bool = field(default=True, compare=False)
    left: tuple[str, ...] = field(default=(), compare=False)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, and as the ledger keeps it."""

    def _written(self) -> dict[str, Any]:
        """What all of them write down beside what they hold; `_read` reads it."""
        return {
            "event": self.event.to_dict(),
            "notes": list(self.notes),
            "time": self.time.isoformat(),
            "version": self.version,
            **({} if self.private else {"private": False}),
        }

    @staticmethod
    def _read(content: Mapping[str, Any], entry: str | None, operation: str | None) -> dict[str, Any]:
        """The same as arguments, of what was kept under an entry and an operation."""
        return {
            "event": Event.from_dict(content["event"]),
            "notes": tuple(content["notes"]),
            "time": datetime.fromisoformat(content["time"]),
            "version": content["version"],
            "private": content.get("private", True),
            "entry": entry,
            "operation": operation,
            "kept": True,
        }

    @property
    def charged(self) -> str:
        """Where it was charged, for people: what was kept cost nothing when it was asked for again."""
        if self.entry is None:
            return "not charged"
        if self.kept:
            return f"the kept answer of entry {self.entry}: nothing was charged"
        return f"charged in entry {self.entry}{'' if self.lasting else f'. {IN_MEMORY}'}"
