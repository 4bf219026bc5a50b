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
import functools
import itertools
import json
import math
import random
import sys
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
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
        if isinstance(node, ast.Call) and node.func.id == "shuffled_epochs":
            inside, epochs = (value(a) for a in node.args)
            return [e._replace(count=e.count * int(epochs)) for e in inside]
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
    return (value / delta).log() if value > 0 else -(arb(10) ** 6)


def solve(delta_at, delta, low, high, digits=34):
    """The root of the decreasing ``delta_at(eps) = delta`` and a proved radius.

    Returns (0, 0) when delta(0) <= delta.  Secant steps on log delta, a bisection
    where one leaves the bracket or the last step did not halve it; at the end
    eps -+ radius is checked to lie on both sides, the radius growing until it does.
    """
    low, high = arb(low), arb(high)
    if centre(log_ratio(delta_at, low, delta)) <= 0:
        return arb(0), 0.0
    while (f := centre(log_ratio(delta_at, high, delta))) > 0:
        low, high = high, 2 * high + 1
    tiny, points, bisect = arb(10) ** -digits, [(high, f)], True
    while high - low > tiny * (high + tiny) and (len(points) < 2 or abs(points[1][0] - points[0][0]) > tiny * high):
        guess = (low + high) / 2
        if not bisect:
            (a, f_a), (b, f_b) = points
            step = b - f_b * (b - a) / (f_b - f_a)
            guess = centre(step) if low < step < high else guess
        f, width = centre(log_ratio(delta_at, guess, delta)), high - low
        low, high = (guess, high) if f > 0 else (low, guess)
        points = [points[-1], (guess, f)]
        bisect = abs(f) > 1 and high - low > width / 2
        if f == 0:
            break
    return certify(delta_at, delta, centre(points[-1][0]), tiny)


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
    if event.kind == "sampled_without_replacement":  # for eps >= 0 (THEORY 2.8)
        (base,), n, batch = event.args
        rate = ball(batch) / ball(n)
        return rate * profile(base, (1 + eps.expm1() / rate).log())
    infinite, atoms = atoms_of(event)
    return infinite + sum((positive_part(p - eps.exp() * p * (-loss).exp()) for loss, p in atoms), arb(0))


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


@functools.lru_cache(maxsize=1)
def discrete_gaussian_power(event, bits, tail_digits=90):
    """(reach, mass cut off, masses of the sum of all noises) of a composition of discrete Gaussians."""
    sigma = ball(event.args[0])
    reach = int(float(sigma) * math.sqrt(2 * 2.31 * tail_digits)) + 2
    weights = [(-arb(x * x) / (2 * sigma**2)).exp() for x in range(-reach, reach + 1)]
    rest = 4 * (-arb((reach + 1) ** 2) / (2 * sigma**2)).exp()
    mass = sum(weights, arb(0)) + arb(0, rest.upper())
    return reach, event.count * rest, arb_poly([w / mass for w in weights]) ** event.count


def discrete_gaussian_atoms(event):
    """(mass cut off, atoms from the top) of a composition of discrete Gaussians."""
    reach, cut, power = discrete_gaussian_power(event, ctx.prec)
    sigma, shift, count = ball(event.args[0]), int(event.args[1]), event.count

    def atoms():
        for k in reversed(range(len(power))):
            loss = shift * (2 * arb(k - count * reach) + count * shift) / (2 * sigma**2)
            yield loss, power[k], power[k] * (-loss).exp()

    return cut, atoms()


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
        return "", arb(1), {s * event.args[0]: arb_poly([m]) for s, (_, m) in zip((1, -1), atoms, strict=False)}
    return str(event.args), atoms[0][0], {s: arb_poly([m]) for s, (_, m) in zip((1, -1), atoms, strict=False)}


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


@functools.lru_cache(maxsize=1)
def spline_ladder(events, bits):
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
        s = sum((ball(k) * units[name] for k, name in zip(key, order, strict=False)), arb(0))
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
        term, n, least = powers[k + 1], k + 1, centre(powers[k + 1]) * arb(2) ** -ctx.prec
        while n < x or term > least:
            g[k] = g[k] + term
            term, n = term * x * x / (4 * (n + 1) * (n + 2)), n + 2
        g[k] = g[k] + arb(0, (2 * term).upper())
    for k in range(size - 1, 1, -1):
        g[k - 2] = g[k] / 4 + powers[k - 1]
    return g


