"""The law of the house, on random plans: between neighbours nothing moves farther than was charged for.

For each question three databases are measured: a first one, a neighbour of it, and the first with rows that must not
count. Between the first two every measured vector stays within the reach of its plan; between the first and the third
nothing moves at all. Whether a question is answered is the same on all three, and nothing is raised that is no refusal.
Where the files of one database are exchanged for those of the next while they are open, no question is rehearsed.
The rows of some questions are also numbered and counted, as a synthesis does it, and held against the same law.
"""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import ibis

from sitr.errors import AccuracyWarning, EngineFailed, InvalidDeclaration, PrivacyWarning, SitrError
from sitr.query.execution import Execution
from sitr.query.planner import Plan
from sitr.tables.codes import Coded
from sitr.tables.emitter import Emitter, mixed
from sitr.tables.source import Source
from tests.attack.houses import House, closed, house
from tests.attack.numbered import crosstab, moved, numbered, reach
from tests.attack.questions import Asked, Asker
from tests.attack.worlds import FIRST, PADDED, SECOND, World, made
from tests.query.measured import Vector, allowed, broken, measured, moves

KEY = 7
HEARD = " The engine said: "  # what users are told stands before it
ANSWERED = 6  # every so manieth plan is answered as well, with noise
NUMBERED = 5  # and of every so manieth the rows are counted in several tables at once


@dataclass(frozen=True)
class Failure:
    """A broken law.

    Attributes:
        law: Which one: "moves", "nobody", "alike", "exchanged", "fails", "cannot run", "bare", "warning".
        world: In which world,
        asked: by which question; None where the world could not be opened.
        said: What was seen.
    """

    law: str
    world: World
    asked: Asked | None
    said: str


