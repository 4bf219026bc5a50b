"""The text of an event: what it means, what it refuses, and that it is never evaluated."""

import ast
import math
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    compose,
    notation,
)
from sitr.accounting.notation import event_text, parse_event
from sitr.accounting.schema import TYPES
from sitr.errors import IncompatibleAdjacency, InvalidArgument, InvalidNotation, SitrError
from tests.accounting.strategies import any_event

SGD = PoissonSampled(Gaussian(1.1), 256 / 60000)

MEANINGS = {
    "gaussian(1.1)": Gaussian(1.1),
    "gaussian(noise_multiplier=1.1)": Gaussian(1.1),
    " gaussian (\n1.1\t) ": Gaussian(1.1),
    "poisson_sampled(gaussian(1.1), 256/60000) * 14062 + laplace(20) * 30": SGD * 14062 + Laplace(20) * 30,
    "14062*poisson_sampled(gaussian(1.1),256/60000)+30*laplace(20)": SGD * 14062 + Laplace(20) * 30,
    "poisson_sampled(sampling_prob=0.1, event=laplace(2))": PoissonSampled(Laplace(2), 0.1),
    "poisson_sampled(gaussian(2) * 3 + laplace(5), 1e-3)": PoissonSampled(Gaussian(2) * 3 + Laplace(5), 1e-3),
    "randomized_response(p=0.6, k=5)": RandomizedResponse(0.6, 5),
    "discrete_gaussian(scale=1.5, sensitivity=2)": DiscreteGaussian(1.5, 2),
    "approximate_dp(0.5, delta=1e-6)": ApproximateDP(0.5, 1e-6),
    "renyi(points=[(2, 0.1), (32, 0.5)])": Renyi(points=[(2, 0.1), (32, 0.5)]),
    "renyi([[2, 0.1], [inf, 0.5]])": Renyi(points=[(2, 0.1), (math.inf, 0.5)]),
    "renyi(formula=gaussian(2), delta=1e-7)": Renyi(formula=Gaussian(2), delta=1e-7),
    "guarantees([(0.5,1e-6),(1,1e-9)])": Guarantees([(0.5, 1e-6), (1, 1e-9)]),
    "loss_distribution([-1, 1], [1/4, 3/4])": LossDistribution([-1, 1], [0.25, 0.75]),
    'gaussian(1.1, adjacency="add_remove")': Gaussian(1.1, adjacency="add_remove"),
    "gaussian(1.1, adjacency='replace_one')": Gaussian(1.1, adjacency="replace_one"),
    "(gaussian(1) + laplace(2)) * 3": (Gaussian(1) + Laplace(2)) * 3,
    "((gaussian(1)))": Gaussian(1),
    "gaussian(1) * 2 * 3": Gaussian(1) * 6,
    "2 * 3 * gaussian(1)": Gaussian(1) * 6,
    "gaussian(1) * 1": Gaussian(1),
    "composed([(gaussian(1), 2), (laplace(3), 1)])": Gaussian(1) * 2 + Laplace(3),
    # numbers are exact until they become an argument
    "gaussian(1) * 1e6": Gaussian(1) * 10**6,
    "gaussian(1) * 2.50e2": Gaussian(1) * 250,
    "gaussian(1) * (28124/2)": Gaussian(1) * 14062,
    "laplace(0.1 * 3)": Laplace(0.3),
    "laplace(1/3*3)": Laplace(1),
    "laplace(.5)": Laplace(0.5),
    "laplace(5.)": Laplace(5),
    "pure_dp(5e-324)": PureDP(5e-324),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_text_means_the_event(text):
    assert parse_event(text) == MEANINGS[text]


def test_a_long_sum_is_read():
    text = " + ".join(f"laplace({i})" for i in range(1, 600))
    assert parse_event(text) == compose(*(Laplace(i) for i in range(1, 600)))


# --- the way back ----------------------------------------------------------


@given(any_event())
@example(Composed(((Gaussian(1), 1),)))
@example(Composed(((Gaussian(1), 3),), adjacency="replace_one"))
@example(PureDP(-0.0))
def test_text_round_trip(event):
    assert parse_event(event_text(event)) == event


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            SGD * 14062 + Laplace(20) * 30,
            "poisson_sampled(gaussian(1.1), 0.004266666666666667) * 14062 + laplace(20) * 30",
        ),
        (Gaussian(1.1, adjacency="replace_one"), 'gaussian(1.1, adjacency="replace_one")'),
        (RandomizedResponse(0.6), "randomized_response(0.6)"),
        (Renyi(points=[(2, 0.1), (math.inf, 3)]), "renyi(points=[(2, 0.1), (inf, 3)])"),
        (LossDistribution([0], [1]), "loss_distribution([0], [1])"),
        (Composed(((Laplace(2), 1),)), "composed([(laplace(2), 1)])"),
    ],
)
def test_event_text_is_short(event, text):
    assert event_text(event) == text


