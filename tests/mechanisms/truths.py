"""What the tests of mechanisms share: sources that count or repeat bytes, and exact laws computed another way."""

import math
from itertools import product

import numpy as np

from sitr.errors import InvalidArgument
from tests.accounting.helpers import brute_delta

EPSILONS = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 3.0)


class Counting:
    """The system's place taken by zeros that are counted."""

    private = True

    def __init__(self):
        self.count = 0

    def bytes(self, count):
        self.count += count
        return bytes(count)


class Scripted:
    """A source that returns given bytes first, then one byte for ever."""

    private = False

    def __init__(self, first=b"", then=0):
        self.first, self.then, self.drawn = first, then, 0

    def bytes(self, count):
        taken, self.first = self.first[:count], self.first[count:]
        self.drawn += count
        return taken + bytes([self.then]) * (count - len(taken))


def draws(mechanism, value, count, source):
    """Many answers to one value, from one source."""
    checked = mechanism._checked(value)
    return [mechanism._drawn(checked, source) for _ in range(count)]


def counts_of(answers, outcomes):
    """How often each outcome was drawn; anything else is an error."""
    places = {outcome: place for place, outcome in enumerate(outcomes)}
    return np.bincount([places[answer] for answer in answers], minlength=len(outcomes))


def keeps_its_promise(event, first, second, epsilons=EPSILONS):
    """Assert that two laws, as dictionaries of probabilities, lie under the event's profile in both orders."""
    outcomes = sorted(first.keys() | second.keys(), key=repr)
    p, q = ([float(law.get(outcome, 0)) for outcome in outcomes] for law in (first, second))
    assert abs(math.fsum(p) - 1) < 1e-12
    assert abs(math.fsum(q) - 1) < 1e-12
    for epsilon in epsilons:
        assert brute_delta(p, q, epsilon) <= float(delta_of(event, epsilon)) + 1e-12


_DELTAS = {}


def delta_of(event, epsilon):
    """The event's δ, upper end, computed once."""
    key = (event, epsilon)
    if key not in _DELTAS:
        _DELTAS[key] = event.delta(epsilon=epsilon).upper
    return _DELTAS[key]


def laplace_mass(scale, x):
    """P(X = x) of discrete Laplace noise."""
    return math.tanh(0.5 / scale) * math.exp(-abs(x) / scale)


def laplace_tail(scale, x):
    """P(X ≥ x)."""
    r = math.exp(-1 / scale)
    return r**x / (1 + r) if x >= 0 else 1 - r ** (1 - x) / (1 + r)


def changes(length, low=-1, high=1):
    """Every way in which one person can move so many scores by whole numbers."""
    return product(range(low, high + 1), repeat=length)


def multisets(values, most):
    """All data sets of up to `most` people, each with one of the values, as sorted tuples."""
    found = [()]
    for size in range(1, most + 1):
        found += [data for data in product(values, repeat=size) if list(data) == sorted(data)]
    return found


def neighbours(data, values, adjacency):
    """The data sets that differ from this one in one person."""
    fewer = {data[:place] + data[place + 1 :] for place in range(len(data))}
    if adjacency == "replace_one":
        return {tuple(sorted((*rest, value))) for rest in fewer for value in values} - {data}
    return fewer | {tuple(sorted((*data, value))) for value in values}


def refuses_quietly(mechanism, value, monkeypatch, method="release"):
    """Assert that a value is refused, not shown, and nothing drawn."""
    source = Counting()
    for module in ("mechanism", "responses"):
        monkeypatch.setattr(f"sitr.mechanisms.{module}.source_of", lambda seed: source)
    try:
        getattr(mechanism, method)(value)
    except InvalidArgument as error:
        shown = error.what
    else:
        raise AssertionError("it was accepted")
    assert source.count == 0
    for hidden in ("nan", "31337", "secret", "None"):
        assert hidden not in shown
