"""What can be asked of a group of rows: `count()`, `mean("cost")` and their like; nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from .. import _validate
from ..errors import InvalidArgument
from ..tables.domains import SAID, Domain
from ..tables.expressions import Bucket, Column, Expression
from ..tables.limits import Extent, around

# Which powers of a value have to be added up for it: 0 counts rows, 1 adds values, 2 adds squares too.
DEGREES = {"count": 0, "sum": 1, "mean": 1, "variance": 2, "stddev": 2, "covariance": 1, "correlation": 2}
OF_RANKS = ("quantile", "min", "max")
COUNTS = ("count", "count_units", "count_distinct", "histogram")
MOST_BINS = 2**10


@dataclass(frozen=True)
class Aggregate:
    """One number, or for a histogram one for each bin, of every group.

    Attributes:
        kind: What is computed.
        value: Of which expression; None for a count of rows or units.
        other: The second one of a covariance or a correlation.
        bounds: What values are clipped to, where they are to be tighter than declared.
        other_bounds: The same for `other`.
        q: Which quantile.
        edges: Between the bins of a histogram.
    """

    kind: str
    value: Expression | None = None
    other: Expression | None = None
    bounds: tuple[Any, Any] | None = None
    other_bounds: tuple[Any, Any] | None = None
    q: float | None = None
    edges: tuple[Any, ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(str(one) for one in (self.value, self.other) if one is not None)
        return f"{self.kind}({inside}{f', q={self.q:g}' if self.kind == 'quantile' else ''})"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        made: dict[str, Any] = {"is": self.kind}
        for name in ("value", "other"):
            one = getattr(self, name)
            made |= {name: one.to_dict()} if one is not None else {}
        for name in ("bounds", "other_bounds", "edges"):
            made |= {name: [str(end) for end in getattr(self, name)]} if getattr(self, name) else {}
        return made | ({"q": self.q} if self.q is not None else {})

    def extent_over(self, columns: Mapping[str, Extent]) -> Extent:
        """Return how large it is, where some columns are computed: sums of its values, or one of cells."""
        values = [one.extent_over(columns) for one in (self.value, self.other) if one is not None]
        if self.edges and self.value is not None:
            values.append(Bucket(self.value, self.edges[:-1]).extent_over(columns))
        return around(values, nodes=10)

    def check(self, schema: Mapping[str, Domain]) -> None:
        """Refuse what cannot be computed of the columns."""
        if self.kind == "count" and self.bounds is not None:
            raise InvalidArgument(f"{self}: bounds on a count are for the rows of one unit.", do="use per_unit(...).")
        for one in (self.value, self.other):
            if one is None:
                continue
            domain = one.domain(schema)
            if self.kind not in ("count", "count_distinct") and not domain.ordered:
                raise InvalidArgument(
                    f"{self}: {one} is {SAID[domain.kind]}, not a number.", do=self._instead(one, domain)
                )
            if self.kind in DEGREES and self.kind != "count" and domain.kind != "number":
                raise InvalidArgument(f"{self}: {one} is {SAID[domain.kind]}: ask for its median, min or max.")

    def _instead(self, one: Expression, domain: Domain) -> str:
        """What to ask of a condition or a text."""
        text = f'table["{one.name}"]' if isinstance(one, Column) else f"({one})"
        if domain.kind != "boolean":
            return f"sitr.count_distinct({text}), or group by it."
        more = ", ..." if self.other is not None or self.kind == "quantile" else ""
        return f"count what is true as 1: sitr.{self.kind}({text}.choose(1, 0){more})."


def count(value: str | Expression | None = None, *, bounds: tuple[int, int] | None = None) -> Aggregate:
    """Return how many rows there are, or in how many of them a value is not missing.

    Args:
        value: The value.
        bounds: For the rows of one unit (`per_unit`): what their number is clipped to.

    Example:
        >>> print(count(), count("cost"))
        count() count(cost)
    """
    return Aggregate("count", _value(value) if value is not None else None, bounds=bounds)


def count_units() -> Aggregate:
    """Return how many units (people, say) have rows.

    Example:
        >>> print(count_units())
        count_units()
    """
    return Aggregate("count_units")


def count_distinct(value: str | Expression) -> Aggregate:
    """Return how many different values there are; each unit's different values count up to its bound.

    Example:
        >>> print(count_distinct("icd9"))
        count_distinct(icd9)
    """
    return Aggregate("count_distinct", _value(value))


def sum(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return the sum of values, clipped to their declared bounds or to tighter ones.

    Example:
        >>> print(sum("cost"))
        sum(cost)
    """
    return Aggregate("sum", _value(value), bounds=bounds)


