"""What all mechanisms are: an event for the accountant and a release, from one object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ..accounting import Event
from ..release import Release
from .randomness import Source, source_of


class Mechanism(ABC):
    """Something that can be released once a value is given; what it costs is known before.

    Attributes:
        event: What a release costs, whatever the value is.
        error95: What the noise stays within, 95 times in 100; None where no one number says it.
    """

    event: Event
    error95: Any

    def release(self, value: Any, *, unsafe_seed: int | None = None, unsafe_without_noise: bool = False) -> Release:
        """Return the noisy answer; nothing is charged to a ledger here.

        Args:
            value: The exact answer, or the data, as the mechanism takes it.
            unsafe_seed: For tests: noise from a seeded stream. The release is stamped NOT PRIVATE.
            unsafe_without_noise: For tests: no noise at all. The release is stamped NOT PRIVATE.

        Raises:
            InvalidArgument: The value is not of the kind that the mechanism takes; it is never shown.

        Privacy: one release costs `event`, under its adjacency.
        """
        source: Source | None = None if unsafe_without_noise else source_of(unsafe_seed)
        return self._released(self._checked(value), source)

    def _released(self, checked: Any, source: Source | None) -> Release:
        """Return the release of a value that was checked: from here on nothing is refused."""
        value, error95 = self._answered(checked, source)
        return Release(value, error95, self.event, private=source is not None and source.private)

    def _answered(self, checked: Any, source: Source | None) -> tuple[Any, Any]:
        """Return the answer and what the noise stays within, which may be computed of the answer and of it alone."""
        return self._drawn(checked, source), self.error95

    @abstractmethod
    def _checked(self, value: Any) -> Any:
        """Return the value in the form that noise is added to, or refuse it without showing it; nothing is drawn."""

    @abstractmethod
    def _drawn(self, value: Any, source: Source | None) -> Any:
        """Return the answer, with noise from the source, or without any where there is none."""
