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

    @cached_property
    def record(self) -> dict[str, Any]:
        """What an entry says of them; the digests are all of it that analysts of a book in PostgreSQL see."""
        found = {table: _digest(name) for table, name in self.found.items()}
        digests = {"found": found, "promise": _digest(self.promise), "settings": _digest(self.settings)}
        words = {"found": dict(self.found), "promise": dict(self.promise), "settings": dict(self.settings)}
        about = {"declaration": self.declaration, "name": self.dataset, "version": self.version}
        return {**about, **words, "digests": digests}

    def completed(self, before: Recorded | None) -> Terms:
        """Return the same with what was found earlier, where nobody could look now."""
        if before is None or not before.words:
            return self
        was, sources = before.record, [(table, f"tables.{table}{SOURCE}") for table in before.record["found"]]
        same = {table: was["found"][table] for table, at in sources if was["promise"].get(at) == self.promise.get(at)}
        return replace(self, found={**same, **self.found})

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
        about = (self.record[name] for name in ("version", "promise", "found", "settings"))
        return Terms(*self.key, *about)

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

    def knows(self, now: Terms) -> bool:
        """Whether there is nothing new in a declaration."""
        seen = self.record["digests"]["found"].keys() >= now.found.keys()
        same = not self.changes(now) and not self.settings_changed(now)
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
    mine = _sources(now.dataset, now.promise)
    for (dataset, declaration), other in known.items():
        if declaration == now.declaration or not other.words:
            continue
        for source, (table, *whom) in _sources(dataset, other.record["promise"]).items():
            if source in mine and mine[source][1:] != tuple(whom):
                raise InvalidDeclaration(
                    f"tables.{mine[source][0]}: {source} is tables.{table} of the declaration {declaration!r}, which "
                    "has another budget or another unit for it.",
                    why="the same people's data would be spent twice, or a unit would not be protected.",
                    do="declare it alike in both.",
                )


def _sources(dataset: str, promise: Mapping[str, str]) -> dict[str, tuple[str, str, str]]:
    """By source: the table, who pays for it, and its unit."""
    found = {}
    for place, source in promise.items():
        if place.endswith(SOURCE):
            table = place.removesuffix(SOURCE)
            unit = promise.get(f"{table}{UNIT}", "")
            found[source] = (table.removeprefix("tables."), "" if unit == PUBLIC else dataset, unit)
    return found


def refused(dataset: str, changes: list[str]) -> DeclarationChanged:
    """The refusal of a declaration that is not the one that a budget was promised under."""
    return DeclarationChanged(
        f"budget {dataset!r} was promised under another declaration: {shortened('; '.join(changes), LONGEST_CHANGES)}.",
        why="the book makes its promise to a unit, and this declaration means something else by it.",
        do=f"put the declaration back; or let its owner change the promise, as every statement will show: {REDECLARE}",
    )


def _digest(words: Any) -> str:
    return sha256(canonical(words if isinstance(words, str) else dict(words)).encode())
