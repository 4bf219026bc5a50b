"""Choose the engine for a composed law, for one order and then for both; the truth always lies in the bracket."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..losses.gaussian import log_profile
from ..losses.law import UNIT
from .certify import Bounds, certify
from .cut import Cut, cut_at, rough_log_delta, truncated_epsilon
from .lattice import AtomSum, LatticeSum, enumerated, lattice_sum
from .line import GOAL, Grid, Line, choose_grid
from .mix import FINE, Mix, best_tilt, chernoff_delta, chernoff_epsilon, log_kappa, raised_epsilon, saddle_tilt
from .near import Gated, gated_at
from .rare import rare_laws, single_jump
from .split import Split, split_at

logger = logging.getLogger("sitr")

CLOSED = 4e-13  # relative error of the closed forms, checked against 40 digits in the tests
NARROW = 1e-6  # a bracket this narrow, relative to its value, is good enough
ROUNDED = 2.0**-50  # by how much a sum of largest losses, or of masses, may be rounded
RARE = 9e-5  # and this, where events are rare
Way = Callable[[Mix, float, float], "Cut | Split | Gated | None"]
LEAST = 1e-300  # a δ that is known to be under this is not looked at more closely
GENTLE = 1.3  # noise multipliers from which on one step's loss is no longer lognormal-like
HIDDEN = 14.0  # nats that a tilted law may lie above δ for its line to see δ through the rounding
COARSE = 1e-3  # of ε: what smoothing may move it by for a line to be worth its while
MANY = 0.25  # of ε: where a single step makes less, many do
FAIR = 1e-2  # where many steps make the loss, a bracket this narrow is not improved by ways made for a single one
NEARLY = 0.1  # a bracket this narrow tells where to tune
FEW = 4096  # so many atoms are summed rather than transformed


@dataclass(frozen=True)
class Found:
    """A bracket, and how it was found."""

    lower: float
    upper: float
    method: str

    def __post_init__(self) -> None:
        # A number that is none proves nothing.
        object.__setattr__(self, "lower", 0.0 if math.isnan(self.lower) else float(self.lower))
        object.__setattr__(self, "upper", math.inf if math.isnan(self.upper) else float(self.upper))

    def meet(self, other: Found) -> Found:
        """Both hold: keep the better end of each; the method is that of the narrower.

        If they are disjoint one of them is wrong; then only what contains both is safe to say.
        """
        narrower = self if self.upper - self.lower <= other.upper - other.lower else other
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        if lower > upper * (1 + 1e-12):
            logger.error("two engines disagree: %s and %s", self, other)
            return Found(min(self.lower, other.lower), max(self.upper, other.upper), "disagreement")
        return Found(lower, max(upper, lower), narrower.method)

    def worst(self, other: Found) -> Found:
        """The larger of two numbers, each in its bracket."""
        higher = self if self.upper >= other.upper else other
        return Found(max(self.lower, other.lower), higher.upper, higher.method)

    def within(self, relative: float) -> bool:
        return math.isfinite(self.upper) and self.upper - self.lower <= max(relative * self.upper, 1e-10)

    @property
    def narrow(self) -> bool:
        return self.within(NARROW)


def epsilon_of_orders(mixes: list[Mix], delta: float, *, only_chernoff: bool = False) -> Found:
    """Bracket the least ε ≥ 0 with δ(ε) ≤ delta in every order."""
    if only_chernoff:
        found = [Found(0.0, _chernoff(mix, delta, FINE), "Rényi conversion") for mix in mixes]
        return max(found, key=lambda f: f.upper)
    worst = epsilon_of(mixes[0], delta)
    for mix in mixes[1:]:
        if mix.infinite_mass > 0 or _chernoff(mix, delta, enough=worst.lower) > worst.lower:
            worst = worst.worst(epsilon_of(mix, delta, worst.upper if worst.within(RARE) else 0.0))
    return worst


def delta_of_orders(mixes: list[Mix], epsilon: float, *, only_chernoff: bool = False) -> Found:
    """Bracket δ(ε), the larger of the orders."""
    if only_chernoff:
        found = [Found(0.0, _with_infinity(mix, _chernoff_delta(mix, epsilon)), "Rényi conversion") for mix in mixes]
        return max(found, key=lambda f: f.upper)
    worst = delta_of(mixes[0], epsilon)
    for mix in mixes[1:]:
        if mix.infinite_mass > 0 or _chernoff_delta(mix, epsilon) > worst.lower:
            worst = worst.worst(delta_of(mix, epsilon))
    return worst


def _chernoff(mix: Mix, delta: float, tolerance: float = 0.02, enough: float = -math.inf) -> float:
    """An upper bound on ε from the Rényi curve alone (THEORY 3.2); a bound that is `enough` is not improved."""
    if mix.infinite_mass >= delta:
        return math.inf
    if mix.largest <= 0:
        return 0.0
    log_delta = math.log((delta - mix.infinite_mass) / (1 - mix.infinite_mass))
    return _chernoff_at(mix, [best_tilt(mix, log_delta, tolerance, enough), *mix.kinks], log_delta)


def _chernoff_at(mix: Mix, tilts: list[float], log_delta: float) -> float:
    """The best of several tilts, raised for its rounding; and no loss is above the largest."""
    _, c = min((chernoff_epsilon(mix, c, log_delta), c) for c in tilts)
    return max(min(raised_epsilon(mix, c, log_delta), mix.largest), 0.0)


def _chernoff_delta(mix: Mix, epsilon: float) -> float:
    if epsilon >= mix.largest * (1 + ROUNDED):
        return 0.0
    return min(math.exp(min(chernoff_delta(mix, epsilon), 0.0)) * (1 + 1e-6), 1.0)


def _with_infinity(mix: Mix, delta: float) -> float:
    return mix.infinite_mass + (1 - mix.infinite_mass) * delta


def epsilon_of(mix: Mix, delta: float, floor: float = 0.0) -> Found:
    """Bracket the least ε ≥ 0 with δ_mix(ε) ≤ delta, for one order; one that is under `floor` need not be narrow."""
    if mix.infinite_mass > delta * (1 + ROUNDED):
        return Found(math.inf, math.inf, "infinite-loss mass")
    if mix.infinite_mass >= delta:
        largest = max(mix.largest, 0.0)
        known = mix.infinite_mass == delta and mix.events == 1  # one event states its mass; a composed one is rounded
        return Found(0.0 if mix.infinite_mass > delta else largest, largest if known else math.inf, "largest loss")
    finite = (delta - mix.infinite_mass) / (1 - mix.infinite_mass)
    if mix.infinite_mass == 0:
        return _finite_epsilon(mix, finite, floor)
    # The difference is known to a few units of δ only, which matters where δ is nearly all infinite-loss mass.
    slack = 16 * UNIT * delta / (1 - mix.infinite_mass)
    if finite <= slack:
        return Found(0.0, math.inf, "infinite-loss mass")
    safe = _finite_epsilon(mix, finite - slack)
    return Found(_finite_epsilon(mix, finite + slack).lower, safe.upper, safe.method)


def _finite_epsilon(mix: Mix, delta: float, floor: float = 0.0) -> Found:
    """Bracket ε for the law given that every loss is finite."""
    if delta >= 1 or mix.largest <= 0:
        return Found(0.0, 0.0, "largest loss")
    found = _top_atom(mix, delta)
    if found.narrow:
        return found
    closed = _closed_form(mix)
    return found.meet(closed.epsilon(delta) if closed is not None else _numerical(mix, delta, floor))


class ClosedForm:
    """δ(ε) where a closed form is known: Gaussians, and single events."""

    def __init__(self, mix: Mix) -> None:
        self.mix = mix

    def log_delta(self, epsilon: float) -> float:
        if not self.mix.parts:
            return float(log_profile(math.sqrt(self.mix.m2), np.float64(epsilon))) if self.mix.m2 else -math.inf
        value = float(self.mix.parts[0][0].profile(np.float64(epsilon)))
        return math.log(value) if value > 0 else -math.inf

    def upper(self, epsilon: float) -> float:
        """Return an upper bound on δ(ε)."""
        return math.exp(self.log_delta(epsilon - self._shift(epsilon))) * (1 + CLOSED * (4 + self._slack(epsilon)))

    def lower(self, epsilon: float) -> float:
        """Return a lower bound on δ(ε)."""
        return math.exp(self.log_delta(epsilon + self._shift(epsilon))) * (1 - CLOSED * (4 + self._slack(epsilon)))

    def _shift(self, epsilon: float) -> float:
        """The parameters are rounded: so the losses are, by a few units of the largest."""
        largest = self.mix.largest if math.isfinite(self.mix.largest) else 0.0
        return 8 * UNIT * max(abs(epsilon), largest) + sum(loss.blur for loss, _ in self.mix.parts)

    def _slack(self, epsilon: float) -> float:
        """How much a rounding of ε itself can matter: a²/2 in the exponent."""
        return (abs(epsilon) / math.sqrt(self.mix.m2) if self.mix.m2 else 1.0) ** 2 * 1e-3

    def epsilon(self, delta: float) -> Found:
        """Invert by bisection on ln δ."""
        log_delta = math.log(delta)
        if self.upper(0.0) <= delta:
            return Found(0.0, 0.0, "closed form")
        low, high = 0.0, 1.0
        while self.log_delta(high) > log_delta:
            low, high = high, 2 * high
        for _ in range(200):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self.log_delta(middle) > log_delta else (low, middle)
        slope = (self.log_delta(low * (1 - 1e-6)) - self.log_delta(high * (1 + 1e-6))) / (2e-6 * high)
        lower, upper = certify(self, delta, high, slope if 0 < slope < math.inf else 1 / high)
        return Found(lower, upper, "closed form")


def _closed_form(mix: Mix) -> ClosedForm | None:
    single = not mix.m2 and len(mix.parts) == 1 and mix.parts[0][1] == 1 and mix.parts[0][0].closed
    continuous = not mix.parts and math.isinf(mix.gaussian_reach)
    return ClosedForm(mix) if continuous or single else None


def _top_atom(mix: Mix, delta: float) -> Found:
    """ε ≤ the largest loss; and the atom there alone forces ε ≥ L + ln(1 - δ/p)."""
    largest, log_top = mix.largest, mix.log_top_mass
    lower = 0.0
    if log_top > math.log(delta):
        ratio = delta * math.exp(-log_top) * (1 + 1e-12 + 4 * UNIT * mix.events)
        lower = largest + math.log1p(-ratio) if ratio < 1 else 0.0
    return Found(max(lower * (1 - 1e-14), 0.0), largest * (1 + 1e-14), "largest loss")


def _numerical(mix: Mix, delta: float, floor: float) -> Found:
    log_delta = math.log(delta)
    few = enumerated(mix)
    if few is not None and few[0].losses.size <= FEW:
        return _solved(AtomSum(*few), delta, log_delta, "enumeration", 1.0)
    c = min(best_tilt(mix, log_delta), mix.tilt_limit)
    found = Found(0.0, _chernoff_at(mix, [c], log_delta), "Chernoff")
    if found.upper == 0.0:
        return found
    start, log_main = _saddle_guess(mix, c, log_delta)
    on_lattice = lattice_sum(mix, c, log_main)
    if on_lattice is not None:
        found = found.meet(_solved(on_lattice, delta, log_delta, "lattice", c))
    if found.narrow:
        return found
    try:
        grid = choose_grid(mix, c, start, log_delta)
    except OverflowError:  # more nodes than are worth their while: Chernoff stands
        return found
    # Where sampled steps do not make |M| fall by themselves, they are rare: cutting them off beats smoothing.
    if rare_laws(mix) and grid.whisper > 0:
        return _rare(mix, found, delta, c)
    found = found.meet(_on_line(mix, grid, start, delta))
    if found.upper <= floor:
        return found
    if rare_laws(mix) and not found.narrow:
        found = _rare(mix, found, delta, c)
        return found if found.within(RARE) else _harder(mix, found, delta)
    if few is not None and not found.narrow:
        found = found.meet(_solved(AtomSum(*few), delta, log_delta, "enumeration", c))
    return found if found.narrow else _harder(mix, found, delta)


def _rare(mix: Mix, found: Found, delta: float, c: float) -> Found:
    """Keep rare steps off the line, by the ways that suit what makes the loss; the first that is narrow wins.

    Where the tilted law peaks near ε after all, nothing need be kept off. Where many steps or other events make the
    loss, the largest steps are cut off; where a single one does, it is gated if gentle and split off if not.
    """
    log_delta = math.log(delta)
    high = _truncated(mix, delta)
    found = found.meet(Found(0.0, high, "truncated Chernoff"))
    others = mix.without(rare_laws(mix))
    alone = bool(not others.parts and not others.m2)
    if not alone:  # what is released without the rare steps can only cost less
        found = found.meet(Found(epsilon_of(others, delta).lower, math.inf, "without rare steps"))
    if found.within(RARE):
        return found
    high = min(high, found.upper)
    jump = single_jump(mix, delta, found.upper)
    cut, gated, split = ((cut_at, "cut line", high), (gated_at, "gated line", jump), (split_at, "split line", jump))
    if float(mix.log_mgf(c)) - c * found.upper - log_delta < HIDDEN:
        grid = choose_grid(mix, c, found.upper, log_delta)
        if grid.whisper**2 * max(1 + c, -log_delta / found.upper) < COARSE * found.upper:
            found = found.meet(_on_line(mix, grid, found.upper, delta))
    gentle = min(loss.sigma for loss, _ in rare_laws(mix)) > GENTLE
    single = (gated, split) if gentle else (split, gated)
    many = jump < MANY * high
    ways = (cut, *single) if alone == many else (cut,) if many else single
    for way, method, start in ways:
        if found.within(FAIR if method != ways[0][1] and cut in ways else RARE):
            return found
        middle = (found.lower + found.upper) / 2
        found = _by_way(way, method, mix, found, delta, middle if found.within(NEARLY) else start)
    return found


@np.errstate(all="ignore")
def _truncated(mix: Mix, delta: float) -> float:
    """The truncated bound on ε; where it cannot be computed, it proves nothing."""
    try:
        return truncated_epsilon(mix, delta)
    except (ArithmeticError, ValueError):
        return math.inf


@np.errstate(all="ignore")  # where a way overflows it yields no number, and that proves nothing
def _by_way(way: Way, method: str, mix: Mix, found: Found, delta: float, start: float) -> Found:
    """Solve with a way of bounding δ that is tuned near ε; ask again where it was tuned elsewhere."""
    log_delta = math.log(delta)
    epsilon = min(max(start, found.lower), found.upper)
    for _ in range(3):
        bounds = _tuned(way, mix, epsilon, log_delta) if epsilon > 0 else None
        if bounds is None:
            break
        if bounds.upper(0.0) <= delta:
            return found.meet(Found(0.0, 0.0, method))
        proposed = min(max(bounds.guess(log_delta, epsilon), found.lower, epsilon / 4), found.upper)
        lower, upper = certify(bounds, delta, proposed, _slope(bounds, proposed))
        found = found.meet(Found(lower, upper, method))
        if found.within(RARE) or abs(proposed - epsilon) < 0.02 * epsilon:
            break
        epsilon = proposed
    return found


def _tuned(way: Way, mix: Mix, epsilon: float, log_delta: float) -> Cut | Split | Gated | None:
    """Tune a way at ε; where it cannot be, it proves nothing."""
    try:
        return way(mix, epsilon, log_delta)
    except (ArithmeticError, ValueError):
        return None


def _slope(bounds: Bounds, epsilon: float) -> float:
    """About -d ln δ/dε; sets the first step of a search only."""
    near, far = bounds.upper(epsilon * 0.999), bounds.upper(epsilon * 1.001)
    return max(math.log(near / far) / (0.002 * epsilon), 1e-9) if near > far > 0 else 1 / epsilon


def _solved(bounds: AtomSum | LatticeSum, delta: float, log_delta: float, method: str, slope: float) -> Found:
    lower, upper = certify(bounds, delta, bounds.guess(log_delta), slope)
    return Found(lower, upper, method)


def _on_line(mix: Mix, grid: Grid, start: float, delta: float) -> Found:
    line = Line(mix, grid)
    lower, upper = certify(line, delta, line.guess(math.log(delta), max(start, 0.0)), grid.c)
    return Found(lower, upper, line.method)


def _harder(mix: Mix, found: Found, delta: float) -> Found:
    """Retune the tilt at what was found, and smooth less."""
    log_delta = math.log(delta)
    goal = GOAL
    for _ in range(2):
        middle = (found.lower + found.upper) / 2
        grid = choose_grid(mix, min(saddle_tilt(mix, middle), mix.tilt_limit), middle, log_delta, goal)
        found = found.meet(_on_line(mix, grid, middle, delta))
        if found.narrow:
            break
        goal = max(GOAL**2 * found.upper / (found.upper - found.lower), 1e-10)
    return found


def _saddle_guess(mix: Mix, c: float, log_delta: float) -> tuple[float, float]:
    """Return a first ε by the saddle-point formula, and ln of δ e^{cε - K(c)} there; nothing rests on them."""
    log_main = _log_main(mix, c)
    return max((float(mix.log_mgf(c)) + log_main - log_delta) / c, 0.0), log_main


def _log_main(mix: Mix, c: float) -> float:
    """Ln of δ(ε) e^{cε - K(c)} by the saddle-point formula, at the ε that c is the saddle of."""
    h = 0.03
    below, here, above = (float(k) for k in mix.log_mgf(c * np.array([1 - h, 1.0, 1 + h])))
    spread = math.sqrt(max((below - 2 * here + above) / (c * h) ** 2, 0.0))
    return min(-math.log((1 + c) * max(2.5 * c * spread, 1.0)), float(log_kappa(c)))


@np.errstate(all="ignore")  # as in _by_way
def delta_of(mix: Mix, epsilon: float) -> Found:
    """Bracket δ_mix(ε) for one order."""
    if epsilon >= mix.largest:  # which is rounded: between it and what it may be, δ is at most the distance
        distance = max(mix.largest * (1 + ROUNDED) - epsilon, 0.0)
        return Found(mix.infinite_mass, _with_infinity(mix, distance), "largest loss")
    found = Found(0.0, _chernoff_delta(mix, epsilon), "Chernoff")
    if found.upper < LEAST:
        return Found(mix.infinite_mass, _with_infinity(mix, LEAST), "Chernoff")
    for bounds, method in candidates(mix, epsilon):
        at = Found(max(bounds.lower(epsilon), 0.0), min(bounds.upper(epsilon), 1.0), method)
        found = found.meet(at)
        if found.upper - found.lower <= NARROW * found.upper:
            break
    return Found(_with_infinity(mix, found.lower), _with_infinity(mix, found.upper), found.method)


def candidates(mix: Mix, epsilon: float) -> Iterator[tuple[Bounds, str]]:
    """Yield bounds on δ of the finite part, tuned at ε, cheapest first."""
    closed = _closed_form(mix)
    if closed is not None:
        yield closed, "closed form"
        return
    few = enumerated(mix)
    if few is not None and few[0].losses.size <= FEW:
        yield AtomSum(*few), "enumeration"
        return
    c = min(saddle_tilt(mix, epsilon), mix.tilt_limit)
    log_main = _log_main(mix, c)
    on_lattice = lattice_sum(mix, c, log_main)
    if on_lattice is not None:
        yield on_lattice, "lattice"
    log_delta = min(float(mix.log_mgf(c)) + log_main - c * epsilon, -1e-3)
    # A whisper moves ln δ by about w² c(1+c): the width aimed at is that of δ here, not of ε.
    grid = choose_grid(mix, c, epsilon, log_delta, GOAL / max(c * epsilon, 1.0))
    if rare_laws(mix) and epsilon > 0 and grid.whisper > 0:
        rough = rough_log_delta(mix, epsilon)
        hidden = float(mix.log_mgf(c)) - c * epsilon - rough > HIDDEN
        bounds = _tuned(cut_at, mix, epsilon, rough) if hidden else None
        if bounds is not None:
            yield bounds, "cut line"
    line = Line(mix, grid)
    yield line, line.method
    if rare_laws(mix) and epsilon > 0:
        jump = sum(n * float(loss.profile(np.float64(epsilon))) for loss, n in rare_laws(mix))
        for way, method in ((split_at, "split line"), (gated_at, "gated line")):
            bounds = _tuned(way, mix, epsilon, math.log(jump)) if 0 < jump < 1 else None
            if bounds is not None:
                yield bounds, method


def best_bounds(mix: Mix, epsilon: float) -> Bounds:
    """Return the first bounds on δ that `candidates` offers at ε; they hold, if less tightly, at every other ε."""
    return next(candidates(mix, epsilon))[0]
