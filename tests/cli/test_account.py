"""`sitr account`: the answers, and that they are the library's own."""

import json

import pytest

from sitr.accounting import Event, Gaussian, Laplace, PrivacyProfile, parse_event
from tests.cli.helpers import run, run_json

SGD = "poisson_sampled(gaussian(1.1), 256/60000) * 14062 + laplace(20) * 30"


def test_the_answer_in_words():
    result = run("account", SGD, "--delta", "1e-5")
    assert result.exit_code == 0
    assert "ε = 2.65 at δ = 1e-05" in result.stdout
    assert "between 2.64783" in result.stdout
    assert "vertical line" in result.stdout
    assert "add_remove" in result.stdout
    assert "5 % false alarms misses at least" in result.stdout
    assert "CLAIMED" not in result.stdout
    assert "infinite loss" not in result.stdout
    assert result.stderr == ""


def test_json_has_the_exact_values():
    record = run_json("account", SGD, "--delta", "1e-5")
    event = parse_event(SGD)
    bracket = event.epsilon(1e-5)
    assert Event.from_dict(record["event"]) == event
    assert record["answers"] == [
        {"delta": 1e-5, "epsilon": {"lower": bracket.lower, "upper": bracket.upper, "method": bracket.method}}
    ]
    assert record["expected_loss"] == event.expected_loss()
    assert record["infinite_mass"] == 0
    assert record["adjacency"] == "add_remove"
    assert record["claimed"] is False
    assert record["tradeoff"]["misses"]["lower"] == event.tradeoff(0.05).lower


def test_several_questions_at_once():
    answers = run_json("account", "laplace(2)", "--delta", "1e-5", "--delta", "0", "--epsilon", "0.25")["answers"]
    assert [answer["delta"] for answer in answers[:2]] == [1e-5, 0]
    assert answers[1]["epsilon"]["upper"] == 0.5
    assert answers[2]["epsilon"] == 0.25
    assert answers[2]["delta"]["upper"] == Laplace(2).delta(0.25).upper


def test_the_safe_side_is_shown():
    result = run("account", "laplace(3)", "--delta", "0")  # ε = 1/3
    assert "ε = 0.334 at δ = 0" in result.stdout


def test_a_group():
    record = run_json("account", "gaussian(10)", "--group", "5", "--delta", "1e-6")
    assert record["group"] == 5
    assert record["answers"][0]["epsilon"]["upper"] == Gaussian(10).group(5).epsilon(1e-6).upper
    assert "a group of 5 people" in run("account", "gaussian(10)", "--group", "5", "--delta", "1e-6").stdout


def test_an_event_from_a_file(tmp_path):
    path = tmp_path / "event.json"
    path.write_text(parse_event(SGD).to_json(), encoding="utf-8")
    assert run_json("account", "--file", str(path), "--delta", "1e-5") == run_json("account", SGD, "--delta", "1e-5")


def test_an_event_from_standard_input():
    record = run_json("account", "--file", "-", "--delta", "0", input="\ufeff" + Laplace(4).to_json())
    assert record["answers"][0]["epsilon"]["upper"] == 0.25


def test_what_rests_on_a_claim_is_stamped():
    claimed = "laplace(2) + privacy_profile([(0, 0.1), (1, 0)])"
    assert "CLAIMED" in run("account", claimed, "--delta", "1e-5").stdout
    assert run_json("account", claimed, "--delta", "1e-5")["claimed"] is True
    assert PrivacyProfile([(0, 0.1), (1, 0)]).claimed


def test_infinite_loss_is_said():
    result = run("account", "approximate_dp(0.1, 1e-6)", "--delta", "1e-5")
    assert "infinite loss" in result.stdout
    assert "with probability up to 1.0" in result.stdout
    record = run_json("account", "approximate_dp(0.1, 1e-6)", "--delta", "1e-5")
    assert record["infinite_mass"] == pytest.approx(1e-6)
    assert record["expected_loss"] == "inf"


