"""Choose the engine for a composed law, for one order and then for both; the truth always lies in the bracket.

What is asked for is δ of the whole law; what is composed is the law given a finite loss (`delta.py`). Chernoff's bound
is there at once. Ways that may narrow it are asked in order: a closed form, the sum over all atoms, the common lattice,
the plain line, and the ways for rare steps (`ways.py`). Each says what it costs before anything is made, and is taken
if the purse of the question still holds that much. Where none can be, the wider bracket stands.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from ..losses.law import UNIT
from ..losses.rounding import ROUNDED
from .certify import Bounds, certify
from .closed import closed_form
from .cut import cut_at, rough_log_delta
from .delta import NARROW, Finite, Found, Total
from .lattice import AtomSum, LatticeSum, enumerated, lattice_sum
from .line import GOAL, Line, choose_grid
from .mix import FINE, Mix, best_tilt, chernoff_delta, chernoff_epsilon, log_kappa, raised_epsilon, saddle_tilt
from .near import gated_at
from .rare import rare_laws
from .split import split_at
from .ways import ENOUGH, FAR, RARE, Purse, attempt, narrowed_by_ways, truncated

LEAST = 1e-300  # a δ that is known to be under this is not looked at more closely, and is never said to be 0
HIDDEN = 14.0  # nats that a tilted law may lie above δ for its line to see δ through the rounding
NOTHING = Total(0.0)
UNDER = 1e-5  # nats that a bound lies under what is enough, so that neither its rounding nor a search's end matters
COARSE = 1e-3  # of ε: what smoothing may move it by for a line to be worth its while
Ends = tuple[str, ...]
BOTH: Ends = ("lower", "upper")
FEW = 16_384  # so many atoms are summed rather than transformed


def epsilon_of_orders(
    mixes: list[Mix], delta: Total, *, only_chernoff: bool = False, purse: Purse | None = None, ends: Ends = BOTH
) -> Found[float]:
    """Bracket the least ε ≥ 0 with δ(ε) ≤ delta in every order, all of them paid from one purse.

    An end that is not asked for may say nothing.
    """
    purse = Purse(4 * ENOUGH) if purse is None else purse
    if only_chernoff:
        return Found(0.0, _converted(mixes, delta, purse), "Rényi conversion")
    worst = epsilon_of(mixes[0], delta, purse=purse, ends=ends)
    for mix in mixes[1:]:
        if purse.limit is not None and worst.upper > purse.limit:
            break  # no other order makes a search content
        enough = worst.lower if "lower" in ends else worst.upper  # an order that costs less changes nothing
        if _chernoff(mix, delta, enough=enough) > enough:
            worst = worst.worst(epsilon_of(mix, delta, worst.upper if worst.within(RARE) else 0.0, purse, ends))
    return worst


def rough_epsilon_of_orders(mixes: list[Mix], delta: Total) -> float:
    """Bound ε in every order, at once: by Chernoff, and with the largest of rare steps cut off."""
    return max(min(_chernoff(mix, delta), _truncated(mix, delta)) for mix in mixes)


def _truncated(mix: Mix, delta: Total) -> float:
    finite, _ = mix.failure.left(delta)
    return truncated(mix, finite) if finite > 0 and rare_laws(mix) else math.inf


def _converted(mixes: list[Mix], delta: Total, purse: Purse) -> float:
    """Bound ε by the Rényi curves of all orders; an order that costs less than another need not be known closely."""
    worst, far = 0.0, 0.0 if purse.limit is None else purse.limit / FAR
    for mix in mixes:
        worst = max(worst, _chernoff(mix, delta, FINE, enough=max(worst, far)))
    return worst


def delta_of_orders(
    mixes: list[Mix],
    epsilon: float,
    *,
    only_chernoff: bool = False,
    purse: Purse | None = None,
    least: Total = NOTHING,
) -> Found[Total]:
    """Bracket δ(ε), the larger of the orders, all of them paid from one purse; Chernoff's, only where over `least`."""
    purse = Purse(4 * ENOUGH) if purse is None else purse
    if only_chernoff:
        most = NOTHING
        for mix in mixes:
            most = max(most, mix.failure.total(_chernoff_delta(mix, epsilon, purse, max(most, least))).upper)
        return Found(Total(0.0), most, "Rényi conversion")
    worst = delta_of(mixes[0], epsilon, purse)
    for mix in mixes[1:]:
        if mix.failure.total(_chernoff_delta(mix, epsilon, purse, worst.lower)).upper > worst.lower:
            worst = worst.worst(delta_of(mix, epsilon, purse))
    return worst


