"""A budget: the promise that an owner makes, and the one filter that keeps it."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from .. import _validate
from ..accounting import Event, PureFilter, RDPFilter, SingleFilter, ZCDPFilter, choose_filter
from ..accounting.filters import MOST
from ..display import scientific
from ..errors import InvalidArgument, LedgerDamaged
from ..units import ADJACENCIES, Adjacency
from .entry import canonical

FILTERS: dict[str, type[SingleFilter]] = {"pure": PureFilter, "zcdp": ZCDPFilter, "rdp": RDPFilter}
NAMES = {kind: name for name, kind in FILTERS.items()}
# Limits and costs may differ so far, relatively, from what another machine works out: as far as filters allow anyway.
TOLERANCE = 2.0**-40
REMEMBERED = 256  # costs of events that are asked for again and again
NEIGHBOURS = {"add_remove": "added or removed", "replace_one": "replaced"}


@dataclass(frozen=True)
class Budget:
    """What may be learned about one privacy unit from everything that is ever released.

    Three kinds: `epsilon` alone is pure, and refuses what has no pure ε; `epsilon` and `delta`; `rho`, where a `delta`
    is what δ-parts of events may add up to.

    Attributes:
        epsilon: The limit on ε.
        delta: The limit on δ.
        rho: The limit on ρ, in place of ε.
        adjacency: How neighbouring data sets differ; events of the other relation are refused.
        unit: Whom the promise protects, in a word.
        disjoint_by: The name of blocks of which each unit is in exactly one, by declaration: "hospital".
        per: The name of blocks that are part of the unit itself: "month" promises less, to each unit in each month.

    Privacy: kept by a filter that is fixed when the budget is created and recorded with it, against an analyst who
    picks every event after seeing all answers (THEORY 5.1). Releases from different blocks count once, not twice, only
    where a unit is in one of them, by `disjoint_by` or `per`, and under `add_remove`: to replace a unit changes two
    blocks, so they add up (THEORY 4.9).

    Example:
        >>> budget = Budget(epsilon=1.0, delta=1e-6)
        >>> budget.filter()
        RDPFilter(alpha=22.1775, epsilon=0.535134, delta=1e-07)
        >>> print(Budget(epsilon=0.5, unit="patient", per="month"))
        ε = 0.5 for one patient within one month, added or removed
    """

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    adjacency: Adjacency = "add_remove"
    unit: str = "person"
    disjoint_by: str | None = None
    per: str | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise InvalidArgument(
                "a budget has one limit: epsilon, epsilon and delta, or rho.", do="Budget(epsilon=1)."
            )
        _validate.choice("adjacency", self.adjacency, ADJACENCIES)
        for field in ("unit", "disjoint_by", "per"):
            if field == "unit" or getattr(self, field) is not None:
                _validate.name(field, getattr(self, field))
        if self.disjoint_by is not None and self.per is not None:
            raise InvalidArgument(
                "a budget has disjoint_by or per, not both.",
                why="the first says that each unit is in one block, the second that it may be in many.",
                do="keep the one that is true of the data.",
            )
        for name in ("epsilon", "delta", "rho"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _validate.real(name, getattr(self, name), -math.inf, math.inf))
        object.__setattr__(self, "delta", self.delta or None)  # δ = 0 is none
        self.filter()  # refuses what is out of range

    def __str__(self) -> str:
        unit = f"{self.unit} within one {self.per}," if self.per else f"{self.unit}"
        declared = f", each {self.unit} in one {self.disjoint_by} as declared" if self.disjoint_by else ""
        return f"{self.promise} for one {unit} {NEIGHBOURS[self.adjacency]}{declared}"

    @property
    def promise(self) -> str:
        """The limits, as people write them.

        Example:
            >>> Budget(epsilon=1, delta=1e-6).promise, Budget(rho=0.5).promise
            ('ε = 1 at δ = 1e-06', 'ρ = 0.5')
        """
        limit = f"ρ = {self.rho:g}" if self.epsilon is None else f"ε = {self.epsilon:g}"
        return f"{limit} at δ = {scientific(self.delta)}" if self.delta else limit

    @property
    def parallel(self) -> bool:
        """Whether releases from different blocks count once: each unit is in one block, and stays there.

        Example:
            >>> Budget(epsilon=1, disjoint_by="hospital").parallel
            True
            >>> Budget(epsilon=1, disjoint_by="hospital", adjacency="replace_one").parallel
            False
        """
        return (self.disjoint_by or self.per) is not None and self.adjacency == "add_remove"

    def filter(self) -> SingleFilter:
        """Return the filter that keeps the promise: ε and ρ add up; (ε,δ) by the best Rényi order for Gaussian noise.

        Example:
            >>> Budget(rho=0.5).filter()
            ZCDPFilter(rho=0.5, delta=0)
        """
        if self.rho is not None:
            return ZCDPFilter(self.rho, self.delta or 0.0, adjacency=self.adjacency)
        if self.delta:
            return choose_filter(_number(self.epsilon), self.delta, adjacency=self.adjacency)
        return PureFilter(_number(self.epsilon), adjacency=self.adjacency)


@dataclass(frozen=True)
class Keeper:
    """A budget as the book keeps it: the promise, and the filter that was fixed for it.

    Example:
        >>> keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6))
        >>> keeper == Keeper.from_json(keeper.to_json())
        True
    """

    budget: Budget
    kind: str
    limits: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, budget: Budget, filter: SingleFilter | None = None) -> Keeper:
        """Return what keeps a budget: its own filter, or one that was fixed before.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).limits
            (('epsilon', 1.0), ('delta', 0.0))
        """
        filter = filter or budget.filter()
        names = (*filter.fixed, filter.parameter, "delta")
        return cls(budget, NAMES[type(filter)], tuple((name, getattr(filter, name)) for name in names))

    def filter(self, used: tuple[int, int] = (0, 0)) -> SingleFilter:
        """Return the filter, with so much used.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).filter((2**59, 0)).remaining()["epsilon"]
            0.5
        """
        made = FILTERS[self.kind](**dict(self.limits), adjacency=self.budget.adjacency)
        made.used = used
        return made

    @property
    def order(self) -> float | None:
        """The Rényi order, which stays for ever; None where there is none."""
        return dict(self.limits).get("alpha")

    @cached_property
    def _unused(self) -> SingleFilter:
        return self.filter()

    def units(self, event: Event) -> tuple[int, int]:
        """Return what an event costs, in units of the filter's two limits, rounded up.

        Costs over a limit all read as one unit more than may ever be used: sums of them fit in 64 bits.

        Example:
            >>> from sitr.accounting import PureDP
            >>> Keeper.of(Budget(epsilon=1.0)).units(PureDP(epsilon=0.25))
            (288230376151711744, 0)
        """
        found = self._costs.get(event)
        if found is None:
            if len(self._costs) >= REMEMBERED:
                self._costs.clear()
            cost, delta = (_clamped(units) for units in self._unused.units(event))
            found = self._costs[event] = cost, delta
        return found

    @cached_property
    def _costs(self) -> dict[Event, tuple[int, int]]:
        return {}

    def raised(self, budget: Budget) -> Keeper:
        """Return what keeps a higher promise; a Rényi order stays, since it was fixed in advance.

        Raises:
            InvalidArgument: The new promise is of another kind, or lower, or for someone else.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0, delta=1e-6)).raised(Budget(epsilon=2.0, delta=1e-6)).limits[0]
            ('alpha', 22.17...)
        """
        _check_raised(self.budget, budget)
        if self.kind != "rdp":
            return Keeper.of(budget)
        return Keeper.of(budget, Keeper.of(budget)._filter_at(dict(self.limits)["alpha"]))

    def keeps_promise(self) -> bool:
        """Whether the filter is of the kind of the promise, and its limits are no higher than that allows.

        Example:
            >>> keeper = Keeper.of(Budget(epsilon=1.0))
            >>> (
            ...     keeper.keeps_promise(),
            ...     dataclasses.replace(keeper, limits=(("epsilon", 2.0), ("delta", 0.0))).keeps_promise(),
            ... )
            (True, False)
        """
        due = Keeper.of(self.budget)
        if self.kind != due.kind:
            return False
        limits = dict(self.limits)
        if self.kind == "rdp":  # of any order, which was the best when the budget was created
            due = Keeper.of(self.budget, self._filter_at(limits["alpha"]))
        return all(limits[name] <= most * (1 + TOLERANCE) for name, most in due.limits)

    def _filter_at(self, alpha: float) -> RDPFilter:
        epsilon, delta = _number(self.budget.epsilon), _number(self.budget.delta)
        return choose_filter(epsilon, delta, alpha=alpha, adjacency=self.budget.adjacency)

    def rescaled(self, used: tuple[int, int], other: Keeper) -> tuple[int, int]:
        """Return what was used in units of another keeper's limits, rounded up.

        Example:
            >>> one, two = Keeper.of(Budget(epsilon=1.0)), Keeper.of(Budget(epsilon=2.0))
            >>> one.rescaled((2**59, 0), two) == (2**58, 0)
            True
        """
        old, new = self.filter(), other.filter()
        return _rescaled(used[0], old.limit, new.limit), _rescaled(used[1], old.delta, new.delta)

    def to_json(self) -> str:
        """Return the record that the book keeps.

        Example:
            >>> Keeper.of(Budget(epsilon=1.0)).to_json()
            '{"adjacency":"add_remove","epsilon":1.0,"filter":{"delta":0.0,"epsilon":1.0,"type":"pure"},"unit":"person"}'
        """
        promise = {name: value for name, value in dataclasses.asdict(self.budget).items() if value is not None}
        return canonical({**promise, "filter": {"type": self.kind, **dict(self.limits)}})

    @classmethod
    def from_json(cls, text: str) -> Keeper:
        """Read what `to_json` wrote.

        Raises:
            LedgerDamaged: It is something else.
        """
        try:
            record = json.loads(text)
            limits = record.pop("filter")
            kind = limits.pop("type")
            order = (*FILTERS[kind].fixed, FILTERS[kind].parameter, "delta")
            keeper = cls(Budget(**record), kind, tuple((name, limits.pop(name)) for name in order))
            keeper.filter()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerDamaged(f"a stored budget cannot be read ({type(error).__name__}).") from None
        return keeper


def key(dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> str:
    """Return the name of a budget: of a dataset, or of an analyst's or a purpose's share of it.

    Example:
        >>> key("clinic"), key("clinic", analyst="amina")
        ('clinic', 'clinic/analyst/amina')
    """
    _validate.name("dataset", dataset, without="/")
    if analyst is not None and purpose is not None:
        raise InvalidArgument("a budget is an analyst's or a purpose's, not both.", do="Create two.")
    for kind, holder in (("analyst", analyst), ("purpose", purpose)):
        if holder is not None:
            return f"{dataset}/{kind}/{_validate.name(kind, holder)}"
    return dataset


def keys(datasets: Iterable[str], analyst: str, purpose: str | None) -> list[str]:
    """Return the names of all budgets that a release may fall under, in order; what it is given was checked.

    Example:
        >>> keys(["clinic"], "amina", None)
        ['clinic', 'clinic/analyst/amina']
    """
    shares = ["", f"/analyst/{analyst}"] + ([] if purpose is None else [f"/purpose/{purpose}"])
    return sorted(dataset + share for dataset in datasets for share in shares)


def block_kinds(keepers: Iterable[Keeper]) -> set[str]:
    """Return the kinds of blocks that count apart in these budgets.

    Example:
        >>> block_kinds([Keeper.of(Budget(epsilon=1.0, disjoint_by="hospital")), Keeper.of(Budget(epsilon=1.0))])
        {'hospital'}
    """
    return {str(keeper.budget.disjoint_by or keeper.budget.per) for keeper in keepers if keeper.budget.parallel}


WHOM = ("adjacency", "unit", "disjoint_by", "per")  # what a promise is about, which never changes


def check_share(whole: Budget, share: Budget) -> None:
    """Refuse a share of a dataset's budget that speaks of others than the whole.

    Raises:
        InvalidArgument: They differ in whom they protect.
    """
    other = [name for name in WHOM if getattr(whole, name) != getattr(share, name)]
    if other:
        raise InvalidArgument(
            f"a share differs from the budget of its dataset in {', '.join(other)}.",
            why="a release is charged to both, and both speak of the same people.",
            do=f"use that of the dataset: {whole}.",
        )


def _check_raised(old: Budget, new: Budget) -> None:
    changed = [name for name in WHOM if getattr(old, name) != getattr(new, name)]
    if changed or [old.rho is None, bool(old.delta)] != [new.rho is None, bool(new.delta)]:
        raise InvalidArgument(
            f"a budget keeps its kind when it is raised; {', '.join(changed) or 'its limits'} would be another.",
            why="what was promised to those in the data is compared with what is promised now.",
            do=f"raise the limits alone: the budget is {old}.",
        )
    limits = [(getattr(old, n) or 0.0, getattr(new, n) or 0.0) for n in ("epsilon", "rho", "delta")]
    if any(after < before for before, after in limits) or all(after == before for before, after in limits):
        raise InvalidArgument(f"{new.promise} does not raise {old.promise}.", do="Raise one limit and lower none.")


def _clamped(units: int | None) -> int:
    return MOST + 1 if units is None else min(units, MOST + 1)


def _rescaled(units: int, old: float, new: float) -> int:
    if units and not new:
        raise LedgerDamaged("a budget without δ has used some of it.", do="sitr ledger verify.")
    return -(-units * Fraction(old) // Fraction(new)) if units else 0


def _number(value: float | None) -> float:
    assert value is not None
    return value
