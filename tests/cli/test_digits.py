"""The lesson of the demo: training and questions on one budget, until it refuses."""

import pytest
from rich.console import Console

from sitr.cli import digits


@pytest.fixture(scope="module")
def lesson():
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    return digits.learn()


def test_a_plan_then_questions_then_a_refusal(lesson):
    assert float(lesson.plan.epsilon(digits.DELTA)) <= digits.EPSILON
    assert 1 <= lesson.asked < digits.PROMISED / digits.QUESTION
    assert "digits" in lesson.refusal
    assert "ε" in lesson.spent


def test_it_learns(lesson):
    """One guess in ten would be right by chance."""
    assert lesson.told > 0.6


def test_what_is_shown_is_what_is_run(lesson):
    for name, value in (("n", lesson.plan.n), ("batch", digits.BATCH), ("steps", digits.STEPS)):
        assert f"{name}={value}," in digits.CODE
    assert f"epsilon={digits.EPSILON:g}" in digits.CODE


def test_it_is_told(lesson):
    console = Console(width=1000)
    with console.capture() as caught:
        digits.tell(console, lesson)
        digits.tell(console, None)
    told = caught.get()
    assert f"{lesson.asked} questions" in told
    assert 'pip install "sitr[torch,compare]"' in told


def test_it_is_recorded(lesson):
    assert digits.record(None) is None
    assert digits.record(lesson)["asked"] == lesson.asked


def test_without_pytorch_it_is_left_out(monkeypatch):
    monkeypatch.setattr(digits, "find_spec", lambda name: None if name == "torch" else object())
    assert digits.learn() is None
