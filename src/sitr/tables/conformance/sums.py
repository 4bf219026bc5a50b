"""Whether the sums of an engine are exact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pyarrow

from ..domains import Domain
from ..expressions import Column
from ..relations import Scan
from ..tally import Bound, Key, Measure, Tally
from .trial import Trial

LARGE = [2**61, 2**61 - 1, -(2**61), None, *[2**61] * 9]


def sums_hold(trial: Trial) -> dict[str, bool]:
    """Sums of which 64 bits hold no part."""
    columns = {
        "half": {"type": "integer", "bounds": [0, 1]},
        "x": {"type": "int64", "bounds": [-(2**61), 2**61]},
        "unit": {"type": "integer"},
    }
    halves = [at % 2 for at, _ in enumerate(LARGE)]
    grid = Domain("number", Fraction(1), -(2**61), 2**61)

    def tally(bound: Bound | None) -> Callable[[Mapping[str, Domain]], Tally]:
        return lambda schema: Tally(
            Scan("trial"),
            (Key("half", Column("half"), (0, 1)),),
            bound,
            {"x": Measure(Column("x"), grid)},
            ((("x", 1),), (("x", 0),), ()),
        )

    def found(order: int, bound: Bound | None) -> dict[int, tuple[int, ...]]:
        frame = pyarrow.table(
            {
                "half": pyarrow.array(halves[::order], pyarrow.int64()),
                "x": pyarrow.array(LARGE[::order], pyarrow.int64()),
                "unit": pyarrow.array([7] * len(LARGE), pyarrow.int64()),
            }
        )
        settings: dict[str, Any] = {} if bound is None else {"unit": "unit", "max_rows_per_unit": 1000}
        rows = trial.ask(frame, columns, tally(bound), **settings)
        return {int(row["key0"]): tuple(int(row[f"sum{at}"]) for at in range(3)) for row in rows}

    each = {half: [one for one, two in zip(LARGE, halves, strict=True) if two == half] for half in (0, 1)}
    right = {
        half: (sum(one + 2**61 for one in part if one is not None), sum(one is not None for one in part), len(part))
        for half, part in each.items()
    }
    by_group = Bound(groups=2, rows_per_group=1000)
    return {"sums are exact beyond 64 bits": found(1, None) == right and found(-1, by_group) == right}
