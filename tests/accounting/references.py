"""Independent high-precision reference values for the accountant's tests.

Run as ``python tests/accounting/references.py [word ...]``: it computes the
cases whose name contains one of the words (all of them without a word) and
writes them into ``references.json`` next to this file, after each case.  It
needs python-flint (ball arithmetic), numpy and scipy, and imports nothing from
the package under test.  The parameters in an event's text are exact decimals
or fractions, not the nearest doubles.

The ways used, none of them a double-precision line integral:

* ``closed``    one event, or Gaussians only: the closed-form privacy profile in
                ball arithmetic (rigorous);
* ``staircase`` finitely many losses: on each step delta is linear in e^eps, so
                the step is found by summing from the top and epsilon is a
                logarithm (rigorous); discrete Gaussians by polynomial powers;
* ``spline``    Laplace, exponential and any finite losses: with w = z + 1/2 the
                transform is a sum of e^{zs} times a polynomial in 1/w, inverted
                term by term into splines (rigorous);
* ``atoms``     Gaussians with finitely many losses: a finite mixture of
                Gaussian profiles (rigorous);
* ``nested``    two or three Poisson-sampled Gaussians: a quadrature of
                delta_{m+1}(e) = E delta_m(e - L), all terms positive, 60 digits;
* ``operator``  2 to 100 Poisson-sampled Gaussians: the same recursion as a
                matrix on Chebyshev panels in log e, in doubles, all positive;
* ``line``      everything else: a vertical line at 90 to 140 digits, done twice
                with other abscissa, period, shift and step; the error is four
                times the difference.
"""

import ast
import json
import math
import random
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy
from flint import acb, acb_mat, arb, arb_poly, ctx
from scipy import special

OUTPUT = Path(__file__).with_suffix(".json")


# --- Events ---------------------------------------------------------------


class Event(NamedTuple):
    """One mechanism, its exact parameters, and how often it runs."""

    kind: str
    args: tuple
    count: int = 1


def parse(text):
    """The list of events written in ``text``, with exact rational parameters."""

    def value(node):
        if isinstance(node, ast.Constant):
            return Fraction(ast.get_source_segment(text, node))
        if isinstance(node, ast.Call):
            return [Event(node.func.id, tuple(value(a) for a in node.args))]
        left, right = value(node.left), value(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Div):
            return left / right
        return [e._replace(count=e.count * int(right)) for e in left]

    return value(ast.parse(text, mode="eval").body)


def ball(x):
    """A ball around an exact number (Fraction, int) or a decimal string."""
    x = Fraction(x)
    return arb(x.numerator) / arb(x.denominator)


# --- Solving for epsilon ---------------------------------------------------


def centre(x):
    """The midpoint of a ball, without its radius."""
    return arb(x.mid())


def certainly(condition):
    """Whether a comparison of balls is proved."""
    return condition is True


def log_ratio(delta_at, eps, delta):
    """log(delta(eps) / delta), minus a large number where delta(eps) is 0."""
    value = delta_at(eps)
    return (value / delta).log() if value > 0 else arb(-10) ** 6


def solve(delta_at, delta, low, high, digits=34):
    """The root of the decreasing ``delta_at(eps) = delta`` and a proved radius.

    Returns (0, 0) when delta(0) <= delta.  Regula falsi with the Illinois
    weights and a bisection every third step; then eps -+ radius is checked to
    lie on both sides, the radius growing until it does.
    """
    low, high = arb(low), arb(high)
    f_low, f_high = (centre(log_ratio(delta_at, e, delta)) for e in (low, high))
    if f_low <= 0:
        return arb(0), 0.0
    while f_high > 0:
        high = 2 * high + 1
        f_high = centre(log_ratio(delta_at, high, delta))
    tiny = arb(10) ** -digits
    for step in range(400):
        width = high - low
        if width < tiny * (high + tiny):
            break
        guess = (low * f_high - high * f_low) / (f_high - f_low)
        if step % 3 == 2:
            guess = (low + high) / 2
        guess = centre(guess)
        f = centre(log_ratio(delta_at, guess, delta))
        if f == 0:
            low = high = guess
            break
        nudge = centre(guess + f.sgn() * (arb(10) ** -6 * width))
        if f > 0:
            low, f_low, f_high = guess, f, f_high / 2
        else:
            high, f_high, f_low = guess, f, f_low / 2
        low, f_low, high, f_high = _pinch(delta_at, delta, nudge, low, f_low, high, f_high)
    return certify(delta_at, delta, centre((low + high) / 2), tiny)


