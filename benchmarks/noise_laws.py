"""Chi-square and tail tests of every sampler on 10^8 draws each, at a false-alarm rate of 1e-9 a test, no retries.

Draws are made and counted in chunks. A law is looked at from several sides: where a draw lies, its low-order digits,
two draws together, and how often it lies far out. What is expected of each cell comes from closed forms and sums that
share nothing with the samplers.
"""

import math
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
from noise import ALARM, table
from numpy.typing import NDArray
from scipy import stats

from sitr.mechanisms import exponential_mechanism, gaussian, laplace, permute_and_flip, randomized_response
from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers import draws

DRAWS = 10**8
CHUNK = 10**6
FEWEST = 100  # a cell that is expected less often is joined with others of its kind
FAR = (1e-3, 1e-5, 1e-7)  # about how probable the tails are that are counted

Array = NDArray[Any]
Row = dict[str, Any]


@dataclass
class View:
    """One side of a law: how draws fall into cells, and how probable those are."""

    name: str
    cells: Callable[[Array], Array]
    probabilities: Array
    counts: Array = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(len(self.probabilities), dtype=np.int64)

    def add(self, found: Array) -> None:
        self.counts += np.bincount(self.cells(found), minlength=self.counts.size)

    def p_value(self) -> float:
        expected = np.asarray(self.probabilities) * self.counts.sum()
        few = expected < FEWEST
        observed = np.append(self.counts[~few], self.counts[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        if expected[-1] < FEWEST:  # too little to test by itself: tails are, by an exact test
            observed, expected = observed[:-1], expected[:-1]
        if observed.size < 2:
            raise ValueError(f"{self.name}: {self.counts.sum()} draws are too few to test")
        return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), observed.size - 1))


@dataclass
class Tail:
    """How often a draw lies at least so far out: an exact binomial test, two-sided."""

    threshold: int
    probability: float
    found: int = 0
    count: int = 0

    @property
    def name(self) -> str:
        return f"|x| ≥ {self.threshold}"

    def add(self, found: Array) -> None:
        self.found += int(np.count_nonzero(np.abs(found) >= self.threshold))
        self.count += found.size

    def p_value(self) -> float:
        return float(stats.binomtest(self.found, self.count, self.probability).pvalue)


@dataclass
class Law:
    """A sampler at one parameter, and the sides from which it is looked at."""

    name: str
    draw: Callable[[int], Array]
    sides: list[View | Tail]


# --- Laplace: closed forms --------------------------------------------------------------------------------------------


def laplace_groups(scale: float, width: int, farthest: int) -> Array:
    """P(⌊x/width⌋ = h), h from -farthest to farthest - 1, the ends with all beyond them."""
    h = np.arange(farthest)
    side = -math.expm1(-width / scale) * np.exp(-width / scale * h)
    side[-1] = math.exp(-width / scale * (farthest - 1))
    r = math.exp(-1 / scale)
    return np.concatenate([(side * r / (1 + r))[::-1], side / (1 + r)])


def laplace_residues(scale: float, width: int, base: int) -> Array:
    """P(⌊x/width⌋ mod base = j)."""
    j = np.arange(base)
    r, whole = math.exp(-1 / scale), -math.expm1(-width * base / scale)
    up = np.exp(-width / scale * j) / (1 + r)
    down = r * np.exp(-width / scale * (base - 1 - j)) / (1 + r)
    return -math.expm1(-width / scale) / whole * (up + down)


def laplace_law(scale: Fraction) -> Law:
    b = float(scale)
    width = max(round(b / 16), 1)
    farthest = math.ceil(12 * b / width)
    r = math.exp(-1 / b)
    thresholds = [max(round(b * math.log(2 / (1 + r) / p)), 1) for p in FAR]
    sides: list[View | Tail] = [
        View("place", grouped(width, farthest), laplace_groups(b, width, farthest)),
        *pairs(laplace_groups(b, max(round(b), 1), 2), max(round(b), 1)),
    ]
    for digit in range(math.ceil(math.log(b) / math.log(256)) if b > 256 else 0):
        sides.append(View(f"digit {digit}", residue(256**digit, 256), laplace_residues(b, 256**digit, 256)))
    sides += [Tail(t, 2 / (1 + r) * math.exp(-t / b)) for t in thresholds]
    return Law(f"discrete Laplace {scale}", lambda n: draws.discrete_laplace(scale, n, SYSTEM), sides)


# --- Gaussian: sums over all places -----------------------------------------------------------------------------------


