"""`sitr calibrate`: what the question mark stands for, and that the answer meets the target."""

import pytest

from sitr.accounting import Event
from tests.cli.helpers import run, run_json

TARGET = ("--epsilon", "1", "--delta", "1e-6")


@pytest.mark.parametrize(
    ("template", "parameter", "value"),
    [
        ("gaussian(?)", "noise_multiplier", 4.224679),
        ("gaussian(?) * 1000", "noise_multiplier", 133.5961),
        ("poisson_sampled(gaussian(?), 0.01) * 10000", "noise_multiplier", 4.302106),
        ("laplace(? * 2)", "noise_multiplier", 0.5),
        ("discrete_laplace(scale=?)", "scale", 1.0),
        ("poisson_sampled(gaussian(1.1), ?) * 1000", "sampling_prob", 0.005911667),
    ],
)
def test_a_real_parameter_is_solved(template, parameter, value):
    record = run_json("calibrate", template, *TARGET)
    assert record["parameter"] == parameter
    assert record["value"] == pytest.approx(value, rel=1e-5)
    assert 1 - 1e-5 <= record["achieved"]["upper"] <= 1
    assert Event.from_dict(record["event"]).epsilon(1e-6).upper == record["achieved"]["upper"]


@pytest.mark.parametrize("template", ["laplace(200) * ? + gaussian(30)", "gaussian(30) + ? * laplace(200)"])
def test_the_largest_count_is_solved(template):
    record = run_json("calibrate", template, *TARGET)
    assert record["parameter"] == "count"
    more = Event.from_dict(record["event"]) + Event.from_dict(
        {"schema_version": 1, "type": "laplace", "noise_multiplier": 200}
    )
    assert record["achieved"]["upper"] <= 1 < more.epsilon(1e-6).lower


@pytest.mark.parametrize(
    ("template", "bounds", "parameter", "value"),
    [
        ("pure_dp(?) * 100", ("1e-3", "10"), "epsilon", 0.024011),
        ("randomized_response(?) * 10", ("0.5", "0.99"), "p", 0.525),
        ("discrete_laplace(10, sensitivity=?)", ("1", "100"), "sensitivity", 10),
        ("laplace(20) * ?", ("1", "100000"), "count", 26),
        ("shuffled_epochs(laplace(20), ?)", ("1", "100000"), "epochs", 26),
        ("sampled_without_replacement(laplace(0.4), 1000, ?)", ("1", "1000"), "batch", 153),
    ],
)
def test_bounds_say_where_to_search(template, bounds, parameter, value):
    record = run_json("calibrate", template, *TARGET, "--bounds", *bounds)
    assert record["parameter"] == parameter
    assert record["value"] == pytest.approx(value, rel=1e-3)


def test_a_zcdp_target():
    record = run_json("calibrate", "gaussian(?) * 10", "--rho", "0.5")
    assert record["target"] == {"rho": 0.5}
    assert record["value"] == pytest.approx(10**0.5, rel=1e-6)
    assert "ρ = 0.5" in run("calibrate", "gaussian(?) * 10", "--rho", "0.5").stdout


def test_the_answer_in_words_is_rounded_to_the_safe_side():
    noise = run("calibrate", "gaussian(?)", *TARGET)
    assert noise.stdout.startswith("noise_multiplier       4.22468\n")  # 4.2246788 rounded up
    assert "event                  gaussian(4.2246" in noise.stdout
    assert "at δ = 1e-06" in noise.stdout
    rate = run("calibrate", "poisson_sampled(gaussian(1.1), ?) * 1000", *TARGET)
    assert rate.stdout.startswith("sampling_prob          0.00591166\n")  # 0.005911667 rounded down
    assert noise.stderr == rate.stderr == ""


def test_a_large_target_is_warned_of():
    result = run("calibrate", "laplace(?)", "--epsilon", "9", "--delta", "0")
    assert result.exit_code == 0
    assert "PrivacyWarning" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gaussian(2)", *TARGET], 2, "Write one ?"),
        (["gaussian(?) * ?", *TARGET], 2, "Write one ?"),
        (["gausian(?)", *TARGET], 2, "Did you mean gaussian?"),
        (["gaussian(?) + laplace(2))", *TARGET], 2, "at position 25"),
        (["gaussian(0) * ?", *TARGET], 2, "noise_multiplier=0 is not in"),
        (["randomized_response(?)", *TARGET], 2, "Say where to search for p"),
        (["gaussian(?)"], 2, "is not one target"),
        (["gaussian(?)", *TARGET, "--rho", "1"], 2, "is not one target"),
        (["gaussian(?)", "--epsilon", "-1", "--delta", "1e-6"], 2, "epsilon=-1.0 is not in"),
        (["gaussian(?)", "--epsilon", "1", "--delta", "nan"], 2, "delta=nan"),
        (["laplace(2) * ?", *TARGET, "--bounds", "1", "inf"], 2, "bounds=inf"),
        (["laplace(2) * ?", *TARGET, "--bounds", "1", "2.5"], 2, "bounds=2.5"),
        (["gaussian(0.5) * ?", *TARGET], 4, "CannotCalibrate [SITR-G03]"),
        (["gaussian(?)", "--epsilon", "1", "--delta", "0"], 4, "NoSuchGuarantee [SITR-G01]"),
        (["__import__('os').abort() * ?", *TARGET], 2, "InvalidNotation"),
    ],
)
def test_refusals(arguments, code, message):
    result = run("calibrate", *arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