def _pinch(delta_at, delta, at, low, f_low, high, f_high):
    """Narrow a bracket by one more point just beyond the last guess."""
    if not low < at < high:
        return low, f_low, high, f_high
    f = centre(log_ratio(delta_at, at, delta))
    return (at, f, high, f_high) if f > 0 else (low, f_low, at, f)


def certify(delta_at, delta, root, tiny):
    """The root with the smallest tried radius that provably brackets it."""
    radius = tiny * (root + tiny)
    for _ in range(120):
        if certainly(delta_at(root - radius) > delta) and certainly(delta_at(root + radius) < delta):
            return root, float(radius.upper())
        radius = radius * 4
    raise ArithmeticError("the bracket could not be proved: raise the precision")


# --- closed: profiles of single events ---------------------------------------


def normal_cdf(x):
    """Phi as a ball."""
    return (-x / arb(2).sqrt()).erfc() / 2


def positive_part(x):
    """max(x, 0) as a ball."""
    return arb.max(x, arb(0))


def gaussian_profile(mu, eps):
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)  (THEORY 2.3)."""
    return normal_cdf(mu / 2 - eps / mu) - eps.exp() * normal_cdf(-mu / 2 - eps / mu)


def profile(event, eps):
    """delta(eps) of one event run once, in the order P against Q, any real eps."""
    one = arb(1)
    if event.kind == "gaussian":
        return gaussian_profile(1 / ball(event.args[0]), eps)
    if event.kind in ("laplace", "exponential"):
        top = 1 / ball(event.args[0]) if event.kind == "laplace" else ball(event.args[0])
        if eps >= top:
            return arb(0)
        if eps <= -top:
            return -eps.expm1()
        if event.kind == "laplace":
            return -((eps - top) / 2).expm1()
        return ((top / 2).exp() - (eps / 2).exp()) ** 2 / top.expm1()
    infinite, atoms = atoms_of(event)
    return infinite + sum((positive_part(p - eps.exp() * p * (-loss).exp()) for loss, p in atoms), 0 * one)


def sampled_profile(event, eps, order):
    """Poisson sampling of one event, remove or add order (THEORY 2.7)."""
    base, rate = event.args[0][0], ball(event.args[1])
    if order == "add" and certainly(eps > -(1 - rate).log()):
        return arb(0)
    if order == "add":
        return 1 - eps.exp() + eps.exp() * sampled_profile(event, -eps, "remove")
    inner = 1 + eps.expm1() / rate
    return rate * profile(base, inner.log()) if inner > 0 else -eps.expm1()


def closed_delta(events):
    """delta(eps) of one event, or of Gaussians only; the larger order."""
    if all(e.kind == "gaussian" for e in events):
        mu = sum((e.count / ball(e.args[0]) ** 2 for e in events), arb(0)).sqrt()
        return lambda eps: gaussian_profile(mu, eps)
    (event,) = events
    if event.kind != "poisson_sampled":
        return lambda eps: profile(event, eps)
    return lambda eps: arb.max(sampled_profile(event, eps, "remove"), sampled_profile(event, eps, "add"))


# --- staircase: finitely many losses -------------------------------------------


def atoms_of(event):
    """(mass at infinity, [(loss, mass)]) of one run of an event with finitely many losses."""
    a = [ball(x) for x in event.args if isinstance(x, Fraction)]
    nothing = arb(0)
    if event.kind in ("pure_dp", "approximate_dp"):
        infinite = a[1] if event.kind == "approximate_dp" else nothing
        top = (1 - infinite) / (1 + (-a[0]).exp())
        return infinite, [(a[0], top), (-a[0], 1 - infinite - top)]
    if event.kind == "randomized_response":
        values = int(event.args[1]) if len(event.args) > 1 else 2
        lie = (1 - a[0]) / (values - 1)
        loss = (a[0] / lie).log()
        middle = [(arb(0), (values - 2) * lie)] if values > 2 else []
        return nothing, [(loss, a[0]), *middle, (-loss, lie)]
    if event.kind == "discrete_laplace":
        scale, shift = a[0], int(event.args[1])
        r = (-1 / scale).exp()
        inner = [((shift - 2 * j) / scale, (1 - r) * r**j / (1 + r)) for j in range(1, shift)]
        return nothing, [(shift / scale, 1 / (1 + r)), *inner, (-shift / scale, r**shift / (1 + r))]
    raise ValueError(event.kind)


def sampled_atoms(event, order):
    """Atoms of a Poisson-sampled event with finitely many losses, remove or add order."""
    rate = ball(event.args[1])
    _, atoms = atoms_of(event.args[0][0])
    out = []
    for loss, p in atoms:
        q = p * (-loss).exp()
        mixed = (1 - rate) * q + rate * p
        ratio = (mixed / q).log()
        out.append((ratio, mixed) if order == "remove" else (-ratio, q))
    return arb(0), out


def two_point_power(top, bottom, count):
    """Atoms (loss, P, Q) of ``count`` runs of a two-point loss, from the top down."""
    (high, p), (low, r) = top, bottom
    mass, ratio = p**count, r / p
    other, other_ratio = mass * (-high * count).exp(), ratio * (high - low).exp()
    for k in range(count + 1):
        yield (count - k) * high + k * low, mass, other
        factor = arb(count - k) / (k + 1)
        mass, other = mass * factor * ratio, other * factor * other_ratio


def lattice_power(atoms, count):
    """Atoms of ``count`` runs of a loss with equally spaced atoms (top first)."""
    high = atoms[0][0]
    step = high - atoms[1][0]
    power = arb_poly([mass for _, mass in atoms]) ** count
    for k in range(len(power)):
        loss = count * high - k * step
        yield loss, power[k], power[k] * (-loss).exp()


def product(many):
    """All sums of one atom from each list, top first."""
    total = [(arb(0), arb(1), arb(1))]
    for atoms in many:
        total = [(a + b, p * s, q * t) for a, p, q in total for b, s, t in atoms]
    return sorted(total, key=lambda atom: -float(atom[0]))


def staircase_atoms(events, order):
    """(mass at infinity, atoms from the top) of a composition of finite losses."""
    finite, powers = arb(1), []
    for event in events:
        sampled = event.kind == "poisson_sampled"
        infinite, atoms = sampled_atoms(event, order) if sampled else atoms_of(event)
        atoms = sorted(atoms, key=lambda atom: -float(atom[0]))
        finite *= (1 - infinite) ** event.count
        if len(atoms) == 2:
            powers.append(two_point_power(*atoms, event.count))
        else:
            powers.append(lattice_power(atoms, event.count))
    return 1 - finite, (powers[0] if len(powers) == 1 else iter(product([list(p) for p in powers])))


def discrete_gaussian_atoms(event, tail_digits=90):
    """Atoms of a composition of discrete Gaussians; (tail mass cut off, atoms)."""
    sigma, shift, count = ball(event.args[0]), int(event.args[1]), event.count
    reach = int(float(sigma) * math.sqrt(2 * 2.31 * tail_digits)) + 2
    weights = [(-arb(x * x) / (2 * sigma**2)).exp() for x in range(-reach, reach + 1)]
    rest = 4 * (-arb((reach + 1) ** 2) / (2 * sigma**2)).exp()
    total = sum(weights, arb(0)) + arb(0, rest.upper())
    power = arb_poly([w / total for w in weights]) ** count

    def atoms():
        for k in reversed(range(len(power))):
            loss = shift * (2 * arb(k - count * reach) + count * shift) / (2 * sigma**2)
            yield loss, power[k], power[k] * (-loss).exp()

    return count * rest, atoms()


def staircase_epsilon(infinite, atoms, delta):
    """Sum from the top until epsilon = log((P - delta)/Q) lies on the current step.

    None when the mass at infinity alone exceeds delta.
    """
    above, above_q, root = infinite, arb(0), None
    if certainly(delta < infinite):
        return None
    for loss, p, q in atoms:
        if root is not None and certainly(root > loss):
            break
        above, above_q = above + p, above_q + q
        root = ((above - delta) / above_q).log() if certainly(above > delta) else None
    return arb(0) if root is None or certainly(root < 0) else root


def staircase_delta(infinite, atoms, eps):
    """delta(eps) of a list of atoms from the top."""
    above, growth = infinite, eps.exp()
    for loss, p, q in atoms:
        if certainly(loss < eps):
            break
        above = above + positive_part(p - growth * q)
    return above


def staircase_sides(events):
    """(mass at infinity, atoms, mass cut off) of each order of a composition of finite losses."""
    if events[0].kind == "discrete_gaussian":
        cut, atoms = discrete_gaussian_atoms(events[0])
        return [(arb(0), atoms, cut)]
    sampled = any(e.kind == "poisson_sampled" for e in events)
    orders = ("remove", "add") if sampled else ("both",)
    return [(*staircase_atoms(events, order), arb(0)) for order in orders]


# --- spline: Laplace, exponential and finite losses --------------------------------


def rungs(event):
    """(symbol, unit, {multiple of the unit: polynomial in 1/w}) of one run.

    The transform is the sum of e^{z * multiple * unit} * polynomial.
    """
    if event.kind == "laplace":
        top = 1 / event.args[0]
        r = (-ball(top)).exp()
        return "", arb(1), {top: arb_poly([arb(1) / 2, arb(1) / 4]), -top: arb_poly([r / 2, -r / 4])}
    if event.kind == "exponential":
        top = event.args[0]
        half = (ball(top) / 2).exp()
        k = half / (2 * ball(top).expm1())
        return "", arb(1), {top: arb_poly([0, k * half]), -top: arb_poly([0, -k / half])}
    infinite, atoms = atoms_of(event)
    if infinite != 0 or len(atoms) != 2:
        raise ValueError(event)
    if event.kind == "pure_dp":
        return "", arb(1), {s * event.args[0]: arb_poly([m]) for s, (_, m) in zip((1, -1), atoms)}
    return str(event.args), atoms[0][0], {s: arb_poly([m]) for s, (_, m) in zip((1, -1), atoms)}


def rung_power(ladder, count):
    """The ``count``-th power of a ladder of two rungs; rungs below zero are kept."""
    (high, a), (low, b) = ladder.items()
    powers_b = [arb_poly([1])]
    for _ in range(count):
        powers_b.append(powers_b[-1] * b)
    out, power_a = {}, arb_poly([1])
    for i in range(count, -1, -1):
        out[(count - i) * high + i * low] = power_a * powers_b[i] * arb(math.comb(count, i))
        power_a = power_a * a
    return out


def spline_ladder(events):
    """[(s, coefficients in 1/w)] of a composition, only for s > 0."""
    parts = [(symbol, unit, rung_power(ladder, e.count)) for e in events for symbol, unit, ladder in [rungs(e)]]
    units = {symbol: unit for symbol, unit, _ in parts}
    order = list(units)
    total = {(0,) * len(order): arb_poly([1])}
    for symbol, _, ladder in parts:
        axis, merged = order.index(symbol), {}
        for key, poly in total.items():
            for s, factor in ladder.items():
                new = (*key[:axis], key[axis] + s, *key[axis + 1 :])
                term = poly * factor
                merged[new] = merged[new] + term if new in merged else term
        total = merged
    out = []
    for key, poly in total.items():
        s = sum((ball(k) * units[name] for k, name in zip(key, order)), arb(0))
        if not s < 0:
            out.append((s, poly.coeffs()))
    return out


def spline_values(x, size):
    """g_k(x), k < size: the inverse transforms of 1/((w^2 - 1/4) w^k).

    The two highest by their positive series, the others by the stable downward
    recurrence g_{k-2} = g_k/4 + x^{k-1}/(k-1)!.
    """
    size = max(size, 2)
    powers = [arb(1)]
    for k in range(1, size + 1):
        powers.append(powers[-1] * x / k)
    g = [arb(0)] * size
    for k in (size - 1, size - 2):
        term, n = powers[k + 1], k + 1
        while term > 0 and (n < 2 * x or term.log() > g[k].log() - ctx.prec):
            g[k] = g[k] + term
            term, n = term * x * x / (4 * (n + 1) * (n + 2)), n + 2
        g[k] = g[k] + arb(0, (2 * term).upper())
    for k in range(size - 1, 1, -1):
        g[k - 2] = g[k] / 4 + powers[k - 1]
    return g


def spline_delta(events):
    """delta(eps) as a finite sum of splines."""
    ladder = spline_ladder(events)

    def delta_at(eps):
        total = arb(0)
        for s, coefficients in ladder:
            x = s - eps
            if x > 0:
                g = spline_values(x, len(coefficients))
                total += (-x / 2).exp() * sum((c * v for c, v in zip(coefficients, g)), arb(0))
        return total

    return delta_at


# --- atoms: Gaussians with finitely many losses ---------------------------------------


def mixture_delta(events):
    """delta(eps) = P(infinity) + sum over the finite losses of p delta_Gauss(eps - loss)."""
    smooth = [e for e in events if e.kind == "gaussian"]
    infinite, atoms = staircase_atoms([e for e in events if e.kind != "gaussian"], "both")
    atoms, gauss = list(atoms), closed_delta(smooth)
    return lambda eps: infinite + sum((p * gauss(eps - loss) for loss, p, _ in atoms), arb(0))


# --- nested: two or three Poisson-sampled Gaussians --------------------------------------


class Nested:
    """delta of ``count`` Poisson-sampled Gaussians (remove order) by positive quadrature.

    delta_{m+1}(e) = E delta_m(e - L).  With l = log(1-q), every loss is above l,
    so delta_m(e) = 1 - e^e below m l; beyond the x where that begins, the
    expectation is in closed form.  Below it x = X - log(1 + e^u), so that log e is
    smooth in u, and the trapezoid rule in u converges geometrically.
    """

    def __init__(self, sigma, rate, count, step, reach):
        self.sigma, self.rate, self.count, self.step, self.reach = ball(sigma), ball(rate), count, ball(step), reach
        self.least = (1 - self.rate).log()
        limit = int(float(reach / float(step)))
        self.nodes = []
        for k in range(-limit, limit // 2 + 1):
            growth = (k * self.step).exp()
            self.nodes.append((growth.log1p(), growth / (1 + growth) * self.step))

    def tails(self, x):
        """(P, Q) of the half line above x."""
        q = normal_cdf(-x / self.sigma)
        return (1 - self.rate) * q + self.rate * normal_cdf((1 - x) / self.sigma), q

    def point(self, loss):
        """The x with that loss."""
        return ball(Fraction(1, 2)) + self.sigma**2 * (loss.expm1() / self.rate + 1).log()

    def delta(self, eps, count=None):
        """delta_count(eps)."""
        count = self.count if count is None else count
        if eps <= count * self.least:
            return -eps.expm1()
        edge = self.point(eps - (count - 1) * self.least)
        above_p, above_q = self.tails(edge)
        total = above_p - eps.exp() * above_q
        if count == 1:
            return total
        norm = 1 / (self.sigma * (2 * arb.pi()).sqrt())
        for offset, weight in self.nodes:
            x = edge - offset
            ratio = 1 + self.rate * ((x - ball(Fraction(1, 2))) / self.sigma**2).expm1()
            density = norm * (-((x / self.sigma) ** 2) / 2).exp() * ratio * weight
            if density > arb(10) ** -60:
                total += density * self.delta(eps - ratio.log(), count - 1)
        return total


# --- operator: up to a hundred Poisson-sampled Gaussians, in doubles -----------------------


class Operator:
    """The recursion of ``Nested`` as a matrix on Chebyshev panels in s = log(e - m l).

    D_m(e') = delta_m(e' + m l), l = log(1-q), obeys D_{m+1} = A D_m + b - e^{ml} c
    with one fixed matrix.  Every quantity is positive, so doubles keep relative accuracy.
    """

    def __init__(self, sigma, rate, top, panel, order, quadrature):
        self.sigma, self.rate, self.least = sigma, rate, math.log1p(-rate)
        self.odds = rate / (1 - rate)
        bottom = math.log(rate) - 9.5 / sigma - 1
        count = math.ceil((math.log(top) - bottom) / panel)
        self.edges = numpy.linspace(bottom, math.log(top), count + 1)
        angles = numpy.pi * (2 * numpy.arange(order) + 1) / (2 * order)
        self.unit = -numpy.cos(angles)
        self.weights = (-1.0) ** numpy.arange(order) * numpy.sin(angles)
        self.gauss = numpy.polynomial.legendre.leggauss(quadrature)
        half = numpy.diff(self.edges)[:, None] / 2
        self.grid = numpy.exp((self.edges[:-1, None] + half + half * self.unit).ravel())
        self.order = order
        rows = [self.row(e) for e in self.grid]
        self.matrix = numpy.array([r[0] for r in rows])
        self.above_sampled, self.above_q = numpy.array([r[1:] for r in rows]).T

    def point(self, excess):
        """The x whose loss is ``excess`` above the least one."""
        return 0.5 + self.sigma**2 * (numpy.log(numpy.expm1(excess)) - math.log(self.odds))

    def basis(self, e):
        """(panel index, Lagrange basis) at points e of the grid's range."""
        s = numpy.log(e)
        panel = numpy.clip(numpy.searchsorted(self.edges, s) - 1, 0, len(self.edges) - 2)
        left, right = self.edges[panel], self.edges[panel + 1]
        gap = (2 * s - left - right)[:, None] / (right - left)[:, None] - self.unit
        gap[gap == 0] = 1e-300
        terms = self.weights / gap
        return panel, terms / terms.sum(axis=1, keepdims=True)

    def row(self, e):
        """One row of the matrix, and the closed-form masses (sampled part of P, Q) beyond its range."""
        first = math.exp(self.edges[0])
        row = numpy.zeros(len(self.grid))
        if e <= first * (1 + 1e-12):
            return row, self.rate, 1.0
        edge = float(self.point(e - first))
        below = numpy.exp(self.edges[1:-1])
        breaks = self.point(e - below[below < e * (1 - 1e-12)])
        low = min(-9.5 * self.sigma, edge - 1)
        marks = numpy.unique(numpy.concatenate([breaks[breaks > low], [low, edge]]))
        marks = numpy.concatenate(
            [numpy.linspace(a, b, 1 + math.ceil((b - a) / self.sigma))[:-1] for a, b in zip(marks, marks[1:])]
            + [[edge]]
        )
        half, middle = numpy.diff(marks)[:, None] / 2, (marks[1:] + marks[:-1])[:, None] / 2
        x = (middle + half * self.gauss[0]).ravel()
        excess = numpy.log1p(self.odds * numpy.exp((x - 0.5) / self.sigma**2))
        density = numpy.exp(-((x / self.sigma) ** 2) / 2 + excess + self.least) / (self.sigma * math.sqrt(2 * math.pi))
        weight = (half * self.gauss[1]).ravel() * density
        panel, basis = self.basis(numpy.maximum(e - excess, first))
        numpy.add.at(row.reshape(-1, self.order), panel, weight[:, None] * basis)
        q = special.ndtr(-edge / self.sigma)
        return row, self.rate * special.ndtr((1 - edge) / self.sigma), q

    def first(self):
        """D_1 on the grid, in closed form."""
        x = self.point(self.grid)
        sampled = self.rate * special.ndtr((1 - x) / self.sigma)
        return sampled - (1 - self.rate) * numpy.expm1(self.grid) * special.ndtr(-x / self.sigma)

    def profile(self, count):
        """A function eps -> delta_count(eps)."""
        values = self.first()
        for m in range(1, count):
            closed = self.above_sampled - (1 - self.rate) * numpy.expm1(self.grid + m * self.least) * self.above_q
            values = self.matrix @ values + closed

        def delta_at(eps):
            panel, basis = self.basis(numpy.array([eps - count * self.least]))
            return float(basis[0] @ values.reshape(-1, self.order)[panel[0]])

        return delta_at


