"""The terms of a promise: what its owner declared that it depends on, as the book keeps it.

A budget promises something to a unit. Who is one unit, which tables are about it, where their rows are and what is
public is said in a declaration, outside of the book. Its words are written down here, so that the promise cannot be
made another by changing them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ..display import shortened
from ..errors import DeclarationChanged, InvalidArgument, InvalidDeclaration, LedgerDamaged
from .entry import LONGEST_BODY, Entry, canonical, sealed, sha256
from .request import fits

SOURCE, UNIT = ".source", ".unit"  # how places of a table end
PUBLIC = "nobody, it is public"  # the unit of a public table
EACH_ROW = "each row is one"  # that of a table of rows
REDECLARE = "sitr budget redeclare DECLARATION --reason ..."
LONGEST_CHANGES = 1000  # characters of them in a refusal
UNSEEN = "something that only the owner of the book can look up"


@dataclass(frozen=True)
class Terms:
    """What one declaration says of one dataset, in words that can be compared.

    Attributes:
        dataset: Whose budget pays.
        declaration: The name of the declaration.
        version: Of the declaration.
        promise: What the promise depends on, by its place in the declaration; a change takes a reason.
        found: Under which name the rows of each table were found; a table that nobody could look at is left out.
        settings: What may change with a version: row limits, bounds, categories, expected sizes.
        places: Where the rows of each table are, in words that mean the same from everywhere: two declarations are
            compared by them. One may move together with its data, so they are no part of the promise.

    Example:
        >>> before = Terms("clinic", "clinic", 1, {"tables.visits.unit": "named by patient"})
        >>> after = Terms("clinic", "clinic", 2, {"tables.visits.unit": "each row is one"})
        >>> Recorded(before.record).changes(after)
        ['tables.visits.unit: each row is one, was named by patient']
    """

    dataset: str
    declaration: str
    version: int
    promise: Mapping[str, str]
    found: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def record(self) -> dict[str, Any]:
        """What an entry says of them; the digests are all of it that analysts of a book in PostgreSQL see."""
        found = {table: _digest(name) for table, name in self.found.items()}
        digests = {"found": found, "promise": _digest(self.promise), "settings": _digest(self.settings)}
        words = {part: dict(getattr(self, part)) for part in ("found", "places", "promise", "settings")}
        about = {"declaration": self.declaration, "name": self.dataset, "version": self.version}
        return {**about, **words, "digests": digests}

    def completed(self, before: Recorded | None) -> Terms:
        """Return the same with what was found earlier, where nobody could look now."""
        if before is None or not before.words:
            return self
        was = before.terms
        unseen = [table for table in was.found.keys() - self.found.keys() if was.source(table) == self.source(table)]
        found = {table: was.found[table] for table in unseen}
        places = {table: was.places[table] for table in unseen if table in was.places}
        return replace(self, found={**self.found, **found}, places={**self.places, **places})

    def source(self, table: str) -> str | None:
        """What is declared that a table is read from."""
        return self.promise.get(f"tables.{table}{SOURCE}")

    @property
    def whom(self) -> dict[str, tuple[str, str]]:
        """By table: who pays for it, which is nobody where it is public, and its unit."""
        tables = [place[len("tables.") : -len(SOURCE)] for place in self.promise if place.endswith(SOURCE)]
        units = {table: self.promise.get(f"tables.{table}{UNIT}", "") for table in tables}
        return {table: ("" if unit == PUBLIC else self.dataset, unit) for table, unit in units.items()}

    @property
    def units(self) -> dict[str, str]:
        """The unit of each table that the dataset pays for."""
        return {table: unit for table, (payer, unit) in self.whom.items() if payer}

    def body(self, changes: list[str], reason: str | None) -> str:
        """The entry that writes them down.

        Raises:
            InvalidArgument: They are more than an entry holds.
        """
        record: dict[str, Any] = {**self.record, "changes": changes, **({} if reason is None else {"reason": reason})}
        less: list[dict[str, Any]] = [{}, {"settings": {}}, {"settings": {}, "changes": []}]
        for left_out in less:  # the digests still tell it from others
            shorter = record | left_out
            if fits(shorter, body := sealed(shorter)):
                return body
        raise InvalidArgument(
            f"the declaration {self.declaration!r} says more of {self.dataset!r} than an entry holds.",
            why=f"an entry has at most {LONGEST_BODY} bytes.",
            do="give some of its tables a budget of their own.",
        )


@dataclass(frozen=True)
class Recorded:
    """Terms as the book has them.

    Attributes:
        record: What their entry says; to an analyst of a book in PostgreSQL, without the words.
    """

    record: Mapping[str, Any]

    @classmethod
    def of(cls, entry: Entry) -> Recorded:
        """Read an entry.

        Raises:
            LedgerDamaged: It has no terms in it.
        """
        found, digests = entry.record, entry.record.get("digests")
        named = all(isinstance(found.get(name), str) for name in ("name", "declaration"))
        if not named or not isinstance(digests, dict) or not isinstance(digests.get("found"), dict):
            raise LedgerDamaged(f"entry {entry.seq} cannot be read: it has no terms.", do="sitr ledger verify.")
        return cls(found)

    @property
    def key(self) -> tuple[str, str]:
        """The dataset, and the name of the declaration."""
        return self.record["name"], self.record["declaration"]

    @property
    def words(self) -> bool:
        """Whether there are words, and not digests alone."""
        return "promise" in self.record

    @property
    def terms(self) -> Terms:
        """The terms themselves, of an entry that has the words."""
        about = {name: self.record[name] for name in ("version", "promise", "found", "settings")}
        return Terms(*self.key, **about, places=self.record.get("places", {}))

    def changes(self, now: Terms) -> list[str]:
        """Return in words where a declaration is not the recorded one in what its promise depends on.

        Where a table could not be looked at, then or now, what its name leads to is not compared.

        Example:
            >>> recorded = Recorded(Terms("clinic", "clinic", 1, {}, found={"visits": "main.visits"}).record)
            >>> recorded.changes(Terms("clinic", "clinic", 1, {}, found={"visits": "main.people"}))
            ['tables.visits: found as main.people, was main.visits']
            >>> recorded.changes(Terms("clinic", "clinic", 1, {}))
            []
        """
        digests = self.record["digests"]
        moved = [
            table for table, one in now.record["digests"]["found"].items() if digests["found"].get(table, one) != one
        ]
        if digests.get("promise") == now.record["digests"]["promise"] and not moved:
            return []
        if not self.words:
            return [UNSEEN]
        was = self.record["found"]
        places = [f"tables.{table}: found as {now.found[table]}, was {was[table]}" for table in moved]
        return changed(self.record["promise"], now.promise) + places

    def settings_changed(self, now: Terms) -> list[str]:
        """Return in words what else a declaration says otherwise, which needs no reason."""
        if self.record["digests"].get("settings") == now.record["digests"]["settings"]:
            return []
        return changed(self.record["settings"], now.settings) or ["settings"]

    def moved(self, now: Terms) -> list[str]:
        """Return in words which rows are elsewhere now, as those of a declaration that moved together with its data.

        Who sees digests alone sees no places.
        """
        if not self.words:
            return []
        return changed(
            {}, {f"tables.{table}.place": place for table, place in now.places.items() - self.terms.places.items()}
        )

    def knows(self, now: Terms) -> bool:
        """Whether there is nothing new in a declaration."""
        seen = self.record["digests"]["found"].keys() >= now.found.keys()
        same = not self.changes(now) and not self.settings_changed(now) and not self.moved(now)
        return same and seen and self.record.get("version") == now.version


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return in words how one text of each place became another.

    Example:
        >>> changed({"unit": "patient", "tables.a.key": "id"}, {"unit": "visit", "tables.b.key": "id"})
        ['tables.a.key: not declared any more, was id', 'tables.b.key: id, new', 'unit: visit, was patient']
    """
    found = []
    for place in sorted(before.keys() | after.keys()):
        old, new = before.get(place), after.get(place)
        if old != new:
            was = ", new" if old is None else f", was {old}"
            found.append(f"{place}: {'not declared any more' if new is None else new}{was}")
    return found


