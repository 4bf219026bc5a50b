"""A request: what is asked of the ledger, checked, and in the one form that is hashed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from .. import _validate
from ..accounting import Event
from ..errors import IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from .asked import Asked
from .budget import block_kinds, keys
from .entry import DEEPEST_BODY, LONGEST_BODY, LONGEST_NUMBER, canonical, sealed, sha256
from .keeper import Keeper
from .totals import Charge, Vector

TOO_LONG = re.compile(f"[0-9]{{{LONGEST_NUMBER}}}")
# What each kind of keeper counts, in a refusal of what it cannot.
COUNTS = {
    "pure": "pure ε",
    "zcdp": "ρ",
    "rdp": "ε at δ, by a Rényi divergence",
    "union": "ε at δ",
}


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
        asked: Asked | None = None,
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
        self.operation = _validate.name("operation", secrets.token_hex(16) if operation is None else operation)
        self.budgets = keys(self.datasets, self.analyst, self.purpose)
        self.about = {
            "blocks": list(self.blocks),
            "datasets": list(self.datasets),
            "event": _record(event),
            "purpose": self.purpose,
        }
        self._words = {} if asked is None else {"asked": asked.record()}  # for people: the digest tells requests apart
        try:
            self.digest = sha256(canonical({**self.about, "request": request}).encode())
        except (TypeError, ValueError, RecursionError):
            raise InvalidArgument(
                "the request cannot be written as JSON.", do="Pass text, numbers and lists."
            ) from None

    def charges(self, keepers: Mapping[str, tuple[int, Keeper]]) -> list[Charge]:
        """Return what every budget is due, in the order of names.

        Raises:
            InvalidArgument: Blocks of two kinds, or an event that costs nothing.
        """
        kinds = block_kinds(keeper.budget for _, keeper in keepers.values())
        if self.blocks and len(kinds) > 1:
            raise InvalidArgument(
                f"blocks of {' and of '.join(sorted(kinds))} cannot be named in one release.",
                why="a block of one kind says nothing of those in the data of the other.",
                do="read all of the data, without blocks; or make a release for each dataset.",
            )
        return [self._charge(name, version, keeper) for name, (version, keeper) in keepers.items()]

    def same_as(self, record: Mapping[str, Any]) -> bool:
        """Whether a reservation is of this request, by what it says and not by its digest alone."""
        return all(record.get(name) == value for name, value in {**self.about, "request": self.digest}.items())

    def paid_by(self, record: Mapping[str, Any], keepers: Mapping[str, tuple[int, Keeper]]) -> bool:
        """Whether a reservation charged the budgets of today no less than they are due."""
        paid = record["budgets"]
        return paid.keys() == keepers.keys() and all(
            paid[name]["version"] == version and keeper.filter.accepts(self.event, units_of(paid[name]))
            for name, (version, keeper) in keepers.items()
        )

    def _charge(self, name: str, version: int, keeper: Keeper) -> Charge:
        try:
            units = keeper.units(self.event)
        except NoSuchGuarantee as error:
            raise NoSuchGuarantee(
                f"budget {name!r} counts {COUNTS[keeper.kind]}: {error.what}",
                why=error.why,
                do="use a mechanism that has one, such as Laplace noise; or ask an owner for a budget of another kind.",
            ) from None
        except IncompatibleAdjacency as error:
            raise IncompatibleAdjacency(f"budget {name!r}: {error.what}", why=error.why, do=error.do) from None
        if units == keeper.nothing:
            raise InvalidArgument(
                f"{self.event!r:.80} costs nothing.",
                why="an event that costs nothing is no release from private data, or a mistake.",
                do="state the event of what will be released.",
            )
        return Charge(name, version, units, keeper.ways, self.blocks if keeper.budget.parallel else ())

    def body(self, charges: list[Charge]) -> str:
        """The reservation as the entry says it.

        Raises:
            InvalidArgument: It is more than an entry holds.
        """
        due = {charge.name: {"units": list(charge.units), "version": charge.version} for charge in charges}
        record = {**self.about, **self._words, "budgets": due, "request": self.digest}
        body = sealed(record)
        if not fits(record, body):
            raise InvalidArgument(
                f"the request is too large for an entry: {len(body)} bytes, in {_levels(record)} levels.",
                why=f"an entry has at most {LONGEST_BODY} bytes and {DEEPEST_BODY} levels; nothing was charged.",
                do="name fewer blocks, or make several releases of it.",
            )
        return body


def units_of(due: Mapping[str, Any]) -> Vector:
    """Return what a reservation charges one budget, as its entry says it; before form 3 it said two numbers by name.

    Example:
        >>> units_of({"units": [5, None, 0], "version": 1}), units_of({"cost": 5, "delta": 0, "version": 1})
        ((5, None, 0), (5, 0))
    """
    return tuple(due["units"]) if "units" in due else (due["cost"], due["delta"])


def fits(record: Any, body: str) -> bool:
    """Whether an entry may hold a body: as `sitr.checked` in postgres.sql has it.

    Example:
        >>> fits({"a": [1]}, '{"a":[1]}')
        True
    """
    brackets = body.count("[") + body.count("{")  # as deep as that it may be, and no deeper
    return (
        len(body.encode()) <= LONGEST_BODY
        and (brackets < DEEPEST_BODY or _levels(record) <= DEEPEST_BODY)
        and TOO_LONG.search(body) is None
    )


def _levels(record: Any) -> int:
    """How deeply something is nested; what holds nothing has one level."""
    deep, here = 0, [record]
    while here:
        deep += 1
        held = [one.values() if isinstance(one, dict) else one for one in here if isinstance(one, (dict, list))]
        here = [part for parts in held for part in parts]
    return deep


@lru_cache(maxsize=256)
def _record(event: Event) -> dict[str, Any]:
    return event.to_dict()


def _names(what: str, values: Iterable[str], *, without: str = "") -> tuple[str, ...]:
    return tuple(sorted({_validate.name(what, value, without=without) for value in values}))