def spline_delta(events):
    """delta(eps) as a finite sum of splines."""
    ladder = spline_ladder(tuple(events), ctx.prec)

    def delta_at(eps):
        total = arb(0)
        for s, coefficients in ladder:
            x = s - eps
            if x > 0:
                g = spline_values(x, len(coefficients))
                total += (-x / 2).exp() * sum((c * v for c, v in zip(coefficients, g, strict=False)), arb(0))
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
            [numpy.linspace(a, b, 1 + math.ceil((b - a) / self.sigma))[:-1] for a, b in itertools.pairwise(marks)]
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
    panel /= max(1.0, sigma * event.count**0.25)
    top = (high - event.count * math.log1p(-rate)) * 1.01
    delta_at = Operator(sigma, rate, top, panel, order, quadrature).profile(event.count)
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
    smooth, ends = legendre_terms(event, order, int(3 * nats)), end_terms(event, order)
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
            value = sum((w * (acb(c) * e).exp() for w, e in zip(*terms, strict=False)), acb(0)).real
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


def step_down(delta_at, delta, high, first):
    """A low end with delta(low) > delta, by doubling steps down from a high end; 0 if there is none."""
    width = first
    while high - width > 0:
        if delta_at(arb(high - width)) > delta:
            return high - width
        width *= 2
    return 0.0


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
            for event, make in zip(self.events, makers, strict=False):
                product = [p * m**event.count for p, m in zip(product, make(nodes, block), strict=False)]
            values += product
            block += 1
            largest = max(
                float((abs(v).mid() / abs(values[0]).mid()).log()) if v != 0 else -1e9 for v in map(centred, product)
            )
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
        start = [w * (acb(ball(Fraction(self.c))) * e).exp() for w, e in zip(weights, exponents, strict=False)]
        phase = [(acb(0, 1) * self.step * e).exp() for e in exponents]
        table = [[acb(1)] * len(phase)]
        for _ in range(self.rows):
            table.append([centred(a * b) for a, b in zip(table[-1], phase, strict=False)])
        stride, state = table.pop(), [start]
        left = acb_mat(table)

        def make(nodes, block):
            current, columns = state[0], []
            for _ in range(self.columns):
                columns.append(current)
                current = [centred(a * b) for a, b in zip(current, stride, strict=False)]
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
        return centre(total.real * (-ball(Fraction(self.c)) * eps).exp() * self.step / arb.pi())


def centred(z):
    """A complex ball's midpoint: on the line the error is judged by a second line."""
    return acb(centre(z.real), centre(z.imag))


LINES = ((1.1, 1.0, 0), (1.35, 0.8, 20))  # stretch of the period, tilt of the x-line, more nats


def line_epsilon(events, order, delta, nats, factors, **limits):
    """(epsilon, error) from two lines with other abscissae, periods, shifts and steps."""
    best_c, bound = chernoff(events, order, delta)
    roots = []
    for factor, (stretch, tilt, extra) in zip(factors, LINES, strict=True):
        line = Line(events, order, delta, best_c * factor, nats + extra, stretch, tilt, **limits)
        low = step_down(line.delta, delta, bound, 0.1 / best_c)
        roots.append(solve(line.delta, delta, low, bound)[0])
    return roots[1], 4 * float(abs(roots[0] - roots[1]).upper()) + 1e-33 * float(roots[1])


def largest_loss(events, order):
    """The largest loss of a composition (infinite for Gaussians and remove-order samples of them)."""
    total = arb(0)
    for event in events:
        if event.kind == "poisson_sampled" and order == "add":
            rate, inner = ball(event.args[1]), largest_loss([event.args[0][0]], order)
            total -= event.count * (1 - rate + rate * (-inner).exp()).log()
        elif event.kind in ("gaussian", "poisson_sampled"):
            return arb("inf")
        elif event.kind == "laplace":
            total += event.count / ball(event.args[0])
        else:
            total += event.count * atoms_of(event)[1][0][0]
    return total


