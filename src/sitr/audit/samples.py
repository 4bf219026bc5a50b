"""Outputs of a mechanism as the scores read them: numbers in columns, and a label for each distinct output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from ..release import Release

Numbers = NDArray[np.float64]
Outputs = Sequence[Any] | NDArray[Any]
MOST_COLUMNS = 10_000


@dataclass(frozen=True)
class Sample:
    """Outputs from one input.

    Attributes:
        raw: As the mechanism gave them.
        columns: Their numbers, a row each; NaN where an output has fewer, or is no number.
        plain: Whether each output is one number.
        derived: What the last columns are, if they were made of others.
    """

    raw: Outputs
    columns: Numbers
    plain: bool = False
    derived: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many outputs."""
        return len(self.columns)

    @property
    def width(self) -> int:
        """How many numbers an output has; columns that were made of others come after."""
        return int(self.columns.shape[1]) - len(self.derived)

    def joined(self, other: Sample) -> Sample:
        """Return the outputs of both samples, as columns and text."""
        raw = [*self.raw, *other.raw] if len(self.raw) else []
        return replace(self, raw=raw, columns=np.concatenate([self.columns, other.columns]))

    def place(self, column: int) -> str:
        """Say which number of the output a column is, or what it was made of."""
        if column >= self.width:
            return self.derived[column - self.width]
        return "output" if self.width == 1 else f"coordinate {column + 1}"

    def labels(self) -> list[str]:
        """Return each output as text, equal for equal outputs."""
        return [repr(_plain(output)) for output in self.raw]

    def lengths(self) -> Numbers:
        """Return how long each output is as text: that tells -0.0 from 0.0, 1 from 1.0, and `no` from `no `."""
        return np.array([len(label) for label in self.labels()], dtype=np.float64)


@dataclass(frozen=True)
class Reader:
    """Reads outputs as columns, as wide as those that it was made from.

    Example:
        >>> reader = Reader.of([(1, 2.5), (3,), None])
        >>> reader.read([(True, 7), "no answer"]).columns
        array([[ 1.,  7.,  2.],
               [nan, nan,  0.]])
    """

    width: int
    ragged: bool

    @classmethod
    def of(cls, *samples: Outputs) -> Reader:
        """Return a reader for outputs like these."""
        widths = {None if array is None else array.shape[1] for array in map(_numeric, samples)}
        if len(widths) == 1 and (width := widths.pop()) is not None:
            return cls(width, ragged=False)
        lengths = {len(_numbers(output)) for outputs in samples for output in outputs}
        return cls(min(max(lengths), MOST_COLUMNS), ragged=len(lengths) > 1)

    def read(self, outputs: Outputs) -> Sample:
        """Return the sample; a ragged one has its length as the last column."""
        array = None if self.ragged else _numeric(outputs)
        if array is not None and array.shape[1] == self.width:
            return Sample(outputs, array, plain=self.width == 1)
        columns = np.full((len(outputs), self.width + self.ragged), math.nan)
        for row, output in zip(columns, outputs, strict=True):
            numbers = _numbers(output)
            row[: min(len(numbers), self.width)] = numbers[: self.width]
            if self.ragged:
                row[-1] = len(numbers)
        return Sample(outputs, columns)


def draw(mechanism: Any, batch: Any, data: Any, count: int) -> Outputs:
    """Return `count` outputs for one input; of a `Release` the value.

    Raises:
        InvalidArgument: `batch` returned another number of outputs.
    """
    if batch is None:
        return [_value(mechanism(data)) for _ in range(count)]
    drawn = _value(batch(data, count))
    outputs = drawn if isinstance(drawn, np.ndarray) else [_value(output) for output in drawn]
    if len(outputs) != count:
        raise InvalidArgument(
            f"batch returned {len(outputs)} outputs where {count} were asked for.",
            why="each output has to be one independent run of the mechanism.",
            do="Let batch(data, n) return n outputs.",
        )
    return outputs


def _value(output: Any) -> Any:
    return output.value if isinstance(output, Release) else output


def _numeric(outputs: Outputs) -> Numbers | None:
    """Outputs that are all numbers, or all vectors of one length, as columns; None where they are not."""
    if not isinstance(outputs, np.ndarray) and {str, bytes, type(None)} & {type(output) for output in outputs}:
        return None
    try:
        array = np.asarray(outputs)
    except (TypeError, ValueError, OverflowError):
        return None
    if array.dtype.kind not in "biuf" or array.size == 0:
        return None
    return np.asarray(array.reshape(len(array), -1), dtype=np.float64)


def _numbers(output: Any) -> list[float]:
    """All numbers in an output, in order; what is no number is left out."""
    if isinstance(output, bool | int | float | np.number | np.bool_):
        return [_number(output)]
    if isinstance(output, np.ndarray):
        return [number for entry in output.ravel().tolist() for number in _numbers(entry)]
    if isinstance(output, dict):
        return [number for entry in output.values() for number in _numbers(entry)]
    if isinstance(output, Iterable) and not isinstance(output, str | bytes):
        return [number for entry in output for number in _numbers(entry)]
    return []


def _number(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _plain(output: Any) -> Any:
    if isinstance(output, np.ndarray | np.generic):
        return output.tolist()
    if isinstance(output, list | tuple):
        return type(output)(map(_plain, output)) if type(output) in (list, tuple) else list(map(_plain, output))
    if isinstance(output, set | frozenset):
        return sorted(map(repr, output))
    return output
