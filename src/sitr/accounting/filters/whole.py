"""A filter that charges each event as a whole, by one point of its own curve."""

from __future__ import annotations

import math
from functools import lru_cache

from ... import _validate
from ...errors import NoSuchGuarantee
from ...units import Adjacency
from ..curve import Curve
from ..engines.delta import Total
from ..engines.ways import Purse
from ..events import MOST_EPSILON, ApproximateDP, Event
from .filter import PROMISE, Units, amount_of, curve_of, in_units
from .single import SingleFilter

PRICE = 2e7  # multiplications for one point of a curve; where that is not enough, its Rényi curve says what holds
CLOSE = 1.01  # the largest loss is charged where it is at most so many times ε at a δ: it takes no δ at all
ROUGH = 1.1  # what a bound that is had at once is too high by, about
SMALL = (2.0**-10, 2.0**-20, 2.0**-30)  # of δ, at which ε is looked at until it is more than nothing
JUMP = 100.0  # times its share of δ: if ε takes so much more of its limit, a better share is looked for,
HALVINGS = 6  # so many times
ROOM = 1 + 2.0**-30  # over the ε that was found: another machine, which rounds otherwise, finds no more than that


class WholeFilter(SingleFilter):
    """Keeps Σ ε_i ≤ `epsilon` and Σ δ_i ≤ `delta`, where each event is (ε_i, δ_i)-DP as a whole (THEORY 5.4).

    Args:
        epsilon: The limit.
        delta: The limit, in (0, 0.5].
        adjacency: The relation that all events must speak of; `None` lets the first one that has any decide.

    Privacy: everything admitted is (ε,δ)-DP together, for parameters chosen adaptively. A plan of many steps, whose
    number is fixed in advance, costs what its own exact curve says, which no sum over its steps reaches. Which point of
    the curve an event is charged by, is settled by the event and the two limits alone, and stays.

    Example:
        >>> from sitr.accounting import Gaussian, PoissonSampled
        >>> plan = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 1700
        >>> filter = WholeFilter(epsilon=1.0, delta=2.5e-7)
        >>> round(filter.cost(plan), 3), filter.admits(plan)
        (0.984, True)
    """

    theorem = "Rogers, Roth, Ullman and Vadhan 2016: basic composition with adaptively chosen parameters"
    parameter = "epsilon"

    def __init__(self, epsilon: float, delta: float, *, adjacency: Adjacency | None = None) -> None:
        self.epsilon = _validate.real("epsilon", epsilon, 0, MOST_EPSILON / 2, open_low=True)
        super().__init__(self.epsilon, _validate.real("delta", delta, 0, 0.5, open_low=True), adjacency)

    def cost(self, event: Event) -> float:
        """Return the ε_i of the point of its curve that an event is charged by (THEORY 1.3, 5.4).

        Raises:
            NoSuchGuarantee: No (ε,δ) is known of it.

        Example:
            >>> WholeFilter(epsilon=1.0, delta=1e-6).cost(ApproximateDP(epsilon=0.5, delta=1e-9))
            0.5
        """
        epsilon, _ = _point(event, self.epsilon, self.delta)
        if math.isinf(epsilon):
            raise NoSuchGuarantee(
                "no (ε,δ) guarantee is known for this event.",
                why="every ε leaves a δ that is as good as 1 (THEORY 1.3).",
                do="describe the mechanism itself, or give a claim that says more.",
            )
        return epsilon

    def delta_part(self, event: Event) -> float:
        """Return the δ_i of the point of its curve that an event is charged by (THEORY 1.3, 5.4).

        Example:
            >>> from sitr.accounting import Gaussian
            >>> filter = WholeFilter(epsilon=1.0, delta=1e-6)
            >>> events = ApproximateDP(epsilon=0.5, delta=1e-9), Gaussian(noise_multiplier=20)
            >>> [f"{filter.delta_part(event):.2g}" for event in events]
            ['1e-09', '1.9e-07']
        """
        return _point(event, self.epsilon, self.delta)[1]

    def accepts(self, event: Event, units: Units) -> bool:
        """Return whether a recorded point is on or above the curve of its event, as it is known today.

        It need not be the point that would be chosen today: a tighter accountant may choose another.
        """
        if super().accepts(event, units):
            return True
        paid, failing = units
        if paid is None or failing is None:
            return True
        curve = curve_of(event)
        epsilon, delta = amount_of(paid, self.epsilon, -math.inf), amount_of(failing, self.delta, -math.inf)
        if curve._orders.most_infinite_mass <= delta and _largest(curve) <= epsilon:
            return True
        return 0 < delta < 1 and bool(curve.epsilon(delta).upper <= epsilon)

    def guarantee(self) -> Event:
        """Return the promise as an event: (ε,δ)-DP, a hair (2^-39) over the limits (THEORY 5.4).

        Example:
            >>> round(float(WholeFilter(epsilon=1.0, delta=1e-6).guarantee().epsilon(delta=1.1e-6)), 9)
            1.0
        """
        return ApproximateDP(self.epsilon * PROMISE, self.delta * PROMISE, adjacency=self.adjacency)


@lru_cache(maxsize=256)
def _point(event: Event, epsilon: float, delta: float) -> tuple[float, float]:
    """Return the (ε_i, δ_i) by which an event is charged where these are the limits.

    As many releases of an event fit as fit into ε and into δ both, so its point is near that where ε_i/ε = δ_i/δ: at
    the share of ε that a rough bound says it takes, or, if that was too high, at the share that it takes there. Where
    the largest loss is as good as that, it is taken: it costs no δ but the mass of infinite losses.
    """
    curve = curve_of(event)
    mass, largest = curve._orders.most_infinite_mass, _largest(curve)
    if mass >= 0.5:
        return math.inf, mass
    spare = delta - mass if mass < delta else mass  # an event that no limit of today holds still has a price
    rough = curve._orders.rough_epsilon(Total(mass + spare))
    if largest <= CLOSE * rough:
        return largest, mass

    def point(share: float) -> tuple[float, float]:
        units = in_units(mass + max(share, min(mass / spare, 1.0)) * spare, delta)
        assert units is not None
        at = amount_of(units, delta, -math.inf)  # whoever reads the units again reads this
        return float(curve._searched_epsilon(at, Purse(PRICE)).upper) * ROOM, at

    for share in (min(1.0, rough / ROUGH / epsilon) or SMALL[0], *SMALL):
        found, at = point(share)
        if found > 0:
            break
    if 0 < found / epsilon < share:
        found, at = point(found / epsilon)
    elif share < 1 and found / epsilon > JUMP * share:
        # ε falls steeply somewhere above, as where δ reaches the rate of a sample.
        least, most = share, 1.0
        for _ in range(HALVINGS):
            share = math.sqrt(least * most)
            there = point(share)
            least, most = (share, most) if there[0] / epsilon > share else (least, share)
            found, at = min((found, at), there, key=lambda one: max(one[0] / epsilon, one[1] / delta))
    return (largest, mass) if largest <= found else (found, at)


def _largest(curve: Curve) -> float:
    """The largest loss outside the mass of infinite ones; infinite where it has no bound."""
    try:
        return curve.pure(delta_part=True)
    except NoSuchGuarantee:
        return math.inf