def add_order_is_smaller(events, eps, delta):
    """Whether the add order's epsilon is below eps, by its largest loss or a Chernoff bound."""
    if largest_loss(events, "add") <= eps:
        return True
    return chernoff(events, "add", delta)[1] <= float(eps)


# --- From a case to a value ---------------------------------------------------------------


HOW = {
    "closed": "closed-form profile in ball arithmetic",
    "staircase": "exact sum over the finitely many losses in ball arithmetic",
    "spline": "exact inversion into splines in ball arithmetic",
    "atoms": "finite mixture of Gaussian profiles in ball arithmetic",
    "nested": "nested positive trapezoid quadrature, 60 digits, two steps",
    "operator": "positive recursion on Chebyshev panels in doubles, two resolutions",
    "line": "vertical line at high precision, two abscissae, periods, shifts and steps",
}
EXACT = {"closed": closed_delta, "spline": spline_delta, "atoms": mixture_delta}
PANELS = ((0.3, 16, 16), (0.22, 18, 20))
NESTS = ((Fraction("0.15"), 70), (Fraction("0.11"), 80))


def staircase_value(events, delta):
    """(epsilon, radius) over both orders; None for an infinite epsilon."""
    roots = [staircase_epsilon(i, atoms, delta + arb(0, cut.upper())) for i, atoms, cut in staircase_sides(events)]
    if None in roots:
        return None, 0.0
    root = max(roots, key=float)
    return centre(root), float(root.rad())


def operator_value(event, delta):
    """(epsilon, error) from two resolutions; the floor is what doubles allow."""
    first, second = (operator_epsilon(event, delta, *p) for p in PANELS)
    return arb(second), 4 * abs(first - second) + 1e-12 * second


def nested_value(event, delta):
    """(epsilon, error) from two steps, near the operator's guess."""
    guess = operator_epsilon(event, delta, *PANELS[0])
    roots = []
    for step, reach in NESTS:
        nest = Nested(event.args[0][0].args[0], event.args[1], event.count, step, reach)
        roots.append(solve(nest.delta, delta, guess * (1 - 1e-9), guess * (1 + 1e-9), digits=28))
    difference = float(abs(roots[0][0] - roots[1][0]).upper())
    return roots[1][0], 4 * difference + roots[1][1]


def line_value(events, delta, nats, factors, **limits):
    """(epsilon, error) of the larger order; the add order is run only if it may matter."""
    eps, error = line_epsilon(events, "remove", delta, nats, factors, **limits)
    sampled = any(e.kind == "poisson_sampled" for e in events)
    if sampled and not add_order_is_smaller(events, eps, delta):
        other, other_error = line_epsilon(events, "add", delta, nats, factors, **limits)
        print(f"    add order: {other.str(15, radius=False)}")
        if other > eps:
            return other, other_error
    return eps, error


def epsilon_value(way, events, delta, nats, factors, limits):
    """(epsilon, error) by the named way."""
    if way in EXACT:
        return solve(EXACT[way](events), delta, 0, 1)
    if way == "staircase":
        return staircase_value(events, delta)
    if way == "line":
        return line_value(events, delta, nats, factors, **limits)
    (event,) = events
    eps, error = (nested_value if way == "nested" else operator_value)(event, delta)
    if not add_order_is_smaller(events, eps, delta):
        raise ArithmeticError("the add order may be the larger one here")
    return eps, error


def line_delta(events, order, eps, hint, nats, factors, limits):
    """delta(eps) in one order from two lines, with four times their difference as radius."""
    best_c, _ = chernoff(events, order, hint)
    pair = [
        Line(events, order, hint, best_c * factor, nats + extra, stretch, tilt, **limits).delta(eps)
        for factor, (stretch, tilt, extra) in zip(factors, LINES, strict=True)
    ]
    return pair[1] + arb(0, (4 * abs(pair[0] - pair[1])).upper())


