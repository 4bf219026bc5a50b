"""Random trees of events beside truths computed another way, and faults that such trees must find."""

import functools
import math
import sys
from dataclasses import replace

import pytest

from sitr.accounting import Composed, batches, orders, parts
from sitr.accounting.events import mechanisms
from sitr.accounting.losses import pairs
from sitr.accounting.losses.atoms import Atoms
from sitr.accounting.losses.law import Pair
from sitr.accounting.renyi import Claim
from tests.accounting.outcomes import MP, NOTHING, Double, Normal, Pairs, Sampled, Side
from tests.accounting.trees import Question, Tree, drawn
from tests.accounting.trials import NEAR, Answered, Campaign, Failure, Law, shrunk
from tests.accounting.truths import black_box, guaranteed, truth_of

BATCHES, BATCH = 6, 20  # `make bench ROOM=attack` tries deeper trees, and ten thousand of them
HUNDRED = 100


@pytest.fixture
def planting(monkeypatch):
    """A way to change the accountant, with nothing remembered from before or kept for after."""
    _forget()
    yield monkeypatch
    monkeypatch.undo()
    _forget()


def _forget():
    for name, module in sys.modules.items():
        if name.startswith("sitr.accounting"):
            for value in vars(module).values():
                if isinstance(value, functools._lru_cache_wrapper):
                    value.cache_clear()
    Tree.event.cache_clear()


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_tree_is_answered_falsely(batch):
    campaign = Campaign(seconds=None)
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        campaign.run(seed, deepest=1, laws_too=seed % 5 == 0)
    assert not campaign.failures, "\n".join(map(str, campaign.failures))


@pytest.mark.parametrize(
    "tree",
    [
        Tree("RandomizedResponse", (("p", 0.17), ("k", 2))),  # whose logarithm was rounded down
        Tree("PureDP", (("epsilon", 0.5),)),  # which the truth itself missed by its own rounding
    ],
)
def test_a_pure_epsilon_is_judged_to_the_last_digit(tree):
    assert Campaign(seconds=None).check(Answered(Question("epsilon", 0.0)), tree) == []
    below, above = truth_of(tree).delta(math.nextafter(tree.event().epsilon(0.0).upper, 0))
    assert 0 < below == above < 1e-15


def test_a_law_that_cannot_be_stated_is_counted_as_no_answer():
    most = Tree("Composed", (), ((Tree("PureDP", (("epsilon", 1e-9),)), 10**9),))
    campaign = Campaign(seconds=None)
    assert campaign.check(Law("doubled", 1.0), most) == []
    assert campaign.checked["no answer"] == 1


def test_nearly_everyone_differs_from_everyone_beyond_the_loss_of_being_left_out():
    table = {"losses": (0.056, 0.095), "probabilities": (0.4, 0.6), "infinite_mass": 0.0}
    assert Campaign(seconds=None).check(Law("everyone", 700.0), Tree("LossDistribution", tuple(table.items()))) == []


def test_one_who_is_replaced_may_be_either_of_two_where_noise_is_beside_a_law_of_one_order():
    table = {"losses": (0.03, 0.8), "probabilities": (0.75, 0.25), "infinite_mass": 0.0}
    noise = Tree("Gaussian", (("noise_multiplier", 1.0),))
    inside = Tree("Composed", (), ((noise, 1), (Tree("LossDistribution", tuple(table.items())), 1)))
    batch = Tree("SampledWithoutReplacement", (("n", 2), ("batch", 1)), ((inside, 1),))
    assert Campaign(seconds=None).check(Answered(Question("delta", 4.2)), batch) == []


def test_a_batch_of_everyone_keeps_losses_that_no_hull_of_many_digits_holds():
    claim = Tree("ApproximateDP", (("epsilon", 1e4), ("delta", 0.003)))
    inside = Tree("Composed", (), ((claim, 3),))
    batch = Tree("SampledWithoutReplacement", (("n", 1), ("batch", 1)), ((inside, 1),))
    for question in (Question("delta", 0.047), Question("loss_tail", 0.047)):
        assert Campaign(seconds=None).check(Answered(question), batch) == []


def test_a_claim_may_cost_more_than_who_makes_it():
    inside = Tree("Concentrated", (("mu", 1.0), ("tau", 0.5)))
    assert Campaign(seconds=None).check(Law("parts", 0.14), Tree("Renyi", (("delta", 0.5),), ((inside, 1),))) == []