def operator_epsilon(event, delta, panel, order, quadrature):
    """epsilon of ``count`` Poisson-sampled Gaussians by bisection on the operator's profile."""
    sigma, rate = float(event.args[0][0].args[0]), float(event.args[1])
    low, high = 0.0, float(closed_top(event, delta))
    delta_at = Operator(sigma, rate, high * 1.05 + 0.01, panel, order, quadrature).profile(event.count)
    if delta_at(low) <= float(delta):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > float(delta) else (low, middle)
    return (low + high) / 2


def closed_top(event, delta):
    """An upper bound: count times the single epsilon at delta/count (basic composition)."""
    one = closed_delta([event._replace(count=1)])
    return event.count * solve(one, delta / event.count, 0, 1)[0]


# --- line: a vertical line at high precision ----------------------------------------------


def trapezoid_terms(event, order, c, nats, tilt):
    """(weights, exponents): the transform of a sampled Gaussian as sum w e^{z e}.

    Trapezoid rule in x on the line Im x = y inside the strip |Im x| < pi sigma^2
    where log r is analytic, r = 1 - q + q e^{(2x-1)/2 sigma^2}; there the integrand
    does not oscillate.  For small sigma the real line and a step fit for the normal
    density serve, as the zero of r lies far out in both normal tails.
    """
    sigma, rate = ball(event.args[0][0].args[0]), ball(event.args[1])
    width = float(sigma)
    if width < 0.1:
        y, step = 0.0, width * 2 * math.pi / math.sqrt(2 * nats) * tilt
    else:
        angle = min(1.4, 1.5 / width) * tilt
        if order == "add":
            angle = min(angle, 1.2 / math.sqrt(c))
        y = angle * width**2
        step = 2 * math.pi * y / (nats + 2 * y * y / width**2)
    reach = width * (math.sqrt(2 * nats) + 1)
    low, high = -reach, (1 + c if order == "remove" else 0) + reach
    weights, exponents = [], []
    norm = ball(Fraction(step)) / (sigma * (2 * arb.pi()).sqrt())
    height = Fraction(y if order == "remove" else -y)
    for k in range(math.floor(low / step), math.ceil(high / step) + 1):
        x = acb(ball(k * Fraction(step)), ball(height))
        ratio = 1 + rate * ((x - acb(0.5)) / sigma**2).expm1()
        density = norm * (-((x / sigma) ** 2) / 2).exp()
        weights.append(density * ratio if order == "remove" else density)
        exponents.append(ratio.log() if order == "remove" else -ratio.log())
    return weights, exponents


