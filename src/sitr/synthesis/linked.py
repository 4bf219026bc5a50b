"""Two linked tables: synthetic parents, and for each of them children, as many as it would have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from ..accounting import Event, compose
from ..errors import NotAllowed
from ..release import NOT_PRIVATE, Paid
from ..tables.codes import CELLS, Coded
from ..tables.declaration import Declaration
from ..tables.relations import Join, PerUnit, Relation, Select, UnitAggregate
from ..tables.source import Source
from ..tables.tally import Tally
from .drawing import values_in_bins
from .measuring import Learnt
from .plan import SynthesisPlan, synthesis_plan
from .table import SyntheticTable, read_model, write_model

Integers = NDArray[np.int64]
PARENTS = 0.5  # the part of ε, and of δ, that the parents take
BLOCK = 20_000  # parents that are given children at a time


@dataclass(frozen=True, eq=False)
class LinkedTables(Paid):
    """Parents and children who do not exist.

    Attributes:
        value: The synthetic parents, of which one column is the number of their children; and the children, with the
            columns of their parents that both models share.
        count: The name of that column.
    """

    value: tuple[SyntheticTable, SyntheticTable]
    count: str = ""

    def sample(self, parents: int | None = None, *, seed: int | None = None) -> tuple[Any, Any]:
        """Return parents and their children, as two Arrow tables; as often as one likes, for nothing.

        Args:
            parents: How many; as many as there were, about, unless told.
            seed: To draw the same again.

        Returns:
            The parents, numbered in the column `id`; and the children, whose column `parent` is such a number.

        Privacy: post-processing of what was measured (THEORY 6.3).
        """
        generator = np.random.default_rng(seed)
        above, below = self.value
        numbers = above.value.sample(parents, seed=int(generator.integers(2**63))).astype(np.int64)
        columns = {
            code.name: code.values_of(column, generator) for code, column in zip(above.codes, numbers.T, strict=True)
        }
        # That a number is missing, or none, is made of noise alone.
        counts = np.maximum(columns.pop(self.count).fill_null(1).to_numpy(zero_copy_only=False), 1)
        shared = {
            below.columns.index(name): numbers[:, place]
            for place, name in enumerate(above.columns)
            if name in below.columns
        }
        owners = np.repeat(np.arange(len(numbers)), counts)
        rows = children_of(below.value.learnt, shared, counts, generator)
        made = {
            code.name: code.values_of(column, generator)
            for place, (code, column) in enumerate(zip(below.codes, rows.T, strict=True))
            if place not in shared
        }
        return pyarrow.table({"id": np.arange(len(numbers)), **columns}), pyarrow.table({"parent": owners, **made})

    def to_pandas(self, parents: int | None = None, *, seed: int | None = None) -> tuple[Any, Any]:
        """Return parents and their children as two pandas frames; see `sample`."""
        above, below = self.sample(parents, seed=seed)
        return above.to_pandas(), below.to_pandas()

    def to_parquet(
        self,
        parents_path: str | Path | IO[bytes],
        children_path: str | Path | IO[bytes],
        parents: int | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        """Write parents and their children to two Parquet files; see `sample`."""
        for table, path in zip(self.sample(parents, seed=seed), (parents_path, children_path), strict=True):
            pyarrow.parquet.write_table(table, path)

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write both models to a file, as JSON: `load` reads it again, anywhere."""
        write_model(self.to_dict(), path)

    @classmethod
    def load(cls, path: str | Path) -> LinkedTables:
        """Read models that were saved.

        Raises:
            InvalidArgument: They are none.
        """
        return read_model(path, cls.from_dict, lambda made: (made.sample(1, seed=0), str(made)))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, and as the ledger keeps it."""
        return {
            "count": self.count,
            "parents": self.value[0].to_dict(),
            "children": self.value[1].to_dict(),
            **self._written(),
            "entry": self.entry,
            "operation": self.operation,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], entry: str | None, operation: str | None) -> LinkedTables:
        """Return what was kept."""
        parents, children = (SyntheticTable.from_dict(content[name], None, None) for name in ("parents", "children"))
        codes, others = ({code.name: code for code in one.codes} for one in (parents, children))
        count = codes[content["count"]].domain
        whole = count.kind == "number" and count.step.denominator == 1 and not count.float
        if not whole or not count.bounded or count.ends[0] < 0:
            raise ValueError("no number of children")
        if any(codes[name] != others[name] for name in codes.keys() & others.keys()):
            raise ValueError("columns of parents that differ")
        return cls(
            value=(parents, children),
            error95=None,
            **cls._read(content, entry, operation),
            count=content["count"],
        )

    def __str__(self) -> str:
        parents, children = self.value
        about = f"synthetic parents, about {parents.rows:,}, and their children, about {children.rows:,}"
        stamp = "" if self.private else f"; {NOT_PRIVATE}"
        return "\n".join([about, *self.notes, *self.left, f"{self.charged}{stamp}"])


def children_of(
    learnt: Learnt, shared: Mapping[int, Integers], counts: Integers, generator: np.random.Generator
) -> Integers:
    """Return children, by number, parent after parent: those of one parent are of one component of the mixture.

    Args:
        learnt: Of children, with some columns of their parents.
        shared: Of each such column, by number, the numbers of the parents.
        counts: How many children each parent has.
        generator: Draws them; what it draws from is public.
    """
    levels, shares = learnt.mixture.levels, learnt.mixture.shares.astype(np.float64)
    made = np.empty((int(counts.sum()), len(levels.bins)), dtype=np.int64)
    begin = 0
    for first in range(0, len(counts), BLOCK):
        here = slice(first, first + BLOCK)
        heights = generator.gumbel(size=(len(counts[here]), len(shares)))
        for column, numbers in shared.items():
            logs = np.log(np.maximum(shares[:, levels.slice(0, column)], 1e-12))
            heights += logs[:, levels.bins[column][numbers[here]]].T
        owners = np.repeat(heights.argmax(axis=1), counts[here])
        end = begin + len(owners)
        for column, bins in enumerate(levels.bins):
            ends = np.cumsum(shares[:, levels.slice(0, column)], axis=1)[owners]
            places = (ends < generator.random((len(owners), 1)) * ends[:, -1:]).sum(axis=1)
            made[begin:end, column] = values_in_bins(places, bins, learnt.singles[column], generator)
        begin = end
    return made


@dataclass(frozen=True)
class LinkedPlan:
    """How two linked tables are synthesized.

    Attributes:
        parents: How the parents are, with the number of their children.
        children: How the children are, with columns of their parents.
        count: The name of the column with that number.
    """

    parents: SynthesisPlan
    children: SynthesisPlan
    count: str

    @property
    def event(self) -> Event:
        """What a release costs."""
        return compose(self.parents.event, self.children.event)

    @property
    def asked(self) -> tuple[Tally | Coded, ...]:
        """All that the engine is asked for."""
        return (*self.parents.asked, *self.children.asked)

    def run(self, source: Source, progress: Callable[[str], None] = lambda stage: None) -> LinkedTables:
        """Return the linked tables; they are not charged here."""
        made = []
        for name, plan in (("parents", self.parents), ("children", self.children)):
            made.append(plan.run(source, lambda stage, of=name: progress(f"{of}: {stage}")))  # type: ignore[misc]
        private = all(one.private for one in made)
        return LinkedTables(value=(made[0], made[1]), error95=None, event=self.event, private=private, count=self.count)


def linked_plan(
    parents: Relation,
    children: Relation,
    declared: Declaration,
    *,
    epsilon: float,
    delta: float,
    columns: Sequence[str],
    child_columns: Sequence[str],
    most: int,
    cells: int = CELLS,
) -> LinkedPlan:
    """Return how two linked tables are synthesized at a price.

    Args:
        parents: One row for each unit.
        children: Any number of rows for each unit.
        declared: The declaration.
        epsilon: The ε of the release, together with
        delta: its δ.
        columns: Of the parents.
        child_columns: Of the children.
        most: How many children of a unit are kept at most.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.

    Raises:
        NotAllowed: Both have a column of one name.

    Privacy: both are synthetic tables of units that are bounded (`synthesis_plan`); they are composed (THEORY 4.5), and
    the noise on the children is calibrated so that both together cost the ε and δ.
    """
    both = sorted(set(columns) & set(child_columns))
    if both:  # a column of both models is taken for the parents'
        raise NotAllowed(
            f"both tables have a column {both[0]!r}.", do="select and rename the column of one first, or leave it out."
        )
    count = "children"
    while count in (*columns, *child_columns):
        count += "_"
    schema = parents.schema(declared)
    # Of columns whose values are found first, each model would find its own.
    shared = [name for name in columns if schema[name].kind != "string" or schema[name].categories is not None]
    ends = min(1, most - 1), most  # bounds are two numbers; units without children are none of the rows
    sizes = PerUnit(children, (), ((count, UnitAggregate("count", None, ends)),))
    above = Join(Select(parents, tuple((name, name) for name in columns)), sizes, ())
    below = Join(
        Select(children, tuple((name, name) for name in child_columns)),
        Select(parents, tuple((name, name) for name in shared)),
        (),
    )
    first = synthesis_plan(
        above,
        declared,
        epsilon=PARENTS * epsilon,
        delta=PARENTS * delta,
        columns=(*columns, count),
        max_rows_per_unit=1,
        cells=cells,
    )
    second = synthesis_plan(
        below,
        declared,
        epsilon=epsilon,
        delta=delta,
        columns=(*child_columns, *shared),
        max_rows_per_unit=most,
        cells=cells,
        beside=first.event,
    )
    return LinkedPlan(first, second, count)