# --- Planted faults, found within the first hundred trees -------------------------------------------------------------


def without_infinite_mass(planting):
    """What is sampled loses its infinite mass (as once in `parts._profile_pair`, where no finite loss is above 0)."""
    original = mechanisms.sampled_part

    def finite(part):
        if isinstance(part, Claim):
            return replace(part, infinite_mass=0.0)
        orders = (part.forward, part.backward)
        if not all(isinstance(order, Atoms) for order in orders):
            return part
        return Pair(*(replace(order, infinite_mass=0.0) for order in orders))

    planting.setattr(mechanisms, "sampled_part", lambda parts, q: original(tuple((finite(p), n) for p, n in parts), q))


def mass_taken_off_twice(planting):
    """ε is asked with a δ from which the infinite mass is already gone."""
    original = orders.Orders.epsilon

    def twice(self, delta):
        mass = self.infinite_mass
        return original(self, (delta - mass) / (1 - mass) if 0 < mass < delta else delta)

    planting.setattr(orders.Orders, "epsilon", twice)


def continuous_for_discrete(planting):
    """Discrete Gaussian noise is charged by the continuous curve, which under-reports it (THEORY 2.4)."""
    planting.setattr(pairs, "discrete_gaussian_pair", lambda scale, shift: pairs.gaussian_pair(shift / scale))


def one_order_only(planting):
    """The order without the person is left out."""
    planting.setattr(orders, "_mixes", lambda parts: [orders._forward(parts)])


def one_release_less(planting):
    """A composition forgets one of its repetitions."""
    original = Composed.parts.fget
    fewer = property(lambda self: tuple((part, max(count - 1, 1)) for part, count in original(self)))
    planting.setattr(Composed, "parts", fewer)


def sampled_more_rarely(planting):
    """A rate is squared."""
    original = mechanisms.sampled_part
    planting.setattr(mechanisms, "sampled_part", lambda parts, q: original(parts, q * q))


@pytest.mark.parametrize(
    "plant",
    [
        without_infinite_mass,
        mass_taken_off_twice,
        continuous_for_discrete,
        one_order_only,
        one_release_less,
        sampled_more_rarely,
    ],
)
def test_a_planted_fault_is_found_within_a_hundred_trees(planting, plant):
    plant(planting)
    campaign = Campaign(seconds=None)
    found = (campaign.run(seed, deepest=1, laws_too=False) or campaign.failures for seed in range(HUNDRED))
    assert any(failure.kind.startswith("false") for failures in found for failure in failures)


def orders_apart(planting):
    """Batches are composed in each order by itself, as Poisson samples may be (THEORY 2.8)."""
    planting.setattr(batches, "batch_part", parts.sampled_part)


def smaller_batches(planting):
    """The rate of a batch is squared."""
    original = batches.batch_part
    planting.setattr(batches, "batch_part", lambda inside, q: original(inside, q * q))


def one_pass_less(planting):
    """A pass over the data is forgotten."""
    fewer = property(lambda self: tuple((part, n * max(self.epochs - 1, 1)) for part, n in self.event.parts))
    planting.setattr(batches.ShuffledEpochs, "parts", fewer)


def twice_the_crowd(planting):
    """Reports are said to hide among twice as many."""
    original = batches.shuffled_above
    planting.setattr(batches, "shuffled_above", lambda epsilon, k, n: original(epsilon, k, 2 * n))


@pytest.mark.parametrize("plant", [orders_apart, smaller_batches, one_pass_less, twice_the_crowd])
def test_a_planted_fault_of_a_crowd_is_found_within_a_hundred_trees(planting, plant):
    plant(planting)
    campaign = Campaign(seconds=None)
    runs = (campaign.run(seed, deepest=1, laws_too=False, crowds=1.0) or campaign.failures for seed in range(HUNDRED))
    assert any(failure.kind.startswith("false") for failures in runs for failure in failures)


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_no_crowd_is_answered_falsely(seed):
    campaign = Campaign(seconds=None)
    for each in range(seed, seed + 20):
        campaign.run(each, deepest=1, laws_too=each % 5 == 0, crowds=1.0)
    assert not campaign.failures, "\n".join(map(str, campaign.failures))


