"""A request: what is asked of the ledger, checked, and in the one form that is hashed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from .. import _validate
from ..accounting import Event
from ..errors import InvalidArgument
from .budget import Keeper, keys
from .entry import canonical, sha256
from .store import Charge


class Request:
    """What `Ledger.reserve` was asked for; its arguments are explained there.

    Attributes:
        budgets: The names of all budgets that it may fall under, in order.
        named: Whether the caller chose the operation id, and may have used it before.
        digest: The hash that tells this request from another under the same id.
    """

    def __init__(
        self,
        datasets: str | Iterable[str],
        event: Event,
        analyst: str,
        operation: str | None,
        purpose: str | None,
        blocks: Iterable[str],
        request: Mapping[str, Any] | None,
    ) -> None:
        if not isinstance(event, Event):
            raise InvalidArgument(f"{type(event).__name__} is not an event.", do="Pass one, such as Laplace(10).")
        self.event = event
        self.datasets = _names("dataset", [datasets] if isinstance(datasets, str) else datasets, without="/")
        if not self.datasets:
            raise InvalidArgument("a release reads at least one dataset.", do="name it as its budget is named.")
        self.blocks = _names("block", [blocks] if isinstance(blocks, str) else blocks)
        self.analyst = _validate.name("analyst", analyst)
        self.purpose = None if purpose is None else _validate.name("purpose", purpose)
        self.named = operation is not None
        self.operation = _validate.name("operation", operation if operation is not None else uuid.uuid4().hex)
        self.budgets = keys(self.datasets, self.analyst, self.purpose)
        self.about = {
            "blocks": list(self.blocks),
            "datasets": list(self.datasets),
            "event": event.to_dict(),
            "purpose": self.purpose,
        }
        try:
            self.digest = sha256(canonical({**self.about, "request": request}).encode())
        except (TypeError, ValueError):
            raise InvalidArgument(
                "the request cannot be written as JSON.", do="Pass text, numbers and lists."
            ) from None

    def charge(self, name: str, version: int, keeper: Keeper) -> Charge:
        """What one budget is due."""
        cost, delta = keeper.units(self.event)
        if cost == delta == 0:
            raise InvalidArgument(
                f"{self.event!r:.80} costs nothing.",
                why="an event that costs nothing is no release from private data, or a mistake.",
                do="state the event of what will be released.",
            )
        return Charge(name, version, cost, delta, self.blocks if keeper.budget.parallel else ())

    def body(self, charges: list[Charge]) -> str:
        """The reservation as the entry says it."""
        due = {name: {"cost": cost, "delta": delta, "version": version} for name, version, cost, delta, _ in charges}
        return canonical({**self.about, "budgets": due, "request": self.digest})


def _names(what: str, values: Iterable[str], *, without: str = "") -> tuple[str, ...]:
    return tuple(sorted({_validate.name(what, value, without=without) for value in values}))
