"""The numbers behind the figures, as tables; nothing here draws.

Ends of brackets are the columns `..._lower` and `..._upper`; every other number of a mechanism is on the safe side.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..accounting import (
    ApproximateDP,
    Concentrated,
    Exponential,
    Gaussian,
    Laplace,
    MaximallyDivergent,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    allowance,
    calibrate_noise,
    classical_allowance,
    classical_gaussian_noise,
    theorems,
)

PROBABILITIES = (1e-6, 1e-3, 1e-1)  # Pr[f(D) ∈ S] of Figure 2
TRAINING = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 14062  # 60 passes over 60,000

# Where the figures are drawn.
ALPHAS = np.linspace(1, 10, 91)
BAD_OUTCOME_COUNTS = (1, 2, 3, 5, 7, 10, 15, 20, 25, 30, *range(40, 101, 10), *range(120, 241, 20), 250)
COMPOSED_COUNTS = (*range(1, 20), *range(20, 401, 4))
QUERY_COUNTS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000, 2000, 3000, 5000, 7000, 10000)
QUERY_DELTAS = np.geomspace(1e-2, 1e-12, 41)
ALLOWANCE_COUNTS = (1, 2, 3, 5, 7, 10, 12, 14, 17, 20, 30, 50, 70, 100, 200, 300, 500, 700, 1000)
TAIL_LOSSES = np.linspace(0, 7, 43)
PROFILE_EPSILONS = np.linspace(0, 1.1, 56)
MEAN_EPSILONS = np.geomspace(0.05, 5, 41)
GROUP_SIZES = range(1, 13)
TRAINING_DELTAS = np.geomspace(1e-1, 1e-12, 45)
TRAINING_ERRORS = np.concatenate([[0.0], np.geomspace(1e-4, 0.04, 13), np.linspace(0.05, 1.0, 39)])

COMPOSED_EPSILON = 0.25
COUNTING_EPSILON = 0.5
ALLOWED_EPSILON = 1.0
TAILED = Laplace(noise_multiplier=10) * 100
DELTA = 1e-6
# For one person, each of these is (1, 1e-6)-DP and no better; the tests hold them to it.
GROUP_GAUSSIAN = Gaussian(noise_multiplier=4.22468)
GROUP_SAMPLED = PoissonSampled(Gaussian(noise_multiplier=1.56267), sampling_prob=0.01) * 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Named columns, all of one length.

    Example:
        >>> table = Table(("count", "epsilon"), ((1, 0.5), (2, 0.75)))
        >>> table["epsilon"].max().item()
        0.75
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __getitem__(self, column: str) -> NDArray[Any]:
        at = self.columns.index(column)
        return np.array([row[at] for row in self.rows])

    def where(self, **equal: Any) -> Table:
        """Return the rows whose columns have these values.

        Example:
            >>> Table(("panel", "y"), (("a", 1), ("b", 2))).where(panel="b").rows
            (('b', 2),)
        """
        at = {self.columns.index(column): value for column, value in equal.items()}
        return Table(self.columns, tuple(row for row in self.rows if all(row[i] == v for i, v in at.items())))

    def to_csv(self) -> str:
        """Return the table as CSV, numbers to 12 significant digits.

        Example:
            >>> Table(("count", "epsilon"), ((1, 1 / 3),)).to_csv().splitlines()
            ['count,epsilon', '1,0.333333333333']
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_shown(value) for value in row] for row in self.rows)
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown, numbers to 4 significant digits.

        Example:
            >>> print(Table(("count", "epsilon"), ((1, 1 / 3),)).to_markdown())
            | count | epsilon |
            |---|---|
            | 1 | 0.3333 |
        """
        head = [self.columns, ("---",) * len(self.columns)]
        body = [[_shown(value, 4).replace("|", r"\|") for value in row] for row in self.rows]
        lines = [f"| {' | '.join(head[0])} |", f"|{'|'.join(head[1])}|", *(f"| {' | '.join(row)} |" for row in body)]
        return "\n".join(lines)


def _shown(value: Any, digits: int = 12) -> str:
    return f"{float(value):.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)


def rdp_table() -> Table:
    """Return Table II of seed 002: DP and Rényi DP of the three basic mechanisms (THEORY 2.1, 2.2, 2.3).

    The formulas are the seed's, the numbers the accountant's, at the parameters named.

    Example:
        >>> rdp_table().where(mechanism="Laplace")["rdp(2)"].round(6)
        array([0.200304])
    """
    formulas = (
        (
            "Randomized response",
            "|ln(p/(1-p))|",
            "ln[p^α (1-p)^(1-α) + (1-p)^α p^(1-α)] / (α-1)",
            "(2p-1) ln(p/(1-p))",
            "p = 0.75",
        ),
        (
            "Laplace",
            "1/λ",
            "ln[α/(2α-1) e^((α-1)/λ) + (α-1)/(2α-1) e^(-α/λ)] / (α-1)",
            "1/λ + e^(-1/λ) - 1",
            "λ = 2",
        ),
        ("Gaussian", "∞", "α/(2σ²)", "1/(2σ²)", "σ = 2"),
    )
    events = (RandomizedResponse(p=0.75), Laplace(noise_multiplier=2), Gaussian(noise_multiplier=2))
    orders = (1.0, 2.0, 10.0, math.inf)
    rows = (words + tuple(event.rdp(orders).tolist()) for words, event in zip(formulas, events, strict=True))
    columns = ("mechanism", "epsilon", "rdp, α > 1", "rdp, α = 1", "example", "rdp(1)", "rdp(2)", "rdp(10)", "rdp(∞)")
    return Table(columns, tuple(rows))


def rdp_curves(alphas: ArrayLike = ALPHAS) -> Table:
    """Return the Rényi curves of Figure 1 of seed 002, at selected parameters (THEORY 2.1, 2.2, 2.3).

    Args:
        alphas: Orders in [1, ∞].

    Example:
        >>> rdp_curves(alphas=[1]).where(mechanism="laplace", parameter=1)["epsilon"].round(6)
        array([0.367879])
    """
    orders = np.atleast_1d(np.asarray(alphas, dtype=np.float64))
    families = {"randomized_response": RandomizedResponse, "laplace": Laplace, "gaussian": Gaussian}
    parameters = {"randomized_response": (0.6, 0.75, 0.9), "laplace": (1, 2, 3), "gaussian": (1, 2, 3)}
    rows = (
        (name, parameter, alpha, epsilon)
        for name, family in families.items()
        for parameter in parameters[name]
        for alpha, epsilon in zip(orders.tolist(), family(parameter).rdp(orders).tolist(), strict=True)
    )
    return Table(("mechanism", "parameter", "alpha", "epsilon"), tuple(rows))


def bad_outcomes(counts: Iterable[int] = BAD_OUTCOME_COUNTS) -> Table:
    """Return Figure 2 of seed 002: by how much a bad outcome can become more likely (THEORY 4.7).

    The increase is Pr[f(D') ∈ S] / Pr[f(D) ∈ S], where Pr[f(D) ∈ S] is given, after `count` self-compositions of
    randomized response (p = 0.52) and Laplace noise (λ = 20): by four bounds, and exactly.

    Args:
        counts: Numbers of compositions.

    Example:
        >>> row = bad_outcomes(counts=[100]).where(mechanism="randomized_response", probability=1e-3)
        >>> [row[bound].round(2).item() for bound in ("naive", "generic_rdp", "advanced", "rdp", "exact_upper")]
        [1000.0, 67.19, 31.21, 13.91, 10.88]
    """
    mechanisms = {"randomized_response": RandomizedResponse(p=0.52), "laplace": Laplace(noise_multiplier=20)}
    rows = []
    for name, step in mechanisms.items():
        for count in counts:
            event = step * count
            exact = event.bad_outcome(PROBABILITIES)
            by_rdp = event.bad_outcome(PROBABILITIES, method="renyi").upper
            for i, p in enumerate(PROBABILITIES):
                bounds = (
                    theorems.bad_outcome_basic(event, p),
                    theorems.bad_outcome_advanced(event, p),
                    theorems.bad_outcome_generic_rdp(event, p),
                    float(by_rdp[i]),
                    float(exact.lower[i]),
                    float(exact.upper[i]),
                )
                rows.append((name, p, count, *(bound / p for bound in bounds)))
    columns = (
        "mechanism",
        "probability",
        "count",
        "naive",
        "advanced",
        "generic_rdp",
        "rdp",
        "exact_lower",
        "exact_upper",
    )
    return Table(columns, tuple(rows))


def advanced_composition(counts: Iterable[int] = COMPOSED_COUNTS) -> Table:
    """Return ε at δ = 1e-6 of `count` steps of ε = 0.25, theorem by theorem (seed 000, Theorem 1; THEORY 4.1-4.5).

    `exact` is for the worst steps there are, `laplace` for Laplace noise of that ε.

    Args:
        counts: Numbers of steps.

    Example:
        >>> row = advanced_composition(counts=[200])
        >>> [
        ...     row[theorem].round(3).item()
        ...     for theorem in ("advanced", "advanced_halved", "advanced_tanh", "exact_upper")
        ... ]
        [32.786, 25.685, 24.802, 21.912]
    """
    named = (theorems.advanced, theorems.advanced_halved, theorems.advanced_tanh, theorems.kairouz_oh_viswanath)
    rows = []
    for count in counts:
        event = PureDP(epsilon=COMPOSED_EPSILON) * count
        exact = event.epsilon(DELTA)
        laplace = (Laplace(noise_multiplier=1 / COMPOSED_EPSILON) * count).epsilon(DELTA)
        by_theorem = (theorem(event, DELTA).epsilon for theorem in named)
        rows.append((count, theorems.basic(event).epsilon, *by_theorem, exact.lower, exact.upper, laplace.upper))
    names = tuple(theorem.__name__ for theorem in named)
    return Table(("count", "basic", *names, "exact_lower", "exact_upper", "laplace"), tuple(rows))


def counting_queries(counts: Iterable[int] = QUERY_COUNTS) -> Table:
    """Return the standard deviation of the noise on each of `count` counting queries (seed 000, "improved accuracy").

    At ε = 0.5 and δ = 1e-6: `cdp` is N(0, n/ε²), which is (ε(e^ε-1)/2, ε)-CDP; the others are (ε,δ)-DP, by the exact
    curve, by the tail bound N(0, 2 ln(1/δ) n/ε²) of seed 000 (whose text leaves out n/ε²), and by the classical rule
    √(2 ln(1.25/δ) n)/ε (THEORY 2.3, 8); `pure` is ε-DP by Laplace noise of scale n/ε.

    Args:
        counts: Numbers of queries, each of sensitivity 1.

    Example:
        >>> row = counting_queries(counts=[100])
        >>> [row[rule].round(2).item() for rule in ("cdp", "exact", "tail", "classical", "pure")]
        [20.0, 80.58, 105.13, 105.98, 282.84]
    """
    by_rule = (1 / COUNTING_EPSILON, *_counting_noise(DELTA))
    rows = (
        (count, *(math.sqrt(count) * noise for noise in by_rule), math.sqrt(2) * count / COUNTING_EPSILON)
        for count in counts
    )
    return Table(("count", "cdp", "exact", "tail", "classical", "pure"), tuple(rows))


def counting_noise_ratio(deltas: ArrayLike = QUERY_DELTAS) -> Table:
    """Return by what factor (ε,δ)-DP needs more noise than (ε(e^ε-1)/2, ε)-CDP at ε = 0.5, for any number of queries.

    Seed 000 says √(2 ln 1/δ), as a Gaussian tail bound would; the exact curve needs less (THEORY 2.3, 8).

    Args:
        deltas: In (0, 1).

    Example:
        >>> row = counting_noise_ratio(deltas=[1e-6])
        >>> row["exact"].round(3).item(), row["tail"].round(3).item()
        (4.029, 5.257)
    """
    rows = (
        (delta, *(noise * COUNTING_EPSILON for noise in _counting_noise(delta)))
        for delta in np.atleast_1d(np.asarray(deltas, dtype=np.float64)).tolist()
    )
    return Table(("delta", "exact", "tail", "classical"), tuple(rows))


def _counting_noise(delta: float) -> tuple[float, float, float]:
    """The noise of one counting query: by the exact curve, by the tail bound, by the classical rule."""
    exact = calibrate_noise(Gaussian, epsilon=COUNTING_EPSILON, delta=delta).value
    tail = math.sqrt(-2 * math.log(delta)) / COUNTING_EPSILON
    return exact, tail, classical_gaussian_noise(COUNTING_EPSILON, delta)


def query_allowances(counts: Iterable[int] = ALLOWANCE_COUNTS) -> Table:
    """Return the ε that each of `count` queries may have under (1, 1e-6)-DP in all (seed 000; THEORY 4.10).

    `basic` divides; `classical` is ε/√(2k ln(1/δ)), a rule of thumb; `advanced` and `advanced_tanh` are theorems;
    `exact` is for any pure queries, and `laplace` for Laplace noise.

    Args:
        counts: Numbers of queries.

    Example:
        >>> row = query_allowances(counts=[100])
        >>> [row[rule].round(5).item() for rule in ("basic", "advanced", "classical", "exact", "laplace")]
        [0.01, 0.01838, 0.01902, 0.02401, 0.0241]
    """
    named = (theorems.basic, theorems.advanced, theorems.advanced_tanh)
    rows = []
    for count in counts:
        by_theorem = (allowance(count, epsilon=ALLOWED_EPSILON, delta=DELTA, theorem=theorem) for theorem in named)
        classical = classical_allowance(count, epsilon=ALLOWED_EPSILON, delta=DELTA)
        exact = allowance(count, epsilon=ALLOWED_EPSILON, delta=DELTA)
        rows.append((count, *by_theorem, classical, exact, _laplace_allowance(count)))
    return Table(("count", "basic", "advanced", "advanced_tanh", "classical", "exact", "laplace"), tuple(rows))


def _laplace_allowance(count: int) -> float:
    """The ε of each of `count` releases with Laplace noise."""
    return 1 / calibrate_noise(lambda noise: Laplace(noise) * count, epsilon=ALLOWED_EPSILON, delta=DELTA).value


def loss_tails(losses: ArrayLike = TAIL_LOSSES) -> Table:
    """Return the chance of a privacy loss above x, of 100 releases with Laplace noise, λ = 10 (seed 000; THEORY 1.6).

    `pair_...` is the chance itself, for neighbours who are farthest apart in every release; `upper` holds for all
    neighbours and analysts; `renyi` is Markov's bound for the best order, `concentrated` the bound e^{-t²/2} of seed
    000, which begins at the mean; `delta` is δ(x), which counts a loss just above x for little.

    Args:
        losses: At least 0.

    Example:
        >>> row = loss_tails(losses=[4.0])
        >>> [f"{row[name].item():.1e}" for name in ("delta", "pair_upper", "upper", "renyi", "concentrated")]
        ['2.7e-05', '1.4e-04', '3.4e-04', '1.3e-03', '2.1e-03']
    """
    rows = []
    for x in np.atleast_1d(np.asarray(losses, dtype=np.float64)).tolist():
        pair = TAILED.loss_tail(x, order="forward")
        bounds = (theorems.loss_tail_renyi(TAILED, x), theorems.loss_tail_concentrated(TAILED, x))
        rows.append((x, TAILED.delta(x).upper, pair.lower, pair.upper, TAILED.loss_tail(x).upper, *bounds))
    return Table(("loss", "delta", "pair_lower", "pair_upper", "upper", "renyi", "concentrated"), tuple(rows))


def divergent_profiles(epsilons: ArrayLike = PROFILE_EPSILONS) -> Table:
    """Return δ(ε) of Laplace noise and of the exponential mechanism at ε = 1, and of what they are reduced to.

    `..._reduced` is the maximally divergent pair of the same largest loss and total variation: a chord of the profile,
    in e^ε, from ε = 0 on; `antipodal` is the one without an outcome of loss 0 (seed 000; THEORY 3.7).

    Args:
        epsilons: At least 0.

    Example:
        >>> row = divergent_profiles(epsilons=[0.5])
        >>> [row[pair].round(4).item() for pair in ("laplace", "laplace_reduced", "antipodal")]
        [0.2212, 0.2449, 0.2876]
    """
    mechanisms = {"laplace": Laplace(noise_multiplier=1), "exponential": Exponential(epsilon=1)}
    events = dict(mechanisms)
    events |= {f"{name}_reduced": MaximallyDivergent.of_event(event).event for name, event in mechanisms.items()}
    events["antipodal"] = MaximallyDivergent.antipodal(1.0).event
    asked = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    columns = [event.delta(asked).upper.tolist() for event in events.values()]
    return Table(("epsilon", *events), tuple(zip(asked.tolist(), *columns, strict=True)))


def divergent_means(epsilons: ArrayLike = MEAN_EPSILONS) -> Table:
    """Return the mean privacy loss of ε-DP mechanisms, and bounds on it (seed 000, "tight bounds"; THEORY 3.1, 3.7).

    `advanced` is ε(e^ε - 1), `halved` half of it, `antipodal` the largest there is, ε tanh(ε/2); `laplace_reduced` is
    εv for the total variation v of Laplace noise, and `laplace` its mean.

    Args:
        epsilons: In (0, 600].

    Example:
        >>> row = divergent_means(epsilons=[1.0])
        >>> [row[name].round(4).item() for name in ("advanced", "halved", "antipodal", "laplace_reduced", "laplace")]
        [1.7183, 0.8591, 0.4621, 0.3935, 0.3679]
    """
    rows = []
    for epsilon in np.atleast_1d(np.asarray(epsilons, dtype=np.float64)).tolist():
        laplace = Laplace(noise_multiplier=1 / epsilon)
        bound = epsilon * math.expm1(epsilon)
        pairs = MaximallyDivergent.antipodal(epsilon), MaximallyDivergent.of_event(laplace)
        rows.append((epsilon, bound, bound / 2, *(pair.expected_loss for pair in pairs), laplace.expected_loss()))
    return Table(("epsilon", "advanced", "halved", "antipodal", "laplace_reduced", "laplace"), tuple(rows))


def group_privacy(sizes: Iterable[int] = GROUP_SIZES) -> Table:
    """Return what each notion says of groups, all of them (1, 1e-6)-DP for one person (seed 000; THEORY 4.8).

    `epsilon_...` is the group's ε at δ = 1e-6: pure ε; the zCDP and the CDP of Gaussian noise; that noise itself; a
    run with sampled Gaussian noise. `delta_...` is the group's δ at ε = size: the tight bound for any (1, 1e-6)-DP
    mechanism; the looser s e^{(s-1)ε} δ of seed 000; and the two mechanisms themselves.

    Args:
        sizes: Numbers of people.

    Example:
        >>> row = group_privacy(sizes=[4])
        >>> row["epsilon_gaussian"].round(4).item(), row["epsilon_zcdp"].round(4).item()
        (4.5924, 4.909)
        >>> row["delta_any"].round(8).item(), row["delta_loose"].round(8).item()
        (3.119e-05, 8.034e-05)
    """
    rho = GROUP_GAUSSIAN.zcdp().rho
    by_epsilon = {
        "pure": PureDP(epsilon=1),
        "zcdp": ZeroConcentrated(rho=rho),
        "cdp": Concentrated(mu=rho, tau=math.sqrt(2 * rho)),
        "gaussian": GROUP_GAUSSIAN,
        "sampled": GROUP_SAMPLED,
    }
    by_delta = {"any": ApproximateDP(epsilon=1, delta=DELTA), "gaussian": GROUP_GAUSSIAN, "sampled": GROUP_SAMPLED}
    rows = []
    for size in sizes:
        epsilons = (event.group(size).epsilon(DELTA).upper for event in by_epsilon.values())
        deltas = (event.group(size).delta(float(size)).upper for event in by_delta.values())
        rows.append((size, *epsilons, *deltas, size * math.exp(size - 1) * DELTA))
    columns = (
        "size",
        *(f"epsilon_{name}" for name in by_epsilon),
        *(f"delta_{name}" for name in by_delta),
        "delta_loose",
    )
    return Table(columns, tuple(rows))


def training_profile(deltas: ArrayLike = TRAINING_DELTAS) -> Table:
    """Return the (ε,δ) curve of a DP-SGD run: both ends of the bracket, and two accountants that know less.

    The run has 14,062 steps at sampling rate 256/60,000 with noise multiplier 1.1 (seed 004; THEORY 7.2). `rdp` is the
    best order of the whole Rényi curve, `moments_accountant` the best of 64 moments by the older conversion.

    Args:
        deltas: In (0, 1).

    Example:
        >>> row = training_profile(deltas=[1e-5])
        >>> [row[name].round(3).item() for name in ("epsilon_upper", "rdp", "moments_accountant")]
        [2.382, 2.597, 3.009]
    """
    deltas = np.atleast_1d(np.asarray(deltas, dtype=np.float64))
    exact, by_rdp = TRAINING.epsilon(deltas), Renyi(formula=TRAINING).epsilon(deltas).upper
    moments = [theorems.moments_accountant(TRAINING, delta).epsilon for delta in deltas.tolist()]
    rows = zip(deltas.tolist(), exact.lower.tolist(), exact.upper.tolist(), by_rdp.tolist(), moments, strict=True)
    return Table(("delta", "epsilon_lower", "epsilon_upper", "rdp", "moments_accountant"), tuple(rows))


def training_tradeoff(errors: ArrayLike = TRAINING_ERRORS) -> Table:
    """Return the trade-off curve of the run of `training_profile`: both ends of the bracket (THEORY 1.5).

    Args:
        errors: Type-I errors in [0, 1].

    Example:
        >>> training_tradeoff(errors=[0.05])["type_two_lower"].round(4).item()
        0.8576
    """
    errors = np.atleast_1d(np.asarray(errors, dtype=np.float64))
    found = TRAINING.tradeoff(errors)
    rows = zip(errors.tolist(), found.lower.tolist(), found.upper.tolist(), strict=True)
    return Table(("type_one", "type_two_lower", "type_two_upper"), tuple(rows))