def test_a_failure_is_shrunk(planting):
    continuous_for_discrete(planting)
    noise = Tree("DiscreteGaussian", (("scale", 1.1234567), ("sensitivity", 3)))
    tree = Tree("Composed", (), ((noise, 4), (Tree("PureDP", (("epsilon", 0.1),)), 7)))
    check = Answered(drawn(0)[1][0])
    failure = Failure("false upper end", check, tree, "")
    assert str(shrunk(failure).tree) == "DiscreteGaussian(scale=1.0, sensitivity=1)"


# --- The truths themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_from_below_is_under_from_above(seed):
    truth = truth_of(drawn(seed, deepest=1)[0])
    for epsilon in (0.0, 0.3, 2.0):
        low, high = truth.delta(epsilon)
        assert 0 <= low <= high * (1 + NEAR) <= 1 + NEAR
    low, high = truth.power(0.05)
    assert 0 <= low <= high <= 1


def test_cells_hold_the_closed_form():
    for law in (Normal(MP.mpf(2)), Double(MP.mpf(1.5)), Sampled(Normal(MP.mpf(1)), MP.mpf(0.1))):
        whole = Side(NOTHING, law).delta(0.4)
        low, high = (Side(NOTHING, law, above).cut().delta(0.4) for above in (False, True))
        assert low <= whole <= high <= low * (1 + 1e-3)


def test_repeated_cells_hold_the_closed_form():
    low, high = (Side(law.cells(above), None, above).times(16).delta(1.0) for law, above in _both(Normal(MP.mpf(0.3))))
    truth = Side(NOTHING, Normal(MP.mpf(1.2))).delta(1.0)
    assert low <= truth <= high <= low * (1 + 1e-2)


def _both(law):
    return (law, False), (law, True)


def test_a_rate_too_small_for_doubles_says_nothing():
    noise, other = Tree("Gaussian", (("noise_multiplier", 1.8),)), Tree("Laplace", (("noise_multiplier", 1.0),))
    both = Tree("Composed", (), ((noise, 1), (other, 1)))
    rare = Tree("PoissonSampled", (("sampling_prob", 1e-15),), ((both, 1),))
    assert truth_of(rare).delta(0.0) == (0, 1)


def test_guarantees_of_one_point_are_a_black_box():
    several, single = guaranteed([(0.7, 0.01)]), black_box(0.7, 0.01)
    for epsilon in (0.0, 0.3, 0.7, 1.0):
        assert abs(several.delta(MP.mpf(epsilon)) - single.delta(MP.mpf(epsilon))) < MP.mpf(10) ** -50


def test_guarantees_on_one_line_with_their_images_leave_no_loss_beyond_the_first():
    law = guaranteed(((0.03, 0.0), (6.9, 0.0)))
    assert law.delta(MP.mpf("1.2")) == 0 < law.delta(MP.mpf("0.02"))


def test_repeated_black_boxes_keep_the_theorem():
    """Kairouz–Oh–Viswanath (THEORY 4.3)."""
    k, e, delta = 7, MP.mpf(0.5), MP.mpf(0.01)
    composed = Side(black_box(0.5, 0.01)).times(k)
    for i in range(k // 2 + 1):
        total = sum(math.comb(k, j) * (MP.exp((k - j) * e) - MP.exp((k - 2 * i + j) * e)) for j in range(i))
        truth = 1 - (1 - delta) ** k * (1 - total / (1 + MP.exp(e)) ** k)
        assert abs(composed.delta((k - 2 * i) * e) - truth) < MP.mpf(10) ** -50


def test_sampling_of_exact_pairs_and_of_doubles():
    """THEORY 2.7: q δ(ln(1 + (e^ε - 1)/q)), and what only Q could produce is no longer so."""
    pairs_of, rate = Pairs.exact([(0.7, 0.2), (0.25, 0.7)], 0.05, 0.1), MP.mpf(0.25)
    inner = MP.log1p(MP.expm1(MP.mpf(0.2)) / rate)
    truth = rate * pairs_of.delta(inner)
    assert abs(pairs_of.sampled(rate).delta(MP.mpf(0.2)) - truth) < MP.mpf(10) ** -50
    assert pairs_of.doubles(True).sampled(0.25).delta(0.2) == pytest.approx(float(truth), rel=1e-13)
    assert not pairs_of.doubles(True).sampled(MP.mpf(1) / 4).is_exact
    assert pairs_of.sampled(rate).q_only == 0