def delta_value(way, events, eps, hint, nats, factors, limits):
    """(delta, relative error) by the named way; ``hint`` is a rough delta that sets the line."""
    if way in EXACT:
        value = EXACT[way](events)(eps)
    elif way == "staircase":
        values = [
            staircase_delta(i, atoms, eps) + arb(0, (2 * cut).upper()) for i, atoms, cut in staircase_sides(events)
        ]
        value = max(values, key=float)
    elif way == "nested":
        (event,) = events
        pair = [Nested(event.args[0][0].args[0], event.args[1], event.count, *n).delta(eps) for n in NESTS]
        value = pair[1] + arb(0, (4 * abs(pair[0] - pair[1])).upper())
    else:
        sampled = any(e.kind == "poisson_sampled" for e in events)
        orders = ("remove", "add") if sampled else ("remove",)
        values = [line_delta(events, order, eps, hint, nats, factors, limits) for order in orders]
        value = max(values, key=float)
    return centre(value), float((value.rad() / centre(value)).upper()) + 1e-33


# --- The cases ----------------------------------------------------------------------------


class Case(NamedTuple):
    """An event, the way to its values, and the deltas (or epsilons with rough deltas) asked for.

    ``floor`` is a relative error never claimed less than: on a line through a nearly
    periodic transform (many atoms) both lines may be cut before the same later peak.
    """

    name: str
    regime: str
    text: str
    way: str
    deltas: tuple = ()
    epsilons: tuple = ()
    bits: int = 400
    nats: int = 140
    factors: tuple = (1.0, 0.8)
    limits: Mapping = MappingProxyType({})
    floor: float = 0.0
    check: str = ""


def total(parts):
    """The text of a sum."""
    return " + ".join(parts)


def decimal(numerator, denominator):
    """A short exact decimal."""
    return f"{numerator / denominator:.10g}"


def sampled_gaussian(sigma, rate, count=1):
    """The text of a Poisson-sampled Gaussian."""
    return f"poisson_sampled(gaussian({sigma}), {rate})" + (f" * {count}" if count > 1 else "")


def batch(inside, n, size):
    """The text of an event on a batch without replacement."""
    return f"sampled_without_replacement({inside}, {n}, {size})"


A1 = sampled_gaussian("1.1", "256/60000", 14062)
MIX = total(
    [sampled_gaussian(decimal(80 + 2 * j, 100), decimal(1 + j % 5, 1000)) for j in range(50)]
    + [f"laplace({30 + j})" for j in range(50)]
    + [f"gaussian({40 + j})" for j in range(50)]
    + [f"randomized_response({decimal(5050 + 5 * j, 10000)})" for j in range(50)]
)
MANY_RESPONSES = total(f"randomized_response({decimal(5100 + 5 * j, 10000)})" for j in range(200))
MANY_LAPLACE = total(f"laplace({50 + j})" for j in range(200))
DIVISORS = total(f"laplace({d})" for d in range(1, 241) if 240 % d == 0)
SHALLOW, MIDDLE, DEEP = ("1e-2", "1e-6"), ("1e-6", "1e-12"), ("1e-6", "1e-12", "1e-20", "1e-30")

