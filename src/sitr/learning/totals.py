"""Sums of all parameters, side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


class Totals:
    """Sums of the gradients of all parameters, side by side in one tensor for each device.

    A model has hundreds of parameters, and a GPU takes longer to be told of an operation than most of them take. The
    sums of a single micro-batch are kept as they came, as there is nothing to add them to.

    Args:
        parameters: Whose sums these are, by name.
        dtype: Of the sums.

    Example:
        >>> totals = Totals({"w": torch.ones(2), "b": torch.ones(1)}, torch.float64)
        >>> for _ in range(2):
        ...     totals.add({"w": torch.tensor([1.0, 2.0])})
        >>> totals.mapped(Tensor.float)
        {'w': tensor([2., 4.]), 'b': tensor([0.])}
    """

    def __init__(self, parameters: Mapping[str, Tensor], dtype: torch.dtype) -> None:
        self._shapes = {name: p.shape for name, p in parameters.items()}
        self._dtype = dtype
        self._names: dict[torch.device, list[str]] = {}
        for name, p in parameters.items():
            self._names.setdefault(p.device, []).append(name)
        self._first: Mapping[str, Tensor] | None = None
        self._flat: dict[torch.device, Tensor] = {}
        self._views: dict[str, Tensor] = {}

    def clear(self) -> None:
        """Begin at zero."""
        self._first = None
        for flat in self._flat.values():
            flat.zero_()

    def __getitem__(self, name: str) -> Tensor:
        """Return the sum of one parameter, to be added to."""
        self._make()
        return self._views[name]

    def add(self, sums: Mapping[str, Tensor]) -> None:
        """Add the sums of a micro-batch; parameters that it has no gradient of may be left out."""
        if self._first is None and not self._views and sums.keys() == self._shapes.keys():
            self._first = sums
            return
        self._make()
        self._add(sums)

    def mapped(self, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
        """Return the sums by name after an operation on each number."""
        if self._first is not None:
            return {name: change(self._first[name]) for name in self._shapes}
        self._make()
        found: dict[str, Tensor] = {}
        for device, names in self._names.items():
            cut = change(self._flat[device]).split([self._shapes[name].numel() for name in names])
            found |= {name: part.view(self._shapes[name]) for name, part in zip(names, cut, strict=True)}
        return {name: found[name] for name in self._shapes}

    def _make(self) -> None:
        """Lay the sums side by side, where that is not done."""
        if not self._flat:
            for device, names in self._names.items():
                size = sum(self._shapes[name].numel() for name in names)
                self._flat[device] = torch.zeros(size, dtype=self._dtype, device=device)
            first, self._first = self._first, None
            self._views = self.mapped(lambda flat: flat)
            if first is not None:
                self._add(first)

    def _add(self, sums: Mapping[str, Tensor]) -> None:
        for device, names in self._names.items():
            if all(name in sums for name in names):
                self._flat[device] += torch.cat([sums[name].flatten() for name in names])
            else:
                for name in names:
                    if name in sums:
                        self._views[name] += sums[name]