def test_no_epsilon_below_the_infinite_loss():
    result = run("account", "approximate_dp(0.1, 1e-6)", "--delta", "1e-7", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["answers"][0]["epsilon"]["upper"] == "inf"
    assert "no ε holds at δ = 1e-07" in result.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_large_epsilon_is_warned_of_on_standard_error(form):
    result = run("account", "laplace(0.1)", "--delta", "0", *form)
    assert result.exit_code == 0
    assert "PrivacyWarning" in result.stderr
    assert "this guarantee holds, but it is weak" in result.stderr
    assert "PrivacyWarning" not in result.stdout


def test_a_small_epsilon_is_not_warned_of():
    assert run("account", "laplace(0.2)", "--delta", "0").stderr == ""


@pytest.mark.parametrize(
    "text",
    [
        "gaussian(2)",
        "laplace(2)",
        "discrete_gaussian(2, sensitivity=3)",
        "discrete_laplace(2)",
        "randomized_response(0.6, k=5)",
        "exponential(0.5)",
        "poisson_sampled(gaussian(2), 0.01)",
        "pure_dp(0.5)",
        "approximate_dp(0.5, 1e-9)",
        "guarantees([(0.5, 1e-6), (1, 1e-9)])",
        "concentrated(0.1, 0.2)",
        "zero_concentrated(0.1)",
        "renyi(points=[(2, 0.01), (32, 0.2), (64, 0.5)])",
        "renyi(formula=gaussian(2))",
        "privacy_profile([(0, 0.1), (1, 0)])",
        "loss_distribution([-1, 1], [0.2689414213699951, 0.7310585786300049])",
        "laplace(2) * 3 + gaussian(2)",
    ],
)
def test_every_event_is_accounted_for_in_words_and_in_json(text):
    assert "ε = " in run("account", text, "--delta", "1e-5").stdout
    assert run_json("account", text, "--delta", "1e-5")["answers"][0]["epsilon"]["upper"] > 0


# --- refusals --------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["account", "gaussian(1)"], 2, "Say at which δ or ε"),
        (["account", "--delta", "1e-5"], 2, "Give one event"),
        (["account", "gaussian(1)", "--delta", "small"], 2, "'small' is not a valid float"),
        (["account", "gaussian(1)", "--delta", "2"], 2, "delta=2.0 is not in [0, 1)"),
        (["account", "gaussian(1)", "--delta", "nan"], 2, "delta=nan"),
        (["account", "gaussian(1)", "--epsilon", "-1"], 2, "epsilon=-1.0"),
        (["account", "gaussian(1)", "--delta", "1e-5", "--group", "0"], 2, "0 is not in the range"),
        (["account", "gausian(1)", "--delta", "1e-5"], 2, "Did you mean gaussian?"),
        (["account", "gaussian(0)", "--delta", "1e-5"], 2, "noise_multiplier=0 is not in"),
        (["account", "--file", "nowhere.json", "--delta", "1e-5"], 2, "nowhere.json"),
        (["account", "gaussian(1)", "--delta", "0"], 4, "NoSuchGuarantee [SITR-G01]"),
        (
            ["account", "gaussian(1, adjacency='replace_one') + poisson_sampled(gaussian(1), 0.1)", "--delta", "1e-5"],
            4,
            "IncompatibleAdjacency [SITR-G02]",
        ),
    ],
)
def test_refusals_speak_on_standard_error_and_set_the_exit_code(arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("content", [b"", b"gaussian(1)", b'{"schema_version":2,"type":"gaussian"}', b"\xff\xfe\xfd"])
def test_a_bad_file_is_refused(tmp_path, content):
    path = tmp_path / "event.json"
    path.write_bytes(content)
    result = run("account", "--file", str(path), "--delta", "1e-5")
    assert result.exit_code == 2
    assert "InvalidRecord [SITR-R01]" in result.stderr


def test_an_expression_is_never_evaluated(tmp_path):
    proof = tmp_path / "proof"
    for text in (f"__import__('os').mkdir('{proof}')", f"gaussian(__import__('os').mkdir('{proof}'))"):
        result = run("account", text, "--delta", "1e-5")
        assert result.exit_code == 2
        assert "InvalidNotation" in result.stderr
    assert not proof.exists()
