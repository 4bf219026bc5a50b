"""A report of what was recorded, as if the sequence had been fixed in advance."""

from __future__ import annotations

from numpy.typing import ArrayLike

from ...errors import InvalidArgument
from ...units import Adjacency, join
from ..bracket import Bracket
from ..events import Composed, Event, PureDP


class Odometer:
    """Records events and reports their exact composition, as if the sequence had been fixed in advance.

    Privacy: a report, never a limit. Where an analyst chose parameters after seeing answers, no theorem says that the
    numerical composition of what was chosen is a guarantee (THEORY 5.1); the filter's `spent` is. Where the
    parameters were declared beforehand, it is the tightest answer there is (THEORY 4.5).

    Example:
        >>> from sitr.accounting import Gaussian, choose_filter
        >>> filter, odometer = choose_filter(epsilon=1.0, delta=1e-6), Odometer()
        >>> for event in [Gaussian(noise_multiplier=10)] * 4:
        ...     filter.charge(event)
        ...     odometer.record(event)
        >>> round(odometer.epsilon(delta=1e-6).upper, 4)
        0.8341
    """

    def __init__(self) -> None:
        self.counts: dict[Event, int] = {}
        self.adjacency: Adjacency | None = None

    def record(self, event: Event) -> None:
        """Write an event down, for a report: nothing is limited (THEORY 5.1).

        Raises:
            IncompatibleAdjacency: It speaks of other neighbours than those before it.

        Example:
            >>> odometer = Odometer()
            >>> odometer.record(PureDP(epsilon=0.5) * 3)
            >>> odometer.event.pure()
            1.5
        """
        if not isinstance(event, Event):
            raise InvalidArgument(f"{type(event).__name__} is not an event.", do="Pass one, such as Gaussian(10).")
        self.adjacency = join(self.adjacency, event.adjacency)
        self.counts[event] = self.counts.get(event, 0) + 1

    @property
    def event(self) -> Event:
        """All that was recorded, composed (THEORY 4.5); PureDP(0) where nothing was.

        Example:
            >>> odometer = Odometer()
            >>> for _ in range(2):
            ...     odometer.record(PureDP(epsilon=0.5))
            >>> odometer.event
            PureDP(epsilon=0.5) * 2
        """
        return Composed(tuple(self.counts.items())) if self.counts else PureDP(0.0)

    def epsilon(self, delta: ArrayLike) -> Bracket:
        """Return the ε of the recorded sequence at δ, as if it had been fixed in advance (THEORY 4.5).

        Example:
            >>> float(Odometer().epsilon(delta=1e-6))
            0.0
        """
        return self.event.epsilon(delta)

    def delta(self, epsilon: ArrayLike) -> Bracket:
        """Return the δ of the recorded sequence at ε, as if it had been fixed in advance (THEORY 4.5).

        Example:
            >>> from sitr.accounting import ApproximateDP
            >>> odometer = Odometer()
            >>> odometer.record(ApproximateDP(epsilon=0.1, delta=1e-6))
            >>> float(odometer.delta(epsilon=0.1))
            1e-06
        """
        return self.event.delta(epsilon)
