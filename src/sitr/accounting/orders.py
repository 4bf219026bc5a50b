"""The composed laws of an event in both orders, and which engine answers which question."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property

import numpy as np

from ..errors import NoSuchGuarantee
from .batch_mix import BatchMix
from .engines.closed import closed_form
from .engines.delta import Found, Number, Total
from .engines.mix import Mix
from .engines.solve import delta_of_orders, epsilon_of_orders, rough_epsilon_of_orders
from .engines.tail import tail_by_renyi, tail_of, tail_of_orders
from .engines.tradeoff import power_of_orders
from .engines.ways import ENOUGH, Purse
from .losses.atoms import Atoms
from .losses.gaussian import GaussianLoss
from .losses.law import FAINT, UNIT, LaterPair, Pair, before_sampling
from .losses.pairs import two_point_pair
from .losses.rounding import rounded_up
from .losses.sampled_curve import SampledCurve, log_ratio, log_ratio_error
from .losses.sampled_discrete import SampledDiscreteLoss
from .parts import Parts
from .renyi import Claim, bad_outcome_bound, implied_pair
from .sampled_mix import SampledMix

UNITS = 8 * UNIT  # by which the formulas of sampling are rounded, at most
WHOLE = 4 * ENOUGH  # what all that is asked for one answer may cost: both orders, both ends
UPPER = 0.7  # of it: what the upper end may take
TAIL = WHOLE / 4  # what the tail of one law may cost, in both orders
CURVES = 6e7  # multiplications, about, that Chernoff's bound takes by the Rényi curves of samples and claims
MADE = 3e8  # multiplications, about, that it takes to make the laws of a sample of several events, or of claims
CLOSED = 1.2e8  # the same for a batch of what has a profile in closed form
FEW_ATOMS = 64  # of a law whose sample is made at once
MOST_LAWS = 8  # of samples of several events, each made in a tenth of a second
SHARES = (0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # of a family of pairs: which costs most, a question says
ALMOST = math.nextafter(1.0, 0.0)  # the largest δ that may be asked for


class Orders:
    """The composed laws of both orders: the upper side, and what the truth dominates."""

    def __init__(self, parts: Parts) -> None:
        merged: dict[Pair | Claim, int] = {}
        for part, count in parts:
            merged[part] = merged.get(part, 0) + count
        self.claims = [(part, count) for part, count in merged.items() if isinstance(part, Claim)]
        self.pairs = [(part, count) for part, count in merged.items() if isinstance(part, Pair)]
        # Rényi statements hold for pairs and claims alike; both sit in these mixes. Moments of the forward order are
        # enough where no part has a larger one in the other.
        curves = [(pair.renyi or pair, n) for pair, n in self.pairs]
        curves += [(Pair.symmetric(claim), n) for claim, n in self.claims]
        leads = all(pair.leads or pair.is_symmetric for pair, _ in curves)
        self.all = [_forward(curves)] if leads else _mixes(curves)

    @cached_property
    def exact(self) -> bool:
        """Whether the mixes above are attained: no claims, and pairs that are the truth."""
        known = all(pair.beneath is None for pair, _ in self.pairs)
        single = len(self.pairs) == 1 and self.pairs[0][1] == 1 and self.pairs[0][0].forward.closed
        return not self.claims and (known or single)

    @cached_property
    def above(self) -> list[Mix]:
        """Mixes that dominate the truth: claims as the pair that their summed Rényi curve implies."""
        claims = [(implied_pair(tuple(self.claims)), 1)] if self.claims else []
        return _mixes([*self.pairs, *claims])

    @cached_property
    def beneath(self) -> list[Mix]:
        """Mixes that some mechanism of this description attains."""
        if self.exact:
            return self.above
        if self._is_single:
            pair = self.pairs[0][0]
            return _mixes([(pair.alone or pair.beneath or pair, 1)])
        return self._attained([(pair.beneath or pair, n) for pair, n in self.pairs])

    @property
    def _is_single(self) -> bool:
        return not self.claims and len(self.pairs) == 1 and self.pairs[0][1] == 1

    def _beneath(self, cost: Callable[[list[Mix], float], float]) -> list[list[Mix]]:
        """Return mixes that mechanisms of this description attain: one for any question, and the best of a family.

        A cost has to be known only where it is more than that of the ones before, which it is told.
        """
        if self._is_single or all(pair.attains is None for pair, _ in self.pairs):
            return [self.beneath]
        best, most = self._family(SHARES[0]), 0.0
        for share in SHARES:
            mixes = self._family(share)
            found = cost(mixes, most)
            if found > most:
                best, most = mixes, found
        return [self.beneath, best]

    def _family(self, share: float) -> list[Mix]:
        return self._attained(
            [(pair.attains(share) if pair.attains else pair.beneath or pair, n) for pair, n in self.pairs]
        )

    def _attained(self, pairs: list[tuple[Pair, int]]) -> list[Mix]:
        """Mixes of these pairs, and of mechanisms that satisfy the claims."""
        pairs = list(pairs)
        for claim, n in self.claims:
            known = [(part.beneath or part, n * m) for part, m in claim.beneath if isinstance(part, Pair)]
            pairs += known or [(Pair.symmetric(GaussianLoss(claim.attained)), n)]
            pairs += [(two_point_pair(0.0, claim.infinite_mass), n)] if claim.infinite_mass and not known else []
        return _mixes(pairs)

    @cached_property
    def _leading(self) -> list[Mix]:
        """Of one sampled event that was symmetric before, the remove order has the larger δ at every ε ≥ 0.

        With g(y) the δ before, y = e^ε: q g((y-1+q)/q) when one is removed, and (1-(1-q)y) g(qy/(1-(1-q)y)) when one is
        added. Its factor is at most q, and its argument the larger one, by (1-q)(y-1)²/q(1-(1-q)y).
        """
        alone = len(self.pairs) == 1 and self.pairs[0][1] == 1
        return self.above[:1] if alone and self.pairs[0][0].leads else self.above

    @property
    def infinite_mass(self) -> float:
        """The chance of an infinite loss, the larger of both orders."""
        return max(mix.infinite_mass for mix in self.all)

    @property
    def most_infinite_mass(self) -> float:
        """The same, with what rounding may have taken from it where it was computed: what is promised, or charged."""
        return max(mix.failure.upper for mix in self.all)

    @property
    def largest(self) -> float:
        """The largest finite loss of both orders, or a little more: none is above it."""
        return max(mix.largest for mix in self.all)

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of one order, given that the loss is finite."""
        if alpha == 1:
            return max(mix.mean for mix in self.all)
        if math.isinf(alpha):
            return max(self.largest, 0.0)
        # Divergences do not fall with their order, and near 1 the quotient loses digits that the mean has.
        return max(max(mix.rdp(alpha), mix.mean) for mix in self.all)

    def epsilon(self, delta: Total) -> Found[float]:
        """Bracket ε at one δ."""
        return self._epsilon(delta, Purse(WHOLE))

    def _epsilon(self, delta: Total, purse: Purse) -> Found[float]:
        if not delta:
            return self._pure()
        if self._inside is not None:
            return self._sampled_epsilon(*self._inside, delta, purse)
        if self._are_many:
            return Found(0.0, epsilon_of_orders(self.all, delta, only_chernoff=True).upper, "Rényi conversion")
        if self.exact:
            return epsilon_of_orders(self._leading, delta, purse=purse)
        upper = epsilon_of_orders(self.all, delta, only_chernoff=True)
        if self.pairs:  # the upper end comes first, and leaves something for the lower one
            first = Purse(UPPER * purse.left, whole=purse)
            upper = _smaller(epsilon_of_orders(self.above, delta, purse=first, ends=("upper",)), upper)
        beneath = self._beneath(lambda mixes, _: epsilon_of_orders(mixes, delta, only_chernoff=True).upper)
        lower = max(epsilon_of_orders(mixes, delta, purse=purse, ends=("lower",)).lower for mixes in beneath)
        return Found(min(lower, upper.upper), upper.upper, upper.method)

    @np.errstate(all="ignore")  # where numbers end, engines say so
    def renyi_epsilon(self, delta: Total) -> float:
        """Bound ε at one δ by the Rényi curves alone, at once (THEORY 3.2)."""
        return epsilon_of_orders(self.all, delta, only_chernoff=True).upper

    @np.errstate(all="ignore")
    def rough_epsilon(self, delta: Total) -> float:
        """Bound ε at one δ as closely as can be had at once."""
        by_curves = self.renyi_epsilon(delta)
        return min(by_curves, rough_epsilon_of_orders(self._leading, delta)) if self._known_at_once else by_curves

    def searched_epsilon(self, delta: Total, purse: Purse) -> Found[float]:
        """Bracket ε at one δ as closely as a search has to know its upper end and pays for; the lower one may be 0."""
        if not delta:
            return self._pure()
        if self._inside is not None:
            return self._searched_sampled_epsilon(*self._inside, delta, purse)
        if self._known_at_once:
            found = epsilon_of_orders(self._leading, delta, purse=purse, ends=("upper",))
            return found if self.exact else Found(0.0, found.upper, found.method)
        purse.spend(CURVES)
        upper = epsilon_of_orders(self.all, delta, only_chernoff=True, purse=purse)
        if self.pairs and purse.left > 0 and not purse.settles(upper):
            self._buy_laws(purse)
            upper = _smaller(epsilon_of_orders(self.above, delta, purse=purse, ends=("upper",)), upper)
        return Found(0.0, upper.upper, upper.method)

    @cached_property
    def _are_many(self) -> bool:
        """Whether more laws would have to be made than there is time for."""
        return sum(isinstance(pair, LaterPair) for pair, _ in self.pairs) > MOST_LAWS

    @property
    def _known_at_once(self) -> bool:
        """Whether every law is there, or made of so few atoms that it is no work; and no claim."""
        later = (pair for pair, _ in self.pairs if isinstance(pair, LaterPair))
        return not self.claims and all(map(_has_few_atoms, later))

    def _buy_laws(self, purse: Purse) -> None:
        """Pay for laws that have to be made: those of a sample once for all rates."""
        for pair, _ in self.pairs:
            _buy_laws(pair, purse)
        if self.claims:
            purse.buys(tuple(self.claims), MADE)

    def _pure(self) -> Found[float]:
        if self.infinite_mass > 0 or math.isinf(self.largest):
            raise NoSuchGuarantee(
                "no ε holds at delta=0: the privacy loss is unbounded, or infinite with some probability.",
                why="pure differential privacy bounds every loss (THEORY 1.3).",
                do="ask at a δ > 0, or use noise of bounded loss such as Laplace.",
            )
        lower = max(mix.largest_below for mix in self.all)
        return Found(max(lower, 0.0), max(self.largest, 0.0), "largest loss")

    def delta(self, epsilon: float) -> Found[Total]:
        """Bracket δ at one ε."""
        return self._delta(epsilon, Purse(WHOLE))

    def _delta(self, epsilon: float, purse: Purse) -> Found[Total]:
        if self._inside is not None:
            return self._sampled_delta(*self._inside, epsilon, purse)
        if self._are_many:
            return delta_of_orders(self.all, epsilon, only_chernoff=True, purse=purse)
        if self.exact:
            return delta_of_orders(self._leading, epsilon, purse=purse)
        first = Purse(UPPER * purse.left, whole=purse)  # as for ε
        upper = delta_of_orders(self.all, epsilon, only_chernoff=True, purse=first)
        if self.pairs:
            upper = _smaller(delta_of_orders(self.above, epsilon, purse=first), upper)

        def cost(mixes: list[Mix], least: float) -> float:
            return delta_of_orders(mixes, epsilon, only_chernoff=True, purse=purse, least=Total(least)).upper

        lower = max(delta_of_orders(mixes, epsilon, purse=purse).lower for mixes in self._beneath(cost))
        return Found(min(lower, upper.upper), upper.upper, upper.method)

    @cached_property
    def _inside(self) -> tuple[Orders, float] | None:
        """What is run on the sample, and the rate, where this is one sampled event that was symmetric before.

        Its remove order leads: δ(ε) = q δ'(ln(1 + (e^ε - 1)/q)) for ε ≥ 0, δ' that of what is inside (THEORY 2.7). Of
        a batch that is the profile, whatever is inside (THEORY 2.8).
        """
        if not self._is_single:
            return None
        pair = self.pairs[0][0]
        curves = pair.renyi or pair
        if isinstance(curves.forward, BatchMix):
            return Orders(curves.forward.parts), curves.forward.q
        if not curves.leads or not isinstance(curves.forward, (SampledCurve, SampledMix, SampledDiscreteLoss)):
            return None
        if curves.forward.q <= FAINT:  # it may have been rounded up by far
            return None
        inside = Orders(curves.forward.parts)
        return (inside, curves.forward.q) if len(inside.beneath) == 1 else None

    def _searched_sampled_epsilon(self, inside: Orders, q: float, delta: Total, purse: Purse) -> Found[float]:
        if delta >= q:
            return Found(0.0, 0.0, "sampling")
        limit = None if purse.limit is None else before_sampling(purse.limit, q)
        most = inside.searched_epsilon(Total(delta / q * (1 - UNITS)), Purse(purse.left, limit, whole=purse))
        return Found(0.0, log_ratio(most.upper, q) + log_ratio_error(most.upper, q), most.method)

    def _sampled_epsilon(self, inside: Orders, q: float, delta: Total, purse: Purse) -> Found[float]:
        if delta >= q:
            return Found(0.0, 0.0, "sampling")
        most = inside._epsilon(Total(delta / q * (1 - UNITS)), Purse(purse.left / 2, whole=purse))
        least = inside._epsilon(Total(min(delta / q * (1 + UNITS), ALMOST)), purse)
        lower = log_ratio(least.lower, q) - log_ratio_error(least.lower, q)
        upper = log_ratio(most.upper, q) + log_ratio_error(most.upper, q)
        return Found(max(lower, 0.0), upper, most.method)

    def _sampled_delta(self, inside: Orders, q: float, epsilon: float, purse: Purse) -> Found[Total]:
        inner = before_sampling(epsilon, q)
        most = inside._delta(inner * (1 - UNITS), Purse(purse.left / 2, whole=purse))
        least = inside._delta(inner * (1 + UNITS), purse)
        lower, upper = q * least.lower * (1 - UNITS), q * most.upper * (1 + UNITS)
        return Found(Total(lower), Total(min(upper, q)), most.method)

    def tradeoff(self, x: float) -> Found[float]:
        """Bracket the least type-II error at one type-I error."""
        power = self.power(x)
        lower, upper = -rounded_up(Fraction(power.upper) - 1), rounded_up(1 - Fraction(power.lower))
        return Found(max(0.0, lower), max(0.0, upper), power.method)

    def power(self, x: float) -> Found[float]:
        """Bracket the largest power of any test at one type-I error."""
        if self.exact:
            return power_of_orders(self.above, x, WHOLE)
        found, beneath = (power_of_orders(mixes, x, WHOLE / 2) for mixes in (self.above, self.beneath))
        return Found(min(beneath.lower, found.upper), found.upper, found.method)

    def tail(self, x: float) -> Found[float]:
        """Bracket the largest P[L > x] of all neighbours, in both orders, for one x ≥ 0 (THEORY 1.6).

        The pair itself attains the lower end. Neighbours who are closer, or queries that are chosen after seeing
        answers, may have likelier losses above x: unless it is one step of noise, the upper end is for all that the
        pair dominates.
        """
        if self._bounds_all(x):
            return Found(0.0, 0.0, "largest loss")
        if self.exact:
            tail = tail_of_orders(self.above, x, TAIL)
            single = self._is_single and self.pairs[0][0].farthest
            return tail.own if single else Found(tail.own.lower, tail.most, tail.own.method)
        most = max(tail_by_renyi(mix, x) for mix in self.all)
        if self._are_many:
            return Found(0.0, most, "Rényi conversion")
        most = min(most, tail_of_orders(self.above, x, TAIL).most)
        beneath = self._beneath(lambda mixes, _: max(tail_by_renyi(mix, x) for mix in mixes))
        own = max((tail_of_orders(mixes, x, TAIL).own for mixes in beneath), key=lambda found: found.lower)
        return Found(own.lower, max(most, own.lower), own.method)

    def pair_tail(self, x: float, *, forward: bool) -> Found[float]:
        """Bracket P[L > x] of the pair itself, in one order."""
        if self.claims or any(pair.beneath is not None for pair, _ in self.pairs):
            raise NoSuchGuarantee(
                "no pair is known whose loss could be told in one order.",
                why="a Rényi curve, and a bound on a law that is not known exactly, stand for many mechanisms.",
                do="ask without an order, for the worst of them.",
            )
        if self._bounds_all(x):
            return Found(0.0, 0.0, "largest loss")
        first, second = (self.above[0], self.above[-1]) if forward else (self.above[-1], self.above[0])
        return tail_of(first, second, x, TAIL).own

    def _bounds_all(self, x: float) -> bool:
        """Whether no loss of either order is above x, and none is infinite."""
        return not self.infinite_mass and x >= self.largest

    def bad_outcome_by_renyi(self, p: float) -> Found[float]:
        """Bound the probability of a bad outcome by Proposition 10 of seed 002."""
        best = max(bad_outcome_bound(mix, p) for mix in self.all)
        return Found(p, max(best, p), "Rényi curve (Prop. 10)")


