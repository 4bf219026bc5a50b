"""Models that mix people, made into ones that do not."""

from __future__ import annotations

import torch
from torch import nn

from sitr.learning.replacement import fix, groups_of
from tests.learning.models import classes, distance


def test_batch_normalisation_becomes_group_normalisation() -> None:
    torch.manual_seed(1)
    shared = nn.BatchNorm2d(8)
    nn.init.normal_(shared.weight)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3),
        shared,
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        shared,
        nn.Flatten(),
        nn.BatchNorm1d(32),
        nn.Linear(32, 4),
    )
    told: list[str] = []
    fixed = fix(model, tell=told.append)
    assert told == [
        "1: BatchNorm2d(8) became GroupNorm of 2 groups",
        "6: BatchNorm1d(32) became GroupNorm of 8 groups",
    ]
    assert isinstance(model[1], nn.BatchNorm2d)  # what was given stays
    assert fixed[1] is fixed[4]
    assert torch.equal(fixed[1].weight, shared.weight)
    assert fixed[1].weight is not shared.weight
    assert torch.equal(fixed[0].weight, model[0].weight)
    assert distance((fixed, (torch.randn(4, 1, 6, 6),), classes)) < 1e-5


def test_running_statistics_are_dropped_and_the_rest_is_left() -> None:
    told: list[str] = []
    model = nn.Sequential(nn.InstanceNorm1d(3, track_running_stats=True), nn.GroupNorm(1, 3))
    fixed = fix(model, tell=told.append)
    assert len(told) == 1
    assert not list(fixed.buffers())
    assert isinstance(fix(nn.BatchNorm1d(12), tell=told.append), nn.GroupNorm)


def test_groups_divide_channels_and_hold_several() -> None:
    for channels in range(1, 300):
        groups = groups_of(channels)
        assert channels % groups == 0
        assert groups <= 32
        assert groups == 1 or channels // groups >= 4
