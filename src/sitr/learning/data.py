"""The examples of a run, by their places: what is asked for is collated, and nothing else is looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, default_collate

from .. import _validate
from ..errors import InvalidArgument
from ..mechanisms.randomness import EXPANDED, Source, words
from .watch import replaced, tensors

Integers = NDArray[np.int64]
MOST_EACH = 10**6


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

    def held(self, places: Integers) -> Integers:
        """Return those of some places at which there is something."""
        return places

    def at(self, places: Integers) -> Any:
        """Return the examples at some places, as one batch."""
        return self._at(places)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors that examples are read from, where they are in memory."""
        return tuple(tensors(self._data.tensors if isinstance(self._data, TensorDataset) else self._data))


class PeoplesExamples(Examples):
    """Data of people who have several examples each: a place is a person, and holds `each` of that person's examples.

    Args:
        data: The examples, as `Examples` takes them.
        people: The number of its owner for each example, from 0 on.
        n: How many people there are.
        each: How many examples of a person are taken at once: some of them at random; or all of them, and some twice,
            where there are fewer.
        source: Of bits.

    Raises:
        InvalidArgument: There is not one owner for each example, or their numbers are not those of n people.

    Privacy: what stands at a person's place depends on that person's examples, and on random numbers that are
    independent of everything else. Adding a person with all examples adds one row, and changes no other.

    Example:
        >>> examples = PeoplesExamples(torch.arange(5.0), people=[1, 0, 1, 1, 3], n=4, each=2)
        >>> places = examples.held(np.arange(4))
        >>> places, examples.at(places).shape
        (array([0, 1, 3]), torch.Size([3, 2]))
    """

    def __init__(self, data: Any, people: Any, n: int, each: int, source: Source = EXPANDED) -> None:
        self._at, lengths = _reader(data)
        owners = np.asarray(people)
        if owners.ndim != 1 or owners.dtype.kind not in "iu" or any(length != len(owners) for length in lengths):
            raise InvalidArgument(
                "people does not have one whole number for each example.",
                why="each example counts for its owner.",
                do="pass an array with the number of each example's owner, from 0 to n - 1.",
            )
        if owners.size and not (owners.min() >= 0 and owners.max() < n):
            raise InvalidArgument(
                f"people has numbers that are not of n={n} people, of whom the plan speaks.",
                why="n is public, and the chance of a person to be drawn follows from it.",
                do="number people from 0 to n - 1.",
            )
        self._each, self._source = _validate.integer("each", each, 1, MOST_EACH), source
        examples = data.tensors if isinstance(data, TensorDataset) else data
        self._data = (examples, torch.from_numpy(owners.astype(np.int64)))
        self._sorted = np.argsort(owners, kind="stable")
        self._counts = np.bincount(owners.astype(np.int64), minlength=n)
        self._ends = np.cumsum(self._counts)

    def held(self, places: Integers) -> Integers:
        """Return those of some people who have examples."""
        return places[self._counts[places] > 0]

    def at(self, places: Integers) -> Any:
        """Return examples of some people, as one batch of shape (people, each, ...)."""
        chosen = np.concatenate([np.empty(0, np.int64), *map(self._chosen, places.tolist())])
        shape = (len(places), self._each)
        return replaced(self._at(chosen), lambda one: one.unflatten(0, shape))

    def _chosen(self, person: int) -> Integers:
        """The examples of a person in a random order, from the beginning again where there are too few."""
        count, end = int(self._counts[person]), int(self._ends[person])
        own = self._sorted[end - count : end]
        order = np.argsort(words(self._source, 64, count), kind="stable")
        return own[order[np.arange(self._each) % count]]


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