def gaussian_law(variance: Fraction) -> Law:
    v = float(variance)
    sigma = math.sqrt(v)
    reach = math.ceil(9 * sigma) + 2
    x = np.arange(-reach, reach + 1)
    mass = np.exp(-(x.astype(np.float64) ** 2) / (2 * v))
    mass /= mass.sum()
    width = max(round(sigma / 100), 1)
    farthest = math.ceil(6.5 * sigma / width)
    half = max(round(sigma), 1)

    def law_of(cells: Callable[[Array], Array], size: int) -> Array:
        return np.bincount(cells(x), weights=mass, minlength=size)

    place = grouped(width, farthest)
    sides: list[View | Tail] = [
        View("place", place, law_of(place, 2 * farthest)),
        *pairs(law_of(grouped(half, 2), 4), half),
    ]
    if sigma > 256:
        sides.append(View("low byte", residue(1, 256), law_of(residue(1, 256), 256)))
    for p in FAR:
        threshold = max(math.ceil(-float(stats.norm.ppf(p / 2)) * sigma), 1)
        sides.append(Tail(threshold, float(mass[np.abs(x) >= threshold].sum())))
    return Law(f"discrete Gaussian σ² = {variance}", lambda n: draws.discrete_gaussian(variance, n, SYSTEM), sides)


# --- The others -------------------------------------------------------------------------------------------------------


def coin_law(x: Fraction) -> Law:
    p = math.exp(-float(x))
    sides: list[View | Tail] = [View("heads", np.asarray, np.array([1 - p, p]))]
    return Law(f"coin e^-{x}", lambda n: draws.coins(x, n, SYSTEM), sides)


def bernoulli_law(p: Fraction) -> Law:
    sides: list[View | Tail] = [View("heads", np.asarray, np.array([float(1 - p), float(p)]))]
    return Law(f"coin of {p}", lambda n: draws.bernoulli(p, n, SYSTEM), sides)