# --- refusals --------------------------------------------------------------

REFUSALS = {
    "": "expected an event or a number at position 1, found the end",
    "   ": "expected an event or a number at position 4, found the end",
    "3": "expected an event at position 1, found a number",
    "'gaussian'": "expected an event at position 1, found a word",
    "[gaussian(1)]": "expected an event at position 1, found a list",
    "(gaussian(1),)": "expected an event at position 1, found a list",
    "laplace(2) + 3": "expected an event at position 14, found a number",
    "gaussian(1 + 2)": "expected an event at position 10, found a number",
    "gaussian": "expected '(' at position 9, found the end",
    "gaussian(1": "expected ',' or ')' at position 11, found the end",
    "gaussian(1))": "expected '+', '*' or the end at position 12, found ')'",
    "gaussian(1) laplace(2)": "expected '+', '*' or the end at position 13, found 'laplace'",
    "gaussian(1) - laplace(2)": "expected '+', '*' or the end at position 13, found '-'",
    "gaussian(1,,2)": "expected an event or a number at position 12, found ','",
    "gaussian(-laplace(2))": "expected a number after '-' at position 11",
    "gaussian(--1)": "expected a number after '-' at position 11",
    "gaussian(1) +": "expected an event or a number at position 14, found the end",
    "gaussian(2 ** 3)": "expected an event or a number at position 13, found '*'",
    "gausian(1)": "'gausian' at position 1 is no known event. Did you mean gaussian?",
    "laplace(2) + Gaussian(1)": "'Gaussian' at position 14 is no known event. Did you mean gaussian?",
    "PoissonSampled(gaussian(1), 0.1)": "Did you mean poisson_sampled?",
    "gaussian(True)": "'True' at position 10 is no known event",
    "gaussian(nan)": "'nan' at position 10 is no known event",
    "gaussian()": "gaussian at position 1: missing a required argument: 'noise_multiplier'",
    "gaussian(1, 2)": "gaussian at position 1: too many positional arguments",
    "gaussian(1, noise_multiplier=2)": "multiple values for argument 'noise_multiplier'",
    "gaussian(noise_multiplyer=1)": "no parameter 'noise_multiplyer'. Did you mean noise_multiplier?",
    "gaussian(noise_multiplier=1, noise_multiplier=2)": "'noise_multiplier' at position 30 was given before",
    "randomized_response(p=0.6, 5)": "expected a named argument of randomized_response",
    "gaussian(1) * laplace(2)": "'*' at position 13 joins an event and an event",
    "gaussian(1) / 2": "'/' at position 13 joins an event and a number",
    "gaussian(1) * inf": "'*' at position 13 joins an event and infinity",
    "gaussian(1) * 'two'": "'*' at position 13 joins an event and a word",
    "gaussian(1/0)": "division by zero at position 11",
    "gaussian(1e999999999)": "the number at position 10 is out of reach",
    "gaussian(1e-999999999)": "the number at position 10 is out of reach",
    "approximate_dp(1, 1e-350)": "the number at position 19 is out of reach",
    "gaussian(1e300 * 1e300)": "the number at position 16 is out of reach",
    "gaussian(" + "9" * 5000 + ")": "the number at position 10 is out of reach",
    "gaussian(1).epsilon": "'.' at position 12 has no meaning here",
    "gaussian(1) * ²": "'²' at position 15 has no meaning here",
    "gaussian(1, adjacency='add_remove)": '"\'" at position 23 has no meaning here',
    "(" * 60: "nested more than 50 deep",
    "poisson_sampled(" * 60: "nested more than 50 deep",
    "[" * 60: "nested more than 50 deep",
    "laplace(2) + " * 1000: "the text has 13000 characters; 10000 is the most",
}


