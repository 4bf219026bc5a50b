"""The numbers of the figures against the seeds' formulas, and against what must hold between them."""

import csv
import itertools
import math

import numpy as np
import pytest

from sitr.accounting import Gaussian
from sitr.report import numbers
from sitr.report.numbers import Table


class TestTable:
    def test_columns_and_rows(self):
        table = Table(("panel", "x"), (("a", 1.5), ("b", 2.5), ("a", 3.5)))
        assert table["x"].tolist() == [1.5, 2.5, 3.5]
        assert table.where(panel="a")["x"].tolist() == [1.5, 3.5]
        assert table.where(panel="a", x=3.5).rows == (("a", 3.5),)

    def test_csv_reads_back(self):
        table = Table(("name", "x"), (("a, b", 1 / 3), ("ε", math.inf), ("n", 7)))
        head, *rows = csv.reader(table.to_csv().splitlines())
        assert head == ["name", "x"]
        assert rows == [["a, b", "0.333333333333"], ["ε", "inf"], ["n", "7"]]

    def test_markdown_escapes_bars(self):
        assert Table(("a",), (("|x|",),)).to_markdown().splitlines()[-1] == r"| \|x\| |"


class TestRdpTable:
    def test_numbers_are_the_formulas(self):
        table = numbers.rdp_table()
        p, scale, sigma = 0.75, 2.0, 2.0
        for alpha in (2, 10):
            expected = (
                math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1),
                math.log(
                    alpha / (2 * alpha - 1) * math.exp((alpha - 1) / scale)
                    + (alpha - 1) / (2 * alpha - 1) * math.exp(-alpha / scale)
                )
                / (alpha - 1),
                alpha / (2 * sigma**2),
            )
            assert table[f"rdp({alpha})"] == pytest.approx(expected, rel=1e-12)
        at_one = ((2 * p - 1) * math.log(p / (1 - p)), 1 / scale + math.exp(-1 / scale) - 1, 1 / (2 * sigma**2))
        assert table["rdp(1)"] == pytest.approx(at_one, rel=1e-12)
        assert table["rdp(∞)"] == pytest.approx([math.log(3), 0.5, math.inf])


class TestRdpCurves:
    def test_nine_rising_curves(self):
        table = numbers.rdp_curves(alphas=[1, 2, 5, 10])
        assert len(table.rows) == 9 * 4
        for mechanism in ("randomized_response", "laplace", "gaussian"):
            for parameter in dict.fromkeys(table.where(mechanism=mechanism)["parameter"].tolist()):
                curve = table.where(mechanism=mechanism, parameter=parameter)["epsilon"]
                assert np.all(np.diff(curve) > 0)

    def test_gaussian_is_a_line(self):
        curve = numbers.rdp_curves(alphas=[1, 4, 7]).where(mechanism="gaussian", parameter=2)
        assert curve["epsilon"] == pytest.approx(curve["alpha"] / 8)


class TestBadOutcomes:
    def test_an_increase_is_at_least_one_and_at_most_certain(self):
        table = numbers.bad_outcomes(counts=[1, 100])
        assert table.where(mechanism="laplace", count=1)["naive"] == pytest.approx([math.exp(1 / 20)] * 3)
        for column in ("naive", "advanced", "generic_rdp", "rdp", "exact_upper"):
            assert np.all(table[column] >= 1)
            assert np.all(table[column] * table["probability"] <= 1 + 1e-12)


class TestAdvancedComposition:
    def test_theorems_in_order(self):
        table = numbers.advanced_composition(counts=[1, 2, 7, 50, 400])
        chain = ("laplace", "exact_upper", "advanced_tanh", "advanced_halved", "advanced")
        for lower, higher in itertools.pairwise(chain):
            assert np.all(table[lower] <= table[higher] * (1 + 1e-9))
        assert np.all(table["exact_lower"] <= table["kairouz_oh_viswanath"] * (1 + 1e-9))
        assert table["kairouz_oh_viswanath"] == pytest.approx(table["exact_upper"], rel=1e-6)
        assert table["basic"] == pytest.approx(0.25 * table["count"])


class TestCountingQueries:
    def test_exact_noise_meets_the_target_and_no_more(self):
        row = numbers.counting_queries(counts=[50])
        assert (Gaussian(row["exact"][0]) * 50).epsilon(1e-6).upper <= 0.5 * (1 + 1e-9)
        assert (Gaussian(row["exact"][0] * 0.999) * 50).epsilon(1e-6).upper > 0.5

    def test_cdp_noise_is_what_the_seed_says(self):
        row = numbers.counting_queries(counts=[50])
        found = (Gaussian(row["cdp"][0]) * 50).cdp()
        assert found.tau == pytest.approx(0.5)
        assert found.mu <= 0.5 * math.expm1(0.5) / 2

    def test_order_of_the_rules(self):
        table = numbers.counting_queries(counts=[1, 100, 10_000])
        assert np.all(table["cdp"] < table["exact"])
        assert np.all(table["exact"] < table["tail"])
        assert np.all(table["tail"] < table["classical"])
        assert table["pure"] == pytest.approx(math.sqrt(2) * table["count"] / 0.5)

    def test_ratio_is_that_of_any_number_of_queries(self):
        row, ratio = numbers.counting_queries(counts=[77]), numbers.counting_noise_ratio(deltas=[1e-6])
        for rule in ("exact", "tail", "classical"):
            assert ratio[rule][0] == pytest.approx(row[rule][0] / row["cdp"][0], rel=1e-6)