def latest(entries: Iterable[Entry]) -> dict[tuple[str, str], Recorded]:
    """Return the terms that hold, by dataset and declaration."""
    return {recorded.key: recorded for recorded in map(Recorded.of, entries)}


def differences(known: Mapping[tuple[str, str], Recorded], now: Terms) -> list[str] | None:
    """Return in words what is new of a dataset by a declaration; None where the book knows nothing of the dataset."""
    recorded = known.get((now.dataset, now.declaration))
    if recorded is not None:
        return recorded.changes(now)
    others = sorted(declaration for dataset, declaration in known if dataset == now.dataset)
    if not others:
        return None
    return [f"it is declared by {now.declaration!r} as well, and not only by {', '.join(map(repr, others))}"]


def check_apart(known: Mapping[tuple[str, str], Recorded], now: Terms) -> None:
    """Refuse a source that another declaration of the book gives another unit, or has paid from another budget.

    Raises:
        InvalidDeclaration: One source is declared twice, and otherwise.
    """
    for other in (recorded.terms for recorded in known.values() if recorded.words):
        for table, whom in other.whom.items() if other.declaration != now.declaration else ():
            for mine in (one for one, wanted in now.whom.items() if wanted != whom):
                if is_one(now, mine, other, table):
                    raise _two_ways(now, mine, other, table)