@pytest.mark.parametrize("text", REFUSALS, ids=lambda text: text[:40])
def test_bad_text_is_refused_with_its_place(text):
    with pytest.raises(InvalidNotation) as caught:
        parse_event(text)
    assert REFUSALS[text] in str(caught.value)
    assert "Do: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gaussian(-1)", "noise_multiplier=-1 is not in [0.0001, 1e+12]."),
        ("gaussian(inf)", "noise_multiplier=inf is not in [0.0001, 1e+12]."),
        ("gaussian('1')", "noise_multiplier='1' is not a number in [0.0001, 1e+12]."),
        ("gaussian(1e300)", "is not in [0.0001, 1e+12]."),
        ("gaussian(1) * 2.5", "count=2.5 is not a whole number in [1, 1000000000]."),
        ("gaussian(1) * 0", "count=0 is not in [1, 1000000000]."),
        ("loss_distribution(1, 2)", "losses is not a list of numbers."),
        ("composed([(gaussian(1), 2, 3)])", "events is not a list of (event, count)."),
        (
            "gaussian(1, adjacency='substitution')",
            "adjacency='substitution' is not one of 'add_remove'",
        ),
        ("poisson_sampled(2, 0.1)", "event=2 is not an event."),
    ],
)
def test_a_bad_number_keeps_the_words_of_the_event(text, message):
    with pytest.raises(InvalidArgument, match=re.escape(message)):
        parse_event(text)


def test_adjacencies_do_not_mix():
    with pytest.raises(IncompatibleAdjacency):
        parse_event("gaussian(1, adjacency='add_remove') + laplace(1, adjacency='replace_one')")


@pytest.mark.parametrize("text", [None, 3, b"gaussian(1)", Gaussian(1)])
def test_only_text_is_text(text):
    with pytest.raises(InvalidArgument, match="is not text"):
        parse_event(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "gaussian(__import__('os'))",
        "gaussian((lambda: 1)())",
        "gaussian([x for x in (1,)])",
        "gaussian(1 if 1 else 2)",
        "gaussian(f'{1}')",
        "gaussian(9**9**9**9)",
        "gaussian.__class__",
        "open('/etc/passwd')",
        "eval('gaussian(1)')",
        "gaussian(noise_multiplier:=1)",
        "gaussian(*[1])",
        "gaussian(1); gaussian(1)",
    ],
)
def test_code_is_refused(text):
    with pytest.raises(InvalidNotation):
        parse_event(text)


def test_nothing_here_evaluates_code():
    """No eval, exec, compile or import by name in the module that reads text from strangers."""
    tree = ast.parse(Path(notation.__file__).read_text(encoding="utf-8"))
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert called.isdisjoint({"eval", "exec", "compile", "__import__", "getattr", "open"})


WORDS = [
    *TYPES,
    "inf",
    "delta",
    "=",
    "(",
    ")",
    "[",
    "]",
    ",",
    "+",
    "-",
    "*",
    "/",
    "1",
    "0",
    "1e-5",
    "2.5",
    "1e308",
    "'a'",
]


@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join) | st.text(max_size=60))
def test_any_text_is_an_event_or_a_clear_refusal(text):
    try:
        event = parse_event(text)
    except SitrError:
        return
    assert parse_event(event_text(event)) == event


@pytest.mark.parametrize("text", ["laplace(" + "1e308/1e-300*" * 700 + "1)", "laplace(" + "1e-308*" * 1300 + "1)"])
def test_arithmetic_stays_small(text):
    with pytest.raises(InvalidNotation, match="out of reach"):
        parse_event(text)
