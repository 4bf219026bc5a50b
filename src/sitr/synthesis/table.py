"""What a synthesis releases: a model of a table, of which anyone may draw as many rows as they like."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow
import pyarrow.parquet

from .. import _validate
from ..display import counted
from ..errors import InvalidArgument
from ..release import NOT_PRIVATE, Paid
from ..tables.arrow import frame_of
from ..tables.codes import Code
from .answers import Count, count_rows
from .bins import Levels
from .comparison import compared
from .conditions import conditioned
from .counting import read_counting
from .fit import Fit
from .measured import Interaction, Margin, Measured
from .measuring import Learnt
from .mixture import Mixture
from .quality import Quality, quality_of
from .rules import Rules
from .sandbox import SampleAnswer, answered
from .synthesizer import SyntheticRows

FORMAT = 2
# What a file that was made by hand may lead to.
BROKEN = ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError
Made = TypeVar("Made")


class OtherFormError(ValueError):
    """It was written in another form than is read."""


@dataclass(frozen=True, eq=False)
class SyntheticTable(Paid):
    """A table of people who do not exist, like the one that was measured.

    Attributes:
        value: What was learnt.
        codes: How the columns are numbered.
        rules: What every row keeps.
        table: What the table is called that was measured; "rows" where it is made of several.
        rows_per_unit: How many rows of a unit were kept at most; None where each row is a unit of its own.
    """

    value: SyntheticRows
    codes: tuple[Code, ...] = ()
    rules: Rules | None = None
    table: str = "rows"
    rows_per_unit: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(code.name for code in self.codes)

    @property
    def rows(self) -> int:
        """How many rows the table had, about: as many are drawn unless told."""
        return self.value.rows

    def sample(
        self, rows: int | None = None, *, condition: Mapping[str, Any] | None = None, seed: int | None = None
    ) -> Any:
        """Return rows that were drawn at random, as an Arrow table; as often as one likes, for nothing.

        Args:
            rows: How many; as many as there were, about, unless told.
            condition: What holds in every row, by column: a value, a list of values, None for missing, or of a number,
                a date or a time a pair of the least and the largest. The other columns are drawn as they go with it.
            seed: To draw the same again. It makes nothing less private: the model is public.

        Raises:
            InvalidArgument: A condition names no column, or what the model has no row of.

        Privacy: post-processing of what was measured (THEORY 6.3).
        """
        return pyarrow.concat_tables(self._blocks(rows, condition, seed))

    def _blocks(self, rows: int | None, condition: Mapping[str, Any] | None, seed: int | None) -> Iterator[Any]:
        """The rows of a sample as Arrow tables: one without rows, which tells their types, then a million each."""
        generator = np.random.default_rng(seed)
        learnt, within, rules = self._conditioned(condition or {})
        numbers = SyntheticRows(learnt).blocks(rows, seed=int(generator.integers(2**63)), rules=rules)
        nothing = np.empty((0, len(self.codes)), dtype=np.int64)
        for block in chain([nothing], numbers):
            columns = [
                code.values_of(column.astype(np.int64), generator, within.get(code.name))
                for code, column in zip(self.codes, block.T, strict=True)
            ]
            yield pyarrow.table(columns, names=list(self.columns))

    def _conditioned(self, condition: Mapping[str, Any]) -> tuple[Learnt, dict[str, Any], Rules | None]:
        """What is drawn from under a condition; between which ends values are drawn; and what every row keeps."""
        learnt, rules, allowed, within = self.value.learnt, self.rules, dict[int, Any](), dict[str, Any]()
        for place, wanted in self._placed(condition):
            allowed[place], within[self.columns[place]] = self.codes[place].allowed(wanted)
        if not allowed:
            return learnt, within, rules
        if rules is not None:  # which value goes with which is the same under every condition
            rules = rules.told(learnt.mixture, learnt.singles)
            for by, column, values in reversed(rules.keys(learnt.mixture, learnt.singles)):
                if column in allowed:
                    allowed[by] = allowed.get(by, True) & allowed.pop(column)[values]
        return conditioned(learnt, allowed), within, rules

    def _placed(self, condition: Mapping[str, Any]) -> list[tuple[int, Any]]:
        """What is wanted of columns, by their numbers."""
        for name in condition:
            if name not in self.columns:
                hint = _validate.meant(str(name), self.columns)
                raise InvalidArgument(f"there is no column {_validate.shown(name)}.", do=hint)
        return [(self.columns.index(name), wanted) for name, wanted in condition.items()]

    def count(self, condition: Mapping[str, Any] | None = None) -> Count:
        """Return how many rows the table had of which a condition holds; as often as one likes, for nothing.

        Where a noisy table was measured along whose cells the condition cuts, its counts are added up: right on
        average, of two columns nearly so, with an interval. Elsewhere the model says a number, and nobody knows how
        wrong it is.

        Args:
            condition: As for `sample`; of values beyond their bounds, which count as the bounds. All rows unless told.

        Raises:
            InvalidArgument: A condition names no column, or what it cannot hold.

        Privacy: post-processing of what was measured (THEORY 6.3). An interval holds the truth with probability 0.95 at
        least, which for two columns is not proved but simulated (decision 0037); many of them together hold theirs less
        often.
        """
        found = count_rows(self.value.learnt, self.codes, self._placed(condition or {}))
        return replace(found, notes=(*found.notes, *self._kept()))

    def _kept(self) -> tuple[str, ...]:
        """What a count does not count."""
        if self.rows_per_unit is None:
            return ()
        return (f"Counted are rows that were kept: at most {self.rows_per_unit:,} of each unit.",)

    def query(self, sql: str, rows: int | None = None, *, seed: int | None = None) -> SampleAnswer:
        """Return what one SELECT says of rows that were drawn at random; as often as one likes, for nothing.

        It runs in a database of its own in memory, from which no file, no address and no other table can be reached.
        Where it is COUNT(*) of rows with conditions, joined by AND, on columns that were measured together, by groups
        or in all, each count comes with what was measured, and its interval, as `count` gives it.

        Args:
            sql: The SELECT, in the words of DuckDB; the rows are a table called as the one that was measured.
            rows: How many are drawn; as many as there were, about, unless told.
            seed: To draw the same again.

        Raises:
            InvalidArgument: It is not one SELECT, or DuckDB cannot run it.

        Privacy: post-processing of what was measured (THEORY 6.3).
        """
        drawn = self.sample(rows, seed=seed)
        found, counting = answered(sql, self.table, drawn), read_counting(sql, self.codes)
        if counting is None:
            return SampleAnswer(found, drawn.num_rows, notes=self._kept())
        lines = zip(*(column.to_pylist() for column in found.columns), strict=True)
        counts = tuple(count_rows(self.value.learnt, self.codes, counting.of_row(line)) for line in lines)
        return SampleAnswer(found, drawn.num_rows, counts, self._kept())

    def quality(self, *, unsafe_compare: Any = None, target: str | None = None, seed: int | None = None) -> Quality:
        """Return how wrong the table may be: by its noise alone, which costs nothing, and in a test by the real rows.

        Args:
            unsafe_compare: The real rows, as a frame of pandas, Polars or Arrow. For tests: what is then said of them
                has no noise, and is stamped NOT PRIVATE.
            target: A column of them that a learner shall foretell from synthetic rows; this needs scikit-learn.
            seed: To draw the same rows, triples and learners again.

        Raises:
            InvalidArgument: The real rows lack a column, or a target is given without them.
            MissingExtra: scikit-learn is not installed.

        Privacy: post-processing of what was measured (THEORY 6.3), but for what `unsafe_compare` adds, which protects
        nobody.
        """
        known = quality_of(self.value.learnt, self.codes, self.count(), self._kept())
        if unsafe_compare is None:
            if target is not None:
                raise InvalidArgument(
                    "a target is foretold on real rows.", do="pass unsafe_compare as well, in a test."
                )
            return known
        real = frame_of("unsafe_compare", unsafe_compare)
        drawn = self.sample(real.num_rows, seed=seed)
        return replace(known, comparison=compared(self.codes, drawn, real, target, seed))

    def to_pandas(self, rows: int | None = None, **options: Any) -> Any:
        """Return rows that were drawn at random as a pandas frame; the options are those of `sample`."""
        return self.sample(rows, **options).to_pandas()

    def to_parquet(
        self,
        path: str | Path | IO[bytes],
        rows: int | None = None,
        *,
        condition: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        """Write rows that were drawn at random to a Parquet file, a million at a time; see `sample`.

        Args:
            path: Where to.
            rows: How many; as many as there were, about, unless told.
            condition: What holds in every row.
            seed: To draw the same again.
        """
        blocks = self._blocks(rows, condition, seed)
        with pyarrow.parquet.ParquetWriter(path, next(blocks).schema) as writer:
            for block in blocks:
                writer.write_table(block)

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write the model to a file, as JSON: `load` reads it again, anywhere."""
        write_model(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> SyntheticTable:
        """Read a model that was saved.

        Raises:
            InvalidArgument: It is none.
        """
        return read_model(path, cls.from_dict, _tried)

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON holds it, and as the ledger keeps it."""
        learnt = self.value.learnt
        return {
            "synthetic": FORMAT,
            "columns": [code.to_dict() for code in self.codes],
            "rules": None if self.rules is None else self.rules.to_dict(),
            "rows": learnt.rows,
            "bins": [_packed(bins, "<u4") for bins in learnt.mixture.levels.bins],
            "shares": [_packed(share, "<f8") for share in learnt.singles],
            "logits": _packed(learnt.mixture.logits, "<f4"),
            "measured": _tables_to_dict(learnt.measured),
            "fit": None if learnt.fit is None else learnt.fit.to_dict(),
            "table": self.table,
            "rows_per_unit": self.rows_per_unit,
            **self._written(),
            "entry": self.entry,
            "operation": self.operation,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], entry: str | None, operation: str | None) -> SyntheticTable:
        """Return a model that was kept."""
        if content["synthetic"] != FORMAT:
            raise OtherFormError("another form of it")
        codes = tuple(Code.from_dict(one) for one in content["columns"])
        bins = [_unpacked(one, "<u4").astype(np.int64) for one in content["bins"]]
        shares = [_unpacked(one, "<f8") for one in content["shares"]]
        sizes = [code.size for code in codes]
        if not sizes == [one.size for one in bins] == [one.size for one in shares]:
            raise ValueError("parts of different sizes")
        if not all(map(_all_used, bins)) or len({code.name for code in codes}) < len(codes):
            raise ValueError("bins of nothing, or two columns of one name")
        if not all(np.isfinite(one).all() and one.min() >= 0 and one.any() for one in shares):
            raise ValueError("no shares")
        levels, rows = Levels(bins, []), content["rows"]
        logits = _unpacked(content["logits"], "<f4").reshape(-1, levels.finest)
        if not logits.size or not np.isfinite(logits).all() or type(rows) is not int or not 0 <= rows < 2**63:
            raise ValueError("no mixture of rows")
        fit = None if content.get("fit") is None else Fit.from_dict(content["fit"], len(codes))
        learnt = Learnt(Mixture(levels, logits), shares, rows, _tables_from_dict(content["measured"], sizes), fit)
        rules = None if content["rules"] is None else Rules.from_dict(content["rules"])
        if rules is not None and list(rules.sizes) != sizes:
            raise ValueError("rules of other columns")
        table, most = content["table"], content["rows_per_unit"]
        if not isinstance(table, str) or not table or not (most is None or (type(most) is int and most > 0)):
            raise ValueError("no name of a table, or no number of rows")
        return cls(
            value=SyntheticRows(learnt),
            error95=None,
            **cls._read(content, entry, operation),
            codes=codes,
            rules=rules,
            table=table,
            rows_per_unit=most,
        )

    def __str__(self) -> str:
        about = f"a synthetic table of {counted(len(self.codes), 'column')}, about {self.rows:,} rows"
        stamp = "" if self.private else f"; {NOT_PRIVATE}"
        return "\n".join([f"{about}: {', '.join(self.columns)}", *self.notes, *self.left, f"{self.charged}{stamp}"])


def write_model(content: Mapping[str, Any], path: str | Path | IO[bytes]) -> None:
    """Write what JSON holds to a file."""
    written = json.dumps(content).encode()
    if isinstance(path, (str, Path)):
        Path(path).write_bytes(written)
    else:
        path.write(written)


def read_model(
    path: str | Path, made_of: Callable[[Any, str | None, str | None], Made], tried: Callable[[Made], Any]
) -> Made:
    """Read what was written; it is tried once, so that a file by someone else fails here, or not at all."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        made = made_of(content, content["entry"], content["operation"])
        tried(made)
        return made
    except OtherFormError:
        raise InvalidArgument(
            f"{path} holds no synthetic table in the form that is read here.",
            why="it was written by an earlier development version of sitr, or by a later one.",
            do="read it with that version.",
        ) from None
    except BROKEN as error:
        raise InvalidArgument(f"{path} holds no synthetic table: {type(error).__name__}.") from None


def _tried(made: SyntheticTable) -> None:
    """Draw a row, count and say what is known, as anyone would: what a file by someone else lacks is noticed."""
    made.sample(1, seed=0)
    str(made), str(made.quality())
    for code in made.codes:
        made.count({code.name: list(code.values) if code.grid is None else code.domain.ends})


def _tables_to_dict(measured: Sequence[Measured]) -> dict[str, Any]:
    """Many tables have the same bins, which are written once."""
    written: dict[str, int] = {}
    tables: dict[str, list[dict[str, Any]]] = {"margins": [], "interactions": []}
    for one in measured:
        if isinstance(one, Margin):
            tables["margins"].append({"counts": _packed(one.counts, "<f8"), "variance": one.variance})
        else:
            bins = [written.setdefault(_packed(bins, "<u4"), len(written)) for bins in one.bins]
            cells = {"cells": _packed(one.cells, "<f8"), "variance": one.variance}
            tables["interactions"].append({"columns": list(one.columns), "bins": bins, **cells})
    return {"bins": list(written), **tables}


def _tables_from_dict(content: Mapping[str, Any], sizes: Sequence[int]) -> tuple[Measured, ...]:
    margins = [
        Margin(column, _unpacked(one["counts"], "<f8"), float(one["variance"]))
        for column, one in enumerate(content["margins"])
    ]
    if [one.counts.size for one in margins] != list(sizes):
        raise ValueError("counts of other columns")
    cuts = [_unpacked(one, "<u4").astype(np.int64) for one in content["bins"]]
    found = []
    for one in content["interactions"]:
        (here, there), columns = (cuts[place] for place in one["bins"]), tuple(one["columns"])
        cells = _unpacked(one["cells"], "<f8").reshape(int(here.max()) + 1, int(there.max()) + 1)
        if min(columns) < 0 or len(set(columns)) < 2 or not (_all_used(here) and _all_used(there)):
            raise ValueError("no table of two columns")
        if [sizes[column] for column in columns] != [here.size, there.size]:
            raise ValueError("bins of another column")
        both = margins[columns[0]], margins[columns[1]]
        found.append(Interaction(both, (here, there), cells, float(one["variance"])))
    made: tuple[Measured, ...] = (*margins, *found)
    numbers = [one.counts for one in margins] + [one.cells for one in found]
    if not all(np.isfinite(one).all() for one in numbers):
        raise ValueError("no counts")
    if not all(0 < one.variance < np.inf for one in made):
        raise ValueError("no noise")
    return made


def _all_used(bins: Any) -> bool:
    """Whether each bin up to the last one has a value."""
    return np.unique(bins).size == int(bins.max()) + 1


def _packed(numbers: Any, kind: str) -> str:
    return base64.b64encode(np.asarray(numbers).astype(kind).tobytes()).decode()


def _unpacked(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
