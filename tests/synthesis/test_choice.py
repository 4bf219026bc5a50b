"""The choice of tables: it costs no more than it may, and takes what is far from known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sitr.mechanisms.samplers.draws import LARGEST_SIGMA
from sitr.synthesis.choice import WORTH, Scores

PAIRS = tuple((0, other) for other in range(1, 9))


@given(
    st.lists(st.tuples(st.integers(-300, 50_000), st.integers(-300, 50_000)), min_size=8, max_size=8),
    st.lists(st.tuples(st.sampled_from([0, 4, 100, 400]), st.sampled_from([0, 4, 36])), min_size=8, max_size=8),
    st.floats(1e-3, 5),
    st.sampled_from([1.0, 20.0]),
)
def test_it_costs_no_more_than_it_may(distances, cells, mu, reach):
    chosen = Scores(PAIRS, np.array(distances), np.array(cells, dtype=float), reach).chosen(mu)
    assert sum(one.mu**2 for one in chosen.values()) <= mu**2
    assert all(cells[PAIRS.index(pair)][one.level] > 0 for pair, one in chosen.items())


@given(st.floats(-9, 0), st.sampled_from([1.0, 1e2, 1e4]), st.sampled_from([4.0, 400.0]), st.floats(1, 100))
def test_it_costs_no_more_where_distances_are_mostly_noise(power, reach, cells, times):
    """The less may be spent the noisier are the distances: no price that is tried may be low enough for them."""
    mu = 10**power
    distances = np.full((8, 2), int(times * reach / mu))
    chosen = Scores(PAIRS, distances, np.full((8, 2), cells), reach).chosen(mu)
    assert sum(one.mu**2 for one in chosen.values()) <= mu**2
    assert all(one.mu > reach / LARGEST_SIGMA for one in chosen.values())


def test_what_is_known_well_is_left_out_and_most_is_spent():
    far = np.array([[20_000, 15_000]] * 4 + [[20, 10]] * 2 + [[-20, -30]] * 2)
    chosen = Scores(PAIRS, far, np.full((8, 2), 100.0), 1.0).chosen(0.1)
    assert set(chosen) == set(PAIRS[:4])
    assert sum(one.mu**2 for one in chosen.values()) > 0.4 * 0.1**2  # each μ is rounded down by less than √2


@given(st.floats(1e-2, 1e6), st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_noise_is_what_gains_most_for_its_price(price, far, cells):
    """Against a search on a grid: d² / (d + c/μ) less the price of μ²."""
    scores = Scores(PAIRS[:1], np.array([[int(far)]]), np.array([[cells]]), 1.0)
    found, spent = scores._at(price)
    mus = 2.0 ** (np.arange(-80, 20) / 2)
    gains = int(far) ** 2 / (int(far) + 0.4 * cells / mus) - price * mus**2
    if found:
        mu = found[PAIRS[0]].mu
        assert int(far) ** 2 / (int(far) + 0.4 * cells / mu) - price * mu**2 > 0.9 * gains.max()
        assert spent == mu**2
    else:
        assert gains.max() < 1.1 * WORTH * far


def test_a_level_that_shows_as_much_with_fewer_cells_is_taken():
    chosen = Scores(PAIRS[:1], np.array([[5000, 4990]]), np.array([[400.0, 25.0]]), 1.0).chosen(0.05)
    assert chosen[PAIRS[0]].level == 1