def mean(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return the mean of values, clipped as for `sum`.

    Example:
        >>> print(mean("cost"))
        mean(cost)
    """
    return Aggregate("mean", _value(value), bounds=bounds)


def variance(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return the variance (over n) of values, clipped as for `sum`.

    Example:
        >>> print(variance("cost"))
        variance(cost)
    """
    return Aggregate("variance", _value(value), bounds=bounds)


def stddev(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return the standard deviation (over n) of values, clipped as for `sum`.

    Example:
        >>> print(stddev("cost"))
        stddev(cost)
    """
    return Aggregate("stddev", _value(value), bounds=bounds)


def covariance(
    value: str | Expression,
    other: str | Expression,
    *,
    bounds: tuple[Any, Any] | None = None,
    other_bounds: tuple[Any, Any] | None = None,
) -> Aggregate:
    """Return the covariance (over n) of two values, over rows that have both.

    Example:
        >>> print(covariance("age", "cost"))
        covariance(age, cost)
    """
    return Aggregate("covariance", _value(value), _value(other), bounds, other_bounds)


def correlation(
    value: str | Expression,
    other: str | Expression,
    *,
    bounds: tuple[Any, Any] | None = None,
    other_bounds: tuple[Any, Any] | None = None,
) -> Aggregate:
    """Return the correlation of two values, over rows that have both.

    Example:
        >>> print(correlation("age", "cost"))
        correlation(age, cost)
    """
    return Aggregate("correlation", _value(value), _value(other), bounds, other_bounds)


def quantile(value: str | Expression, q: float, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return a quantile of values; q = 0.5 is the median.

    Example:
        >>> print(quantile("cost", 0.9))
        quantile(cost, q=0.9)
    """
    return Aggregate("quantile", _value(value), bounds=bounds, q=_validate.real("q", q, 0, 1))


def median(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return the median of values.

    Example:
        >>> print(median("cost"))
        quantile(cost, q=0.5)
    """
    return quantile(value, 0.5, bounds=bounds)


def min(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return about the least value: a quantile so low that only a few rows, by a stated number, lie below it.

    Example:
        >>> print(min("age"))
        min(age)
    """
    return Aggregate("min", _value(value), bounds=bounds, q=0.0)


def max(value: str | Expression, *, bounds: tuple[Any, Any] | None = None) -> Aggregate:
    """Return about the largest value: a quantile so high that only a few rows, by a stated number, lie above it.

    Example:
        >>> print(max("age"))
        max(age)
    """
    return Aggregate("max", _value(value), bounds=bounds, q=1.0)


def histogram(value: str | Expression, edges: Sequence[Any]) -> Aggregate:
    """Return how many rows have a value in each bin: from an edge up to the next, the last edge included.

    Example:
        >>> print(histogram("age", [0, 18, 65, 120]))
        histogram(age)
    """
    made = tuple(_validate.plain(edge) for edge in islice(edges, MOST_BINS + 2))
    if not 2 <= len(made) <= MOST_BINS + 1 or any(not one < two for one, two in pairwise(made)):
        raise InvalidArgument(
            f"edges are 2 to {MOST_BINS + 1} values that rise.", do='histogram("age", [0, 18, 65, 120]).'
        )
    return Aggregate("histogram", _value(value), bounds=(made[0], made[-1]), edges=made)


def _value(value: str | Expression) -> Expression:
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return Column(value)
    raise InvalidArgument(f"{_validate.shown(value)} is no column.", do='name one: mean("cost").')
