"""What a query releases: a table of numbers with intervals, and what it cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, overload

import numpy as np

from .. import _validate, markup
from ..display import counted
from ..errors import InvalidArgument, MissingExtra
from ..habits import ANSWER, told_instead
from ..pictures import Drawing, drawn
from ..release import NOT_PRIVATE, Paid
from ..tables.moments import date_of, time_of
from .cells import are_whole, cells, decimals, interval_text, number_text
from .drawing import draw
from .dtypes import pandas_dtype
from .half_widths import half_width
from .rows import CHOSEN, in_order, taken

FORMULAS = tuple("=+-@＝＋－＠|%")  # a spreadsheet may take a text that begins so for a formula or a command
SHOWN = 20  # rows that are printed
FIRST = 5  # rows of a head, by default


@dataclass(frozen=True)
class Additive:
    """The noise in a column that is a sum of measured numbers: of each cell, independent of the others.

    Attributes:
        weights: Of the noises in one cell.
        scale: Of each noise.
        kind: "laplace" or "gaussian".
        integers: Whether the noises are whole numbers.
    """

    weights: tuple[float, ...]
    scale: float
    kind: str
    integers: bool = False

    def half_width(self, factors: tuple[float, ...] = (1.0,)) -> float:
        """Return what the noise of a combination of cells stays within, 95 times in 100."""
        weights = [factor * weight for factor in factors for weight in self.weights]
        return half_width(weights, self.scale, self.kind, integers=self.integers)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Attributes:
        value: The number.
        low: The lower end of the interval.
        high: The upper end.
        whole: Whether it is one of rows or units, which people read without decimals.

    Example:
        >>> print(Estimate(120.0, 110.5, 129.5))
        120.0 (from 110.5 to 129.5 with 95 %)
        >>> print(Estimate(120.0, 110.5, 129.5, whole=True))
        120 (from 110 to 130 with 95 %)
    """

    value: float
    low: float
    high: float
    whole: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        digits = 0 if self.whole else decimals([(self.high - self.low) / 2])
        interval = interval_text(self.low, self.high, digits)
        return f"{number_text(self.value, digits)} (from {interval} with 95 %)"


