"""What the promise of a budget means by the terms that hold: to whom it is made now, to whom it was before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..display import shortened
from .budget import Budget
from .entry import Entry
from .terms import EACH_ROW, Recorded, Terms, is_one

LONGEST = 400  # characters of what a unit is


class Meaning:
    """The terms of one dataset, while the book is read.

    Args:
        dataset: Whose.

    Attributes:
        before: What was promised before, and until when.
    """

    def __init__(self, dataset: str) -> None:
        self.before: list[str] = []
        self._dataset = dataset
        self._known: dict[tuple[str, str], Terms] = {}  # of all datasets, by dataset and declaration
        self._dropped: list[tuple[Terms, str, str]] = []  # tables that another dataset paid for, and until when

    def read(self, entry: Entry, budget: Budget | None) -> None:
        """Take an entry of terms, of any dataset.

        Args:
            entry: The entry.
            budget: The promise; None where it is made later, as that of a share may be.
        """
        now = Recorded.of(entry).terms
        if now.dataset != self._dataset:
            self._drop(now, entry.at)
        elif budget is not None:
            self._change(now, budget, entry.at)
        self._known[now.dataset, now.declaration] = now

    def _drop(self, now: Terms, at: str) -> None:
        """Note what another dataset does not pay for any more."""
        was = self._known.get((now.dataset, now.declaration))
        if was is not None:
            kept = {now.source(table) for table in now.units}
            self._dropped += [(was, table, at) for table in was.units if was.source(table) not in kept]

    def _change(self, now: Terms, budget: Budget, at: str) -> None:
        """Note what was promised until now, where that is another promise; tables may be added to one."""
        old = self._holding
        new = [terms for terms in old if terms.declaration != now.declaration] + [now]
        first = not any(dataset == self._dataset for dataset, _ in self._known)
        if first:  # until then it was the budget's word alone
            changed = now.promise.get("unit", budget.unit) != budget.unit
        else:
            changed = unit_word(budget, old) != unit_word(budget, new) or not _units(old) <= _units(new)
        if changed:
            of = f" ({self.units})" if old else ""
            self.before.append(f"{budget.made_to(unit_word(budget, old))}{of}, until {at[:10]}")

    def unit(self, budget: Budget) -> str:
        """The word for whom the promise is made to; a row is called a row, whatever it is taken for."""
        return unit_word(budget, self._holding)

    @property
    def units(self) -> str:
        """What a unit is in each table, in words."""
        several = len(self._holding) > 1
        found = [
            f"{f'{declaration}: ' if several else ''}{table}: {unit}"
            for declaration, table, unit in sorted(_units(self._holding))
        ]
        return shortened("; ".join(found), LONGEST)

    @property
    def paid_before(self) -> list[str]:
        """Which of its rows another budget paid for before, and until when: what they bore then, they bear besides."""
        return [
            f"{terms.source(table)} was paid from {other.dataset!r} until {at[:10]}; what was spent there comes on top"
            for terms in self._holding
            for table in terms.units
            for other, gone, at in self._dropped
            if is_one(terms, table, other, gone)
            or (terms.declaration == other.declaration and terms.source(table) == other.source(gone))
        ]

    @property
    def _holding(self) -> list[Terms]:
        """Terms of declarations that have a table of the dataset; one that has none any more promises nothing."""
        return [terms for (dataset, _), terms in self._known.items() if dataset == self._dataset and terms.units]


def unit_word(budget: Budget, holding: Iterable[Terms]) -> str:
    """Return to whom a budget promises, by the terms that hold.

    Example:
        >>> terms = Terms("clinic", "c", 1, {"unit": "patient", "tables.a.source": "a.csv", "tables.a.unit": EACH_ROW})
        >>> unit_word(Budget(epsilon=1.0, unit="patient"), [terms])
        'row, taken for one patient,'
    """
    words = {terms.declaration: _word(terms, budget) for terms in holding if terms.units}
    if len({*words.values()}) <= 1:
        return next(iter(words.values()), budget.unit)
    return " and one ".join(f"{word} (by {declaration})" for declaration, word in words.items())


def unit_words(known: Mapping[tuple[str, str], Recorded], budgets: Mapping[str, Budget]) -> dict[str, str]:
    """Return to whom each budget promises, and each share with its dataset, by the terms of a book."""
    holding = [recorded.terms for recorded in known.values() if recorded.words]
    return {
        name: unit_word(budget, [terms for terms in holding if terms.dataset == name.partition("/")[0]])
        for name, budget in budgets.items()
    }


def _word(terms: Terms, budget: Budget) -> str:
    word = terms.promise.get("unit", budget.unit)
    rows = {*terms.units.values()} == {EACH_ROW}
    return f"row, taken for one {word}," if rows and word != "row" else word


def _units(holding: Iterable[Terms]) -> set[tuple[str, str, str]]:
    """The unit of each table, by declaration."""
    return {(terms.declaration, table, unit) for terms in holding for table, unit in terms.units.items()}
