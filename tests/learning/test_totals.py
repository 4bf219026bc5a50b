"""Sums of all parameters: the same numbers whether they lie side by side or not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sitr.learning.totals import Totals

PARAMETERS = {"w": torch.ones(2, 3), "b": torch.ones(3), "s": torch.ones(())}


def sums(seed: int, names: str = "wbs") -> dict[str, Tensor]:
    torch.manual_seed(seed)
    return {name: torch.randn(PARAMETERS[name].shape) for name in names}


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_all_micro_batches_are_added(count: int) -> None:
    totals = Totals(PARAMETERS, torch.float64)
    for seed in range(count):
        totals.add(sums(seed))
    found = totals.mapped(Tensor.float)
    assert list(found) == list(PARAMETERS)
    for name, p in PARAMETERS.items():
        wanted = sum((sums(seed)[name].double() for seed in range(count)), torch.zeros(p.shape, dtype=torch.float64))
        assert torch.equal(found[name], wanted.float())


@pytest.mark.parametrize("order", [("wbs", "b"), ("b", "wbs"), ("w", "s")])
def test_a_parameter_without_a_gradient_stays_as_it_is(order: tuple[str, str]) -> None:
    totals = Totals(PARAMETERS, torch.float64)
    for seed, names in enumerate(order):
        totals.add(sums(seed, names))
    for name in PARAMETERS:
        wanted = sum(
            (sums(seed, names)[name].double() for seed, names in enumerate(order) if name in names),
            torch.zeros(PARAMETERS[name].shape, dtype=torch.float64),
        )
        assert torch.equal(totals[name], wanted)


@pytest.mark.parametrize("count", [1, 2])
def test_nothing_is_left_of_an_earlier_step(count: int) -> None:
    totals = Totals(PARAMETERS, torch.float64)
    for seed in range(count):
        totals.add(sums(seed))
    totals.clear()
    assert all(not bool(found.any()) for found in totals.mapped(Tensor.float).values())
    totals.add(sums(7))
    assert all(torch.equal(found, sums(7)[name]) for name, found in totals.mapped(Tensor.float).items())


def test_whole_numbers_are_added_in_place() -> None:
    totals = Totals(PARAMETERS, torch.int64)
    totals["b"].add_(2**60)
    totals["b"].add_(1)
    assert totals.mapped(lambda fine: fine)["b"].tolist() == [2**60 + 1] * 3
    assert totals["w"].sum() == 0
