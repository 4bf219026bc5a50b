"""The pair of n shuffled reports: what one person's report loses when the others hide it (THEORY 2.9).

Whatever the others hold, each of their reports is, with a chance of its own, a *blanket*: one that a person with either
value could have sent as well. The pair counts the B reports that look like the first value or the second, N0 and N1 of
them, and the N other blankets. B and N are the same under P and Q, and given them N0 - N1 = D is that of B fair coins,
but for a factor, with E = e^ε0:

    1 + (E-1) D/2G  under P,    1 - (E-1) D/2G  under Q,    G = (E+1)/2 B + N.

That is one coin with a bias of (E-1) B/2G among B coins. More bias makes the pair worse and more coins make it better,
as either is undone by post-processing; both orders are equal, and δ(ε), ε ≥ 0, is convex in D and in N. So numbers of
coins are taken together with the fewest coins and the largest bias among them, and D and N are spread to few values
with the same mean, or N to less: that is how millions of reports become a thousand atoms, from above. From below it is
the other way round.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .atoms import Atoms
from .law import Floats, Pair
from .merged import Outcomes

NODES = 1024  # to which more values are spread
WORK = 800_000  # outcomes that are made, about
FEW = 200  # so many reports are counted one by one
FARTHEST = 690.0  # nats: what is rarer is charged as a whole
ENOUGH = 100.0  # the same for what lies beneath, which leaves it out
REMAINDER = 2e-299  # more than all of the rare together: 2 e^-FARTHEST of coins, of D, and of other blankets
FINE = 4.0  # standard deviations within which nodes are close to each other
FENCES = np.array([-14.0, -5.0, -1.5, 1.5, 5.0, 14.0])  # standard deviations of the other blankets
ROUGH = 0.02  # standard deviations by which their number may be rounded down


class Law(NamedTuple):
    """Values, ascending, with their chances."""

    values: Floats
    chances: Floats

    def spread(self, nodes: Floats) -> Law:
        """Move each value to its two neighbours among nodes around them all, in shares that keep the mean."""
        if nodes.size == 1:
            return Law(nodes, np.ones(1))
        place = np.clip(np.searchsorted(nodes, self.values, side="right") - 1, 0, nodes.size - 2)
        share = self.chances * (self.values - nodes[place]) / (nodes[place + 1] - nodes[place])
        rest = np.bincount(place, self.chances - share, nodes.size)
        return Law(nodes, rest + np.bincount(place + 1, share, nodes.size))

    def weighted(self, weights: Floats) -> Law:
        """Return the law with these weights on its values."""
        chances = self.chances * weights
        return Law(self.values, chances / chances.sum())


class Crowd(NamedTuple):
    """n reports: `label` is the chance to look like the first value, or the second; else `rest` that of a blanket."""

    growth: float  # E - 1
    label: float
    rest: float
    n: int

    @classmethod
    def of(cls, epsilon: float, k: int, n: int) -> Crowd:
        """Return the crowd of k-ary randomized response; for k = 2 it is that of the worst ε-DP reports there are."""
        growth = math.expm1(epsilon)
        label = 1 / (growth + k)
        return cls(growth, label, (k - 2) * label / (1 - 2 * label), n)

    def coins(self, rare: float) -> Law:
        """Return the number of coins, that of the person among them if their report is one."""
        law = binomial(self.n, 2 * self.label, rare)
        return law.weighted((1 + self.growth / 2) * law.values + (self.n - law.values) * self.rest)

    def blankets(self, coins: int) -> Law:
        """Return the number of other blankets beside so many coins; in a large crowd, of a few less, on few values."""
        if not self.rest:
            return Law(np.zeros(1), np.ones(1))
        if self.n <= FEW:
            law = binomial(self.n - coins, self.rest)
            return law.weighted((1 + self.growth / 2) * coins + law.values)
        step = 1 + int(ROUGH * math.sqrt(self.n * self.rest * (1 - self.rest)))
        return _fenced(max(self.n - -(-coins // step) * step, 0), self.rest)


@lru_cache(maxsize=16)
def _fenced(trials: int, p: float) -> Law:
    law = binomial(trials, p)
    least, most = law.values[0], law.values[-1]
    inner = trials * p + math.sqrt(trials * p * (1 - p)) * FENCES
    return law.spread(np.unique([least, *np.clip(inner, least, most), most]))


class Group(NamedTuple):
    """Numbers of coins that are taken together: the least, the largest, and the chance of any of them."""

    low: int
    high: int
    chance: float


def shuffled_above(epsilon: float, k: int, n: int) -> Pair:
    """Return a pair that dominates n shuffled reports of k-ary randomized response; for k = 2, any ε-DP reports.

    What is rare has infinite loss in the law, so that it does not hide the rest, and the largest in the Rényi curve.
    """
    crowd = Crowd.of(epsilon, k, n)
    rows = []
    for low, high, chance in _groups(crowd.coins(FARTHEST), 1 if k == 2 else FENCES.size + 2):
        if high == 0:
            rows.append(np.array([[0.0], [chance], [0.0]]))
            continue
        coins, blankets = max(low, 1), crowd.blankets(high)
        rows.append(_outcomes(crowd.growth, high, blankets, coins, _spread_distances(coins), chance))
    losses, masses = _thinned(*_both_signs(rows))
    top = np.array([-epsilon, epsilon])
    rare = REMAINDER / (1 + np.exp(-top))  # as the worst ε-DP pair
    law = Atoms.of(losses, masses, REMAINDER, uneven=True)
    curve = Atoms.of(np.concatenate([losses, top]), np.concatenate([masses, rare]))
    return Pair(law, law, renyi=Pair.symmetric(curve))


def shuffled_beneath(epsilon: float, k: int, n: int) -> Pair:
    """Return a pair that n shuffled reports by k-ary randomized response dominate, for k > 2.

    All others hold a third value. Then other blankets are not told from their truth, and the mean stands for them.
    """
    crowd = Crowd.of(epsilon, k, n)
    rows = []
    for low, high, chance in _groups(crowd.coins(ENOUGH), 1):
        coins, mean = max(high, 1), Law(np.array([(n - low) * crowd.rest]), np.ones(1))
        rows.append(_outcomes(crowd.growth, low, mean, coins, _distances(coins, ENOUGH), chance))
    return _merged(*_both_signs(rows))


def counted_beneath(advantage: float, n: int) -> Pair:
    """Return a pair that n shuffled reports dominate where a test tells two values apart with this total variation.

    The reports that pass the test are counted; all others hold the first value, and pass more rarely.
    """
    low = (1 - advantage) / 2
    passed, chances = binomial(n, low, ENOUGH)
    # Of n alike one holds the other value: (n - x) low/high + x high/low, over n.
    excess = advantage / low / n * (passed - n * low) / (1 - low)
    return _merged(np.log1p(excess), chances * (1 + excess))


def binomial(n: int, p: float, rare: float = FARTHEST) -> Law:
    """Return Bin(n, p) but for what is rare, by products away from the mode.

    Beyond t of the mean lies less than 2 exp(-t²/(2σ² + 2t/3)) (Bernstein); one trial more or less is allowed for.
    """
    reach = _reach(n * p * (1 - p), rare)
    first, last = max(math.floor(n * p) - reach, 0), min(math.ceil(n * p) + reach, n)
    mode = min(max(math.floor((n + 1) * p), first), last)
    up, down = np.arange(mode, last, dtype=np.float64), np.arange(mode, first, -1, dtype=np.float64)
    odds = p / (1 - p)
    rises = np.cumprod((n - up) / (up + 1) * odds)
    falls = np.cumprod(down / (n - down + 1) / odds)
    chances = np.concatenate([falls[::-1], [1.0], rises])
    return Law(np.arange(first, last + 1), chances / chances.sum())


def _reach(variance: float, rare: float) -> int:
    return math.ceil(rare / 3 + math.sqrt((rare / 3) ** 2 + 2 * rare * variance)) + 2


def _graded(low: float, high: float, centre: float, deviation: float, count: int) -> Floats:
    """Return nodes from low to high, even within FINE deviations of the centre and ever wider outside."""
    scale = FINE * deviation
    ends = np.arcsinh((low - centre) / scale), np.arcsinh((high - centre) / scale)
    inner = centre + scale * np.sinh(np.linspace(*ends, count + 1)[1:-1])
    return np.concatenate([[low], inner, [high]])


def _groups(coins: Law, blankets: int) -> list[Group]:
    """Take neighbouring numbers of coins together, so that not much more than WORK is done for all."""
    numbers, chances = coins
    size = _reach(float(numbers[-1]) / 4, FARTHEST)
    count = max(WORK // (2 * size + blankets * min(size, NODES // 2)), 4)
    mean = float(numbers @ chances)
    deviation = math.sqrt(float((numbers - mean) ** 2 @ chances)) + 1
    cuts = (
        _graded(float(numbers[0]), float(numbers[-1]), mean, deviation, count)[:-1] if count < numbers.size else numbers
    )
    starts = np.unique(np.round(cuts).astype(np.int64)) - numbers[0]
    ends = numbers[np.append(starts[1:], numbers.size) - 1]
    rows = zip(numbers[starts], ends, np.add.reduceat(chances, starts), strict=True)
    return [Group(int(low), int(high), float(chance)) for low, high, chance in rows if chance > 0]


def _distances(coins: int, rare: float) -> Law:
    """Return D of so many fair coins: heads less tails."""
    heads = binomial(coins, 0.5, rare)
    return Law(2.0 * heads.values - coins, heads.chances)


def _spread_distances(coins: int) -> Law:
    law = _distances(coins, FARTHEST)
    far = float(law.values[-1])
    return law if law.values.size <= NODES else law.spread(_graded(-far, far, 0.0, math.sqrt(coins), NODES))


def _outcomes(growth: float, labels: int, blankets: Law, coins: int, distances: Law, chance: float) -> Floats:
    """Return the losses of D ≥ 0 with the masses under P of D and of -D, as rows, for each number of other blankets.

    D is that of `coins`, and the bias that of `labels` coins.
    """
    d, chances = (row[distances.values >= 0] for row in distances)
    numbers = blankets.values[:, None]
    # G - (E-1) D/2 and G + (E-1) D/2, where each coin stands for labels/coins, as sums of what is not negative.
    less, more = (growth * labels * ((coins + sign * d) / coins) / 2 + labels + numbers for sign in (-1, 1))
    masses = chance * np.outer(blankets.chances, chances) / ((1 + growth / 2) * labels + numbers)
    losses = np.log1p(growth * labels * (d / coins) / less)
    return np.stack([losses.ravel(), (masses * more).ravel(), np.where(d > 0, masses * less, 0.0).ravel()])


def _both_signs(rows: list[Floats]) -> tuple[Floats, Floats]:
    losses, there, back = np.concatenate(rows, axis=1)
    return np.concatenate([losses, -losses]), np.concatenate([there, back])


def _thinned(losses: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Spread many atoms to fewer losses, keeping the masses of P and Q, which can only cost more."""
    if losses.size <= 2 * NODES:
        return losses, masses
    most = float(np.max(np.abs(losses)))
    nodes = _graded(-most, most, 0.0, math.sqrt(float(masses @ losses**2)), 2 * NODES)
    place = np.clip(np.searchsorted(nodes, losses, side="right") - 1, 0, nodes.size - 2)
    low, high = nodes[place], nodes[place + 1]
    above = masses * np.expm1(low - losses) / np.expm1(low - high)
    return nodes, np.bincount(place, masses - above, nodes.size) + np.bincount(place + 1, above, nodes.size)


def _merged(losses: Floats, masses: Floats) -> Pair:
    """Join outcomes where there are many, which is post-processing."""
    kept = masses > 0
    order = np.argsort(losses[kept], kind="stable")
    outcomes = Outcomes(masses[kept][order], losses[kept][order])
    return (outcomes if outcomes.p.size <= 2 * NODES else outcomes.merged()).pair()
