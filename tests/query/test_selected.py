"""Counts of groups that were found: their intervals hold the truth 95 times in 100 of those in which it is seen."""

import math
from fractions import Fraction

import numpy as np
import pyarrow
import pytest

import sitr
from sitr.accounting import PureDP
from sitr.mechanisms import PartitionSelection, select_partitions
from sitr.mechanisms.stability import Gate, NormalGate
from sitr.query.selected import count_interval
from sitr.tables.declaration import Declaration
from tests.query.releases import least
from tests.tables import clinic


def laplace(threshold, scale):
    return PartitionSelection(PureDP(1.0), Gate(Fraction(1 / scale), threshold - 1), 1)


def normal(threshold, sigma):
    return PartitionSelection(PureDP(1.0), NormalGate(sigma, threshold - 1), 1)


def covered(count, chosen):
    """By the law itself: how often the interval holds a count, of the times that it reaches the threshold."""
    threshold, scale = chosen.threshold, chosen.scale
    noisy = np.arange(threshold, max(threshold, count) + math.ceil(50 * scale) + 20)
    if chosen.noise == "laplace":
        weights = np.exp(-np.abs(noisy - count) / scale + max(threshold - count, 0) / scale)
    else:
        weights = np.exp((max(threshold - count, 0) ** 2 - (noisy - count) ** 2) / (2 * scale**2))
    low, high = count_interval(noisy.astype(float), chosen)
    return weights[(low <= count) & (count <= high)].sum() / weights.sum()


@pytest.mark.parametrize("chosen", [laplace, normal])
@pytest.mark.parametrize("scale", [0.2, 1.0, 3.3, 50.0, 400.0])
@pytest.mark.parametrize("threshold", [2, 15, 300])
def test_every_count_is_covered_when_it_is_seen(scale, threshold, chosen):
    far = (threshold + math.ceil(scale * steps) for steps in range(9))
    counts = {*range(1, 30), *range(max(threshold - 3, 1), threshold + 30), *far}
    assert min(covered(count, chosen(threshold, scale)) for count in counts) >= 0.95


@pytest.mark.parametrize(("count", "most"), [(1, 0.96), (15, 0.96), (60, 0.99)])
def test_no_more_is_covered_than_steps_of_the_count_make_necessary(count, most):
    assert covered(count, laplace(15, 3.0)) < most


def test_ends_rise_with_what_was_seen_and_hold_it():
    noisy = np.arange(40.0, 400.0)
    low, high = count_interval(noisy, laplace(40, 12.0))
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) >= 0)
    assert np.all((low <= noisy) & (noisy <= high))
    assert low[0] == 1  # a group that barely passed may be one person
    assert np.array_equal(high[200:] - noisy[200:], noisy[200:] - low[200:])  # far above it, selection says nothing


@pytest.mark.statistical
def test_small_groups_that_were_named_are_covered():
    """20,000 groups of 9 people are chosen from; the least count is that of `least`, at 1e-9."""
    groups = select_partitions(epsilon=0.5, delta=0.05)
    found = groups.release(dict.fromkeys(range(20000), 9)).value
    noisy = np.array(list(found.values()), dtype=float)
    assert noisy.size > 1000
    low, high = count_interval(noisy, groups)
    assert int(np.sum((low <= 9) & (high >= 9))) >= least(noisy.size, 1)


def named(units=40):
    wards = [f"ward {number}" for number in range(40) for _ in range(units)]
    declared = Declaration.of(
        {
            "sitr": 1,
            "name": "d",
            "privacy": {"delta": 1e-6},
            "budgets": {"d": {"epsilon": 100.0, "delta": 1e-3}},
            "tables": {
                "t": {
                    "unit": "who",
                    "max_rows_per_unit": 1,
                    "columns": {"who": {"type": "integer"}, "ward": {"type": "string"}},
                }
            },
        }
    )
    frame = pyarrow.table({"who": list(range(len(wards))), "ward": wards})
    return sitr.open(declared, analyst="amina", ledger="memory://", frames={"t": frame})


def test_the_answer_and_its_explanation_say_that_groups_were_chosen():
    with named() as database:
        asked = database.table("t").group_by("ward").aggregate(people=sitr.count_units(), rows=sitr.count())
        remark = "people: a group is listed when its noisy count reaches"
        assert any(note.startswith(remark) for note in asked.explain(epsilon=1).notes)
        answer = asked.release(epsilon=1)
        assert any(note.startswith(remark) for note in answer.notes)
        assert not any(note.startswith("rows:") for note in answer.notes)
        assert all(low >= 1 for low in answer.low["people"])
        assert "rows" in answer.additive
        with pytest.raises(sitr.errors.InvalidArgument, match="does not add up"):
            answer.total("people")


def test_groups_that_are_public_are_not_chosen():
    with clinic.database() as database:
        answer = database.table("visits").group_by("region").aggregate(people=sitr.count_units()).release(epsilon=1)
        assert not any("is listed" in note for note in answer.notes)
        assert answer.total("people").value > 0