def is_one(now: Terms, mine: str, other: Terms, table: str) -> bool:
    """Whether two declarations may read the same rows, by where they are.

    A book may know no places of a declaration that was written down by an earlier version, from its own folder. It is
    then taken to be wherever its names could be meant.
    """
    here, there = now.places.get(mine, ""), other.places.get(table, "")
    if here and there:
        return here.casefold() == there.casefold()
    names = [name.casefold() for name in (other.source(table), other.found.get(table)) if name]
    own = [name.casefold() for name in (here, now.source(mine)) if name]
    return any(one == name or one.endswith(f"/{name}") for one in own for name in names)


def _two_ways(now: Terms, mine: str, other: Terms, table: str) -> InvalidDeclaration:
    alike = (
        f"declare it alike in both; or, where this one takes its place, {REDECLARE} --instead-of {other.declaration}."
    )
    begun = " If its rows are others, let the other one say where they are: sitr budget begin."
    return InvalidDeclaration(
        f"tables.{mine}: {now.source(mine)} is tables.{table} of the declaration {other.declaration!r}, which has "
        "another budget or another unit for it.",
        why="the same people's data would be spent twice, or a unit would not be protected.",
        do=alike if other.places else alike + begun,
    )


def untold(dataset: str) -> DeclarationChanged:
    """The refusal of a budget of which a book does not say what it depends on, and of others does."""
    return DeclarationChanged(
        f"the book does not say what the promise of budget {dataset!r} depends on, as it does of others.",
        why="it may have been made by hand for rows that another budget is charged for, and they would be spent twice.",
        do="let its owner write that down: sitr budget begin DECLARATION.",
    )


def refused(dataset: str, changes: list[str]) -> DeclarationChanged:
    """The refusal of a declaration that is not the one that a budget was promised under."""
    return DeclarationChanged(
        f"budget {dataset!r} was promised under another declaration: {shortened('; '.join(changes), LONGEST_CHANGES)}.",
        why="the book makes its promise to a unit, and this declaration means something else by it.",
        do=f"put the declaration back; or let its owner change the promise, as every statement will show: {REDECLARE}",
    )


def _digest(words: Any) -> str:
    return sha256(canonical(words if isinstance(words, str) else dict(words)).encode())