def legendre_terms(event, order, size):
    """(weights, exponents) of the continuous part of a sampled Laplace, by Gauss-Legendre."""
    top, rate = 1 / ball(event.args[0][0].args[0]), ball(event.args[1])
    weights, exponents = [], []
    for k in range(size):
        node, weight = arb.legendre_p_root(size, k, weight=True)
        loss = node * top
        ratio = 1 + rate * loss.expm1()
        mass = weight * top * (-(loss + top) / 2).exp() / 4
        weights.append(acb(mass * ratio if order == "remove" else mass))
        exponents.append(acb(ratio.log() if order == "remove" else -ratio.log()))
    return weights, exponents


def end_terms(event, order):
    """(weights, exponents) of the two atoms of a sampled Laplace."""
    top, rate = 1 / ball(event.args[0][0].args[0]), ball(event.args[1])
    weights, exponents = [], []
    for loss, mass in ((top, (-top).exp() / 2), (-top, arb(1) / 2)):
        ratio = 1 + rate * loss.expm1()
        weights.append(acb(mass * ratio if order == "remove" else mass))
        exponents.append(acb(ratio.log() if order == "remove" else -ratio.log()))
    return weights, exponents


def sampled_terms(event, order, c, nats, tilt):
    """(weights, exponents) of any Poisson-sampled event handled on the line."""
    if event.args[0][0].kind == "gaussian":
        return trapezoid_terms(event, order, c, nats, tilt)
    smooth, ends = legendre_terms(event, order, int(2 * nats)), end_terms(event, order)
    return smooth[0] + ends[0], smooth[1] + ends[1]


