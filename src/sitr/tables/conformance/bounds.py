"""Whether an engine keeps the bounds on a unit, and chooses the rows that stay as it is told to."""

from __future__ import annotations

import math
import secrets
from fractions import Fraction
from typing import Any

import pyarrow

from ..domains import Domain
from ..emitter import PRIME
from ..expressions import Column
from ..relations import Scan
from ..tally import Bound, Key, Measure, Tally
from .trial import KEY, Trial

UNITS = 400  # of the table from which rows are chosen at random


def bounds_hold(trial: Trial) -> dict[str, bool]:
    """Rows of three people and of nobody, in groups of which one is missing; the mix says which of them stay."""
    count = 60
    ids = [at * 2_147_483_659 - 2**40 for at in range(count)]
    people = [None if at % 5 == 4 else at % 3 for at in range(count)]
    groups = [[0, 1, None][at // 7 % 3] for at in range(count)]
    frame = pyarrow.table(
        {
            "id": pyarrow.array(ids, pyarrow.int64()),
            "who": pyarrow.array(people, pyarrow.int64()),
            "group": pyarrow.array(groups, pyarrow.int64()),
            "bit": pyarrow.array([2 ** (at % 31) for at in range(count)], pyarrow.int64()),
        }
    )
    columns = {
        "id": {"type": "integer"},
        "who": {"type": "integer"},
        "group": {"type": "integer", "nulls": "group", "categories": [0, 1]},
        "bit": {"type": "integer", "bounds": [0, 2**31]},
    }
    settings: dict[str, Any] = {"unit": "who", "max_rows_per_unit": 3, "row_id": "id"}
    keys = (Key("group", Column("group"), (0, 1, None)),)
    bit = {"bit": Measure(Column("bit"), Domain("number", Fraction(1), 0, 2**31))}
    named = [at for at in range(count) if people[at] is not None]
    first = sorted(named, key=lambda at: (_mixed(ids[at]), ids[at]))

    rows = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), keys, Bound(rows=3), bit, ((), (("bit", 1),)), units=True),
        **settings,
    )
    kept = [at for who in range(3) for at in [one for one in first if people[one] == who][:3]]
    by_rows = {
        group: (len(here), sum(2 ** (at % 31) for at in here), len({people[at] for at in here}))
        for group in (0, 1, None)
        if (here := [at for at in kept if groups[at] == group])
    }
    cells = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), keys, Bound(groups=2, rows_per_group=2), bit, cells="bit"),
        **settings,
    )
    kept = [
        at
        for who in range(3)
        for group in (0, 1, None)
        for at in [one for one in first if people[one] == who and groups[one] == group][:2]
    ]
    chosen = set()
    for who in range(3):
        least = {
            group: min(ids[at] for at in kept if (people[at], groups[at]) == (who, group))
            for group in {groups[at] for at in kept if people[at] == who}
        }
        chosen |= {(who, group) for group in sorted(least, key=lambda group: (_mixed(least[group]), least[group]))[:2]}
    in_cells: dict[tuple[int | None, int], int] = {}
    for at in kept:
        if (people[at], groups[at]) in chosen:
            in_cells[groups[at], 2 ** (at % 31)] = in_cells.get((groups[at], 2 ** (at % 31)), 0) + 1
    return {
        "a unit keeps its bound of rows, and the mix says which": by_rows
        == {_key(row["key0"]): (int(row["sum0"]), int(row["sum1"]), int(row["units"])) for row in rows},
        "a unit keeps its bound of groups, a missing one too": in_cells
        == {(_key(row["key0"]), int(row["bit"])): int(row["sum0"]) for row in cells},
    }


def _key(cell: Any) -> int | None:
    return None if cell is None else int(cell)


def _mixed(row: int) -> int:
    """The mix of `emitter`, in whole numbers; `math.fmod` and engines keep the sign of what is divided."""
    first, second, third = KEY

    def left(value: int) -> int:
        return int(math.copysign(abs(value) % PRIME, value)) if value else 0

    low, high = left(row), left(math.floor(float(row) / float(PRIME)))
    once = left(low * first + second)
    twice = left(once * once + high * third)
    return left(left(twice * once) * third + first)


def chance_holds(trial: Trial) -> dict[str, bool]:
    """One row of two for each unit, by a random column: how often the first is taken is within ten deviations."""
    frame = pyarrow.table(
        {
            "who": pyarrow.array([at // 2 for at in range(2 * UNITS)], pyarrow.int64()),
            "first": pyarrow.array([at % 2 for at in range(2 * UNITS)], pyarrow.int64()),
        }
    )
    columns = {"who": {"type": "integer"}, "first": {"type": "integer", "bounds": [0, 1]}}
    measure = {"first": Measure(Column("first"), Domain("number", Fraction(1), 0, 1))}
    trial.source.guarded(lambda: trial.source.reseed(secrets.randbits(63)))
    rows = trial.ask(
        frame,
        columns,
        lambda schema: Tally(Scan("trial"), (), Bound(rows=1), measure, ((), (("first", 1),))),
        key=None,
        unit="who",
        max_rows_per_unit=1,
    )
    taken, spread = int(rows[0]["sum1"]), math.sqrt(UNITS) / 2
    fair = int(rows[0]["sum0"]) == UNITS and abs(taken - UNITS / 2) <= 10 * spread
    return {"a random column chooses rows": len(rows) == 1 and fair}
