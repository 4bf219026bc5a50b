"""The choice of tables: it costs no more than it may, and takes what is far from known."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting.notions import SMOOTHING
from sitr.mechanisms.samplers.draws import LARGEST_SIGMA
from sitr.synthesis.choice import LEAST_DEVIATION, WORTH, Scores, again

PAIRS = tuple((0, other) for other in range(1, 9))


@given(
    st.lists(st.tuples(st.integers(-300, 50_000), st.integers(-300, 50_000)), min_size=8, max_size=8),
    st.lists(st.tuples(st.sampled_from([0, 4, 100, 400]), st.sampled_from([0, 4, 36])), min_size=8, max_size=8),
    st.floats(1e-3, 5),
    st.sampled_from([1.0, 20.0]),
)
def test_it_costs_no_more_than_it_may(distances, cells, mu, reach):
    errors = reach * np.array(cells, dtype=float)
    chosen = Scores(PAIRS, np.array(distances), errors, np.full(errors.shape, 7 * reach)).chosen(mu)
    assert sum(one.mu**2 for one in chosen.values()) <= mu**2
    assert all(cells[PAIRS.index(pair)][one.level] > 0 for pair, one in chosen.items())
    for one in chosen.values():  # what noise of this deviation costs, where a unit moves what is measured so far
        assert LEAST_DEVIATION <= one.deviation <= LARGEST_SIGMA
        assert (7 * reach) ** 2 / (Fraction(one.deviation) ** 2 - Fraction(SMOOTHING)) <= Fraction(one.mu) ** 2


@given(st.floats(-9, 0), st.sampled_from([1.0, 1e2, 1e4]), st.sampled_from([4.0, 400.0]), st.floats(1, 100))
def test_it_costs_no_more_where_distances_are_mostly_noise(power, reach, cells, times):
    """The less may be spent the noisier are the distances: no price that is tried may be low enough for them."""
    mu = 10**power
    distances = np.full((8, 2), int(times * reach / mu))
    chosen = Scores(PAIRS, distances, np.full((8, 2), reach * cells), np.full((8, 2), reach)).chosen(mu)
    assert sum(one.mu**2 for one in chosen.values()) <= mu**2
    assert all(one.deviation <= LARGEST_SIGMA for one in chosen.values())


def test_what_is_known_well_is_left_out_and_most_is_spent():
    far = np.array([[20_000, 15_000]] * 4 + [[20, 10]] * 2 + [[-20, -30]] * 2)
    chosen = Scores(PAIRS, far, np.full((8, 2), 100.0), np.ones((8, 2))).chosen(0.1)
    assert set(chosen) == set(PAIRS[:4])
    assert sum(one.mu**2 for one in chosen.values()) > 0.4 * 0.1**2  # each μ is rounded down by less than √2


@given(
    st.lists(st.tuples(st.integers(-300, 50_000), st.integers(-300, 50_000)), min_size=8, max_size=8),
    st.lists(st.tuples(st.sampled_from([0, 4, 100, 400]), st.sampled_from([0, 4, 36])), min_size=8, max_size=8),
    st.floats(1e-3, 5),
    st.sampled_from([1.0, 20.0]),
)
def test_the_whole_is_spent_where_it_is_to_be(distances, cells, mu, reach):
    errors = reach * np.array(cells, dtype=float)
    scores = Scores(PAIRS, np.array(distances), errors, np.full(errors.shape, 7 * reach))
    some, chosen = scores.chosen(mu), scores.chosen(mu, whole=True)
    assert chosen.keys() == some.keys()
    spent = Fraction(0)
    for pair, one in chosen.items():
        assert one.level == some[pair].level
        assert LEAST_DEVIATION <= one.deviation <= some[pair].deviation
        cost = (7 * Fraction(reach)) ** 2 / (Fraction(one.deviation) ** 2 - Fraction(SMOOTHING))
        assert cost <= Fraction(one.mu) ** 2
        spent += Fraction(one.mu) ** 2
    assert spent <= Fraction(mu) ** 2
    least = chosen and min(one.deviation for one in chosen.values()) == LEAST_DEVIATION
    assert not chosen or least or spent > Fraction(mu) ** 2 * (1 - Fraction(1, 10**9))


@given(st.lists(st.floats(1, 1e13), max_size=8), st.floats(1e-3, 5))
def test_tables_that_are_measured_again_share_all_that_is_left(reaches, mu):
    """Those whose noise is not drawn too: their part was lost."""
    tables = dict(zip(PAIRS, enumerate(reaches), strict=False))
    found = again(tables, mu)
    spent = Fraction(0)
    for pair, one in found.items():
        level, reach = tables[pair]
        assert one.level == level
        assert LEAST_DEVIATION <= one.deviation <= LARGEST_SIGMA
        assert Fraction(reach) ** 2 / (Fraction(one.deviation) ** 2 - Fraction(SMOOTHING)) <= Fraction(one.mu) ** 2
        spent += Fraction(one.mu) ** 2
    assert spent <= Fraction(mu) ** 2
    least = found and min(one.deviation for one in found.values()) == LEAST_DEVIATION
    assert not found or least or spent > Fraction(mu) ** 2 * (1 - Fraction(1, 10**9))
    left_out = [reach for pair, (_, reach) in tables.items() if pair not in found]
    assert all(reach > LARGEST_SIGMA / 2 * mu / len(reaches) ** 0.5 for reach in left_out)


def test_tables_of_many_shapes_that_are_measured_again_have_few_deviations():
    """Each deviation has a table of its own to draw from: there was one for each shape."""
    tables = {(0, place): (0, float(reach)) for place, reach in enumerate(np.geomspace(10, 10_000, 300))}
    assert len({one.deviation for one in again(tables, 0.5).values()}) <= 2 * np.log2(1000) + 2


@given(st.floats(1e-2, 1e6), st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_noise_is_what_gains_most_for_its_price(price, far, cells):
    """Against a search on a grid: d² / (d + c/μ) less the price of μ²."""
    scores = Scores(PAIRS[:1], np.array([[int(far)]]), np.array([[cells]]), np.array([[1.0]]))
    _, (mu,), _ = scores._at(price)
    deviations = 2.0 ** (np.arange(4, 59) / 2)
    mus = 1 / np.sqrt(deviations**2 - SMOOTHING)
    gains = int(far) ** 2 / (int(far) + 0.4 * cells / mus) - price * mus**2
    if mu:
        assert int(far) ** 2 / (int(far) + 0.4 * cells / mu) - price * mu**2 > 0.9 * gains.max()
    else:
        assert gains.max() < 1.1 * WORTH * far


def test_a_level_that_shows_as_much_with_fewer_cells_is_taken():
    chosen = Scores(PAIRS[:1], np.array([[5000, 4990]]), np.array([[400.0, 25.0]]), np.ones((1, 2))).chosen(0.05)
    assert chosen[PAIRS[0]].level == 1
