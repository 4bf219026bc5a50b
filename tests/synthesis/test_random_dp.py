"""Random DP: γ against small cases and trials, where noise hides a row, and that nobody can charge for it."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sitr.accounting import Event, Laplace, compose
from sitr.errors import InvalidArgument, SitrError
from sitr.ledger import Budget, Ledger
from sitr.mechanisms import Blueprint, Mechanism
from sitr.release import Release
from sitr.synthesis import random_dp_histogram
from sitr.synthesis.random_dp import bound
from tests.mechanisms.statistics import ALARM
from tests.mechanisms.truths import laplace_mass


def failing(law, rows):
    """The probability that the last row, exchanged for another, leaves other cells empty: by its formula."""
    law = np.asarray(law)
    one, other = law[:, np.newaxis], law[np.newaxis, :]
    alone = (1 - one) ** (rows - 1) + (1 - other) ** (rows - 1) - (1 - one - other).clip(0) ** (rows - 1)
    return float((one * other * alone * ~np.eye(law.size, dtype=bool)).sum())


def laws(size):
    return st.lists(st.floats(0.001, 1), min_size=size, max_size=size).map(lambda parts: np.array(parts) / sum(parts))


@given(st.integers(2, 3).flatmap(laws), st.integers(1, 4))
def test_gamma_holds_for_every_law_of_a_few_rows(law, rows):
    """All sequences of rows, one by one."""
    exact = 0.0
    for cells in product(range(law.size), repeat=rows + 1):
        *first, last, other = cells
        if set(first) | {last} != set(first) | {other}:
            exact += math.prod(law[cell] for cell in cells)
    assert exact == pytest.approx(failing(law, rows))
    assert exact <= bound(law.size, rows)


@given(st.integers(2, 40).flatmap(laws), st.integers(1, 10**6))
def test_gamma_holds_for_every_law(law, rows):
    assert failing(law, rows) <= bound(law.size, rows)


@pytest.mark.parametrize(("cells", "rows"), [(200, 2000), (50, 10**4)])
def test_gamma_is_nearly_reached(cells, rows):
    """By cells of probability 1/n, and one that has the rest and is hardly ever empty."""
    law = np.append(np.full(cells - 1, 1 / rows), 1 - (cells - 1) / rows)
    assert 0.9 * bound(cells, rows) <= failing(law, rows)


@pytest.mark.statistical
def test_gamma_holds_in_trials():
    """A Zipf law, 4,000 times: as often as the formula says, by an exact binomial test of 1e-9, and less than γ."""
    law = np.arange(1, 201) ** -1.2
    law /= law.sum()
    generator, rows = np.random.default_rng(1), 1000
    failed = 0
    for _ in range(4000):
        seen = generator.choice(200, rows + 1, p=law)
        failed += len(set(seen[:-1].tolist()) ^ set(np.delete(seen, -2).tolist())) > 0
    assert stats.binomtest(failed, 4000, failing(law, rows)).pvalue > ALARM
    assert failed / 4000 < bound(200, rows)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 4.0])
def test_where_the_same_cells_are_empty_noise_hides_the_row(alpha):
    made = random_dp_histogram(5, 10, alpha=alpha)
    worst = max(
        math.log(laplace_mass(made.scale, one - 3) * laplace_mass(made.scale, other - 1))
        - math.log(laplace_mass(made.scale, one - 2) * laplace_mass(made.scale, other - 2))
        for one, other in product(range(-5, 10), repeat=2)
    )
    assert worst == pytest.approx(alpha)
    assert made.scale == 2 / alpha


@given(st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_what_leaves_is_a_histogram_of_what_occurs(counts):
    made = random_dp_histogram(1000, sum(counts), alpha=1.0)
    found = made.release(dict(enumerate(counts)), unsafe_random_dp=True, unsafe_seed=1)
    assert sum(found.value.counts.values()) == sum(counts) == found.value.total
    assert found.value.counts.keys() <= set(range(len(counts)))
    assert found.value.other == 0


@pytest.mark.parametrize("said", [None, False, 1, "yes"])
def test_it_runs_only_where_one_says_so(said):
    made = random_dp_histogram(5, 3, alpha=1.0)
    with pytest.raises(InvalidArgument, match="is not differential privacy"):
        made.release({"a": 3}, unsafe_random_dp=said)
    with pytest.raises(InvalidArgument, match="is not differential privacy"):
        made.release({"a": 3})


def test_it_is_stamped():
    found = random_dp_histogram(50, 1000, alpha=1.0).release({"a": 1000}, unsafe_random_dp=True)
    assert not found.private
    assert "NOT PRIVATE" in str(found)
    assert "outside every promise" in str(found)
    assert "γ = 0.0368" in str(found)


def test_nothing_of_it_can_be_charged():
    """There is no event: not for an accountant, a blueprint or a budget; and no ledger keeps it as an answer."""
    made = random_dp_histogram(50, 1000, alpha=1.0)
    found = made.release({"a": 1000}, unsafe_random_dp=True)
    for one in (made, found):
        assert not isinstance(one, (Event, Mechanism, Release))
        assert not hasattr(one, "event")
        with pytest.raises((SitrError, TypeError, AttributeError)):
            compose(one)
        with pytest.raises(InvalidArgument):
            Blueprint(one=one)
    with Ledger.open("memory://") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=10.0, delta=0.5))
        for one in (made, found):
            with pytest.raises(SitrError):
                ledger.reserve("clinic", one, analyst="amina")
        with (
            pytest.raises(InvalidArgument),
            ledger.reserve("clinic", Laplace(noise_multiplier=1), analyst="amina") as grant,
        ):
            grant.commit(found)


@pytest.mark.parametrize("arguments", [(0, 5, 1.0), (5, 0, 1.0), (5, 5, 0.0), (5, 5, float("nan")), (5, 2.5, 1.0)])
def test_what_cannot_be_is_refused(arguments):
    cells, rows, alpha = arguments
    with pytest.raises(InvalidArgument):
        random_dp_histogram(cells, rows, alpha=alpha)


@pytest.mark.parametrize("counts", [{"a": 4}, {"a": 1, "b": 1, "c": 1}, [3], {"secret": "3"}])
def test_what_are_not_these_rows_is_refused_and_not_shown(counts):
    with pytest.raises(InvalidArgument) as refused:
        random_dp_histogram(2, 3, alpha=1.0).release(counts, unsafe_random_dp=True)
    assert "secret" not in str(refused.value)
