"""`sitr audit-run`: the claim, the arrays, the words and the exit code."""

import json

import numpy as np
import pytest

from sitr.accounting import Gaussian
from sitr.audit import audit_one_run
from sitr.learning import plan
from tests.cli.helpers import run, run_json


@pytest.fixture
def canaries(tmp_path):
    """A file of canaries whose scores are so far apart (ε = 2 for each), and what is in it."""

    def made(epsilon=2.0, name="canaries.npz", count=10_000):
        chances = np.random.default_rng(3)
        included = chances.random(count) < 0.5
        scores = included + chances.laplace(size=count) / epsilon
        np.savez(tmp_path / name, scores=scores, included=included)
        return str(tmp_path / name), scores, included

    return made


def test_it_certifies_what_the_library_does(canaries):
    path, scores, included = canaries()
    for options, given in (
        ([], {}),
        (["--event", "gaussian(2)", "--delta", "1e-5"], {"claimed": Gaussian(2.0), "delta": 1e-5}),
        (["--guesses", "100", "--guesses", "2000"], {"guesses": [100, 2000]}),
        (["--delta", "1e-6", "--confidence", "0.99"], {"delta": 1e-6, "confidence": 0.99}),
    ):
        record = json.loads(run("audit-run", path, "--json", *options).stdout)
        report = audit_one_run(scores, included, **given).to_dict()
        assert record == report


def test_a_plan_is_a_claim_with_its_delta(canaries, tmp_path):
    path, scores, included = canaries()
    made = plan(n=10_000, batch=100, max_grad_norm=1.0, delta=1e-5, epsilon=4.0, steps=100)
    (tmp_path / "plan.json").write_text(made.to_json())
    record = run_json("audit-run", path, "--plan", str(tmp_path / "plan.json"))
    assert record == audit_one_run(scores, included, claimed=made.event, delta=made.delta).to_dict()
    assert record["delta"] == 1e-5
    assert record["claimed_epsilon"] <= 4.0


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_claim_that_is_broken_sets_the_exit_code(canaries, form):
    path, *_ = canaries()
    result = run("audit-run", path, "--event", "pure_dp(1)", *form)
    assert result.exit_code == 1
    assert "violation certified" in result.stdout


def test_it_says_what_was_certified_and_what_would_escape(canaries):
    path, *_ = canaries()
    result = run("audit-run", path, "--event", "pure_dp(3)")
    assert result.exit_code == 0
    certified, claimed, guesses, verdict = result.stdout.splitlines()
    assert certified.startswith("certified  ε ≥ 1.")
    assert certified.endswith("at δ = 0, with confidence 95 %")
    assert claimed == "claimed    ε = 3.00"
    assert guesses.endswith("of 5,000 were right; 10,000 canaries")
    assert "no violation found" in verdict
    assert "would escape" in verdict
    assert "claimed    " not in run("audit-run", path).stdout


def test_what_holds_no_canaries_is_refused(canaries, tmp_path):
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, scores=np.array([{}, {}], dtype=object), included=np.array([True, False]))
    other = tmp_path / "other.npz"
    np.savez(other, losses=np.zeros(3))
    alone = tmp_path / "alone.npy"
    np.save(alone, np.zeros(3))
    text = tmp_path / "text.npz"
    text.write_text("score,included\n1,0\n")
    empty = tmp_path / "empty.npz"
    empty.touch()
    for path in (pickled, other, alone, text, empty):
        result = run("audit-run", str(path))
        assert result.exit_code == 2
        assert "does not hold the arrays scores and included" in result.stderr
    path, *_ = canaries()
    for options in (["--event", "gaussian(2)", "--plan", path], ["--guesses", "0"], ["--confidence", "1"]):
        assert run("audit-run", path, *options).exit_code == 2
    assert run("audit-run", path, "--event", "gaussian(").exit_code == 2
    assert run("audit-run", path, "--plan", path).exit_code == 2
