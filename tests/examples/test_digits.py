"""The example trains a model that tells digits, and its budget refuses in the end."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits.py"


def test_digits_are_told(capsys):
    """250 steps at ε = 8 tell about 95 % of the digits; guessing tells 10 %."""
    told = runpy.run_path(str(EXAMPLE))["main"](epsilon=8.0, steps=120)
    assert told > 0.75
    shown = capsys.readouterr().out
    assert "questions were answered from what was left, and the next one was refused" in shown
    assert "charged in entry" in shown