@np.errstate(all="ignore")  # where an engine overflows it yields no number, and that proves nothing
def epsilon_of(
    mix: Mix, delta: Total, floor: float = 0.0, purse: Purse | None = None, ends: Ends = BOTH
) -> Found[float]:
    """Bracket the least ε ≥ 0 with δ_mix(ε) ≤ delta, for one order; one that is under `floor` need not be narrow.

    A search is told the upper end, and a lower one only where that is no more work.
    """
    purse = Purse(whole=purse) if purse is None or purse.limit is None else purse
    failure = mix.failure
    if failure.lower > delta:
        return Found(math.inf, math.inf, "infinite-loss mass")
    if failure.lower == failure.upper == delta:
        rounded = ROUNDED if mix.events > 1 else 0.0  # as a law that was made is
        return Found(max(mix.largest_below, 0.0), max(mix.largest, 0.0) * (1 + rounded), "largest loss")
    least, most = failure.left(delta)
    if least <= 0:
        return Found(0.0, math.inf, "infinite-loss mass")
    if least == most:
        return _finite_epsilon(mix, least, floor, purse)
    found = Found(0.0, math.inf, "infinite-loss mass")
    if "upper" in ends:
        safe = _finite_epsilon(mix, least, floor, purse)
        found = Found(0.0, safe.upper, safe.method)
    if "lower" in ends and purse.limit is None:
        found = Found(_finite_epsilon(mix, most, 0.0, _beside(purse)).lower, found.upper, found.method)
    return found


@np.errstate(all="ignore")
def delta_of(mix: Mix, epsilon: float, purse: Purse | None = None) -> Found[Total]:
    """Bracket δ_mix(ε) for one order."""
    return mix.failure.total(_finite_delta(mix, epsilon, Purse(2 * ENOUGH) if purse is None else purse))


def _chernoff(mix: Mix, delta: Total, tolerance: float = 0.02, enough: float = -math.inf) -> float:
    """An upper bound on ε from the Rényi curve alone (THEORY 3.2); a bound that is `enough` is not improved."""
    finite, _ = mix.failure.left(delta)
    if finite <= 0:
        return math.inf
    if mix.largest <= 0 or finite >= 1:
        return 0.0
    log_delta = math.log(finite)
    return _chernoff_at(mix, [best_tilt(mix, log_delta, tolerance, enough), *mix.kinks], log_delta)


def _chernoff_at(mix: Mix, tilts: list[float], log_delta: float) -> float:
    """The best of several tilts, raised for its rounding; and no loss is above the largest."""
    _, c = min((chernoff_epsilon(mix, c, log_delta), c) for c in tilts)
    return max(min(raised_epsilon(mix, c, log_delta), mix.largest * (1 + ROUNDED)), 0.0)


def _chernoff_delta(mix: Mix, epsilon: float, purse: Purse, enough: Total = NOTHING) -> Found[Finite]:
    """Bound δ by the Rényi curve alone, at tilts that the purse pays for; a bound that is `enough` is not improved."""
    if epsilon >= mix.largest * (1 + ROUNDED):
        return Found(Finite(0.0), Finite(0.0), "largest loss")
    finite, _ = mix.failure.left(enough)
    level = math.log(finite) - UNDER if finite > 0 else -math.inf
    bound = math.exp(min(chernoff_delta(mix, epsilon, level, partial(purse.moment, mix)), 0.0)) * (1 + 1e-6)
    return Found(Finite(0.0), Finite(min(max(bound, LEAST), 1.0)), "Chernoff")


def _finite_epsilon(mix: Mix, delta: Finite, floor: float, purse: Purse) -> Found[float]:
    """Bracket ε for the law given that every loss is finite."""
    if delta >= 1 or mix.largest <= 0:
        return Found(0.0, 0.0, "largest loss")
    found = _top_atom(mix, delta)
    if purse.settles(found):
        return found
    closed = closed_form(mix)
    return found.meet(closed.epsilon(delta) if closed is not None else _numerical(mix, delta, floor, purse))


