"""Nested structures: what is looked into, and what a model may return."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from sitr.errors import NotAllowed
from sitr.learning.ownership import Owned, Owner
from sitr.learning.watch import _are_arranged_alike, name_of, replaced, said, tensors

ASSUMED = Owned(0, several=True, assumed=True)
Pair = namedtuple("Pair", ["first", "second"])


@dataclass
class Out:
    logits: Any
    more: Any = None


@dataclass(frozen=True, slots=True)
class Frozen:
    logits: Any
    made: Any = field(init=False, default=None)


@pytest.mark.parametrize("pack", [lambda x: [x], lambda x: {"x": (x,)}, lambda x: Pair(1, x), Out, Frozen])
def test_tensors_are_found_and_replaced_in_every_nest(pack: Callable[[Any], Any]) -> None:
    x = torch.ones(2)
    for nest in (pack(x), pack(Out("a", [Out(x)]))):
        assert [id(found) for found in tensors(nest, nest)] == [id(x), id(x)]
        made = replaced(nest, lambda found: found + 1)
        assert type(made) is type(nest)
        (found,) = said(made)
        assert torch.equal(found, x + 1)
        assert said(nest)[0] is x  # the old one is as it was


class Answer(OrderedDict[str, Any]):
    """As the outputs of Hugging Face's models are: a dict whose items are attributes too."""

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        super().__setattr__(key, value)


class Slotted:
    __slots__ = ("__hidden",)

    def __init__(self, hidden: Any) -> None:
        self.__hidden = hidden


@dataclass
class Late(Slotted):
    logits: Any

    def __post_init__(self) -> None:
        Slotted.__init__(self, {"more": self.logits + 1})
        self.probs = self.logits + 2


def test_what_was_set_on_a_nest_is_looked_into_and_replaced() -> None:
    x, y = torch.ones(2), torch.zeros(2)
    answer = Answer(logits=x, past=(y, None))
    answer.loss = y + 5
    assert [id(found) for found in tensors(answer)] == [id(x), id(y), id(answer.loss)]
    made = replaced(answer, lambda found: found * 2)
    assert type(made) is Answer
    assert made.logits is made["logits"]
    assert [found.tolist() for found in (made.logits, made.past[0], made.loss)] == [[2, 2], [0, 0], [10, 10]]
    assert answer.logits is x

    late = Late(x)
    assert [found.tolist() for found in said(late)] == [[1, 1], [2, 2], [3, 3]]
    assert [found.tolist() for found in said(replaced(late, torch.neg))] == [[-1, -1], [-2, -2], [-3, -3]]
    late.probs = SimpleNamespace(h=x)
    with pytest.raises(NotAllowed, match="returns a SimpleNamespace"):
        said(late)


def test_kinds_of_dicts_stay_what_they_are() -> None:
    made = replaced(defaultdict(list, {"x": torch.ones(2)}), torch.neg)
    assert made["x"].tolist() == [-1, -1]
    assert made["y"] == []


def test_functions_have_the_name_that_people_call_them_by() -> None:
    """torch.mm equals torch.spmm, and was called that."""
    assert name_of(torch.mm) == "torch.mm"
    assert name_of(torch.nn.functional.linear) == "torch.nn.functional.linear"
    assert name_of(torch.Tensor.expand) == "torch.Tensor.expand"


def test_a_dataclass_without_tensors_stays_itself() -> None:
    public = Out({"width": 3})
    assert replaced([public], lambda x: x)[0] is public
    assert tensors(Out, [Out]) == []  # the class itself


def test_what_cannot_be_looked_into_is_no_answer_of_a_model() -> None:
    for plain in (None, True, 3, 0.5, np.float32(2), "a", (), [None, {"a": "b"}], Out(1), torch.Size([2])):
        assert said(plain) == []
    for closed in (
        SimpleNamespace(logits=torch.ones(2)),
        {torch.ones(2)},
        Out([iter([torch.ones(2)])]),
        torch.distributions.Normal(torch.ones(2), 1),
        Out,
    ):
        with pytest.raises(NotAllowed, match=r"returns a \w+") as error:
            said([1, closed])
        assert "dataclasses" in str(error.value)


def test_the_type_that_cannot_be_looked_into_is_named() -> None:
    with pytest.raises(NotAllowed, match="returns a SimpleNamespace"):
        said({"out": SimpleNamespace()})


@pytest.mark.parametrize(
    ("owners", "results", "alike"),
    [
        ([ASSUMED, None], [Owned(0, several=True)], True),
        ([Owned(1, several=True)], [ASSUMED], True),
        ([Owned(0, several=True, minor=True)], [Owned(0)], True),  # nothing is assumed
        ([Owned(0, several=True, minor=True)], [ASSUMED], False),
        ([ASSUMED], [Owned(0, several=True, minor=True)], False),
        ([ASSUMED], [Owned(0)], False),
        ([ASSUMED], [None], False),
    ],
)
def test_what_is_assumed_of_a_part_of_a_call_holds_for_all_of_it(
    owners: list[Owner], results: list[Owner], alike: bool
) -> None:
    assert _are_arranged_alike(tuple(owners), tuple(results)) == alike
