"""The room's names: plans need no PyTorch, and what needs it says so."""

import subprocess
import sys

import pytest

import sitr.learning


def test_names_are_there():
    assert sitr.learning.__all__ == ["Run", "Step", "TrainingPlan", "Views", "attach", "fix", "plan"]
    for name in sitr.learning.__all__:
        assert getattr(sitr.learning, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        _ = sitr.learning.other


def test_without_torch_plans_are_made_and_the_rest_says_what_to_install():
    code = """
import sys
sys.modules["torch"] = None
import sitr.learning
from sitr.learning import plan
print(plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, noise_multiplier=4.0).steps)
for name in ("attach", "fix"):
    try:
        getattr(sitr.learning, name)
    except sitr.errors.MissingExtra as error:
        print(error.do)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["50", 'pip install "sitr[torch]"', 'pip install "sitr[torch]"']


def test_importing_the_room_does_not_load_torch():
    code = "import sys, sitr.learning; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "False"