class TestQueryAllowances:
    def test_formulas(self):
        table = numbers.query_allowances(counts=[1, 50])
        assert table["basic"] == pytest.approx([1, 1 / 50])
        assert table["classical"] == pytest.approx(1 / np.sqrt(2 * math.log(1e6) * table["count"]))

    def test_theorems_allow_less_than_the_exact_answer(self):
        table = numbers.query_allowances(counts=[1, 8, 100])
        for lower, higher in (("basic", "exact"), ("advanced", "advanced_tanh"), ("advanced_tanh", "exact")):
            assert np.all(table[lower] <= table[higher] * (1 + 1e-6))
        assert np.all(table["exact"] <= table["laplace"] * (1 + 1e-6))


class TestLossTails:
    def test_each_bound_lies_above_what_it_bounds(self):
        table = numbers.loss_tails(losses=[0, 0.5, 1, 3, 6])
        chain = ("delta", "pair_lower", "pair_upper", "upper", "renyi", "concentrated")
        for lower, higher in itertools.pairwise(chain):
            assert np.all(table[lower] <= table[higher] * (1 + 1e-9)), higher

    def test_the_bound_of_seed_000(self):
        mean, spread = 100 * (0.1 + math.expm1(-0.1)), 1.0
        table = numbers.loss_tails(losses=[mean + 2 * spread, mean + 4 * spread])
        assert table["concentrated"] == pytest.approx([math.exp(-2), math.exp(-8)])


class TestMaximallyDivergent:
    def test_a_reduced_pair_is_a_chord_above_the_profile(self):
        table = numbers.divergent_profiles(epsilons=[0, 0.3, 0.7, 1])
        for mechanism in ("laplace", "exponential"):
            own, reduced = table[mechanism], table[f"{mechanism}_reduced"]
            assert reduced[0] == pytest.approx(own[0])
            assert np.all(own[1:3] < reduced[1:3])
            assert reduced == pytest.approx(own[0] * (math.e - np.exp(table["epsilon"])) / math.expm1(1), abs=1e-12)
            assert np.all(reduced <= table["antipodal"] * (1 + 1e-9) + 1e-14)

    def test_means(self):
        table = numbers.divergent_means(epsilons=[0.1, 1, 5])
        epsilons = table["epsilon"]
        assert table["antipodal"] == pytest.approx(epsilons * np.tanh(epsilons / 2))
        assert table["laplace_reduced"] == pytest.approx(epsilons * -np.expm1(-epsilons / 2))
        for lower, higher in itertools.pairwise(("laplace", "laplace_reduced", "antipodal", "halved", "advanced")):
            assert np.all(table[lower] < table[higher])


class TestGroupPrivacy:
    def test_one_person_is_at_the_target(self):
        for event in (numbers.GROUP_GAUSSIAN, numbers.GROUP_SAMPLED):
            assert 1 - 1e-5 < event.epsilon(1e-6).upper <= 1

    def test_formulas(self):
        table = numbers.group_privacy(sizes=[1, 3])
        assert table["epsilon_pure"] == pytest.approx(table["size"], rel=1e-5)
        assert table["delta_any"] == pytest.approx(1e-6 * np.expm1(table["size"]) / math.expm1(1))
        assert table["delta_loose"] == pytest.approx([1e-6, 3 * math.exp(2) * 1e-6])
        assert table["epsilon_cdp"] == pytest.approx(table["epsilon_zcdp"])

    def test_a_mechanism_does_better_than_its_claims(self):
        table = numbers.group_privacy(sizes=[2, 5])
        assert np.all(table["epsilon_gaussian"] < table["epsilon_zcdp"])
        for mechanism in ("gaussian", "sampled"):
            assert np.all(table[f"delta_{mechanism}"] < table["delta_any"])
        assert np.all(table["delta_any"] < table["delta_loose"])


class TestTraining:
    def test_profile(self):
        table = numbers.training_profile(deltas=[1e-2, 1e-5, 1e-9])
        chain = ("epsilon_lower", "epsilon_upper", "rdp", "moments_accountant")
        for lower, higher in itertools.pairwise(chain):
            assert np.all(table[lower] <= table[higher])
        assert np.all((table["epsilon_upper"] - table["epsilon_lower"]) <= 1e-6 * table["epsilon_upper"])

    def test_tradeoff(self):
        table = numbers.training_tradeoff(errors=[0, 0.01, 0.5, 1])
        assert np.all(table["type_two_lower"] <= table["type_two_upper"])
        assert np.all(table["type_two_upper"] <= 1 - table["type_one"])
        assert np.all(np.diff(table["type_two_lower"]) < 0)
