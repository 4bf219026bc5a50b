"""How the values of a column become whole numbers from 0 on, and values again; public facts alone say how."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray

from ..errors import InvalidArgument
from .crosstab import Coder
from .domains import Domain
from .relations import Relation
from .tally import Bound

Integers = NDArray[np.int64]
Within = tuple[Fraction, Fraction] | None
CELLS = 200  # that bounds are cut into at most, unless told: finer ones cost more noise than they show


@dataclass(frozen=True)
class Code:
    """The numbers of one column.

    Attributes:
        name: Of the column.
        domain: What it holds.
        grid: The cells of a number, a date or a time, between public bounds; None where its values are listed.
        values: The values that are listed.
        nulls: Whether the last number stands for what is missing, or not listed.
    """

    name: str
    domain: Domain
    grid: Domain | None
    values: tuple[Any, ...]
    nulls: bool

    @classmethod
    def of(cls, name: str, domain: Domain, cells: int = CELLS) -> Code:
        """Return how a column is numbered.

        Args:
            name: Of the column.
            domain: What it holds.
            cells: Into how many cells bounds are cut at most.

        Raises:
            InvalidArgument: Neither values nor bounds of it are public.
        """
        listed = (False, True) if domain.kind == "boolean" else domain.categories
        if listed is not None:
            known = tuple(dict.fromkeys(value for value in listed if value is not None))
            return cls(name, domain, None, known, not domain.required)
        try:
            grid = domain.within(None, finest=cells)
        except InvalidArgument as error:
            do = "declare bounds for it, or leave it out: columns=[...]."
            raise InvalidArgument(f"{name}: {error.what}", why=error.why, do=do) from None
        return cls(name, domain, grid, (), not domain.required)

    @property
    def known(self) -> int:
        """How many numbers stand for a value."""
        if self.grid is None:
            return len(self.values)
        low, high = self.grid.span
        return high - low + 1

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.known + self.nulls

    @property
    def ordered(self) -> bool:
        """Whether neighbouring numbers may be alike."""
        return self.grid is not None

    def coder(self, bins: Integers | None = None) -> Coder:
        """Return what makes bins of the values that an engine hands over; each number is one unless told."""
        values = None if self.grid is not None else pyarrow.array(self.values, self._listed_type)
        missing = self.known if self.nulls else None
        return Coder(values, missing, np.arange(self.size) if bins is None else bins)

    @property
    def _listed_type(self) -> Any:
        """As an engine hands listed values over: a cast to any other type may fail on the value of a single row."""
        kinds = {
            "boolean": pyarrow.bool_(),
            "number": pyarrow.int64(),  # decimals as well: their categories are whole numbers
            "string": pyarrow.string(),
            "date": pyarrow.date32(),
            "timestamp": pyarrow.timestamp("us"),
        }
        return kinds[self.domain.kind]

    def to_dict(self) -> dict[str, Any]:
        """Return how it is numbered as JSON holds it."""
        grid = None if self.grid is None else self.grid.to_dict()
        values = [self.domain.written(value) for value in self.values]
        return {"name": self.name, "domain": self.domain.to_dict(), "grid": grid, "values": values, "nulls": self.nulls}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Code:
        """Return what `to_dict` wrote down."""
        domain = Domain.from_dict(content["domain"])
        grid = None if content["grid"] is None else Domain.from_dict(content["grid"])
        values = tuple(domain.read(value) for value in content["values"])
        return cls(str(content["name"]), domain, grid, values, bool(content["nulls"]))

    def values_of(self, numbers: Integers, generator: np.random.Generator, within: Within = None) -> Any:
        """Return values in the place of numbers, as an Arrow column: inside a cell, any value is as likely as another.

        Args:
            numbers: Which.
            generator: Draws the values.
            within: Of a number, a date or a time, the least and the largest value that is drawn.

        Example:
            >>> age = Code.of("age", Domain("number", lower=0, upper=99, required=True), cells=10)
            >>> age.size, age.values_of(np.array([0, 1, 9]), np.random.default_rng(1)).to_pylist()
            (10, [2, 10, 96])
        """
        missing = numbers >= self.known
        if self.grid is None:
            listed = pyarrow.array([*self.values, None], self._listed_type)
            return listed.take(pyarrow.array(np.minimum(numbers, self.known)))
        first, last = self._cells(within)
        places = np.minimum(numbers, self.known - 1)
        widths = np.maximum(last - first + 1, 1)  # of cells that are not drawn from, none is left
        return self._written(first[places] + generator.integers(0, widths[places]), missing)

    def cell_texts(self) -> list[str | None]:
        """Return what each number stands for, for people: a value, the least and the largest of a cell, or None.

        Example:
            >>> Code.of("age", Domain("number", lower=0, upper=99), cells=3).cell_texts()
            ['0 to 16', '17 to 49', '50 to 82', '83 to 99', None]
        """
        missing: list[str | None] = [None] if self.nulls else []
        if self.grid is None:
            return [*map(str, self.values), *missing]
        ends = zip(*self.cell_ends(), strict=True)
        return [*(str(low) if low == high else f"{low} to {high}" for low, high in ends), *missing]

    def cell_ends(self) -> tuple[list[Any], list[Any]]:
        """Return the least values of all cells, and the largest, as rows are numbered; of what has an order."""
        first, last = self._cells(None)
        if not self.domain.float:  # whose cells are powers of two wide, by which doubles divide exactly
            first[1:] = [self._begin(cell, int(begin)) for cell, begin in enumerate(first[1:], 1)]
            last[:-1] = first[1:] - 1
        ends = (self._written(end, np.zeros(end.size, dtype=bool)) for end in (first, last))
        low, high = (end.to_pylist() for end in ends)
        return low, high

    def _begin(self, cell: int, exact: int) -> int:
        """The first fine step of a cell as the engine finds it, near the exact one."""
        assert self.grid is not None
        fine = self._fine

        def reached(steps: int) -> bool:
            return self._cell(steps * fine) >= cell

        if reached(exact) and not reached(exact - 1):
            return exact
        half = int(self.grid.step / fine) // 2
        near = range(exact - half, exact + half + 1)
        return near[bisect_left(near, True, key=reached)]

    def allowed(self, wanted: Any) -> tuple[NDArray[np.bool_], Within]:
        """Return which numbers stand for what is wanted, and between which ends values are then drawn.

        Args:
            wanted: A value; a list of them; None for what is missing; or, of a number, a date or a time, a pair of the
                least and the largest.

        Raises:
            InvalidArgument: It is none of these, or the column holds nothing like it.

        Example:
            >>> Code.of("sex", Domain("string", categories=("f", "m"))).allowed("f")[0].tolist()
            [True, False, False]
        """
        found = np.zeros(self.size, dtype=bool)
        if wanted is None:
            found[self.known :] = True
            return found, None
        if self.grid is None:
            values = wanted if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
            found[: self.known] = [value in values for value in self.values]
            if self.nulls and None in values:
                found[self.known] = True
            if found.sum() < len(set(values)):
                raise InvalidArgument(f"{self.name}: some of what is wanted is none of its values.")
            return found, None
        pair = wanted if isinstance(wanted, (tuple, list)) else (wanted, wanted)
        if len(pair) != 2:
            raise InvalidArgument(f"{self.name}: a value, or a pair of the least and the largest, is wanted.")
        low, high = (self.domain.measure(end) for end in pair)
        first, last = self._cells((low, high))
        found[: self.known] = first <= last
        return found, (low, high)

    def whole(self, wanted: Any) -> NDArray[np.bool_] | None:
        """Return which numbers stand for what is wanted and nothing else; None where it cuts a cell in two.

        Args:
            wanted: As for `allowed`.

        Example:
            >>> age = Code.of("age", Domain("number", lower=0, upper=99, required=True), cells=10)
            >>> age.whole((5, 99)).tolist().count(True), age.whole((7, 99)) is None
            (9, True)
        """
        found, within = self.allowed(wanted)
        if within is None:
            return found
        touched, inside = self.cells_within(*within)
        if touched != inside:
            return None
        numbers = np.arange(self.size)
        return np.asarray((numbers >= touched.start) & (numbers < touched.stop))

    def cells_within(self, low: Any, high: Any) -> tuple[range, range]:
        """Return the cells that values between two ends are in, and those of them that hold no others.

        Both are as the engine numbers rows, whose doubles put a value on a border into the cell on either side.

        Example:
            >>> age = Code.of("age", Domain("number", lower=0, upper=99, required=True), cells=10)
            >>> age.cells_within(5, 99), age.cells_within(7, 99)
            ((range(1, 10), range(1, 10)), (range(1, 10), range(2, 10)))
        """
        low, high = self._on_steps((self.domain.measure(low), self.domain.measure(high)))
        if low > high:
            return range(0), range(0)
        first, last = self._cell(low), self._cell(high)
        least, most = self.domain.ends  # what is beyond them is clipped to them
        others_first = low > least and self._cell(self.beside(low, -1)) == first
        others_last = high < most and self._cell(self.beside(high, 1)) == last
        return range(first, last + 1), range(first + others_first, last + 1 - others_last)

    def beside(self, value: Fraction, way: int) -> Fraction:
        """Return the next value that a number, a date or a time can have: the next larger one for 1, smaller for -1.

        Example:
            >>> Code.of("age", Domain("number", lower=0, upper=99)).beside(Fraction(7), -1)
            Fraction(6, 1)
        """
        if self.domain.float:
            return Fraction(math.nextafter(float(value), way * math.inf))
        step = self.domain.step
        return (_up(value / step) - 1) * step if way < 0 else (1 - _up(-value / step)) * step

    def parts(self, wanted: Any) -> NDArray[np.float64]:
        """Return which part of what each number stands for is wanted, if all of that is equally frequent.

        Example:
            >>> age = Code.of("age", Domain("number", lower=0, upper=99, required=True), cells=10)
            >>> age.parts((0, 10))[:3]
            array([1. , 0.6, 0. ])
        """
        found, within = self.allowed(wanted)
        if within is None:
            return found.astype(np.float64)
        (first, last), (begin, end) = self._cells(within), self._cells(None)
        parts = np.maximum(last - first + 1, 0) / np.maximum(end - begin + 1, 1)
        return np.append(parts, np.zeros(self.size - self.known))

    def numbers_of(self, values: Any) -> Integers:
        """Return the numbers of an Arrow column of values; what is missing has the one behind all that are known.

        Example:
            >>> age = Code.of("age", Domain("number", lower=0, upper=99), cells=10)
            >>> age.numbers_of(pyarrow.array([0, 6, 150, None]))
            array([ 0,  1,  9, 10])
        """
        if self.grid is None:
            listed = pyarrow.array(self.values, self._listed_type)
            places = pyarrow.compute.index_in(values.cast(listed.type, safe=False), value_set=listed)
            return np.asarray(places.fill_null(self.known).to_numpy(zero_copy_only=False), dtype=np.int64)
        low, high = self.grid.span
        numbers = self._measured(values)
        inside = np.clip(numbers, float(low * self.grid.step), float(high * self.grid.step))
        cells = np.floor(np.nan_to_num(inside) * float(1 / self.grid.step) + 0.5).astype(np.int64) - low
        return np.where(np.isnan(numbers), self.known, cells)

    def _measured(self, values: Any) -> NDArray[np.float64]:
        """Numbers, days or seconds, of which nothing is left where they are missing."""
        if self.domain.kind == "date":
            values = values.cast(pyarrow.date32()).cast(pyarrow.int32())
        if self.domain.kind == "timestamp":
            values = pyarrow.compute.floor(
                pyarrow.compute.divide(
                    values.cast(pyarrow.timestamp("us"), safe=False).cast(pyarrow.int64()).cast(pyarrow.float64()), 1e6
                )
            )
        numbers = values.cast(pyarrow.float64(), safe=False).fill_null(math.nan)
        return np.asarray(numbers.to_numpy(zero_copy_only=False))

    def _on_steps(self, within: tuple[Fraction, Fraction]) -> tuple[Fraction, Fraction]:
        """The least and the largest value between two ends; a float is held as it is."""
        low, high = within
        if self.domain.float:
            return low, high
        step = self.domain.step
        return _up(low / step) * step, -_up(-high / step) * step

    def _cell(self, value: Fraction) -> int:
        """The number of a value: as the engine finds it, which rounds in doubles, so that borders may go either way."""
        assert self.grid is not None
        low, high = self.grid.span
        step, domain = self.grid.step, self.domain
        inside = min(max(value, low * step), high * step)
        if domain.steps and (domain.step / step).denominator > 1:
            return math.floor(float(inside / domain.step) * float(domain.step / step) + 0.5) - low
        if domain.steps or (domain.step == 1 and step == 1 and not domain.float):
            return int(inside / step) - low
        return math.floor(float(inside) * float(1 / step) + 0.5) - low

    def _cells(self, within: Within) -> tuple[Integers, Integers]:
        """The first and the last fine step of each cell: a cell outside `within` ends before it begins."""
        assert self.grid is not None
        low, high = self.grid.span
        fine, step = self._fine, self.grid.step
        edges = [_up((2 * cell - 1) * step / 2 / fine) for cell in range(low, high + 2)]
        ends = [self.domain.ends, *([within] if within is not None else [])]
        least, most = max(_up(end / fine) for end, _ in ends), min(-_up(-end / fine) for _, end in ends)
        edges[0], edges[-1] = min(edges[0], least), max(edges[-1], most + 1)  # what is beyond is clipped to the ends
        first, last = np.array(edges[:-1], dtype=np.int64), np.array(edges[1:], dtype=np.int64) - 1
        return np.maximum(first, least), np.minimum(last, most)

    @property
    def _fine(self) -> Fraction:
        assert self.grid is not None
        return self.grid.step / 2**10 if self.domain.float else self.domain.step

    def _written(self, steps: Integers, missing: NDArray[np.bool_]) -> Any:
        kind, fine = self.domain.kind, self._fine
        if kind == "date":
            return pyarrow.array(steps.astype(np.int32), pyarrow.date32(), mask=missing)
        if kind == "timestamp":
            return pyarrow.array(steps * 10**6, pyarrow.timestamp("us"), mask=missing)
        if fine == 1 and not self.domain.float:
            return pyarrow.array(steps, mask=missing)
        digits = len(str(fine.denominator)) - 1
        if self.domain.float or fine != Fraction(1, 10**digits):
            return pyarrow.array(steps * float(fine), mask=missing)
        words = np.stack([steps, steps >> 63], axis=1)  # as Arrow holds a decimal: 128 bits, the low ones first
        made = pyarrow.Array.from_buffers(pyarrow.decimal128(38, digits), len(steps), [None, pyarrow.py_buffer(words)])
        return pyarrow.compute.if_else(pyarrow.array(missing), None, made)


@dataclass(frozen=True)
class Coded:
    """Rows of which every column is numbered, after bounding: what an engine is asked for to count several at once.

    Attributes:
        relation: Which rows.
        codes: Of the columns.
        bound: What is kept of a unit; None where each row is a unit of its own.
    """

    relation: Relation
    codes: tuple[Code, ...]
    bound: Bound | None


def _up(number: Fraction) -> int:
    """The least whole number that is no less."""
    return -((-number.numerator) // number.denominator)
