"""The budgets of a book, as they stand now."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from .. import _validate
from ..errors import NotPermitted, UnknownName
from .budget import Budget, key, keys
from .keeper import Keeper
from .request import Request
from .standing import Standing
from .store import Store
from .totals import Total

REMEMBERED = 1000  # requests by many analysts, whose budgets are kept in memory


class Budgets:
    """What a store says of budgets.

    Args:
        store: Where the book is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._defined: dict[tuple[str, ...], dict[str, tuple[int, Keeper]]] = {}

    def all(self) -> dict[str, Budget]:
        """Return all promises by name, to an owner."""
        return {total.name: Keeper.from_json(total.body).budget for total in self._store.all_totals()}

    def total(self, name: str) -> Total:
        """Return one budget as it is stored.

        Raises:
            UnknownName: There is none.
        """
        found = self._store.totals([name])
        if not found:
            raise self.unknown(name)
        return found[0]

    def standing(self, name: str) -> Standing:
        """Return how one budget stands.

        Raises:
            UnknownName: There is none.
        """
        return _standing(self.total(name))

    def paying(self, datasets: Iterable[str], names: Sequence[str]) -> dict[str, Standing]:
        """Return how the budgets of these names stand; each dataset has to have one.

        Raises:
            UnknownName: A dataset has none.
        """
        return {total.name: _standing(total) for total in self._totals(datasets, names)}

    def left_for(self, datasets: Iterable[str], analyst: str, purpose: str | None) -> dict[str, Standing]:
        """Return how every budget stands that a release would be charged to; see `Ledger.left_for`."""
        asked = [key(one) for one in datasets]
        purpose = None if purpose is None else _validate.name("purpose", purpose)
        return self.paying(asked, keys(asked, _validate.name("analyst", analyst), purpose))

    def keepers(self, asked: Request) -> dict[str, tuple[int, Keeper]]:
        """Return what keeps the budgets that a request falls under, as last read: the store says when that is too old.

        Raises:
            UnknownName: A dataset has none.
        """
        names = tuple(asked.budgets)
        found = self._defined.get(names)
        if found is None:
            totals = self._totals(asked.datasets, names)
            found = {total.name: (total.version, Keeper.from_json(total.body)) for total in totals}
            if len(self._defined) >= REMEMBERED:
                self._defined.clear()
            self._defined[names] = found
        return found

    def forget(self) -> None:
        """Read them anew: one was changed, or created."""
        self._defined.clear()

    def unknown(self, name: str) -> UnknownName:
        """Return why there is no budget of a name, and which was perhaps meant."""
        try:
            known = [total.name for total in self._store.all_totals()]
        except NotPermitted:  # an analyst of PostgreSQL does not see them all
            known = []
        shares = [other for other in known if other.rpartition("/")[2] == name]  # named by whose it is
        near = shares[:3] or difflib.get_close_matches(name, known, 3, 0.5)
        meant = f"did you mean {', or '.join(map(repr, near))}? Otherwise " if near else ""
        return UnknownName(
            f"there is no budget {name!r}.",
            why="every release charges the budget of every private dataset it reads.",
            do=f"{meant}an owner creates it: sitr budget create.",
        )

    def _totals(self, datasets: Iterable[str], names: Sequence[str]) -> list[Total]:
        found = self._store.totals(names)
        missing = set(datasets) - {total.name for total in found}
        if missing:
            raise self.unknown(min(missing))
        return found


def _standing(total: Total) -> Standing:
    return Standing(Keeper.from_json(total.body), total.used)
