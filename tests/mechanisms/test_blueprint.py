"""Blueprints: the analysis against the accountant, all or nothing, and that analysing draws nothing."""

import math

import pytest

from sitr.accounting import compose
from sitr.errors import IncompatibleAdjacency, InvalidArgument
from sitr.mechanisms import (
    Blueprint,
    bounded_mean,
    bounded_sum,
    exponential_mechanism,
    gaussian,
    laplace,
    ptr_mode,
    randomized_response,
)
from tests.mechanisms.truths import Counting


def made():
    return Blueprint(
        count=laplace(epsilon=0.5, sensitivity=1, integers=True, adjacency="add_remove"),
        total=bounded_sum(bounds=(0, 10), rho=0.05, integers=True),
        mean=bounded_mean(bounds=(0.0, 10.0), epsilon=0.3),
        best=exponential_mechanism(epsilon=0.2, sensitivity=1.0, candidates=["a", "b"]),
    )


VALUES = {"count": 12, "total": [3, 5], "mean": [3.0, 5.0], "best": [1.0, 2.0]}


@pytest.fixture
def source(monkeypatch):
    """Zeros in the place of the system's bits, counted."""
    counting = Counting()
    monkeypatch.setattr("sitr.mechanisms.blueprint.source_of", lambda seed: counting)
    return counting


def test_the_event_is_that_of_the_steps_composed():
    blueprint = made()
    assert blueprint.event == compose(*(step.event for step in blueprint.steps.values()))
    assert blueprint.event.adjacency == "add_remove"
    assert list(blueprint.steps) == list(VALUES)


def test_the_analysis_is_the_accountants(source):
    blueprint = made()
    analysis = blueprint.explain(delta=1e-5)
    assert analysis.event == blueprint.event
    assert analysis.delta == 1e-5
    assert analysis.epsilon.upper == blueprint.event.epsilon(delta=1e-5).upper
    assert [step.name for step in analysis.steps] == list(VALUES)
    for step in analysis.steps:
        mechanism = blueprint.steps[step.name]
        assert step.event == mechanism.event
        assert step.epsilon.upper == mechanism.event.epsilon(delta=1e-5).upper
        assert step.error95 == mechanism.error95
    assert math.fsum(step.share for step in analysis.steps) == pytest.approx(1)
    deltas = len(analysis.steps) * 1e-5  # basic composition spends δ once for each step
    assert blueprint.event.epsilon(delta=deltas).upper <= math.fsum(step.epsilon.upper for step in analysis.steps)
    assert source.count == 0


def test_the_table_has_a_line_for_each_step_and_one_for_all():
    lines = str(made().explain()).splitlines()
    assert [line.split()[0] for line in lines] == ["step", *VALUES, "together:"]
    assert "ε at δ = 1e-06" in lines[0]
    assert "adjacency: add_remove" in lines[-1]


def test_a_step_without_a_finite_epsilon_is_shown_as_it_is():
    blueprint = Blueprint(mode=ptr_mode(epsilon=1.0, delta=1e-3), count=laplace(epsilon=1.0, sensitivity=1))
    analysis = blueprint.explain(delta=1e-6)
    assert analysis.epsilon.upper == math.inf
    assert "∞" in str(analysis)
    assert math.isnan(analysis.steps[0].share)


def test_a_release_has_an_answer_for_each_step(source):
    answers = made().release(**VALUES)
    assert list(answers) == list(VALUES)
    assert all(answer.private for answer in answers.values())
    assert answers["mean"].error95 > 0  # stated by the release, from its own noisy values
    assert {name: answer.event for name, answer in answers.items()} == {n: s.event for n, s in made().steps.items()}
    assert source.count > 0


def test_without_noise_the_answers_themselves():
    answers = made().release(**VALUES, unsafe_without_noise=True)
    assert {name: answer.value for name, answer in answers.items()} == {
        "count": 12,
        "total": 8,
        "mean": pytest.approx(4, abs=1e-6),
        "best": "b",
    }
    assert not any(answer.private for answer in answers.values())


def test_a_seed_makes_one_stream_for_all_steps():
    twice = Blueprint(
        first=laplace(epsilon=0.01, sensitivity=1, integers=True),
        second=laplace(epsilon=0.01, sensitivity=1, integers=True),
    )
    one, other = (twice.release(first=0, second=0, unsafe_seed=1) for _ in range(2))
    assert one["first"].value == other["first"].value
    assert one["first"].value != one["second"].value
    assert not one["first"].private


@pytest.mark.parametrize(
    ("name", "value"),
    [("count", 31337.5), ("count", None), ("total", "secret"), ("best", [1.0]), ("best", [math.nan, 1.0])],
)
def test_if_one_value_is_refused_nothing_is_drawn(name, value, source):
    with pytest.raises(InvalidArgument, match=rf"\]: {name}: ") as refusal:
        made().release(**{**VALUES, name: value})
    assert source.count == 0
    assert not any(hidden in refusal.value.what for hidden in ("31337", "secret", "nan"))


@pytest.mark.parametrize("values", [{}, {**VALUES, "more": 31337}, {"count": 31337, "total": [1]}], ids=str)
def test_values_are_wanted_for_all_steps_and_no_others(values, source):
    with pytest.raises(InvalidArgument, match="count, mean, total") as refusal:
        made().release(**values)
    assert source.count == 0
    assert "31337" not in str(refusal.value)


@pytest.mark.parametrize(
    "steps", [{}, {"a": 3}, {"a": laplace}, {"a": None}, {"unsafe_seed": laplace(epsilon=1.0, sensitivity=1)}]
)
def test_bad_steps_are_refused(steps):
    with pytest.raises(InvalidArgument):
        Blueprint(**steps)


def test_steps_for_different_neighbours_are_refused():
    with pytest.raises(IncompatibleAdjacency):
        Blueprint(a=gaussian(rho=1.0, sensitivity=1.0, adjacency="add_remove"), b=randomized_response(p=0.75))


@pytest.mark.parametrize("delta", [-1, 1, math.nan, "1", None])
def test_a_bad_delta_is_refused(delta):
    with pytest.raises(InvalidArgument, match="delta"):
        made().explain(delta=delta)


def test_steps_cannot_be_changed_afterwards():
    with pytest.raises(TypeError):
        made().steps["more"] = laplace(epsilon=1.0, sensitivity=1)