GOLDEN = [
    Case("a1", "sampled gaussian", A1, "line", ("1e-2", "1e-5", "1e-12", "1e-30"), (("2", "1e-4"),)),
    Case("a2", "sampled gaussian", sampled_gaussian("0.6", "0.001", 100000), "line", DEEP),
    Case("a3", "sampled gaussian", sampled_gaussian("0.8", "0.01", 1000000), "line", DEEP, (("300", "1e-10"),)),
    Case("b1", "laplace", "laplace(20) * 1000", "spline", DEEP, (("10", "1e-9"),), bits=2200),
    Case("b2", "lattice", "randomized_response(0.52) * 500", "staircase", ("1e-2", *DEEP), (("8", ""),)),
    Case("b3", "gaussian", "gaussian(50) * 1000", "closed", ("1e-2", *DEEP), (("2.5", ""),)),
]
SINGLE = [
    Case("gaussian", "single", "gaussian(1)", "closed", ("1e-2", *DEEP)),
    Case("gaussian tiny sigma", "single", "gaussian(0.02)", "closed", ("1e-2", "1e-6", "1e-30")),
    Case("gaussian huge sigma", "single", "gaussian(10000)", "closed", ("1e-6", "1e-12")),
    Case("laplace", "single", "laplace(1)", "closed", ("1e-2", "1e-6", "1e-12")),
    Case("response", "single", "randomized_response(0.9)", "staircase", ("1e-2", "1e-6")),
    Case("k-ary response", "single", "randomized_response(0.4, 5)", "staircase", ("1e-2", "1e-6")),
    Case("discrete laplace", "single", "discrete_laplace(2, 3)", "staircase", ("1e-2", "1e-6")),
    Case("discrete gaussian", "single", "discrete_gaussian(1, 1)", "staircase", ("1e-2", *DEEP), (("1", ""),)),
    Case("discrete gaussian shift 2", "single", "discrete_gaussian(1.5, 2)", "staircase", SHALLOW),
    Case("exponential", "single", "exponential(1)", "closed", ("1e-2", "1e-6", "1e-12")),
    Case("pure", "single", "pure_dp(0.3)", "staircase", ("1e-2", "1e-6")),
    Case("approximate", "single", "approximate_dp(0.1, 1e-8)", "staircase", ("1e-6", "1e-8", "1e-9")),
    Case("sampled gaussian", "single", sampled_gaussian("1", "0.01"), "closed", ("1e-3", *DEEP)),
    Case("sampled gaussian tiny sigma", "single", sampled_gaussian("0.02", "0.01"), "closed", ("1e-3", *DEEP)),
    Case("sampled gaussian tiny rate", "single", sampled_gaussian("1", "1e-5"), "closed", ("1e-6", "1e-12", "1e-30")),
    Case("sampled laplace", "single", "poisson_sampled(laplace(1), 0.01)", "closed", ("1e-3", "1e-6", "1e-12")),
    Case(
        "sampled response", "single", "poisson_sampled(randomized_response(0.9), 0.05)", "staircase", ("1e-2", "1e-6")
    ),
    Case("sampled exponential", "single", "poisson_sampled(exponential(1), 0.1)", "closed", ("1e-2", "1e-6")),
    Case("batch gaussian", "single", batch("gaussian(1)", 10000, 100), "closed", ("1e-3", *DEEP), (("0.1", ""),)),
    Case("batch gaussian tiny rate", "single", batch("gaussian(0.7)", 10**9, 7), "closed", ("1e-9", "1e-12", "1e-30")),
    Case("batch gaussian third", "single", batch("gaussian(2)", 3, 1), "closed", ("1e-2", *MIDDLE)),
    Case("batch laplace", "single", batch("laplace(1)", 60000, 256), "closed", ("1e-3", "1e-6", "1e-12")),
    Case("passes gaussian", "single", "shuffled_epochs(gaussian(4), 10)", "closed", ("1e-2", *MIDDLE)),
    Case(
        "passes response", "lattice", "shuffled_epochs(randomized_response(0.6) * 2, 20)", "staircase", ("1e-2", "1e-6")
    ),
]
GAUSSIANS = [
    Case("tiny sigma x1e6", "gaussian", "gaussian(0.02) * 1000000", "closed", ("1e-2", "1e-6", "1e-30")),
    Case("different gaussians", "gaussian", "gaussian(3) * 4 + gaussian(10) * 7 + gaussian(0.5)", "closed", DEEP),
]
LATTICES = [
    Case("response .9 x3", "lattice", "randomized_response(0.9) * 3", "staircase", ("1e-2", *MIDDLE)),
    Case("response .87 x13149", "lattice", "randomized_response(0.87) * 13149", "staircase", DEEP, (("19300", ""),)),
    Case("response .52 x1e6", "lattice", "randomized_response(0.52) * 1000000", "staircase", DEEP),
    Case("response .999 x10", "lattice", "randomized_response(0.999) * 10", "staircase", ("1e-2", "1e-6", "1e-20")),
    Case(
        "two responses",
        "lattice",
        "randomized_response(0.9) * 3 + randomized_response(0.8) * 2",
        "staircase",
        ("1e-2", *MIDDLE),
    ),
    Case(
        "three responses",
        "lattice",
        "randomized_response(0.6) * 20 + randomized_response(0.7) * 15 + randomized_response(0.55) * 10",
        "staircase",
        DEEP,
        (("9", ""),),
    ),
    Case("k-ary x20", "lattice", "randomized_response(0.4, 5) * 20", "staircase", ("1e-2", "1e-6", "1e-20")),
    Case("k-ary x300", "lattice", "randomized_response(0.3, 10) * 300", "staircase", ("1e-6", "1e-20")),
    Case("discrete laplace x10", "lattice", "discrete_laplace(2, 3) * 10", "staircase", ("1e-2", "1e-6", "1e-20")),
    Case("discrete laplace x500", "lattice", "discrete_laplace(20, 3) * 500", "staircase", DEEP),
    Case("pure mix", "lattice", "pure_dp(0.1) * 10 + pure_dp(0.2) * 5", "staircase", ("1e-2", "1e-6", "1e-20")),
    Case("pure x5", "lattice", "pure_dp(0.3) * 5", "staircase", ("1e-2", "1e-6")),
    Case(
        "sampled response x40",
        "lattice",
        "poisson_sampled(randomized_response(0.9), 0.05) * 40",
        "staircase",
        DEEP,
        (("4", ""),),
    ),
    Case(
        "sampled response high rate",
        "lattice",
        "poisson_sampled(randomized_response(0.8), 0.95) * 30",
        "staircase",
        DEEP,
    ),
    Case("discrete gaussian x10", "lattice", "discrete_gaussian(1, 1) * 10", "staircase", ("1e-2", *DEEP), bits=600),
    Case(
        "discrete gaussian 1.5 x100",
        "lattice",
        "discrete_gaussian(1.5, 1) * 100",
        "staircase",
        DEEP,
        (("60", ""),),
        bits=600,
    ),
    Case(
        "discrete gaussian x1000", "lattice", "discrete_gaussian(1, 1) * 1000", "staircase", ("1e-6", "1e-20"), bits=600
    ),
]
INFINITE = [
    Case(
        "approximate x100",
        "infinite mass",
        "approximate_dp(0.1, 1e-8) * 100",
        "staircase",
        ("1e-2", "1e-5", "2e-6", "1e-6", "1e-7"),
        (("5", ""),),
    ),
    Case(
        "approximate two kinds",
        "infinite mass",
        "approximate_dp(0.1, 1e-8) * 30 + approximate_dp(0.5, 1e-7) * 4",
        "staircase",
        ("1e-2", "1e-5", "1e-6"),
    ),
    Case(
        "approximate and gaussian",
        "infinite mass",
        "approximate_dp(0.2, 1e-9) * 10 + gaussian(2)",
        "atoms",
        ("1e-5", "1e-7", "1.1e-8"),
        (("4", ""),),
    ),
]
SPLINES = [
    Case("laplace x2", "laplace", "laplace(1) * 2", "spline", ("1e-2", *MIDDLE)),
    Case("laplace x5", "laplace", "laplace(1) * 5", "spline", ("1e-2", *MIDDLE), (("4", ""),)),
    Case("two laplace", "laplace", "laplace(0.3) * 3 + laplace(2) * 4", "spline", ("1e-2", *MIDDLE)),
    Case("laplace 20 x30", "laplace", "laplace(20) * 30", "spline", DEEP),
    Case("laplace 100 x200", "laplace", "laplace(100) * 200", "spline", DEEP, (("0.7", ""),), bits=1200),
    Case("20 laplace", "laplace", DIVISORS, "spline", ("1e-2", *DEEP)),
    Case(
        "200 laplace",
        "laplace",
        MANY_LAPLACE,
        "line",
        ("1e-6", "1e-10", "1e-20"),
        nats=90,
        limits={"stop": 75, "most": 6000},
        floor=1e-24,
    ),
    Case("exponential x10", "exponential", "exponential(0.5) * 10", "spline", ("1e-2", *DEEP), (("2", ""),)),
    Case("exponential x1", "exponential", "exponential(1)", "spline", ("1e-2", "1e-6", "1e-20")),
    Case("exponential 1 x10", "exponential", "exponential(1) * 10", "spline", ("1e-2", *DEEP)),
    Case("exponential 1 x100", "exponential", "exponential(1) * 100", "spline", DEEP, bits=1500),
    Case("laplace and response", "mix", "laplace(2) * 3 + randomized_response(0.9) * 2", "spline", ("1e-2", *MIDDLE)),
    Case("laplace exponential pure", "mix", "laplace(4) * 6 + exponential(0.5) * 5 + pure_dp(0.1) * 8", "spline", DEEP),
]
SAMPLED = [
    Case(
        "tiny sigma sampled x1e6",
        "sampled gaussian",
        sampled_gaussian("0.02", "0.01", 1000000),
        "line",
        ("1e-2", *DEEP),
    ),
    Case("sigma 5 x10", "sampled gaussian", sampled_gaussian("5", "0.1", 10), "line", DEEP, check="operator"),
    Case("rate .5 x100", "sampled gaussian", sampled_gaussian("2", "0.5", 100), "line", DEEP),
    Case(
        "rate .01 x100",
        "sampled gaussian",
        sampled_gaussian("1", "0.01", 100),
        "line",
        ("1e-6", "1e-12"),
        factors=(0.8, 0.65),
        check="operator",
    ),
    Case(
        "sampled laplace x1000", "sampled laplace", "poisson_sampled(laplace(1), 0.01) * 1000", "line", DEEP, nats=110
    ),
    Case(
        "sampled laplace x50",
        "sampled laplace",
        "poisson_sampled(laplace(1), 0.01) * 50",
        "line",
        MIDDLE,
        (("0.2", "1e-4"),),
        nats=110,
        limits={"stop": 1e9, "most": 6000},
        floor=1e-13,
    ),
    Case(
        "rate .9 x5",
        "add order",
        sampled_gaussian("1", "0.9", 5),
        "line",
        ("1e-2", "1e-6", "1e-20"),
        limits={"most": 30000},
    ),
    Case("rate .99 x20", "add order", sampled_gaussian("2", "0.99", 20), "line", ("1e-2", "1e-6", "1e-20")),
    Case(
        "sampled laplace rate .9 x200",
        "add order",
        "poisson_sampled(laplace(5), 0.9) * 200",
        "line",
        ("1e-2", "1e-6", "1e-20"),
        nats=100,
        limits={"stop": 1e9, "most": 8000},
        floor=1e-12,
    ),
]
MIXES = [
    Case(
        "200 responses",
        "mix",
        MANY_RESPONSES,
        "line",
        ("1e-6", "1e-12"),
        nats=90,
        limits={"stop": 75, "most": 6000},
        floor=1e-13,
    ),
    Case("200 events", "mix", MIX, "line", ("1e-6", "1e-20"), nats=110),
    Case(
        "sampled and response",
        "mix",
        sampled_gaussian("1", "0.01", 100) + " + randomized_response(0.6) * 3",
        "line",
        MIDDLE,
        factors=(0.8, 0.65),
    ),
    Case(
        "gaussian and response",
        "mix",
        "gaussian(1000) + randomized_response(0.9) * 3",
        "atoms",
        ("1e-2", *DEEP),
        (("6.59", ""),),
    ),
    Case("gaussian and many responses", "mix", "gaussian(5) * 3 + randomized_response(0.55) * 400", "atoms", DEEP),
    Case("gaussian and pure", "mix", "gaussian(0.5) + pure_dp(1) * 3 + randomized_response(0.7) * 5", "atoms", DEEP),
]
RARE = [
    Case(
        "rare x2",
        "rare events",
        sampled_gaussian("1", "1e-5", 2),
        "nested",
        ("1e-8", "1e-12", "1e-30"),
        (("0.01", ""),),
    ),
    Case("rare x3", "rare events", sampled_gaussian("0.7", "1e-4", 3), "nested", ("1e-15",), check="operator"),
    Case(
        "rare x1e6",
        "rare events",
        sampled_gaussian("1", "1e-4", 1000000),
        "line",
        ("1e-30", "1e-20"),
        nats=180,
        factors=(0.8, 0.65),
    ),
    Case(
        "rare x102800",
        "rare events",
        sampled_gaussian("0.87", "1.7e-5", 102800),
        "line",
        ("1.5e-15",),
        nats=180,
        factors=(0.7, 0.55),
    ),
    Case(
        "rare x100",
        "rare events",
        sampled_gaussian("0.8", "0.001", 100),
        "line",
        ("1e-10", "1e-20"),
        nats=160,
        factors=(0.5, 0.4),
        check="operator",
    ),
]


