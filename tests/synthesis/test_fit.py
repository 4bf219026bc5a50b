"""The private measure of fit: right on average, as noisy as it says, and written down with the model."""

import math

import numpy as np
import pytest

from sitr.accounting.notions import SMOOTHING
from sitr.errors import InvalidArgument
from sitr.synthesis import measuring, synthesizer
from sitr.synthesis.fit import Distance, Fit
from sitr.synthesis.table import SyntheticTable
from sitr.tables.codes import Code
from sitr.tables.domains import Domain

SIZES = (2, 30, 4)
FEW = Fit({(0,): 20, (1,): 40, (0, 1): 100}, 10.0, 1000.0)


def some_rows(rows=5000):
    generator = np.random.default_rng(3)
    first = generator.integers(0, 2, rows)
    second = np.clip(generator.normal(8 + 12 * first, 4, rows).round(), 0, 29).astype(int)
    return np.stack([first, second, second // 10], axis=1)


def model_distances(released, rows):
    """What the fit measures, computed from drawn rows instead: many of them are as good as the model itself."""
    drawn = released.sample(400_000, seed=1).astype(int)
    bins = released.learnt.mixture.levels.bins

    def shares(numbers, columns):
        shape = [int(bins[one].max()) + 1 if len(columns) > 1 else SIZES[one] for one in columns]
        cells = [bins[one][numbers[:, one]] if len(columns) > 1 else numbers[:, one] for one in columns]
        return np.bincount(np.ravel_multi_index(cells, shape), minlength=math.prod(shape)) / len(numbers)

    return {
        columns: np.abs(shares(drawn, columns) - shares(rows, columns)).sum() / 2
        for columns in [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    }


def test_it_is_how_far_drawn_rows_are_from_the_real_ones():
    rows = some_rows()
    made = synthesizer(SIZES, epsilon=200.0, delta=1e-6, ordered=[False, True, False], check=0.2)
    released = made.release(rows, unsafe_seed=1).value
    fit, true = released.learnt.fit, model_distances(released, rows)
    assert fit.distances.keys() == true.keys()
    for columns, distance in true.items():
        assert fit.of(columns).value == pytest.approx(distance, abs=0.004)


@pytest.mark.statistical
def test_its_noise_is_as_wide_as_it_says(monkeypatch):
    """The sum of n squares of normal noise over its variance is within 9.3 √n + 43 of n but for 1e-9."""
    monkeypatch.setattr(measuring, "STEPS", (1,) * measuring.ROUNDS)
    rows = some_rows(2000)
    monkeypatch.setattr(measuring.Measuring, "_distance", lambda *_: 500)
    noisy = synthesizer(SIZES, epsilon=1.0, delta=1e-6, check=0.5)
    found = [noisy.release(rows, unsafe_seed=seed).value.learnt.fit for seed in range(60)]
    off = np.array([[one - 500 for one in fit.distances.values()] for fit in found]).ravel() / found[0].deviation
    assert abs((off**2).sum() - off.size) < 9.3 * math.sqrt(off.size) + 43


@pytest.mark.parametrize("check", [0.05, 0.5])
def test_all_of_its_distances_cost_its_part_together(check):
    costs = synthesizer(SIZES, epsilon=1.0, delta=1e-6, max_rows_per_unit=3, check=check).costs
    assert costs.checked == 6
    spent = costs.checked * costs.moved**2 / (costs.check_deviation() ** 2 - SMOOTHING)
    assert spent == pytest.approx(check * costs.mu**2, rel=1e-9)
    assert spent < check * costs.mu**2


def test_nothing_is_measured_unless_told():
    made = synthesizer(SIZES, epsilon=1.0, delta=1e-6)
    assert made.costs.checked == 0
    assert made.release(some_rows(500), unsafe_seed=1).value.learnt.fit is None


@pytest.mark.parametrize("check", [-0.1, 0.6, float("nan"), "much"])
def test_a_part_that_is_none_is_refused(check):
    with pytest.raises(InvalidArgument, match="check="):
        synthesizer(SIZES, epsilon=1.0, delta=1e-6, check=check)


def test_means_are_less_noisy_than_each():
    assert FEW.of((0,)) == pytest.approx(Distance(0.01, 0.0098))
    assert FEW.mean(1).value == pytest.approx(0.015)
    assert FEW.mean(1).within == pytest.approx(0.0098 / math.sqrt(2))
    assert FEW.farthest(1) == (1,)
    assert FEW.farthest(2) == (0, 1)


def test_people_read_it_with_names():
    text = "\n".join(FEW.lines(["age", "income"]))
    assert "mean of 2 columns" in text
    assert "farthest: income" in text
    assert "farthest: age × income" in text
    assert "5 % ± 0.98 % of the rows" in text


def test_one_column_has_no_pairs():
    assert not any("pair" in line for line in Fit({(0,): 3}, 1.0, 10.0).lines(["age"]))


def test_noise_is_not_shown_as_less_than_nothing():
    assert str(Distance(-0.2, 0.5)).startswith("0 %")


def test_it_is_kept_with_the_model(tmp_path):
    codes = (
        Code.of("smokes", Domain("boolean", required=True)),
        Code.of("age", Domain("number", lower=0, upper=29, required=True)),
        Code.of("class", Domain("number", categories=(1, 2, 3, 4), required=True)),
    )
    made = synthesizer(SIZES, epsilon=3.0, delta=1e-6, check=0.1).release(some_rows(), unsafe_seed=1)
    table = SyntheticTable(value=made.value, error95=None, event=made.event, codes=codes)
    table.save(tmp_path / "model.json")
    again = SyntheticTable.load(tmp_path / "model.json")
    assert again.quality().fit == table.quality().fit == made.value.learnt.fit
    assert again.quality().pair_fit["smokes", "age"] == made.value.learnt.fit.of((0, 1)).value
    assert "mean of 3 pairs" in str(again.quality())
