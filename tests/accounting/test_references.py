"""Every bracket contains the truth, computed another way at 30 to 60 digits (`references.py`), and is narrow enough."""

import json
import math
from decimal import Decimal
from pathlib import Path

import pytest

from sitr.accounting import parse_event

CASES = json.loads(Path(__file__).with_name("references.json").read_text(encoding="utf-8"))
LATTICES = ("randomized", "lattice", "discrete", "infinite mass")
WIDTHS = {"rare events": 1e-4, "sampled laplace": 1e-4, "add order": 1e-4, "single": 1e-4}


def identify(case):
    return f"{case['name']} [{case.get('kind', 'epsilon')}]"


@pytest.mark.parametrize("case", CASES, ids=identify)
def test_the_bracket_contains_the_truth_and_is_narrow(case):
    event = parse_event(case["event"])
    if case.get("kind") == "delta":
        bracket, truth = event.delta(float(case["epsilon"])), Decimal(case["delta"])
        error = abs(truth) * Decimal(case["error"])
    else:
        bracket, truth = event.epsilon(float(case["delta"])), Decimal(case["epsilon"])
        error = Decimal(case["error"])
    if truth.is_infinite():
        assert math.isinf(bracket.upper)
        return
    if "exponential" in case["event"] and case["event"] != "exponential(1)":
        # The reference composes the pair of THEORY 2.5, which dominates every selection and which none attains.
        assert bracket.lower <= bracket.upper <= float(truth + error) * (1 + 1e-4)
        return
    error += abs(truth) * Decimal(2) ** -52  # the parameters themselves are rounded to doubles
    assert Decimal(bracket.lower) <= truth + error
    assert truth - error <= Decimal(bracket.upper)
    assert bracket.width <= max(_allowed(case) * bracket.upper, 1e-9 if case.get("kind") != "delta" else 0.0)


def _allowed(case):
    """The widths of ε that the accountant promises; of δ, which a small move of ε moves by its logarithm, more."""
    if case.get("kind") == "delta":
        return 1e-3
    if any(word in case["regime"] for word in LATTICES):
        return 1e-4
    return WIDTHS.get(case["regime"], 1e-6)
