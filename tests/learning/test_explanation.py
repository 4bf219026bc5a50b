"""What is said of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sitr.ledger import Budget, Ledger
from tests.learning.loops import attached, made, trained


def test_spent_grows_to_that_of_the_plan() -> None:
    run, seen = attached(), []
    assert run.spent().so_far.upper == 0
    trained(run, after=lambda run: seen.append(run.spent()))
    assert [one.steps for one in seen] == [1, 2, 3, 4, 5, 6]
    assert [float(one.so_far) for one in seen] == sorted(float(one.so_far) for one in seen)
    assert float(seen[-1].so_far) == float(seen[-1].whole) == float(run.plan.epsilon())
    assert "after 6 of 6 steps" in str(seen[-1])


def test_trace_has_epsilon_over_steps() -> None:
    run = attached(made(steps=30))
    assert run.trace().steps.size == 0
    trace = trained(run).trace(points=5)
    assert trace.steps.tolist() == [1, 8, 16, 23, 30]
    assert trace.epsilon[-1] == float(run.plan.epsilon())
    assert (trace.epsilon[1:] > trace.epsilon[:-1]).all()


def test_explains_rules_prices_and_what_is_outside(tmp_path: Path) -> None:
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=3.0, delta=1e-4))
    run = attached(
        made(noise="float"),
        ledger=ledger,
        dataset="clinic",
        analyst="amina",
        operation="m",
        checkpoint=tmp_path / "run",
    )
    trained(run, microbatch=5)
    told = run.explain()
    assert "26 in 4 tensors" in told
    assert "0.weight" in told
    assert "4×3" in told
    assert "clinic, by amina, as operation 'm'" in told
    assert "written every 1 step;" in told
    assert "last digits of floating-point noise" in told
    assert "how long steps take" in told
    assert "examples that see one another" in told
    assert "The ledger is in memory" in told


@pytest.mark.parametrize("microbatch", [None, 3])
def test_explains_nothing_of_a_draw(microbatch: int | None) -> None:
    """How many examples were drawn is private: nothing changes by the steps, nor do the numbers of a run tell it."""
    run = attached()
    before = run.explain()
    told: list[str] = []
    trained(run, microbatch=microbatch, after=lambda run: told.append(run.explain()))
    assert told == [before] * 6
    assert "clipped together\n  0.weight  4×3\n  0.bias    4\n" in before
    assert (run.trace().losses.size, run.losses, run.unsafe_losses) == (0, [], [])
    assert "each by itself" in attached(made(clipping="per_layer")).explain()


def test_progress_shows_epsilon(capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(attached(), progress=True)
    shown = capsys.readouterr().out
    assert "6/6" in shown
    assert f"ε = {str(run.spent()).split()[2]}" in shown
