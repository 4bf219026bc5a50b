"""Reports: never "passes", rounded to the safe side, and JSON."""

import json
import math

import pytest

from sitr.accounting import Laplace
from sitr.audit import AuditReport, Witness

WITNESS = Witness("output ≤ 0.5", "value", 1, p_lower=0.52999, q_upper=0.11001, allowed=0.3)


def report(**changes):
    fields = {
        "claimed": Laplace(noise_multiplier=1.0),
        "claimed_epsilon": 1.0,
        "delta": 0.0,
        "epsilon_lower": 1.5719,
        "delta_lower": 0.22999,
        "factor_lower": 1.5999,
        "violated": True,
        "witness": WITNESS,
        "samples": 1000,
        "confidence": 0.95,
        "escapes_factor": 1.20001,
        "escapes_failure": 0.0123,
    }
    return AuditReport(**{**fields, **changes})


def test_the_verdict_is_one_of_two():
    assert report().verdict == "violation certified"
    assert report(violated=False).verdict == (
        "no violation found with 1000 samples "
        "(a bug smaller than 1.201 × the claim or a failure rarer than 0.0123 may escape)"
    )
    assert "a bug of any size" in report(violated=False, escapes_factor=math.inf).verdict


@pytest.mark.parametrize("violated", [True, False])
def test_it_is_said_in_four_lines_and_never_that_all_is_well(violated):
    text = str(report(violated=violated))
    assert len(text.splitlines()) == 4
    assert "ε ≥ 1.57 " in text
    assert "δ ≥ 0.229 " in text
    assert "at least 0.529 with the second input, at most 0.111 with the first input" in text
    assert "confidence 95 %" in text
    assert not {"pass", "passes", "passed", "private", "correct", "safe"} & set(text.lower().split())


def test_json():
    record = json.loads(json.dumps(report().to_dict()))
    assert record["claimed"]["type"] == "laplace"
    assert record["verdict"] == "violation certified"
    assert record["witness"]["q_upper"] == 0.11001
    assert record["epsilon_lower"] == 1.5719
    assert report(claimed=Laplace(noise_multiplier=1.0).group(2)).to_dict()["claimed"] is None