def rounded(x):
    """Two significant digits, as text."""
    return f"{x:.1e}" if x < 1e-3 else f"{x:.2g}"


def sweep():
    """Eight random rare-event cases: up to a hundred steps by the recursion, more by the line."""
    draw, cases = random.Random(20), []
    for index, count in enumerate((2, 3, 10, 10, 100, 10000, 10000, 100000)):
        rate = 10 ** draw.uniform(-6 if count <= 100 else -5, -3)
        sigma, delta = draw.uniform(0.5, 3 if count > 3 else 1.5), 10 ** draw.uniform(-30, -8)
        way = "nested" if count <= 2 else "operator" if count <= 100 else "line"
        text = sampled_gaussian(rounded(sigma), rounded(rate), count)
        cases.append(Case(f"sweep {index}", "rare events", text, way, (f"{delta:.1e}",), nats=180, factors=(0.7, 0.55)))
    return cases


CASES = SINGLE + GAUSSIANS + GOLDEN + LATTICES + INFINITE + SPLINES + SAMPLED + MIXES + RARE + sweep()


# --- Writing ------------------------------------------------------------------------------


def digits_of(value, error):
    """A decimal string with the digits the error leaves certain, at most 32."""
    if value is None:
        return "inf"
    if value == 0:
        return "0"
    count = 32 if error == 0 else math.floor(math.log10(float(value)) - math.log10(error))
    return value.str(min(max(count + 1, 3), 32), radius=False)


