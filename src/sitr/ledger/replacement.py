"""A share of a dataset's budget that gets other limits: what was spent under it stays spent.

A share limits what one analyst, or one purpose, may spend of a dataset. It is no promise to anybody in the data, who
are protected by the dataset's budget: so it may be replaced, by lower limits or by those of another kind.
"""

from __future__ import annotations

from ..errors import InvalidArgument, LedgerUnavailable, NoSuchGuarantee, UnknownName
from .budget import Budget, check_share
from .entry import Entry, sealed
from .keeper import Keeper
from .replay import Replay
from .store import Stale, Store

TRIES = 20  # how often it is worked out again because something was charged meanwhile


def replace_share(store: Store, name: str, budget: Budget, reason: str) -> Entry:
    """Replace the limits of a share, and count again in their measure what was charged to it; see `Ledger`."""
    dataset = name.partition("/")[0]
    if name == dataset:
        raise InvalidArgument(
            f"{name!r} is the budget of a dataset, and no share.",
            why="it is a promise to those in the data, of which the limits only ever grow.",
            do="raise it, if you must: sitr budget raise.",
        )
    for _ in range(TRIES):
        replay = Replay.of(store.entries())
        if name not in replay.accounts:
            raise UnknownName(f"there is no share {name!r}.", do="an owner creates it: sitr budget create.")
        check_share(replay.accounts[dataset].keeper.budget, budget)
        try:
            return _replaced(store, replay, name, Keeper.of(budget), reason)
        except Stale:
            continue
    raise LedgerUnavailable("the share is charged faster than it can be replaced.", do="ask again.")


def _replaced(store: Store, replay: Replay, name: str, keeper: Keeper, reason: str) -> Entry:
    before = replay.accounts[name]
    try:
        made = replay.recounted(name, keeper)
    except NoSuchGuarantee as error:
        raise InvalidArgument(
            f"what was charged to {name!r} has no cost in {keeper.budget.promise}: {error.what}",
            do="choose limits of a kind in which it has one, such as ε and δ.",
        ) from None
    counted = {"blocks": {block: list(used) for block, used in made.blocks.items()}, "whole": list(made.whole)}
    body = sealed({**counted, "definition": keeper.to_json(), "name": name, "reason": reason})
    return store.replace_budget(name, before, made, body)