@told_instead(ANSWER, "an answer", "it is a table of numbers with their intervals, with verbs of its own.")
@dataclass(frozen=True)
class Answer(Paid):
    """A table that may leave.

    `answer["n"]` is a column, and `for row in answer` goes over its rows, each a dict of its cells by name.

    Attributes:
        value: Columns by name: first the keys, then what was asked for, made consistent (no negative counts).
        error95: For each aggregate, the half width of its interval in each row.
        keys: The names of the key columns.
        raw: The aggregates as measured, with all their noise.
        low: For each aggregate, the lower end of its 95 % interval in each row.
        high: The upper end.
        additive: For aggregates that may be added up: their noise.
        ranked: Whether noisy values say in which order the rows stand: then they say, too, which of them come first.
    """

    keys: tuple[str, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)
    low: Mapping[str, Any] = field(default_factory=dict)
    high: Mapping[str, Any] = field(default_factory=dict)
    additive: Mapping[str, Additive] = field(default_factory=dict)
    ranked: bool = field(default=False, compare=False)

    def __len__(self) -> int:
        return len(next(iter(self.value.values()), ()))

    def __getitem__(self, name: str) -> list[Any]:
        return self.columns[self._known(name)]

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = self.columns
        return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))

    @property
    def columns(self) -> dict[str, list[Any]]:
        """The table with its intervals: keys, then each aggregate with `_low` and `_high`."""
        made = {name: list(self.value[name]) for name in self.keys}
        for name in self.raw:
            made[name] = list(self.value[name])
            made[f"{name}_low"], made[f"{name}_high"] = list(self.low[name]), list(self.high[name])
        return made

    def to_pandas(self) -> Any:
        """Return the table with its intervals as a pandas frame: counts are Int64, dates and times datetime64."""
        pandas = _imported("pandas")
        columns = {name: pandas.Series(cells, dtype=pandas_dtype(cells)) for name, cells in self.columns.items()}
        return pandas.DataFrame(columns)

    def to_polars(self) -> Any:
        """Return the table with its intervals as a Polars frame."""
        return _imported("polars").DataFrame(self.columns)

    def to_arrow(self) -> Any:
        """Return the table with its intervals as an Arrow table."""
        return _imported("pyarrow").table(self.columns)

    @overload
    def to_csv(self, path: None = None, *, index: bool = False) -> str: ...

    @overload
    def to_csv(self, path: str | Path, *, index: bool = False) -> None: ...

    def to_csv(self, path: str | Path | None = None, *, index: bool = False) -> str | None:
        """Return the table as CSV, or write it; a text that a spreadsheet would run as a formula gets a quote in front.

        Args:
            path: Where to; a file that is there is overwritten. Without one, the text is returned.
            index: As pandas has it; there is none.
        """
        if index:
            raise InvalidArgument("an answer has no index.", do="to_csv(path): its keys are columns.")
        rows = [list(self.columns), *zip(*self.columns.values(), strict=True)]
        text = "".join(",".join(map(_cell, row)) + "\n" for row in rows)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8", newline="")
        return None

    def plot(self, *names: str) -> Drawing:
        """Draw numbers with their intervals: a bar for each row, or lines over time if a key holds dates.

        A notebook shows what is returned; `.save("visits.svg")` writes it. Needs matplotlib.

        Args:
            names: Of the numbers; the first few by default.

        Raises:
            MissingExtra: matplotlib is not installed.
        """
        return drawn(lambda: draw(self, names))

    def order_by(self, *names: str, descending: bool = False) -> Answer:
        """Return the rows in the order of some columns, the first of which counts most; missing values come last.

        It costs nothing: only what was released is read.

        Args:
            names: Keys or numbers.
            descending: Whether the largest come first.
        """
        if not names:
            raise InvalidArgument("there is nothing to order the rows by.", do=f"one of {', '.join(self.columns)}.")
        rows, columns = list(range(len(self))), self.columns
        for name in reversed(names):
            rows = in_order(rows, columns[self._known(name)], descending=descending)
        by_noise = not {*names} <= {*self.keys}
        some = {*names} != {*self.keys}  # of the keys: rows that are alike in these stay in the order that they had
        return replace(taken(self, rows), ranked=by_noise or (self.ranked and some))

    def head(self, rows: int = FIRST) -> Answer:
        """Return the first rows; with a remark, if they come first by their noisy values.

        Args:
            rows: How many.
        """
        most = _validate.integer("rows", rows, 0, 10**9)
        first = taken(self, range(len(self))[:most])
        chosen = self.ranked and len(first) < len(self) and CHOSEN not in self.notes
        return replace(first, notes=(*first.notes, CHOSEN)) if chosen else first

    def total(self, name: str, **where: Any) -> Estimate:
        """Return the sum of a column over rows, with the interval of the sum.

        Args:
            name: Of the aggregate.
            where: For key columns, the value or values to add up; all rows unless told.

        Raises:
            InvalidArgument: Some of it has no row: what is not in the answer is not known to be none.
        """
        chosen = self._rows(where)
        found = {row for row, taken in zip(self._under(where), chosen, strict=True) if taken}
        if len(found) < math.prod(len(_several(wanted, self.value[key])) for key, wanted in where.items()):
            raise InvalidArgument(
                "this answer has no row for some of what is wanted.",
                why="what is not in it is not known to be none.",
                do=f"{self._meant(where)}look at its rows: .to_pandas().",
            )
        values = self._added(name)[chosen]
        return self._combined(name, float(values.sum()), (1.0,) * int(chosen.sum()))

    def difference(self, name: str, first: Any, second: Any) -> Estimate:
        """Return one row of a column less another, with the interval of the difference.

        Args:
            name: Of the aggregate.
            first: The row: a value for every key by name, or, where there is one key, its value.
            second: The row that is taken away.
        """
        first, second = self._named(first), self._named(second)
        one, other = self._rows(first), self._rows(second)
        if one.sum() != 1 or other.sum() != 1:
            raise InvalidArgument(
                f"a difference is of two rows; the first names {one.sum()} of this answer, the second {other.sum()}.",
                do=f"{self._meant(first)}{self._meant(second)}"
                f"give each of the two a value for every key: {', '.join(self.keys) or 'there is none here'}.",
            )
        values = self._added(name)
        return self._combined(name, float(values[one][0] - values[other][0]), (1.0, -1.0))

    def _known(self, name: Any) -> str:
        if isinstance(name, str) and name in self.columns:
            return name
        hint = _validate.meant(name, self.columns) if isinstance(name, str) else ""
        what = f"an answer has no column {_validate.shown(name)}."
        raise InvalidArgument(what, do=f"{hint}Columns: {', '.join(self.columns)}.")

    def _named(self, row: Any) -> Mapping[str, Any]:
        """A row by its keys; where there is one key, its value is enough."""
        if isinstance(row, Mapping):
            return row
        if len(self.keys) == 1:
            return {self.keys[0]: row}
        such = ", ".join(f'"{key}": ...' for key in self.keys)
        raise InvalidArgument(
            f"{_validate.shown(row)} is not the key of a row: there are {len(self.keys)} keys.",
            why="a difference is of two rows, each named by all of its keys.",
            do=f"name them: {{{such}}}." if such else "answers without keys have one row.",
        )

    def _added(self, name: str) -> Any:
        if name not in self.raw:
            hint = _validate.meant(str(name), self.raw)
            raise InvalidArgument(f"there is no number {_validate.shown(name)}.", do=f"{hint}{', '.join(self.raw)}.")
        if name not in self.additive:
            adding = f"here {', '.join(self.additive)}" if self.additive else "ask for these beside it"
            raise InvalidArgument(f"{_validate.shown(name)} does not add up.", do=f"counts and sums do: {adding}.")
        return np.asarray(self.raw[name], dtype=float)

    def _combined(self, name: str, value: float, factors: tuple[float, ...]) -> Estimate:
        width = self.additive[name].half_width(factors) if factors else 0.0
        return Estimate(value, value - width, value + width, are_whole(self.value[name]))

    def _rows(self, where: Mapping[str, Any]) -> Any:
        chosen = np.ones(len(self), dtype=bool)
        for key, wanted in where.items():
            if key not in self.keys:
                raise InvalidArgument(f"{_validate.shown(key)} is no key.", do=f"keys: {', '.join(self.keys)}.")
            values = _several(wanted, self.value[key])
            chosen &= np.array([cell in values for cell in self.value[key]], dtype=bool)
        return chosen

    def _under(self, where: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Of each row, its cells in some of the keys."""
        return list(zip(*(self.value[key] for key in where), strict=True)) if where else [()] * len(self)

    def _meant(self, where: Mapping[str, Any]) -> str:
        """Which keys of this answer were meant by texts that are none."""
        hints = []
        for key, wanted in where.items():
            texts = [one for one in self.value[key] if isinstance(one, str)]
            hints += [_validate.meant(wanted, texts)] if isinstance(wanted, str) and wanted not in texts else []
        return "".join(hints)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON holds it."""
        return {
            "keys": [{"name": name, "cells": _coded(self.value[name])} for name in self.keys],
            "aggregates": [
                {
                    "name": name,
                    **{what: _coded(getattr(self, what)[name]) for what in ("value", "raw", "low", "high")},
                    "error95": list(self.error95[name]),
                }
                for name in self.raw
            ],
            "additive": {name: vars(one) | {"weights": list(one.weights)} for name, one in self.additive.items()},
            **self._written(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], entry: str | None, operation: str | None) -> Answer:
        """Return an answer that was kept."""
        keys = {one["name"]: [_decoded(cell) for cell in one["cells"]] for one in content["keys"]}
        parts = {one["name"]: one for one in content["aggregates"]}
        column = {
            what: {name: [_decoded(cell) for cell in one[what]] for name, one in parts.items()}
            for what in ("value", "raw", "low", "high")
        }
        return cls(
            value=keys | column["value"],
            error95={name: one["error95"] for name, one in parts.items()},
            keys=tuple(keys),
            raw=column["raw"],
            low=column["low"],
            high=column["high"],
            additive={
                name: Additive(**{**one, "weights": tuple(one["weights"])}) for name, one in content["additive"].items()
            },
            **cls._read(content, entry, operation),
        )

    def __repr__(self) -> str:
        return f"Answer({counted(len(self), 'row')}: {', '.join(self.value)}; {self._charge()})"

    def __str__(self) -> str:
        head, rows = cells(self, SHOWN)
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        sides = [str.ljust] * len(self.keys) + [str.rjust] * (len(head) - len(self.keys))
        lines = [
            "  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip()
            for row in [head, *rows]
        ]
        return "\n".join([*lines, *self._below()])

    def _below(self) -> list[str]:
        """What stands under the rows: how many more there are, remarks, and what it cost."""
        more = len(self) - SHOWN
        said = [f"… {counted(more, 'more row')}"] if more > 0 else []
        return [*said, *self.notes, *self.left, self._charge()]

    def _charge(self) -> str:
        return f"{self.charged}{'' if self.private else f'; {NOT_PRIVATE}'}"

    def _repr_html_(self) -> str:
        head, rows = cells(self, SHOWN)
        table = markup.table(head, rows, numbers=len(head) - len(self.keys))
        return markup.page(table, markup.lines(*self._below()))


def _cell(value: Any) -> str:
    """A cell of CSV; in quotes where any spreadsheet, whatever its country, could see two cells in it."""
    text = _safe(value) if isinstance(value, str) else "" if value is None else str(value)
    if not any(sign in text for sign in ',;|\t"\r\n'):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def _safe(cell: str) -> str:
    if not cell:
        return cell
    # Spaces, tabs, line ends and signs that do not show are passed over by some spreadsheets; control signs begin none.
    begins = next((at for at, sign in enumerate(cell) if sign.isprintable() and not sign.isspace()), len(cell))
    unusual = not cell[0].isprintable()
    return f"'{cell}" if unusual or cell.startswith(FORMULAS, begins) else cell


def _several(wanted: Any, cells: Sequence[Any]) -> set[Any]:
    """The values that are wanted of a key: one, or a list of them; a text that is a date means it, among dates."""
    several = set(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else {wanted}
    kinds = {*map(type, cells)}
    read = time_of if datetime in kinds else date_of if date in kinds else None
    return several if read is None else {read(one) or one if isinstance(one, str) else one for one in several}


def _coded(cells: Sequence[Any]) -> list[Any]:
    """A column as JSON holds it."""
    if not any(issubclass(kind, date) for kind in {*map(type, cells)}):  # a timestamp is a date as well
        return list(cells)
    named = [("timestamp" if isinstance(cell, datetime) else "date", cell) for cell in cells]
    return [{name: cell.isoformat()} if isinstance(cell, date) else cell for name, cell in named]


def _decoded(cell: Any) -> Any:
    if isinstance(cell, Mapping):
        if "timestamp" in cell:
            return datetime.fromisoformat(cell["timestamp"])
        return date.fromisoformat(cell["date"])
    return cell


def _imported(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"{name} is not installed.", do=f"pip install {name}.") from None
