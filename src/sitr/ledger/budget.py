"""A budget: the promise that an owner makes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields

from .. import _validate, markup
from ..accounting import PureFilter, ZCDPFilter, choose_filter, choose_union
from ..accounting.events import MOST_EPSILON
from ..accounting.filters import Filter
from ..display import scientific
from ..errors import InvalidArgument
from ..units import ADJACENCIES, Adjacency

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

    Privacy: kept by filters that are fixed when the budget is created and recorded with it, against an analyst who
    picks every event after seeing all answers (THEORY 5.1, 5.4). Releases from different blocks count once, not twice,
    only where a unit is in one of them, by `disjoint_by` or `per`, and under `add_remove`: to replace a unit changes
    two blocks, so they add up (THEORY 4.9).

    Example:
        >>> budget = Budget(epsilon=1.0, delta=1e-6)
        >>> budget.filter()
        UnionFilter(epsilon=1, delta=1e-06, members=6)
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
        return self.made_to(self.unit)

    def __repr__(self) -> str:
        said = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        shown = [f"{name}={value!r}" for name, value, default in said if value != default]
        return f"Budget({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return markup.page(markup.lines(str(self)))

    def made_to(self, unit: str) -> str:
        """Say the promise, with another word for whom it protects.

        Example:
            >>> Budget(epsilon=1).made_to("row, taken for one patient,")
            'ε = 1 for one row, taken for one patient, added or removed'
        """
        one = f"{unit} within one {self.per}," if self.per else unit
        declared = f", each {self.unit} in one {self.disjoint_by} as declared" if self.disjoint_by else ""
        return f"{self.promise} for one {one} {NEIGHBOURS[self.adjacency]}{declared}"

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

    def filter(self) -> Filter:
        """Return the filter that keeps the promise: ε and ρ add up; (ε,δ) is kept by several filters at once.

        Example:
            >>> Budget(rho=0.5).filter()
            ZCDPFilter(rho=0.5, delta=0)
        """
        if self.rho is not None:
            return ZCDPFilter(self.rho, self.delta or 0.0, adjacency=self.adjacency)
        if self.delta:
            epsilon = _number(self.epsilon)
            choose = choose_union if epsilon <= MOST_EPSILON / 2 else choose_filter  # as far as pure ε is counted
            return choose(epsilon, self.delta, adjacency=self.adjacency)
        return PureFilter(_number(self.epsilon), adjacency=self.adjacency)


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


def block_kinds(budgets: Iterable[Budget]) -> set[str]:
    """Return the kinds of blocks that count apart in these budgets.

    Example:
        >>> block_kinds([Budget(epsilon=1.0, disjoint_by="hospital"), Budget(epsilon=1.0)])
        {'hospital'}
    """
    return {str(budget.disjoint_by or budget.per) for budget in budgets if budget.parallel}


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


def check_raised(old: Budget, new: Budget) -> None:
    """Refuse a new promise that does not raise the old one.

    Raises:
        InvalidArgument: It is of another kind, or lower, or for someone else.
    """
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


def _number(value: float | None) -> float:
    assert value is not None
    return value
