"""The examples of a run, by their places: what is asked for is collated, and nothing else is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from ..errors import InvalidArgument
from .watch import tensors

Integers = NDArray[np.int64]


class Examples:
    """Data of which micro-batches are taken.

    Args:
        data: A tensor, a tuple, list or dictionary of tensors, a `TensorDataset`, or any dataset with a length whose
            examples are asked for by number. Tensors are indexed at once, everything else is collated.
        n: How many examples there must be.

    Raises:
        InvalidArgument: The data are of another kind or size. How many there are is not said: it is not public.

    Example:
        >>> examples = Examples((torch.arange(4.0), torch.arange(4)), n=4)
        >>> examples.at(np.array([2, 0]))
        (tensor([2., 0.]), tensor([2, 0]))
    """

    def __init__(self, data: Any, n: int) -> None:
        self._at, lengths = _reader(data)
        self._data = data
        if any(length != n for length in lengths):
            raise InvalidArgument(
                f"the data do not have n={n} examples, of which the plan speaks.",
                why="n is public, and the chance of an example to be drawn follows from it.",
                do="make the plan for these data, or pass the data that it was made for.",
            )

    def at(self, places: Integers) -> Any:
        """Return the examples at some places, as one batch."""
        return self._at(places)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors that examples are read from, where they are in memory."""
        return tuple(tensors(self._data.tensors if isinstance(self._data, TensorDataset) else self._data))


def _reader(data: Any) -> tuple[Callable[[Integers], Any], list[int]]:
    """How to read examples, and the lengths of all that they are read from."""
    if isinstance(data, (DataLoader, IterableDataset)):
        raise InvalidArgument(
            f"a {type(data).__name__} says itself which examples come when.",
            why="what a step costs follows from how its examples are drawn, so the run draws them.",
            do="pass the dataset itself.",
        )
    if isinstance(data, TensorDataset):
        data = tuple(data.tensors)
    if isinstance(data, Tensor):
        tensor = data
        return (lambda places: _taken(tensor, places)), _lengths([tensor])
    if isinstance(data, (tuple, list)) and data and all(isinstance(one, Tensor) for one in data):
        return (lambda places: tuple(_taken(one, places) for one in data)), _lengths(data)
    if isinstance(data, Mapping) and data and all(isinstance(one, Tensor) for one in data.values()):
        read = data
        return (lambda places: {name: _taken(one, places) for name, one in read.items()}), _lengths(data.values())
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")) or isinstance(data, (str, bytes, Mapping)):
        raise InvalidArgument(
            f"data of type {type(data).__name__} cannot be read by number.",
            do="pass tensors, or a dataset with __len__ and __getitem__.",
        )
    return (lambda places: default_collate([data[place] for place in places.tolist()])), [len(data)]


def _taken(tensor: Tensor, places: Integers) -> Tensor:
    return tensor[torch.from_numpy(places).to(tensor.device)]


def _lengths(tensors: Any) -> list[int]:
    return [len(one) if one.ndim else 0 for one in tensors]