@dataclass
class Report:
    """What a campaign found."""

    plans: int = 0
    vectors: int = 0
    by_sql: int = 0
    moved: int = 0  # plans of which something moved between neighbours,
    full: int = 0  # and those of which something moved as far as it may
    numbered: int = 0  # tables of rows that were numbered
    exchanged: int = 0  # refusals of what reads files in the place of others
    kinds: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    first: dict[str, int] = field(default_factory=dict)  # of each law, after how many plans it was seen to be broken

    def add(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.first.setdefault(failure.law, self.plans)


def _md5(text: str) -> Any:
    """A function of every engine."""


_digest = ibis.udf.scalar.builtin(_md5, name="md5", signature=(("string",), "string"))


def ordered_by_content(self: Emitter, table: Any, row_id: str | None) -> Any:
    """An order that all databases share, in place of a random column: equal rows are equal whichever is kept.

    The random column is independent of all else, row by row, so any order that depends on each row alone is a coupling
    of the two runs.
    """
    if self._mixes(table, row_id):
        return mixed(table[row_id].cast("int64"), self.key or (1, 1, 1))
    text = ibis.literal(str(self.key))
    for name in sorted(table.columns):
        text = text + ibis.literal("|") + table[name].cast("string").fill_null("missing")
    return _digest(text)


@contextmanager
def coupled() -> Iterator[None]:
    """Let every run choose the same rows of a unit; queries are kept, as each is run on three databases."""
    originals = Emitter._order, Source.guarded, Source._written
    Emitter._order = ordered_by_content  # type: ignore[method-assign]
    Source.guarded = _overheard(Source.guarded)  # type: ignore[method-assign]
    Source._written = _kept  # type: ignore[method-assign]
    try:
        yield
    finally:
        Emitter._order, Source.guarded, Source._written = originals  # type: ignore[method-assign]


def _kept(self: Source, tally: Any, key: Any = None) -> Any:
    """The query of a tally, written once: the key is the same throughout."""
    if id(tally) not in self._queries:
        self._queries[id(tally)] = tally, self._query(tally, key)
    return self._queries[id(tally)][1]


def _overheard(guarded: Callable[..., Any]) -> Callable[..., Any]:
    """What an engine does, and what it said when it failed: users are not told, and we want to know."""

    def heard(self: Source, work: Callable[[], Any]) -> Any:
        said: list[str] = []

        def heard_work() -> Any:
            try:
                return work()
            except Exception as error:
                said.append(_told(error))
                raise

        try:
            return guarded(self, heard_work)
        except SitrError as error:
            error.add_note(" ".join(said))
            raise

    return heard


class Answered(Execution):
    """An answer with noise, of what an engine returned before."""

    def __init__(self, plan: Plan, source: Source, tables: dict[int, Any]) -> None:
        super().__init__(plan, source)
        self._given = tables

    def _fetched(self, tally: Any) -> Any:
        return self._given[id(tally)]


class Trial:
    """One world, and what its questions measure in each of its three databases."""

    def __init__(self, world: World, report: Report) -> None:
        self.world, self.report = world, report
        self.house: House | None = None

    def run(self, numbers: range) -> None:
        """Ask some questions, and hold what they measure against the law."""
        try:
            self.house = house(self.world, self.world.database(*FIRST))
            self._run(self.house, numbers)
        except Exception as error:
            self.report.plans += len(numbers)
            self._failed("bare" if not isinstance(error, SitrError) else "opens", None, _told(error))
        finally:
            if self.house is not None:
                closed(self.house)

    def _run(self, opened: House, numbers: range) -> None:
        asker = Asker(self.world, opened.database)
        self.compare(opened, [one for number in numbers if (one := self._asked(asker, number)) is not None])

    def compare(self, opened: House, asked: list[Asked]) -> None:
        """Hold questions against the law, on the three databases of the world."""
        found: dict[tuple[str, ...], dict[int, Any]] = {}
        declared = opened.database.declared
        chosen = [one for one in asked if one.number % NUMBERED == 0]
        rows = [(one, coded) for one in chosen if (coded := numbered(one.plan.query.relation, declared)).codes]
        counted: list[list[Any]] = []
        for parts in (FIRST, SECOND, PADDED):
            if parts != FIRST:
                opened.fill(self.world.database(*parts), lambda: self._exchanged(asked, opened.database.source))
            found[parts] = {one.number: self._measured(one, opened.database.source) for one in asked}
            counted.append([self._counted(coded, opened.database.source) for _, coded in rows])
        for one in asked:
            self.report.plans += 1
            self.report.by_sql += one.by_sql
            self._held(one, *(found[parts][one.number] for parts in (FIRST, SECOND, PADDED)))
        for (one, coded), *tables in zip(rows, *counted, strict=True):
            self._held_numbered(one, reach(coded, declared), *tables)

    def _exchanged(self, asked: list[Asked], source: Source) -> None:
        """What is asked of other files than were opened is refused, before it is charged."""
        for one in asked:
            for tally in one.plan.tallies:
                try:
                    source.rehearse(tally)
                    said = "what is read was exchanged, and nobody noticed"
                except InvalidDeclaration:
                    self.report.exchanged += 1
                    continue
                except Exception as error:
                    said = _told(error)
                self._failed("exchanged", one, said)

    def _asked(self, asker: Asker, number: int) -> Asked | None:
        try:
            with _no_warnings():
                return asker.asked(number)
        except Exception as error:
            self.report.plans += 1
            self._failed("bare", None, f"question {number}: {_told(error)}")
            return None

    def _measured(self, asked: Asked, source: Source) -> list[Vector] | str:
        """The vectors of a plan; or what was raised, which has to be the same on every database."""
        plan = asked.plan
        try:
            with _no_warnings():
                tables = {id(tally): self._ran(tally, source) for tally in plan.tallies}
                found = [measured(plan, one, tables) for one in plan.measurements]
                if asked.number % ANSWERED == 0:
                    Answered(plan, source, tables).answer()
                return found
        except SitrError as error:
            return f"{type(error).__name__}: {error.args[0]}" + HEARD + "".join(getattr(error, "__notes__", ()))
        except Exception as error:
            return f"bare {_told(error)}"

    def _ran(self, tally: Any, source: Source) -> Any:
        """What an engine answers; where it fails, whether it does so on empty tables too, where nothing is charged."""
        try:
            return source.run(tally, unsafe_key=KEY)
        except EngineFailed as failed:
            try:
                source.rehearse(tally)
            except SitrError:
                raise failed from None
            raise RuntimeError(f"by rows alone: {''.join(getattr(failed, '__notes__', ()))}") from None

    def _held(self, asked: Asked, first: Any, second: Any, padded: Any) -> None:
        told = [one for one in (first, second, padded) if isinstance(one, str)]
        if told:
            alike = len(told) == 3 and len({one.split(HEARD)[0] for one in told}) == 1
            law = "bare" if any("bare " in one for one in told) else "cannot run" if alike else "alike"
            self._failed(law, asked, " / ".join(dict.fromkeys(told)))
            return
        self.report.vectors += len(first)
        self.report.kinds.update(type(one).__name__ for one in asked.plan.measurements)
        self._weighed(asked, first, second)
        for said in broken(asked.plan, first, second):
            self._failed("moves", asked, said)
        for one, before, after in zip(asked.plan.measurements, first, padded, strict=True):
            if moved := sum(moves(before, after)):
                self._failed("nobody", asked, f"{one.label}: {moved} by rows that do not count")

    @staticmethod
    def _counted(coded: Coded, source: Source) -> Any:
        """The tables of numbered rows; or what was raised."""
        try:
            with _no_warnings():
                return source.count(coded, crosstab(coded), unsafe_key=KEY)
        except Exception as error:
            return _told(error) + HEARD + "".join(getattr(error, "__notes__", ()))

    def _held_numbered(self, asked: Asked, most: int, first: Any, second: Any, padded: Any) -> None:
        if told := [one for one in (first, second, padded) if isinstance(one, str)]:
            self._failed("numbered", asked, " / ".join(dict.fromkeys(told)))
            return
        self.report.numbered += len(first)
        if max(moved(first, second), default=0) > most:
            self._failed("moves", asked, f"numbered rows move tables by {moved(first, second)}, and may by {most}")
        if any(moved(first, padded)):
            self._failed("nobody", asked, "tables of numbered rows move by rows that do not count")

    def _weighed(self, asked: Asked, first: list[Vector], second: list[Vector]) -> None:
        """How near to its reach a plan came: a campaign in which nothing moves finds nothing."""
        pairs = zip(asked.plan.measurements, first, second, strict=True)
        farthest = max((sum(moves(*pair)) / allowed(one)[0] for one, *pair in pairs), default=0)
        self.report.moved += farthest > 0
        self.report.full += farthest >= 1

    def _failed(self, law: str, asked: Asked | None, said: str) -> None:
        self.report.add(Failure(law, self.world, asked, said))


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for category in (PrivacyWarning, AccuracyWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        yield


def _told(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename.rsplit('/', 1)[-1]}:{place.lineno})"


def campaign(
    seed: int,
    plans: int,
    engine: str = "duckdb",
    *,
    questions: int = 20,
    reader: str | None = None,
    on: Callable[[Report], bool] = lambda report: True,
) -> Report:
    """Hold random plans against the law, from a seed on: so many worlds, each with some questions.

    Args:
        seed: Of the first world; the next one has the next.
        plans: How many.
        engine: On which engine.
        questions: To each world.
        reader: How rows are read; any way that the engine has unless told.
        on: Asked after each world whether to go on.
    """
    report = Report()
    with coupled():
        while report.plans < plans and on(report):
            count = min(questions, plans - report.plans)
            Trial(made(seed, engine, reader), report).run(range(count))
            seed += 1
    return report