def _has_few_atoms(pair: LaterPair) -> bool:
    """Whether a sample is of so few atoms that its laws take no longer than its curves."""
    curve = pair.renyi.forward if pair.renyi else None
    inside = curve.pair.forward if isinstance(curve, SampledCurve) else None
    return isinstance(inside, Atoms) and inside.losses.size <= FEW_ATOMS


def _buy_laws(part: Pair | Claim, purse: Purse) -> None:
    """Pay for the laws of a sample or a batch of several events, and of such among these."""
    curve = part.renyi.forward if isinstance(part, LaterPair) and part.renyi else None
    if isinstance(curve, (SampledMix, BatchMix)):
        for inner, _ in curve.parts:
            _buy_laws(inner, purse)
    if isinstance(curve, SampledMix):
        purse.buys(curve.parts, MADE * (1 if curve.forward.parts == curve.backward.parts else 2))
    if isinstance(curve, BatchMix):
        closed = all(closed_form(mix) is not None for mix in curve.whole)
        purse.buys(curve.parts, (CLOSED if closed else MADE) * len(curve.removed))


def _mixes(parts: list[tuple[Pair, int]]) -> list[Mix]:
    """One mix where every pair is symmetric, otherwise both orders: forward first."""
    if all(pair.is_symmetric for pair, _ in parts):
        return [_forward(parts)]
    return [_forward(parts), Mix.of((pair.backward, count) for pair, count in parts)]


def _forward(parts: list[tuple[Pair, int]]) -> Mix:
    return Mix.of((pair.forward, count) for pair, count in parts)


def _smaller(first: Found[Number], second: Found[Number]) -> Found[Number]:
    return first if first.upper <= second.upper else second