def rounding(text):
    """Half a unit in the last place of a decimal string, to be added to the error."""
    if text in ("0", "inf"):
        return 0.0
    mantissa, _, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - places)


def epsilon_record(case, delta_text):
    """The record of one epsilon, with the second way's difference where the case names one."""
    ctx.prec = max(case.bits, int(1.45 * case.nats) + 180)
    events, delta = parse(case.text), ball(delta_text)
    eps, error = epsilon_value(case.way, events, delta, case.nats, case.factors, case.limits)
    error += case.floor * float(eps or 0)
    text = digits_of(eps, error)
    record = {
        "name": f"{case.name} @ {delta_text}",
        "regime": case.regime,
        "kind": "epsilon",
        "event": case.text,
        "delta": delta_text,
        "epsilon": text,
        "error": float(f"{error + rounding(text):.2g}"),
        "how": HOW[case.way],
    }
    if case.check:
        other, _ = epsilon_value(case.check, events, delta, case.nats, case.factors, case.limits)
        record["check"] = {"how": HOW[case.check], "difference": float(f"{float(abs(other - eps).upper()):.2g}")}
    return record


def delta_record(case, eps_text, hint):
    """The record of one delta at a given epsilon; its error is relative."""
    ctx.prec = max(case.bits, int(1.45 * case.nats) + 180)
    rough = ball(hint) if hint else None
    arguments = (case.nats, case.factors, case.limits)
    value, error = delta_value(case.way, parse(case.text), ball(eps_text), rough, *arguments)
    error += case.floor * 1e3
    text = digits_of(value, error * float(value))
    return {
        "name": f"{case.name} at {eps_text}",
        "regime": case.regime,
        "kind": "delta",
        "event": case.text,
        "epsilon": eps_text,
        "delta": text,
        "error": float(f"{error + rounding(text) / float(value):.2g}"),
        "how": HOW[case.way],
    }


def save(records):
    """Write all records, one per line."""
    lines = ",\n".join(json.dumps(r) for r in records.values())
    OUTPUT.write_text(f"[\n{lines}\n]\n")


def main(words):
    """Compute the chosen cases and write after each value."""
    records = {r["name"]: r for r in json.loads(OUTPUT.read_text())} if OUTPUT.exists() and words else {}
    for case in CASES:
        if words and not any(w in case.name for w in words):
            continue
        jobs = [(epsilon_record, (d,)) for d in case.deltas] + [(delta_record, e) for e in case.epsilons]
        for make, arguments in jobs:
            start = time.time()
            try:
                record = make(case, *arguments)
            except ArithmeticError as problem:
                print(f"{case.name} {arguments}: no value: {problem}", flush=True)
                continue
            records[record["name"]] = record
            save(records)
            answer = record[record["kind"]]
            print(
                f"{record['name']}: {answer} (error {record['error']}, {time.time() - start:.1f} s)",
                record.get("check", ""),
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
