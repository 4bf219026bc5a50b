"""What a tree of events truly costs: a side from below and one from above, made without the accountant.

Where the law of an event is known, both sides are of that law. A claim (zCDP, CDP, Rényi divergences) is met by many
mechanisms: from below stands one that meets it, and from above the worst under a few (ε,δ) that it implies.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from tests.accounting.outcomes import (
    CELLS,
    EVERYTHING,
    MOST_LOSS,
    MP,
    NOTHING,
    SAME,
    TINY,
    Bounded,
    Double,
    Normal,
    Pairs,
    Side,
    spread,
)
from tests.accounting.trees import CLAIMS, Tree

MOST_TERMS = 400  # points of discrete noise that are summed at 100 digits
MOST_COUNT = 5000  # repetitions, beyond which only Gaussian noise is followed
CANCELLING = 700  # digits, where small differences are taken of numbers near one
LOG_DELTAS = (-0.3, -1.0, -3.0, -7.0, -14.0, -21.0, -28.0, -45.0)  # at which a claim is converted
BOTH = (False, True)
FEW_REPORTS = 6  # of which every number is followed
MOST_PURE = 100.0  # an ε of reports that 100 digits hold


@dataclass(frozen=True)
class Truth:
    """Bounds on what any question has for an answer."""

    below: Side
    above: Side

    def delta(self, epsilon):
        return self.below.delta(epsilon), self.above.delta(epsilon)

    def power(self, x):
        return self.below.power(x), self.above.power(x)


@lru_cache(maxsize=64)
def truth_of(tree: Tree, group: int = 1) -> Truth:
    """The truth of a tree, for a group of people."""
    below, above = (_side(tree, group, side) for side in BOTH)
    return Truth(below, above)


def _side(tree, group, above):
    if tree.kind == "Composed":
        parts = [_repeated(_side(inner, group, above), count) for inner, count in tree.inside]
        return _all(parts, above)
    if tree.kind == "ShuffledEpochs":
        return _repeated(_side(tree.inside[0][0], group, above), tree["epochs"])
    if group > 1:
        return _grown(tree, group, above)
    if tree.kind == "PoissonSampled":
        return _side(tree.inside[0][0], 1, above).sampled(tree["sampling_prob"])
    if tree.kind == "SampledWithoutReplacement":
        rate = MP.mpf(tree["batch"]) / tree["n"]
        return _in_both_orders(_side(tree.inside[0][0], 1, above)).batched(rate)
    if tree.kind == "ShuffledReports":
        return _reports_above(tree) if above else _reports_below(tree)
    if tree.kind in CLAIMS:
        return Side(_implied(tree), None, True) if above else _member(tree)
    return _known(tree, above)


def _all(parts, above):
    """All sides, composed; the smallest first, so that what can stay exact does."""
    total = Side(NOTHING, None, above)
    for part in sorted(parts, key=lambda side: side.pairs.p.size):
        total = total.together(part)
    return total


def _repeated(side, count):
    plain = side.pairs.p.size <= 1 and (side.whole is None or isinstance(side.whole, Normal))
    if count > MOST_COUNT and not plain:
        return Side(EVERYTHING, None, True) if side.above else Side(side.pairs, side.whole, False)
    return side.times(count)


def _known(tree, above):
    """An event whose law is known."""
    kind = tree.kind
    if kind == "Gaussian":
        return Side(NOTHING, Normal(1 / MP.mpf(tree["noise_multiplier"])), above)
    if kind == "Laplace":
        return Side(NOTHING, Double(1 / MP.mpf(tree["noise_multiplier"])), above)
    if kind == "Exponential":
        return _selection(MP.mpf(tree["epsilon"]), above)
    if kind == "DiscreteGaussian":
        return discrete_normal(tree["scale"], tree["sensitivity"], above)
    if kind == "DiscreteLaplace":
        return discrete_double(MP.mpf(tree["scale"]), tree["sensitivity"], above)
    if kind == "RandomizedResponse":
        return Side(_response(MP.mpf(tree["p"]), tree["k"]), None, above)
    if kind in ("PureDP", "ApproximateDP"):
        return Side(black_box(tree["epsilon"], tree.get("delta", 0)), None, above)
    if kind in ("Guarantees", "PrivacyProfile"):
        return Side(guaranteed(tree["points"]), None, above)
    return Side(_table(tree), None, above)


def _table(tree):
    """A law of the user's own; what is left of Q's mass, P cannot produce (THEORY 1.2)."""
    with MP.workdps(CANCELLING):
        rows = [
            (MP.mpf(p), MP.mpf(p) * MP.exp(-MP.mpf(loss)))
            for loss, p in zip(tree["losses"], tree["probabilities"], strict=True)
        ]
        return Pairs.exact(rows, tree["infinite_mass"], max(1 - MP.fsum(q for _, q in rows), 0))


def _response(p, k):
    """k-ary randomized response (THEORY 2.1)."""
    r = (1 - p) / (k - 1)
    return Pairs.exact([(p, r), (r, p), ((k - 2) * r, (k - 2) * r)])


def black_box(epsilon, delta):
    """(ε,δ)-DP and nothing else (THEORY 2.6)."""
    delta = MP.mpf(delta)
    high, low = ((1 - delta) / (1 + MP.exp(sign * MP.mpf(epsilon))) for sign in (-1, 1))
    return Pairs.exact([(high, low), (low, high)], delta, delta)


def _selection(e0, above):
    """A selection of bounded range; from below, randomized response of half of it, which has that range."""
    if above:
        return Side(NOTHING, Bounded(e0), True)
    return Side(black_box(e0 / 2, 0), None, False)


def guaranteed(points):
    """Several (ε,δ) at once: the lower convex hull of points and mirror images in e^ε (THEORY 2.6)."""
    with MP.workdps(CANCELLING):
        chain = _hull(points)
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(chain)] + [MP.mpf(0)]
        masses = [(y, after - before) for (y, _), before, after in zip(chain[1:], slopes, slopes[1:], strict=False)]
        only = chain[-1][1]  # the same for both, as the profile is symmetric
        rounding = MP.mpf(10) ** (50 - CANCELLING)  # what is left of corners on one line
        return Pairs.exact([(y * q, q) for y, q in masses if q > rounding], only, only)


def _hull(points):
    corners = {MP.mpf(0): MP.mpf(1)}
    for epsilon, delta in points:
        e, d = MP.mpf(epsilon), MP.mpf(delta)
        for y, height in ((MP.exp(e), d), (MP.exp(-e), 1 - MP.exp(-e) * (1 - d))):
            corners[y] = min(height, corners.get(y, MP.mpf(2)))
    chain = []
    for corner in sorted(corners.items()):
        while len(chain) >= 2 and _is_above(chain[-2], chain[-1], corner):
            chain.pop()
        chain.append(corner)
    while len(chain) > 1 and chain[-1][1] >= chain[-2][1]:
        chain.pop()
    return chain


def _is_above(a, b, c):
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def discrete_double(scale, shift, above):
    """Discrete Laplace noise (THEORY 2.4)."""
    if shift > MOST_TERMS:
        return _coarse(above)
    r, rest = MP.exp(-1 / scale), -MP.expm1(-1 / scale)
    inner = [(rest * r**j / (1 + r), rest * r ** (shift - j) / (1 + r)) for j in range(1, shift)]
    top, bottom = 1 / (1 + r), r**shift / (1 + r)
    return Side(Pairs.exact([(top, bottom), *inner, (bottom, top)]), None, above)


def discrete_normal(scale, shift, above):
    """Discrete Gaussian noise (THEORY 2.4): points likelier than 1e-60; the rest is told apart, or left out."""
    reach = math.ceil(17 * scale) + 2
    if 2 * reach + shift > MOST_TERMS:
        return _coarse(above)
    scale = MP.mpf(scale)
    weights = {x: MP.exp(-(MP.mpf(x) ** 2) / (2 * scale**2)) for x in range(-reach - shift - 2, reach + shift + 3)}
    total = MP.fsum(weights.values())
    rows = [(weights[x - shift] / total, weights[x] / total) for x in range(-reach, reach + shift + 1)]
    rest = MP.mpf(10) ** -58 if above else 0
    return Side(Pairs.exact(rows, rest, rest), None, above)


def _coarse(above):
    return Side(EVERYTHING if above else NOTHING, None, above)


# --- Crowds -----------------------------------------------------------------------------------------------------------


def _is_symmetric(rows):
    """Whether a pair is the same in both orders; of masses in floats, as far as they tell."""
    if rows.p_only != rows.q_only:
        return False
    if rows.is_exact:
        return all(abs(p - q) <= SAME * q for p, q in zip(sorted(rows.p), sorted(rows.q), strict=True))
    return rows.p.size > 0 and np.allclose(np.sort(rows.p), np.sort(rows.q), rtol=1e-6, atol=0)


def _in_both_orders(side):
    """From above, the worst of both orders: one who is replaced may be either of the two."""
    rows = side.pairs
    if not side.above:
        return side
    if side.whole is not None or not rows.is_exact:
        if not _is_symmetric(rows):
            return Side(EVERYTHING, None, True)
        return side.cut() if side.whole is not None and rows.p.size > 1 else side
    if rows.p.size and _is_symmetric(rows):
        return side
    losses = [abs(loss) for loss in (MP.log(p / q) for p, q in zip(rows.p, rows.q, strict=True))]
    points = [
        (loss, max(rows.delta(loss), rows.swapped.delta(loss))) for loss in (MP.mpf(0), *losses) if loss <= MOST_LOSS
    ]
    return Side(guaranteed(points), None, True)


def _response_of(tree):
    """k and p of reports by randomized response, or of the worst pure ones from two values; None for others."""
    local = tree.inside[0][0]
    if local.kind == "RandomizedResponse":
        return local["k"], MP.mpf(local["p"])
    if local.kind == "PureDP" and local["epsilon"] < MOST_PURE:
        return 2, 1 / (1 + MP.exp(-MP.mpf(local["epsilon"])))
    return None


def _reports_above(tree):
    """The reports themselves, which are only shuffled; of a few, the pair that counts what looks alike (THEORY 2.9)."""
    response, n = _response_of(tree), tree["n"]
    if response is None or n > FEW_REPORTS or response[0] > 4:
        return _side(tree.inside[0][0], 1, True)
    k, p = response
    r = (1 - p) / (k - 1)
    if k > 2 and p < r:
        return _side(tree.inside[0][0], 1, True)
    growth = max(p / r, r / p)
    label, rows = 1 / (growth + k - 1), []
    for first, second, neither in itertools.product(range(n + 1), repeat=3):
        own = n - first - second - neither
        if own < 0 or (k == 2 and neither) or own == n:
            continue
        ways = math.factorial(n)
        for number in (first, second, neither, own):
            ways //= math.factorial(number)
        mass = ways * label ** (first + second) * ((k - 2) * label) ** neither * (1 - k * label) ** own / n
        rows.append((mass * (growth * first + second + neither), mass * (first + growth * second + neither)))
    return Side(Pairs.exact(rows), None, True)


def _reports_below(tree):
    """Reports of the value that differs are counted; all others hold one that it differs from."""
    response, n = _response_of(tree), tree["n"]
    if response is None or n > MOST_TERMS // 2:
        return Side(NOTHING)
    k, p = response
    r = (1 - p) / (k - 1)
    same = [MP.mpf(math.comb(n - 1, x)) * r**x * (1 - r) ** (n - 1 - x) for x in range(n)]
    laws = [[a * (1 - own) + b * own for a, b in zip([*same, 0], [0, *same], strict=True)] for own in (p, r)]
    return Side(Pairs.exact(zip(*laws, strict=True)))


# --- Claims: mechanisms that meet them --------------------------------------------------------------------------------


def _member(tree):
    """A mechanism of which the claim is true."""
    delta = tree.get("delta", 0.0)
    if tree.kind == "Concentrated":
        return _noise_of(min(MP.mpf(tree["tau"]), MP.sqrt(2 * MP.mpf(tree["mu"]))))
    if tree.kind == "ZeroConcentrated":
        pure = Side(black_box(tree["xi"], delta))  # D_α ≤ ξ + ρα, as the two add
        return pure.together(_noise_of(MP.sqrt(2 * MP.mpf(tree["rho"]))))
    outside = Side(black_box(0, delta))
    if tree.inside:
        return outside.together(_side(tree.inside[0][0], 1, False))
    return outside.together(_of_table(tree["points"]))


def _noise_of(m):
    return Side(NOTHING, Normal(m) if m > 0 else None)


def _of_table(points):
    """One of three: Gaussian noise, randomized response, or a rare outcome of large loss."""
    choice = int(1e4 * sum(epsilon for _, epsilon in points)) % 4
    least = min(epsilon for _, epsilon in points)
    if choice == 0 and all(math.isfinite(alpha) for alpha, _ in points):
        return _noise_of(MP.sqrt(min(2 * MP.mpf(epsilon) / MP.mpf(alpha) for alpha, epsilon in points)))
    if choice == 1:
        return Side(black_box(least, 0))
    most = min((epsilon for alpha, epsilon in points if math.isinf(alpha)), default=math.inf)
    loss = min(least + (3.0 if choice == 2 else 0.5), most)
    return Side(_rare_outcome(points, loss))


def _rare_outcome(points, loss):
    """An outcome of loss l, as likely as the table allows, in both orders."""
    low, high = -700.0, math.log(0.5)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _is_met(points, middle, loss) else (low, middle)
    p = MP.exp(low)
    q = p * MP.exp(-loss)
    return Pairs.exact([(p, q), (1 - p, 1 - q)])


def _is_met(points, log_p, loss):
    p, q = math.exp(log_p), math.exp(log_p - loss)
    rest = math.log1p(-p) - math.log1p(-q)
    laws = ((log_p, loss), (math.log1p(-p), rest)), ((log_p - loss, -loss), (math.log1p(-q), -rest))
    return all(_divergence(law, alpha) <= epsilon * (1 - 1e-7) - 1e-15 for law in laws for alpha, epsilon in points)


def _divergence(law, alpha):
    if alpha < 1 + 1e-5:  # divergences do not fall with their order
        alpha = 1 + 1e-5
    if math.isinf(alpha):
        return max(loss for _, loss in law)
    powers = [log_mass + (alpha - 1) * loss for log_mass, loss in law]
    return float(np.logaddexp(*powers)) / (alpha - 1)


def _implied(tree):
    """The pair of a few (ε,δ) that a claim implies (THEORY 3.2); any order gives a true one."""
    orders = [(alpha, bound) for alpha, bound in _orders(tree) if 1 < alpha < math.inf]
    points = [(bound, 0.0) for alpha, bound in _orders(tree) if math.isinf(alpha)]
    for log_delta in LOG_DELTAS if orders else ():
        epsilon = min(_converted(alpha, bound, log_delta) for alpha, bound in orders)
        points.append((max(epsilon, 0.0) * (1 + 1e-9) + 1e-12, math.exp(log_delta)))
    outside = tree.get("delta", 0.0)
    points = [(epsilon, outside + (1 - outside) * delta) for epsilon, delta in points if epsilon <= MOST_LOSS]
    return guaranteed([(epsilon, min(delta * (1 + 1e-12), 1.0)) for epsilon, delta in points]) if points else EVERYTHING


def _orders(tree):
    """(α, D_α) of a claim."""
    alphas = 1 + np.geomspace(1e-3, 1e5, 80)
    if tree.kind == "ZeroConcentrated":
        return [(alpha, tree["xi"] + tree["rho"] * alpha) for alpha in alphas]
    if tree.kind == "Concentrated":
        rho = tree["tau"] ** 2 / 2
        return [(alpha, min(tree["mu"], rho) + (alpha - 1) * rho) for alpha in alphas]
    return () if tree.inside else tree["points"]


def _converted(alpha, bound, log_delta):
    return bound + math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)


# --- Groups -----------------------------------------------------------------------------------------------------------


def _grown(tree, size, above):
    """What a group of people makes of an event (THEORY 4.8); a group costs no less than one of its members."""
    kind = tree.kind
    if kind in ("Gaussian", "Laplace"):
        law = (Normal if kind == "Gaussian" else Double)(size / MP.mpf(tree["noise_multiplier"]))
        return Side(NOTHING, law, above)
    if kind == "DiscreteGaussian":
        return discrete_normal(tree["scale"], size * tree["sensitivity"], above)
    if kind == "DiscreteLaplace":
        return discrete_double(MP.mpf(tree["scale"]), size * tree["sensitivity"], above)
    if kind == "Exponential":
        return _selection(size * MP.mpf(tree["epsilon"]), above)
    if kind == "PoissonSampled" and tree.inside[0][0].kind == "Gaussian" and tree["sampling_prob"] < 1:
        return _sampled_group(tree.inside[0][0]["noise_multiplier"], tree["sampling_prob"], size, above)
    if above:
        return Side(EVERYTHING, None, True)
    if kind == "PureDP" and tree["epsilon"] > 0:  # discrete Laplace noise is pure, and moves as far as people push it
        return discrete_double(1 / MP.mpf(tree["epsilon"]), size, False)
    if kind == "ZeroConcentrated" and not tree.get("delta", 0.0):
        return _noise_of(size * MP.sqrt(2 * MP.mpf(tree["rho"])))
    return _side(tree, 1, False)


def _sampled_group(sigma, rate, size, above):
    """Σ_j Bin(s,q)(j) N(j,σ²) against N(0,σ²), cut into cells of the output."""
    if not 0.2 <= sigma <= 100 or size > 60:
        return _coarse(above)
    edges = np.linspace(-11 * sigma, size + 11 * sigma, 2 * CELLS + 1)
    shares = np.array([math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)])
    masses = np.array([_masses((edges - j) / sigma) for j in range(size + 1)])
    p, q = shares @ masses, masses[0]
    steps = np.arange(size + 1)
    slopes = np.log(np.maximum(shares, TINY)) + (2 * np.outer(edges, steps) - steps**2) / (2 * sigma**2)
    ratios = np.logaddexp.reduce(slopes, axis=1)  # rises with the output
    return Side(_cut(p, q, ratios, above), None, above)


def _masses(z):
    left, right = ndtr(z), ndtr(-z)
    return np.where(z[:-1] > 0, right[:-1] - right[1:], left[1:] - left[:-1])


def _cut(p, q, ratios, above):
    """Cells of the output between whose edges the loss rises from one ratio to the next."""
    kept = (p > 1e-280) & (q > 1e-280) & (np.abs(ratios[:-1]) < 600) & (np.abs(ratios[1:]) < 600)
    if not above:
        return Pairs(p[kept], q[kept])
    narrow = kept & (np.diff(ratios) <= 1e-9)  # merged; what that can lose is told apart
    wide = kept & ~narrow
    p_wide, q_wide = spread(p[wide], q[wide], ratios[:-1][wide], ratios[1:][wide])
    p_all, q_all = np.concatenate([p_wide, p[narrow]]), np.concatenate([q_wide, q[narrow]])
    rest = (1e-26 + side[~kept].sum() + 1e-9 * side[narrow].sum() for side in (p, q))
    some = (p_all > TINY) & (q_all > TINY)
    return Pairs(p_all[some], q_all[some], *map(float, rest))


# --- Mass at infinity -------------------------------------------------------------------------------------------------


def infinite_masses(tree):
    """What P alone, and Q alone, can produce, at 100 digits; of a claim, what it says."""
    if tree.kind == "Composed":
        rows = [(infinite_masses(inner), count) for inner, count in tree.inside]
        return tuple(-MP.expm1(MP.fsum(_log_rest(row[i], count) for row, count in rows)) for i in (0, 1))
    if tree.kind == "PoissonSampled":
        forward, backward = infinite_masses(tree.inside[0][0])
        rate = MP.mpf(tree["sampling_prob"])
        return rate * forward, backward if rate == 1 else MP.mpf(0)
    if tree.kind == "SampledWithoutReplacement":
        both, rate = infinite_masses(tree.inside[0][0]), MP.mpf(tree["batch"]) / tree["n"]
        return both if rate == 1 else (rate * max(both),) * 2
    if tree.kind == "ShuffledEpochs":
        return tuple(-MP.expm1(_log_rest(mass, tree["epochs"])) for mass in infinite_masses(tree.inside[0][0]))
    if tree.kind in CLAIMS:
        own = MP.mpf(tree.get("delta", 0.0))
        inner = max(infinite_masses(tree.inside[0][0])) if tree.inside else MP.mpf(0)
        return (own + inner * (1 - own),) * 2
    if tree.kind in ("ApproximateDP", "Guarantees", "PrivacyProfile", "LossDistribution"):
        pairs = _known(tree, False).pairs
        return pairs.p_only, pairs.q_only
    return MP.mpf(0), MP.mpf(0)


def _log_rest(mass, count):
    return count * MP.log1p(-mass) if mass < 1 else -MP.inf
