"""A filter on pure ε that joins the Rényi order of an older budget, and counts all of its history (THEORY 5.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..accounting import Event
from ..errors import NoSuchGuarantee
from .filters import Filters, covers
from .keeper import Keeper
from .totals import Vector, plus


class Joining:
    """What the filter has to count, in units of the ε of today.

    Args:
        keeper: What keeps the budget until now: one Rényi order.
        blocks: Those that spent something apart.

    Privacy: a filter on pure ε takes no part of δ. Before it joins, nothing was admitted that the order did not admit,
    and it counts every event from the first on: so this is the union of both from the creation on (THEORY 5.4).

    Example:
        >>> from sitr.accounting import Gaussian, PureDP
        >>> from sitr.ledger.budget import Budget
        >>> joining = Joining(Keeper.of(Budget(epsilon=1.0, delta=1e-6, disjoint_by="ward")), ["north"])
        >>> joining.add(PureDP(epsilon=0.5), [])
        >>> joining.add(Gaussian(noise_multiplier=30), ["north"])
        >>> joining.record["whole"] / 2**60, joining.record["blocks"]
        (0.5, {'north': None})
    """

    def __init__(self, keeper: Keeper, blocks: Iterable[str]) -> None:
        self._keeper = keeper.joined()
        self._pure = Filters(self._keeper.filters.members[1:])
        self._whole: Vector = (0,)
        self._blocks: dict[str, Vector] = dict.fromkeys(blocks, self._whole)

    def add(self, event: Event, blocks: Iterable[str]) -> None:
        """Count an event that was charged, to blocks apart or to the whole dataset."""
        units = self._units(event)
        if not blocks or not self._keeper.budget.parallel:
            self._whole = plus(self._whole, units)
            return
        for block in blocks:
            self._blocks[block] = plus(self._blocks[block], units)

    def _units(self, event: Event) -> Vector:
        try:
            return self._pure.units(event)[:1]
        except NoSuchGuarantee:
            return (None,)

    @property
    def record(self) -> dict[str, Any]:
        """What the entry says with which the filter joins."""
        blocks = {name: used for name, (used,) in self._blocks.items()}
        return {"blocks": blocks, "definition": self._keeper.to_json(), "whole": self._whole[0]}

    def accepts(self, record: dict[str, Any]) -> bool:
        """Whether an entry counts no less than is due."""
        counted = [record["whole"], *(record["blocks"][name] for name in self._blocks)]
        return all(map(covers, counted, [self._whole[0], *(used for (used,) in self._blocks.values())]))
