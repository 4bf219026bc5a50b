"""Analysts who see every answer before they ask again: some that are drawn, and the worst, by dynamic programming."""

import copy
import math
import random
from functools import cache

import numpy as np
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    ZeroConcentrated,
)
from sitr.accounting.filters import MOST, added
from tests.accounting.helpers import black_box_outcomes, logs

# An event here is (ε,δ), run as the worst mechanism there is.


def adaptive_delta(strategy, epsilon, book, history=(), p=1.0, q=1.0):
    """Return Σ (P - e^ε Q)_+ over all the outcomes of an interaction.

    `strategy(history)` returns the next event, or None; `book` has to let it pass, and every branch keeps its own.
    """
    event = strategy(history)
    if event is None or not book.admits(event):
        return max(p - math.exp(epsilon) * q, 0.0)
    book = copy.copy(book)
    book.charge(event)
    outcomes = enumerate(zip(*black_box_outcomes(event.at_epsilon, event.at_delta), strict=True))
    return math.fsum(
        adaptive_delta(strategy, epsilon, book, (*history, i), p * down, q * up)
        for i, (down, up) in outcomes
        if down > 0
    )


def greedy_analyst(epsilon, delta):
    """Ask four times; where all four answers point to the person, look closer; elsewhere gamble with an outright leak.

    Either ending uses up δ, and both use different outcomes for it: together they use nearly two δ.
    """
    first = ApproximateDP(epsilon / 4, 0)
    all_up = (1 / (1 + math.exp(-epsilon / 4))) ** 4
    closer = ApproximateDP(2 * math.atanh(delta / all_up) * (1 - 1e-6), 0)
    gamble = ApproximateDP(0, delta * (1 - 1e-6))

    def strategy(history):
        if len(history) < 4:
            return first
        if len(history) > 4:
            return None
        return closer if set(history) == {1} else gamble  # outcome 1 has the loss +ε

    return strategy


@st.composite
def strategies(draw):
    """Any analyst of three questions: another event for every history."""
    seed = draw(st.integers(0, 10**9))
    smallest, largest = sorted((draw(logs(0.02, 2)), draw(logs(0.02, 2))))

    def strategy(history):
        if len(history) == 3:
            return None
        dice = random.Random(hash((seed, history)))
        epsilon = 0.0 if dice.random() < 0.2 else dice.uniform(smallest, largest)
        return ApproximateDP(epsilon, dice.choice([0.0, 0.0, dice.uniform(0, 1e-3)]))

    return strategy


# Any events at all, a few at a time.

sequences = st.lists(
    st.one_of(
        st.builds(PureDP, logs(1e-3, 0.5)),
        st.builds(Laplace, logs(3, 100)),
        st.builds(Gaussian, logs(3, 100)),
        st.builds(RandomizedResponse, st.floats(0.45, 0.6)),
        st.builds(Exponential, logs(1e-2, 0.5)),
        st.builds(ApproximateDP, logs(1e-3, 0.5), logs(1e-7, 1e-4)),
        st.builds(ZeroConcentrated, logs(1e-4, 1e-2), logs(1e-4, 1e-2)),
        st.builds(lambda noise: PoissonSampled(Gaussian(noise), 0.1), st.sampled_from([0.7, 1.0, 2.0])),
    ).flatmap(lambda event: st.integers(1, 20).map(lambda count: event * count)),
    min_size=1,
    max_size=5,
)


def fill(book, event, times):
    for _ in range(times):
        book.charge(event)
    return book


# Every analyst at once.


class Question:
    """An (ε,δ) question, run as the worst mechanism there is (THEORY 2.6); ε is a whole number of `grain`s."""

    def __init__(self, grains, delta, grain):
        self.grains, self.delta = grains, delta
        self.event = ApproximateDP(grains * grain, delta)
        self.up = 1 / (1 + math.exp(-grains * grain))


def worst_delta(start, charge, questions, epsilon, grain, reach):
    """Return the largest Σ (P - e^ε Q)_+ that an analyst may gain who asks these questions while `charge` allows it.

    `charge(state, number)` returns the state after a question, or None. The loss so far is a whole number of grains, at
    most `reach`; the value of a state is what is still to be gained for each unit of P, at every loss.
    """
    places = np.arange(-reach, reach + 1)
    stop = -np.expm1(np.minimum(epsilon - grain * places, 0.0))

    def moved(values, grains):
        return values[np.clip(places + grains, -reach, reach) + reach]

    @cache
    def value(state):
        best = stop
        for number, question in enumerate(questions):
            after = charge(state, number)
            if after is not None:
                ahead = value(after)
                up, down = moved(ahead, question.grains), moved(ahead, -question.grains)
                gained = question.up * up + (1 - question.up) * down
                best = np.maximum(best, question.delta + (1 - question.delta) * gained)
        return best

    return float(value(start)[reach])


# Rules by which questions are charged: the state before any of them, and the step. Three of them are twins of the rule.


def charged_to_all(union, questions):
    """The rule: every question is charged to every filter, while one of them holds."""
    units = [union.units(question.event) for question in questions]

    def charge(used, number):
        after = added(used, units[number])
        return after if union.holds(after) else None

    return union.used, charge


def charged_where_admitted(union, questions):
    """A twin: a question is charged only to the filters that admit it."""
    units = [union.units(question.event) for question in questions]

    def charge(accounts, number):
        after = [
            tuple(used + units[number][position] for used, position in zip(account, way, strict=True))
            for account, way in zip(accounts, union.ways, strict=True)
        ]
        if all(max(account) > MOST for account in after):
            return None
        return tuple(new if max(new) <= MOST else old for new, old in zip(after, accounts, strict=True))

    return tuple((0, 0) for _ in union.ways), charge


def parts_for_each(union, questions):
    """A twin: each filter limits δ-parts for itself, and that of a question counts for the first that admits it."""
    units = [union.units(question.event) for question in questions]

    def charge(accounts, number):
        costs, parts = accounts
        after = tuple(used + units[number][way[0]] for used, way in zip(costs, union.ways, strict=True))
        for k, way in enumerate(union.ways):
            own = parts[k] + units[number][way[1]]
            if after[k] <= MOST and own <= MOST:
                return after, (*parts[:k], own, *parts[k + 1 :])
        return None

    return ((0,) * len(union.ways), (0,) * len(union.ways)), charge