def _top_atom(mix: Mix, delta: Finite) -> Found[float]:
    """ε ≤ the largest loss; and the atom there alone forces ε ≥ L + ln(1 - δ/p)."""
    largest, log_top = mix.largest, mix.log_top_mass
    lower = 0.0
    if log_top > math.log(delta):
        ratio = delta * math.exp(-log_top) * (1 + 1e-12 + 4 * UNIT * mix.events)
        lower = largest + math.log1p(-ratio) if ratio < 1 else 0.0
    return Found(max(lower * (1 - 1e-14), 0.0), largest * (1 + 1e-14), "largest loss")


def _numerical(mix: Mix, delta: Finite, floor: float, purse: Purse) -> Found[float]:
    """Ask the ways in order, cheapest first, until the bracket is narrow or nothing is left to pay with."""
    log_delta = math.log(delta)
    few = enumerated(mix)
    if few is not None and few[0].losses.size <= FEW:
        return _solved(AtomSum(*few), delta, 1.0)
    c = min(best_tilt(mix, log_delta), mix.tilt_limit)
    found = Found(0.0, _chernoff_at(mix, [c], log_delta), "Chernoff")
    if purse.settles(found) or not purse.tunes(mix):
        return found
    start, log_main = _saddle_guess(mix, c, log_delta)
    on_lattice = lattice_sum(mix, c, log_main)
    if on_lattice is not None:
        purse.spend(on_lattice.work)
        found = found.meet(_solved(on_lattice, delta, c))
    if purse.settles(found):
        return found
    line = attempt(lambda: Line(mix, choose_grid(mix, c, start, log_delta)), Purse())
    if line is None:  # more nodes than are worth their while
        return found
    # Where sampled steps do not make |M| fall by themselves, they are rare: cutting them off beats smoothing.
    if rare_laws(mix) and line.grid.whisper > 0:
        return _rare(mix, found, delta, c, purse)
    found = found.meet(_on_line(line, start, delta)) if purse.pays(line) else found
    if found.upper <= floor or purse.settles(found):
        return found
    if rare_laws(mix):
        found = _rare(mix, found, delta, c, purse)
        return found if purse.settles(found, RARE) else _harder(mix, found, delta, purse)
    if few is not None:
        purse.spend(AtomSum(*few).work)
        found = found.meet(_solved(AtomSum(*few), delta, c))
    return found if purse.settles(found) else _harder(mix, found, delta, purse)


def _rare(mix: Mix, found: Found[float], delta: Finite, c: float, purse: Purse) -> Found[float]:
    """Keep rare steps off the line; where the tilted law peaks near ε after all, nothing need be kept off."""
    log_delta = math.log(delta)
    high = truncated(mix, delta)
    found = found.meet(Found(0.0, high, "truncated Chernoff"))
    others = mix.without(rare_laws(mix))
    if others.parts or others.m2:  # what is released without the rare steps can only cost less
        beside = _finite_epsilon(others, delta, 0.0, _beside(purse)).lower
        found = found.meet(Found(beside, math.inf, "without rare steps"))
    if purse.settles(found, RARE):
        return found
    if float(mix.log_mgf(c)) - c * found.upper - log_delta < HIDDEN:
        line = attempt(lambda: _fine_line(mix, c, found.upper, log_delta), purse)
        found = found if line is None else found.meet(_on_line(line, found.upper, delta))
    return narrowed_by_ways(mix, found, delta, min(high, found.upper), purse)


def _beside(purse: Purse) -> Purse:
    """What a second question may cost beside the first: as much, if both together have that; a search has no more."""
    return Purse(whole=purse.whole) if purse.limit is None else purse


def _fine_line(mix: Mix, c: float, epsilon: float, log_delta: float) -> Line | None:
    """Return the plain line, if its smoothing moves ε little enough to be worth its while."""
    grid = choose_grid(mix, c, epsilon, log_delta)
    coarse = grid.whisper**2 * max(1 + c, -log_delta / epsilon) >= COARSE * epsilon
    return None if coarse else Line(mix, grid)


def _solved(bounds: AtomSum | LatticeSum, delta: Finite, slope: float) -> Found[float]:
    lower, upper = certify(bounds, delta, bounds.guess(math.log(delta)), slope)
    return Found(lower, upper, bounds.method)


