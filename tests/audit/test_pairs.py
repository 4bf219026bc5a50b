"""The audit of a pair: what it finds in broken twins, and that it does not accuse honest mechanisms."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from sitr.accounting import DiscreteLaplace, Gaussian, Laplace, PureDP, RandomizedResponse
from sitr.audit import audit
from sitr.audit.samples import Sample
from sitr.errors import InvalidArgument, NoSuchGuarantee
from sitr.mechanisms import gaussian, laplace
from tests.audit import twins

QUERIES = [0.0] * 20, [1.0] * 10 + [-1.0] * 10
MANY_QUERIES = [0.0] * 100, [1.0] * 50 + [-1.0] * 50
FALSE_ALARM = 1e-9
RUNS = 200


def attacked(batch, d0, d1, claimed, samples=100_000, **options):
    return audit(None, d0, d1, claimed=claimed, batch=batch, samples=samples, **options)


# --- broken twins: each lies so far beyond its claim that missing it is less likely than 1e-9 --------------


@pytest.mark.statistical
def test_low_bits_of_naive_floats_are_found():
    """An event of probability 0.27 with one input and 0 with the other is there to be chosen. To certify less than 5,
    one of 0.0015 would have to be chosen instead, after 50,000 samples without it: that has probability e^-75."""
    report = attacked(twins.naive_laplace, 0.0, 1.0, Laplace(noise_multiplier=1.0), 200_000)
    assert report.violated
    assert report.epsilon_lower > 5
    assert report.delta_lower > 0.2
    assert report.witness.score.startswith("low bits")
    assert "lowest set bit" in report.witness.words


@pytest.mark.statistical
def test_four_fifths_of_the_noise_is_found():
    """ε is 1.25 for 1; ln(p/q) has a standard deviation of 0.012 here, and 2.2 of them are given away by the bounds."""
    report = attacked(twins.short_laplace, 0.0, 1.0, Laplace(noise_multiplier=1.0))
    assert report.violated
    assert 1.0 < report.epsilon_lower < 1.35


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("twin", "d0", "d1"),
    [(twins.half_gaussian, 0.0, 1.0), (twins.half_gaussian_vectors, np.zeros(8), np.full(8, 8**-0.5))],
    ids=["numbers", "vectors"],
)
def test_half_the_deviation_is_found(twin, d0, d1):
    """The inputs lie two deviations apart for one: tens of standard deviations of any count beyond the claim."""
    report = attacked(twin, d0, d1, Gaussian(noise_multiplier=1.0))
    assert report.violated
    assert 1.7 < report.factor_lower < 2.2


@pytest.mark.statistical
def test_a_response_with_the_wrong_p_is_found():
    """p = 0.8 for 0.75: ε is ln 4 for ln 3, and ln(p/q) has a standard deviation of 0.013."""
    report = attacked(twins.response(0.8), False, True, RandomizedResponse(p=0.75), 50_000)
    assert report.violated
    assert math.log(3) < report.epsilon_lower < math.log(4) + 0.1
    assert report.witness.words in ("output is 'yes'", "output is 'no'")


@pytest.mark.statistical
def test_a_sparse_vector_that_forgets_to_stop_is_found():
    """The positives among the first fifty queries less those among the last are ten more with one input, two of their
    standard deviations. An event of probability 0.05 has 0.6 there, where 0.14 is allowed: hundreds of deviations of
    its count; what is chosen certifies more than that event would."""
    report = attacked(partial(twins.sparse_vector, stops=False), *MANY_QUERIES, PureDP(epsilon=1.0), 40_000)
    assert report.violated
    assert report.epsilon_lower > 2


@pytest.mark.statistical
def test_a_rare_failure_is_found_if_it_is_not_too_rare():
    """At ten times the rate that is said to escape, no sample fails to show it: the count is 25 deviations away."""
    honest = attacked(twins.leaky(0.0), 1, 2, (1.0, 1e-3), 20_000)
    assert not honest.violated
    report = attacked(twins.leaky(10 * honest.escapes_failure), 1, 2, (1.0, 1e-3), 20_000)
    assert report.violated
    assert report.delta_lower > 1e-3


# Of many columns only those pairs are looked at whose correlation changes, and parities change none.
PLANTED = [(change, 3) for change in twins.PLANTED]
PLANTED += [(change, 9) for change in twins.PLANTED if change is not twins.of_the_same_parity]
FAILURES = {
    "far away": lambda noisy: np.full_like(noisy, 50.0),
    "anywhere far away": lambda noisy: 1e6 * (noisy + 5),
    "one number": lambda noisy: np.full_like(noisy, 0.3),
    "no number": lambda noisy: np.full_like(noisy, math.nan),
}


@pytest.mark.statistical
@pytest.mark.parametrize("what", FAILURES)
@pytest.mark.parametrize(("times", "power"), [(1.0, 0.95), (2.0, 0.999)])
def test_a_failure_of_the_size_that_is_said_not_to_escape_is_found(what, times, power):
    """On top of noise that is as large as it is claimed to be, and no larger. Each of 20 audits finds it with the
    stated power, so fewer than the threshold do so with probability under 1e-9; at twice the rate the power is beyond
    0.999: the count is 35 where 20 suffice, five standard deviations."""
    claimed, samples = Laplace(noise_multiplier=1.0), 10_000
    rate = times * attacked(twins.failing(0.0, FAILURES[what]), 0, 1, claimed, samples).escapes_failure
    found = sum(attacked(twins.failing(rate, FAILURES[what]), 0, 1, claimed, samples).violated for _ in range(20))
    assert found >= binom.ppf(FALSE_ALARM, 20, power)


@pytest.mark.statistical
@pytest.mark.parametrize("what", FAILURES)
def test_a_failure_of_two_in_a_thousand_is_found_by_a_hundred_thousand_samples(what):
    """A hundred of those that certify fail, where twenty suffice: fewer have probability under 1e-15."""
    assert attacked(twins.failing(2e-3, FAILURES[what]), 0, 1, Laplace(noise_multiplier=1.0)).violated


@pytest.mark.statistical
@pytest.mark.parametrize(("change", "width"), PLANTED, ids=lambda given: getattr(given, "__name__", given))
def test_what_no_mean_of_a_column_shows_is_found(change, width):
    """Each moves an event of some 0.05 or more by a third of it at least, with 5,000 samples that certify: more than
    ten standard deviations of its count beyond what ε = 0.1 and δ = 0.001 allow."""
    assert attacked(twins.planted(change, width), 0, 1, (0.1, 1e-3), 10_000).violated


@pytest.mark.statistical
@pytest.mark.parametrize("told", ["-0.0 for 0.0", "1 for 1.0", "True for 1", "a space after a text", "few decimals"])
def test_equal_outputs_that_are_written_differently_are_told_apart(told):
    chances = np.random.default_rng(9)
    usual = {"-0.0 for 0.0": 0.0, "1 for 1.0": 1.0, "True for 1": 1}

    def batch(data, n):
        shown = {"-0.0 for 0.0": -0.0, "1 for 1.0": 1, "True for 1": True}
        if told in usual:
            outputs = [(usual[told], shown[told])] * n
        else:
            drawn = chances.normal(size=n).tolist()
            outputs = [(f"{x:.6f}", f"{x:.6f} ") if "text" in told else (x, round(x, 3)) for x in drawn]
        leaks = (chances.random(n) < 0.2) & (data == 1)
        return [output[int(leak)] for output, leak in zip(outputs, leaks, strict=True)]

    report = audit(None, 0, 1, claimed=(0.1, 1e-3), samples=4_000, batch=batch)
    assert report.violated
    assert "length as text" in report.witness.words


def test_many_columns_raise_no_more_alarms():
    """As many honest audits of three columns accuse as may, at most: each does with probability at most a half."""
    alarms = sum(
        attacked(twins.planted(lambda rows: None, 3), 0, 1, (0.0, 0.0), 400, confidence=0.5).violated for _ in range(60)
    )
    assert alarms <= binom.isf(FALSE_ALARM, 60, 0.5)


# --- honest mechanisms ------------------------------------------------------------------------------------

HONEST = {
    "laplace": (twins.honest_laplace, 0, 1, DiscreteLaplace(scale=1.0)),
    "gaussian": (twins.honest_gaussian, 0.0, 1.0, gaussian(scale=1.0, sensitivity=1.0).event),
    "response": (twins.response(0.75), False, True, RandomizedResponse(p=0.75)),
    "sparse vector": (partial(twins.sparse_vector, stops=True), *QUERIES, PureDP(epsilon=1.0)),
}


@pytest.mark.statistical
@pytest.mark.parametrize(("name", "confidence"), [("laplace", 0.95), ("gaussian", 0.95), ("response", 0.5)])
def test_alarms_stay_within_what_the_confidence_allows(name, confidence):
    """Honest claims are accused with probability at most 1 - confidence, so 200 runs have a binomial number of alarms
    at most; the threshold is passed with probability under 1e-9."""
    alarms = sum(attacked(*HONEST[name], samples=2_000, confidence=confidence).violated for _ in range(RUNS))
    assert alarms <= binom.isf(FALSE_ALARM, RUNS, 1 - confidence)


@pytest.mark.statistical
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_mechanism_is_not_accused_and_the_bound_is_close(name):
    """The confidence is such that a false accusation has probability under 1e-9."""
    report = attacked(*HONEST[name], confidence=1 - FALSE_ALARM)
    assert not report.violated
    assert report.verdict.startswith("no violation found with 100000 samples (a bug smaller than 1.")
    assert report.verdict.endswith("may escape)")
    assert report.epsilon_lower <= report.claimed_epsilon
    if name != "sparse vector":
        assert report.factor_lower > 0.85


@pytest.mark.statistical
def test_releases_are_audited_as_they_are_called():
    mechanism = laplace(epsilon=1.0, sensitivity=1.0)
    report = audit(mechanism.release, 0.0, 1.0, claimed=mechanism.event, samples=2_000, confidence=1 - FALSE_ALARM)
    assert not report.violated
    assert report.claimed_epsilon == pytest.approx(1.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("share", "found_often"), [(0.25, False), (3.0, True)])
def test_what_is_said_to_escape_escapes_and_what_is_larger_is_found(share, found_often):
    """Randomized response with inputs 1 + share (c - 1) times as far apart, where c is said to be found every second
    time: at a quarter of the bug under one in ten is found, at three times over nine in ten. Either crosses one half of
    100 runs with probability under 1e-9: `binom.sf(49, 100, 0.1)` is 5e-24."""
    claimed, samples = RandomizedResponse(p=0.75), 4_000
    factor = attacked(twins.response(0.75), False, True, claimed, samples).escapes_factor
    p = ndtr((1 + share * (factor - 1)) * ndtri(0.75))
    found = sum(attacked(twins.response(p), False, True, claimed, samples).violated for _ in range(100))
    assert (found > 50) == found_often


# --- how it works -----------------------------------------------------------------------------------------


def test_the_three_samples_are_disjoint_and_a_half_certifies():
    asked = []

    def batch(value, n):
        asked.append((value, n))
        return np.arange(n) % 2

    report = attacked(batch, "a", "b", (1.0, 0.0), 1_003)
    assert asked == [("a", 250), ("b", 250), ("a", 250), ("b", 250), ("a", 503), ("b", 503)]
    assert report.samples == 1_003


def test_both_orders_are_tried():
    """An output that only one input has is found whichever input that is."""
    only = {False: 0.0, True: 0.5}
    for d0 in (False, True):
        report = attacked(
            lambda value, n: [value if k < only[value] * n else 0 for k in range(n)], d0, not d0, (1.0, 0.0), 1_000
        )
        assert report.violated
        assert report.witness.order == (0 if d0 else 1)


@pytest.mark.parametrize(
    "output",
    [
        *("text", b"bytes", None, True, 7, 2**80, 1.5, math.nan, math.inf, (), (1, "x"), [1.0, None], {"a": 1}, {1, 2}),
        *(np.float32(2.5), np.arange(3), np.zeros((2, 2)), object),
    ],
    ids=repr,
)
def test_any_output_is_taken_and_a_constant_says_nothing(output):
    report = audit(lambda value: output, 0, 1, claimed=(1.0, 1e-6), samples=200)
    assert not report.violated
    assert report.epsilon_lower == 0
    assert "may escape" in report.verdict


@pytest.mark.parametrize("other", [None, "no", math.nan, math.inf, (), (1.0, 2.0), np.zeros(3), 2**80], ids=repr)
def test_outputs_of_mixed_kinds_are_told_apart(other):
    report = audit(lambda value: 1.0 if value == 0 else other, 0, 1, claimed=(1.0, 0.0), samples=400)
    assert report.violated
    assert report.epsilon_lower > 3


def test_an_event_in_another_order_of_outputs_is_no_matter():
    """Outputs that first appear in the samples that certify are no reason to fail."""
    outputs = iter(range(10**6))
    assert not audit(lambda value: str(next(outputs)), 0, 1, claimed=(1.0, 0.0), samples=200).violated
    outputs = iter([1.0] * 200 + [None, "late", (1, 2)] * 100)
    assert audit(lambda value: next(outputs), 0, 1, claimed=(1.0, 0.0), samples=200).samples == 200


def test_the_claim_may_be_an_event_a_curve_or_a_pair():
    def silent(value):
        return 0

    by_event = audit(silent, 0, 1, claimed=Gaussian(noise_multiplier=1.0), samples=100)
    assert (by_event.delta, round(by_event.claimed_epsilon, 3)) == (1e-5, 4.377)
    assert audit(silent, 0, 1, claimed=Gaussian(2.0), delta=1e-3, samples=100).delta == 1e-3
    assert audit(silent, 0, 1, claimed=Laplace(2.0).group(3), samples=100).claimed_epsilon == 1.5
    assert audit(silent, 0, 1, claimed=(0.5, 1e-7), samples=100).delta == 1e-7
    assert audit(silent, 0, 1, claimed=(0.0, 0.0), samples=100).violated is False


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"claimed": 1.0}, InvalidArgument, "claimed=1.0 is neither"),
        ({"claimed": (1.0, 2.0)}, InvalidArgument, "delta=2.0"),
        ({"claimed": (-1.0, 0.0)}, InvalidArgument, "epsilon=-1.0"),
        ({"claimed": (1.0, 0.0), "delta": 0.1}, InvalidArgument, "delta=0.1"),
        ({"claimed": Gaussian(1.0), "delta": 0.0}, NoSuchGuarantee, "unbounded"),
        ({"samples": 99}, InvalidArgument, "samples=99"),
        ({"samples": True}, InvalidArgument, "samples=True"),
        ({"confidence": 1.0}, InvalidArgument, "confidence=1.0"),
        ({"confidence": math.nan}, InvalidArgument, "confidence=nan"),
        ({"mechanism": None}, InvalidArgument, "mechanism cannot be called: NoneType"),
        ({"batch": 3}, InvalidArgument, "batch cannot be called: int"),
        ({"batch": lambda value, n: [0] * (n + 1)}, InvalidArgument, "batch returned"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_drawn(arguments, error, message):
    calls = []
    arguments = {"mechanism": calls.append, "claimed": (1.0, 0.0), **arguments}
    with pytest.raises(error, match=message.replace("(", r"\(")):
        audit(arguments.pop("mechanism"), 0, 1, **arguments)
    assert calls == []


def test_samples_know_their_size():
    assert Sample([1, 2], np.zeros((2, 1))).size == 2