def plain_transform(event):
    """z -> M(z) of one run of an event that is not sampled."""
    if event.kind == "gaussian":
        half = 1 / (2 * ball(event.args[0]) ** 2)
        return lambda z: (half * z * (z + 1)).exp()
    if event.kind == "laplace":
        top = 1 / ball(event.args[0])
        r = (-top).exp()

        def laplace(z):
            up = (z * top).exp()
            down, w = r / up, z + acb(0.5)
            return (up + down) / 2 + (up - down) / (4 * w)

        return laplace
    _, atoms = atoms_of(event)
    return lambda z: sum((p * (z * loss).exp() for loss, p in atoms), acb(0))


def log_transform(events, order, c, nats=40):
    """K(c) = sum of n log M(c) at a real c > 0."""
    total = arb(0)
    for event in events:
        if event.kind == "poisson_sampled":
            terms = sampled_terms(event, order, float(c), nats, 1.0)
            value = sum((w * (acb(c) * e).exp() for w, e in zip(*terms)), acb(0)).real
        else:
            value = plain_transform(event)(acb(c)).real
        total += event.count * value.log()
    return total


def chernoff(events, order, delta):
    """(c, epsilon): the best Chernoff bound (K(c) + log kappa(c) - log delta)/c over a search in log c."""
    with_kappa = {}

    def bound(log_c):
        c = arb(2) ** (arb(log_c) / 64)
        if log_c not in with_kappa:
            kappa = c * c.log() - (1 + c) * (1 + c).log()
            with_kappa[log_c] = float(((log_transform(events, order, c) + kappa - delta.log()) / c).mid())
        return with_kappa[log_c]

    step, at = 256, 0
    while step >= 8:
        best = min((at - step, at, at + step), key=bound)
        at, step = (best, step) if best != at else (at, step // 2)
    return 2 ** (at / 64), bound(at)


class Line:
    """delta(eps) by the trapezoid sum on Re z = c with period T.

    The sum is delta plus the aliases sum_m delta(eps + mT) e^{cmT}, m != 0; T is
    set so that they are below delta e^{-nats}.
    """

    rows, columns = 16, 16

    def __init__(self, events, order, delta, c, nats, stretch=1.1, tilt=1.0, stop=None, most=400_000):
        self.events, self.order, self.c, self.nats, self.tilt = events, order, c, nats, tilt
        depth = nats / 2 - float(delta.log().mid())
        k_c = {f: float(log_transform(events, order, arb(f * c)).mid()) for f in (1.1, 1.3, 1.6, 2, 3)}
        above = min((k + depth) / ((f - 1) * c) for f, k in k_c.items())
        self.step = ball(Fraction(2 * math.pi / (stretch * max(depth / c, above))))
        self.values = self.collect(nats if stop is None else stop, most)

    def collect(self, stop, most):
        """g_k = e^{K(z_k)} / (z_k (z_k + 1)) until a whole block is below e^{-stop} g_0."""
        makers = [self.maker(e) for e in self.events]
        values, size, block = [], self.rows * self.columns, 0
        while len(values) < most:
            nodes = [acb(ball(Fraction(self.c)), k * self.step) for k in range(block * size, (block + 1) * size)]
            product = [1 / (z * (z + 1)) for z in nodes]
            for event, make in zip(self.events, makers):
                product = [p * m**event.count for p, m in zip(product, make(nodes, block))]
            values += product
            block += 1
            largest = max(float((abs(v).mid() / abs(values[0]).mid()).log()) if v != 0 else -1e9 for v in map(centred, product))
            if largest < -stop:
                break
        return values

    def maker(self, event):
        """(nodes, block number) -> the transform of the event at the nodes."""
        if event.kind != "poisson_sampled":
            transform = plain_transform(event)
            return lambda nodes, block: [transform(z) for z in nodes]
        return self.matrix_maker(*sampled_terms(event, self.order, self.c, self.nats, self.tilt))

    def matrix_maker(self, weights, exponents):
        """Sums of w e^{ze} over equidistant z by one matrix product per block."""
        start = [w * (acb(ball(Fraction(self.c))) * e).exp() for w, e in zip(weights, exponents)]
        phase = [(acb(0, 1) * self.step * e).exp() for e in exponents]
        table = [[acb(1)] * len(phase)]
        for _ in range(self.rows):
            table.append([centred(a * b) for a, b in zip(table[-1], phase)])
        stride, state = table.pop(), [start]
        left = acb_mat(table)

        def make(nodes, block):
            current, columns = state[0], []
            for _ in range(self.columns):
                columns.append(current)
                current = [centred(a * b) for a, b in zip(current, stride)]
            state[0] = current
            out = left * acb_mat(columns).transpose()
            return [out[j, b] for b in range(self.columns) for j in range(self.rows)]

        return make

    def delta(self, eps):
        """The sum at eps, with the largest dropped term as its radius."""
        turn = (acb(0, -1) * self.step * eps).exp()
        total, phase = self.values[0] / 2, acb(1)
        for value in self.values[1:]:
            phase = centred(phase * turn)
            total += centred(value * phase)
        return centre((total.real * (-ball(Fraction(self.c)) * eps).exp() * self.step / arb.pi()))


def centred(z):
    """A complex ball's midpoint: on the line the error is judged by a second line."""
    return acb(centre(z.real), centre(z.imag))


class AtomsOutLine(Line):
    """A power of a sampled Laplace, with the terms of at most one continuous factor taken out.

    M = A + I, atoms and continuous part; the line carries M^n - A^n - n A^{n-1} I,
    which decays like t^-4, the rest is summed in closed form.
    """

    def maker(self, event):
        size = 900 if self.tilt == 1.0 else 1000
        ends = self.matrix_maker(*end_terms(event, self.order))
        smooth = self.matrix_maker(*legendre_terms(event, self.order, size))
        n = event.count

        def make(nodes, block):
            pairs = zip(ends(nodes, block), smooth(nodes, block))
            return [(a + i) ** n - a**n - n * a ** (n - 1) * i for a, i in pairs]

        self.events = [event._replace(count=1)]
        return make