def _on_line(line: Line, start: float, delta: Finite) -> Found[float]:
    lower, upper = certify(line, delta, line.guess(math.log(delta), max(start, 0.0)), line.grid.c)
    return Found(lower, upper, line.method)


def _harder(mix: Mix, found: Found[float], delta: Finite, purse: Purse) -> Found[float]:
    """Retune the tilt at what was found, and smooth less."""
    log_delta, goal = math.log(delta), GOAL
    for _ in range(2):
        middle = (found.lower + found.upper) / 2
        line = attempt(partial(_saddle_line, mix, middle, log_delta, goal), purse) if purse.tunes(mix) else None
        if line is None:
            break
        found = found.meet(_on_line(line, middle, delta))
        if purse.settles(found):
            break
        goal = max(GOAL**2 * found.upper / (found.upper - found.lower), 1e-10)
    return found


def _saddle_line(mix: Mix, epsilon: float, log_delta: float, goal: float) -> Line:
    return Line(mix, choose_grid(mix, min(saddle_tilt(mix, epsilon), mix.tilt_limit), epsilon, log_delta, goal))


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


def _finite_delta(mix: Mix, epsilon: float, purse: Purse) -> Found[Finite]:
    """Bracket δ(ε) of the law given that every loss is finite; its ways cost what one question may, of the purse."""
    if epsilon >= mix.largest:  # which is rounded: between it and what it may be, δ is at most the distance
        distance = max(mix.largest * (1 + ROUNDED) - epsilon, 0.0)
        return Found(Finite(0.0), Finite(distance), "largest loss")
    found = _chernoff_delta(mix, epsilon, purse)
    if found.upper <= LEAST:
        return found
    for bounds in candidates(mix, epsilon, Purse(whole=purse)):
        lower, upper = max(bounds.lower(epsilon), 0.0), min(bounds.upper(epsilon), 1.0)
        found = found.meet(Found(Finite(lower), Finite(upper), bounds.method))
        if found.upper - found.lower <= NARROW * found.upper:
            break
    if found.upper < LEAST:  # engines may have lost it to underflow, and some loss is above ε
        return Found(Finite(0.0), Finite(LEAST), found.method)
    return found


def candidates(mix: Mix, epsilon: float, purse: Purse) -> Iterator[Bounds]:
    """Yield bounds on δ of the finite part, tuned at ε, cheapest first, while the purse pays for them."""
    closed = closed_form(mix)
    if closed is not None:
        yield closed
        return
    few = enumerated(mix)
    if few is not None and few[0].losses.size <= FEW:
        yield AtomSum(*few)
        return
    if not purse.tunes(mix):
        return
    c = min(saddle_tilt(mix, epsilon), mix.tilt_limit)
    log_main = _log_main(mix, c)
    on_lattice = lattice_sum(mix, c, log_main)
    if on_lattice is not None:
        yield on_lattice
    log_delta = min(float(mix.log_mgf(c)) + log_main - c * epsilon, -1e-3)
    # A whisper moves ln δ by about w² c(1+c): the width aimed at is that of δ here, not of ε.
    line = attempt(lambda: Line(mix, choose_grid(mix, c, epsilon, log_delta, GOAL / max(c * epsilon, 1.0))), Purse())
    rare = bool(rare_laws(mix)) and epsilon > 0
    if rare and line is not None and line.grid.whisper > 0:
        bounds = attempt(lambda: _cut_if_hidden(mix, c, epsilon), purse)
        if bounds is not None:
            yield bounds
    if line is not None and purse.pays(line):
        yield line
    jump = sum(n * float(loss.profile(np.float64(epsilon))) for loss, n in rare_laws(mix)) if rare else 0.0
    for way in (split_at, gated_at) if 0 < jump < 1 else ():
        single = attempt(partial(way, mix, epsilon, math.log(jump)), purse) if purse.tunes(mix) else None
        if single is not None:
            yield single


def _cut_if_hidden(mix: Mix, c: float, epsilon: float) -> Bounds | None:
    """Cut the largest steps off where the tilted law lies so far above δ that a plain line would not see it."""
    least = float(mix.log_mgf(c)) - c * epsilon - HIDDEN
    rough = rough_log_delta(mix, epsilon, min(least, -1e-3))
    return None if rough is None else cut_at(mix, epsilon, rough)
