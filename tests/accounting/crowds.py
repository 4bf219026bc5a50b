"""Mechanisms on a few people whose laws are known exactly: batches and shuffled reports, one by one."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

# A law is a dictionary from outcomes to fractions.


def divergence(p, q, y):
    """Σ (P - y Q)_+."""
    return sum((max(mass - y * q.get(outcome, 0), Fraction(0)) for outcome, mass in p.items()), Fraction(0))


def worst(pairs, y):
    """The larger of both orders, of several pairs."""
    return max(max(divergence(p, q, y), divergence(q, p, y)) for p, q in pairs)


def product(first, second):
    """One law after the other: `second` may depend on what came out."""
    follows = second if callable(second) else lambda _: second
    return {(a, b): x * y for a, x in first.items() for b, y in follows(a).items()}


def mixture(laws):
    """Each of several laws with the same chance."""
    laws, total = list(laws), Counter()
    for law in laws:
        for outcome, mass in law.items():
            total[outcome] += mass
    return {outcome: mass / len(laws) for outcome, mass in total.items()}


# --- Batches ----------------------------------------------------------------------------------------------------------


def data_sets(values, n):
    """All multisets of n people."""
    return list(itertools.combinations_with_replacement(range(values), n))


def neighbours(values, n):
    """All pairs of data sets in which one person is replaced."""
    for others in data_sets(values, n - 1):
        for a, b in itertools.permutations(range(values), 2):
            yield (a, *others), (b, *others)


def random_mechanism(values, batch, outcomes, seed):
    """From every batch to a law of its own."""
    draw = random.Random(f"mechanism {seed}")
    laws = {}
    for people in data_sets(values, batch):
        weights = [Fraction(draw.randint(1, 12)) for _ in range(outcomes)]
        laws[people] = {i: weight / sum(weights) for i, weight in enumerate(weights)}
    return lambda people: laws[tuple(sorted(people))]


def on_a_batch(mechanism, people, batch):
    """The law of a mechanism on a batch, every one of that size as likely as any other."""
    return mixture(mechanism(chosen) for chosen in itertools.combinations(people, batch))


def profile(mechanism, values, batch, y):
    """The largest divergence of neighbouring batches."""
    return worst(((mechanism(a), mechanism(b)) for a, b in neighbours(values, batch)), y)


# --- Reports ----------------------------------------------------------------------------------------------------------


def response(growth, k):
    """k-ary randomized response whose p/r is `growth`, as a law for each value."""
    total = growth + k - 1
    return [{y: (growth if y == x else Fraction(1)) / total for y in range(k)} for x in range(k)]


def random_randomizer(growth, values, outcomes, seed):
    """Reports of which no probability differs by more than the factor `growth` between two values."""
    draw = random.Random(f"randomizer {seed}")
    while True:
        sizes = [Fraction(draw.randint(1, 6), draw.choice([1, 1, 1, 3, 7])) for _ in range(outcomes)]
        rows = [[size * draw.choice([1, growth, 1 + (growth - 1) / 3]) for size in sizes] for _ in range(values)]
        sums = [sum(row) for row in rows]
        for whole in (max(sums) + (max(sums) - min(sums)) / (growth - 1), max(sums) * Fraction(11, 10)):
            rest = [whole - total for total in sums]
            if min(rest) > 0 and max(rest) <= growth * min(rest):
                return [dict(enumerate(x / whole for x in (*row, left))) for row, left in zip(rows, rest, strict=True)]


def shuffled(reports):
    """The law of how often each outcome comes, of independent reports."""
    law = {(): Fraction(1)}
    for report in reports:
        following = Counter()
        for seen, mass in law.items():
            for outcome, chance in report.items():
                following[tuple(sorted((*seen, outcome)))] += mass * chance
        law = following
    return dict(law)


def shuffled_pairs(randomizer, n):
    """All pairs of neighbouring data sets of n people, as laws of shuffled reports."""
    for a, b in neighbours(len(randomizer), n):
        yield shuffled(randomizer[x] for x in a), shuffled(randomizer[x] for x in b)


def blanket(growth, k, n):
    """The pair of THEORY 2.9, from the numbers of reports that look like the first value, the second, or neither."""
    p = 1 / (growth + k - 1)
    laws = {}, {}
    for first in range(n + 1):
        for second in range(n + 1 - first):
            for neither in range(n + 1 - first - second if k > 2 else 1):
                own = n - first - second - neither
                ways = math.factorial(n)
                for number in (first, second, neither, own):
                    ways //= math.factorial(number)
                mass = ways * p ** (first + second) * ((k - 2) * p) ** neither * (1 - k * p) ** own
                laws[0][first, second, neither] = mass * (growth * first + second + neither) / n
                laws[1][first, second, neither] = mass * (first + growth * second + neither) / n
    return laws


def clones(label, growth, n, neither=Fraction(0)):
    """(A + Δ, C - A + 1 - Δ) against its image: C ~ Bin(n-1, 2 label), A ~ Bin(C, 1/2), Δ of the person's own report.

    With probability `neither` the person's report is none of the two, and is not seen.
    """
    laws = Counter(), Counter()
    seen = 1 - neither
    for c in range(n):
        size = math.comb(n - 1, c) * (2 * label) ** c * (1 - 2 * label) ** (n - 1 - c)
        for a in range(c + 1):
            mass = size * math.comb(c, a) / 2**c
            for law, (left, right) in zip(laws, ((growth, 1), (1, growth)), strict=True):
                law[a + 1, c - a] += mass * seen * left / (growth + 1)
                law[a, c - a + 1] += mass * seen * right / (growth + 1)
                law[a, c - a] += mass * neither
    return laws
