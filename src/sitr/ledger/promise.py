"""A promise: how a budget is written into the book, and how its limits grow."""

from __future__ import annotations

from ..errors import InvalidArgument, LedgerUnavailable
from .budget import Budget, check_share
from .budgets import Budgets
from .entry import Entry, sealed
from .keeper import Keeper
from .store import Stale, Store, Unfit
from .totals import Total


def make_promise(store: Store, budgets: Budgets, name: str, budget: Budget) -> Entry:
    """Write a new budget down, with the filters that are fixed for it now; see `Ledger.create_budget`."""
    if not isinstance(budget, Budget):
        raise InvalidArgument(f"{type(budget).__name__} is not a budget.", do="Budget(epsilon=1.0).")
    dataset = name.partition("/")[0]
    if name != dataset:
        check_share(budgets.standing(dataset).budget, budget)
    keeper = Keeper.of(budget)
    new = Total(name, 1, keeper.to_json(), keeper.nothing, keeper.nothing)
    try:
        return store.create_budget(new, sealed({"definition": new.body, "name": name}))
    except Unfit:
        raise InvalidArgument(
            f"there is a budget {name!r} already.",
            why="a second one would let the same people's data be spent twice.",
            do="raise it, if you must: sitr budget raise.",
        ) from None


def raise_promise(store: Store, known: Total, budget: Budget, reason: str) -> Entry:
    """Give a budget higher limits, and count in them what was used before; see `Ledger.raise_budget`."""
    old = Keeper.from_json(known.body)
    new = old.raised(budget)
    body = sealed({"definition": new.to_json(), "name": known.name, "reason": reason})
    try:
        return store.raise_budget(known, new.to_json(), body, lambda used: old.rescaled(used, new))
    except Stale:
        raise LedgerUnavailable(
            f"the budget {known.name!r} was raised by another at this moment.", do="look again."
        ) from None
