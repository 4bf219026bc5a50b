"""Whether conditions inside others mean the same to an engine."""

from __future__ import annotations

import pyarrow

from ..declaration import Declaration
from ..expressions import Case, Column, Expression
from ..reference import Reference
from ..relations import Filter, Scan
from ..tally import Key, Tally
from .trial import Trial, as_number, as_numbers

BOTH = [(one, two, number) for number in (-1, None, 4) for one in (True, False, None) for two in (True, False, None)]


def conditions_hold(trial: Trial) -> dict[str, bool]:
    """A condition inside another keeps its parentheses, wherever it stands; the reference says what each is."""
    columns = {
        "place": {"type": "integer"},
        "one": {"type": "boolean"},
        "two": {"type": "boolean"},
        "number": {"type": "integer", "bounds": [-9, 9]},
    }
    kinds = (pyarrow.bool_(), pyarrow.bool_(), pyarrow.int64())
    cells = {
        name: pyarrow.array(held, kind)
        for name, held, kind in zip(("one", "two", "number"), zip(*BOTH, strict=True), kinds, strict=True)
    }
    frame = pyarrow.table({"place": pyarrow.array(range(len(BOTH)), pyarrow.int64()), **cells})
    rows = frame.to_pylist()
    one, two, high = Column("one"), Column("two"), Column("number") > 0
    either, within = one | two, Column("number").between(-3, 3)
    parts = {"either": either, "not": ~one, "high": high, "within": within, "same": one == two, "gone": one.is_null()}
    asked: dict[str, Expression] = {}
    for name, part in parts.items():
        asked |= {f"{name} listed": part.isin([True, False]), f"{name} missing": part.is_null()}
        asked |= {f"{name} compared": part == high, f"{name} compares": two != part, f"{name} not": ~part}
        asked |= {f"{name} beside": part & two, f"{name} chosen": Case(part, either, high).isin([True])}
    got = trial.values(frame, columns, {name: as_number(part) for name, part in asked.items()})

    def kept(condition: Expression, key: Expression) -> dict[bool, int]:
        found = trial.ask(
            frame,
            columns,
            lambda _: Tally(Filter(Scan("trial"), condition), (Key("key", key, (True, False)),), None, {}),
        )
        return {bool(row["key0"]): int(row["sum0"]) for row in found}

    schema = Declaration.of({"sitr": 1, "name": "t", "tables": {"t": {"unit": "row", "columns": columns}}})
    reference = Reference(schema.tables["t"].schema)

    def right(condition: Expression, key: Expression) -> dict[bool, int]:
        keys = [reference.value(key, row) for row in rows if reference.value(condition, row) is True]
        return {truth: keys.count(truth) for truth in (True, False) if truth in keys}

    places = [(high, either), (either.isin([True]), ~one), ((~one).is_null(), within), (either == high, one == two)]
    return {
        "a condition inside another keeps its meaning": all(
            got[name] == as_numbers([reference.value(part, row) for row in rows]) for name, part in asked.items()
        ),
        "rows are chosen and grouped by conditions": all(kept(*place) == right(*place) for place in places),
    }