def geometric_law(rate: Fraction) -> Law:
    width = max(round(float(1 / rate) / 16), 1)
    farthest = math.ceil(14 / float(rate) / width)
    mass = -math.expm1(-width * float(rate)) * np.exp(-width * float(rate) * np.arange(farthest))
    mass[-1] = math.exp(-width * float(rate) * (farthest - 1))
    sides: list[View | Tail] = [View("place", lambda found: np.minimum(found // width, farthest - 1), mass)]
    sides += [Tail(t, math.exp(-float(rate) * t)) for t in (round(-math.log(p) / float(rate)) for p in FAR)]
    return Law(f"geometric e^-{rate}", lambda n: draws.geometric(rate, n, SYSTEM), sides)


def uniform_law(high: int) -> Law:
    most = 1000
    width = -(-high // most)
    cells = -(-high // width)
    sizes = np.full(cells, width / high)
    sizes[-1] = (high - (cells - 1) * width) / high
    sides: list[View | Tail] = [View("place", lambda found: found // width, sizes)]
    if high > most:
        low = np.array([(high - j + 63) // 64 / high for j in range(64)])
        sides.append(View("low bits", residue(1, 64), low))
    return Law(f"uniform below {high}", lambda n: draws.uniform_integers(high, n, SYSTEM), sides)


def patterns(found: Array) -> Array:
    """Which of the 24 orders four numbers are in, row by row."""
    rank = np.argsort(found.reshape(-1, 4), axis=1)
    return np.take(PATTERN, rank @ np.array([64, 16, 4, 1]))


PATTERN = np.zeros(256, dtype=np.int64)
for _place, _order in enumerate(permutations(range(4))):
    PATTERN[int(np.dot(_order, [64, 16, 4, 1]))] = _place


def shuffle_laws(count: int) -> Iterator[tuple[Law, int]]:
    """Shuffles of a million: every four neighbours are in each order alike, and independent of the next four.

    And shuffles of four numbers, one call each.
    """
    even = np.full(24, 1 / 24)
    yield Law("shuffle of 1,000,000", lambda n: draws.shuffled(10**6, SYSTEM), [View("orders", patterns, even)]), count

    def small(n: int) -> Array:
        return np.concatenate([draws.shuffled(4, SYSTEM) for _ in range(n // 4)])

    yield Law("shuffle of 4", small, [View("orders", patterns, even)]), count


def grouped(width: int, farthest: int) -> Callable[[Array], Array]:
    shift = width.bit_length() - 1 if width & (width - 1) == 0 else None

    def cells(found: Array) -> Array:
        groups = found >> shift if shift is not None else found // width
        return np.clip(groups, -farthest, farthest - 1) + farthest

    return cells


def residue(width: int, base: int) -> Callable[[Array], Array]:
    """The digit in a place, for powers of two."""
    shift = width.bit_length() - 1
    return lambda found: (found >> shift) & (base - 1)


def pairs(quarters: Array, width: int) -> list[View]:
    """Two draws together, each in one of four cells."""
    one = grouped(width, 2)

    def cells(found: Array) -> Array:
        each = one(found)
        return 4 * each[0::2][: found.size // 2] + each[1::2]

    return [View("two together", cells, np.outer(quarters, quarters).ravel())]


def laws(quick: bool) -> Iterator[tuple[Law, int]]:
    count = DRAWS // 20 if quick else DRAWS
    for x in (Fraction(1, 3), Fraction(1), Fraction(10)):
        yield coin_law(x), count
    for p in (Fraction(1, 3), Fraction(1, 1000)):
        yield bernoulli_law(p), count
    for rate in (Fraction(1, 3), Fraction(7, 2000)):
        yield geometric_law(rate), count
    for scale in (Fraction(1), Fraction(22, 7), Fraction(1000), 10**6 + Fraction(1, 3)):
        yield laplace_law(scale), count
    for variance in (Fraction(1), Fraction(100), Fraction(10**6), Fraction(10**12, 7)):
        yield gaussian_law(variance), count
    for high in (6, 1000, 2**31 + 11, 10**12):
        yield uniform_law(high), count
    yield from shuffle_laws(count)


def examine(law: Law, count: int) -> list[Row]:
    """Draw in chunks, count, and test."""
    start, done = time.process_time(), 0
    while done < count:
        found = law.draw(min(CHUNK, count - done))
        done += found.size
        for side in law.sides:
            side.add(found)
    seconds = time.process_time() - start
    return [
        {"law": law.name, "side": side.name, "draws": done, "p": side.p_value(), "seconds": seconds}
        for side in law.sides
    ]


# --- Mechanisms from end to end ---------------------------------------------------------------------------------------


def mechanism_laws(quick: bool) -> Iterator[tuple[Law, int]]:
    """What `release` returns, against the law that its event speaks of."""
    n, calls = (10**5, 2000) if quick else (2 * 10**6, 100_000)
    moved = 17
    counts = laplace(epsilon=0.5, sensitivity=1, integers=True, length=n)
    zeros = np.full(n, moved)
    law = laplace_law(Fraction(counts.event.scale))
    yield Law("laplace, whole numbers", lambda _: counts.release(zeros).value - moved, law.sides), n
    floats = laplace(epsilon=0.5, sensitivity=1.0, length=n)
    steps = float(floats.grid.step)
    law = laplace_law(Fraction(floats.event.scale))
    middle = np.full(n, 0.3)
    at = int(np.rint(0.3 / steps))
    yield (
        Law(
            "laplace, floats",
            lambda _: (floats.release(middle).value / steps).astype(np.int64) - at,
            law.sides,
        ),
        n,
    )
    normal = gaussian(rho=0.02, sensitivity=1, integers=True, length=n)
    variance = Fraction(normal.scale) ** 2
    sides = gaussian_law(variance).sides
    yield Law("gaussian, whole numbers", lambda _: normal.release(zeros).value - moved, sides), n
    response = randomized_response(p=0.6, k=5)
    answers = np.full(n, 2)
    mass = np.full(5, 0.1)
    mass[2] = 0.6
    yield (
        Law("randomized response", lambda _: response.release_many(answers).value, [View("answer", np.asarray, mass)]),
        n,
    )
    scores = np.array([0, 3, 2, -1])
    weights = np.exp(0.5 * scores)
    choose = exponential_mechanism(epsilon=1.0, sensitivity=1, candidates=range(4), integers=True)
    flip = permute_and_flip(epsilon=1.0, sensitivity=1, candidates=range(4), integers=True)
    for made, chances in ((choose, weights / weights.sum()), (flip, flip_law(np.exp(0.5 * (scores - 3))))):
        name = "exponential mechanism" if made is choose else "permute-and-flip"
        view: list[View | Tail] = [View("choice", np.asarray, chances)]
        yield Law(name, lambda k, made=made: np.array([made.release(scores).value for _ in range(k)]), view), calls


def flip_law(heads: Array) -> Array:
    """Permute-and-flip by its definition, over all orders."""
    found = np.zeros(heads.size)
    orders = list(permutations(range(heads.size)))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * heads[place] / len(orders)
            left *= 1 - heads[place]
    return found


# --- The command ------------------------------------------------------------------------------------------------------


def run(quick: bool) -> list[Row]:
    """Examine all laws, printing each as it is done; alarms are named at the end."""
    rows: list[Row] = []
    for title, several in (("Samplers", laws(quick)), ("Mechanisms, from release to release", mechanism_laws(quick))):
        print(f"{title}: chi-square and tails, p-values; below {ALARM:g} is an alarm")
        for law, count in several:
            found = examine(law, count)
            rows += found
            tests = ", ".join(f"{row['side']} {row['p']:.3g}{'  ALARM' * (row['p'] < ALARM)}" for row in found)
            shown = [(law.name, f"{found[0]['draws']:.0e}", f"{found[0]['seconds']:.1f} s", tests)]
            print(table((" " * 34, "draws", "CPU", "p"), shown, 1).splitlines()[1], flush=True)
        print()
    alarms = [f"{row['law']}, {row['side']}: p = {row['p']:.2e}" for row in rows if row["p"] < ALARM]
    drawn = sum({row["law"]: row["draws"] for row in rows}.values())
    print(f"{len(rows)} tests on {drawn:.2e} draws; chance of any false alarm {len(rows) * ALARM:.1e}")
    print(f"least p-value {min(row['p'] for row in rows):.2g}; alarms: {'; '.join(alarms) or 'none'}")
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB\n", flush=True)
    return rows
