"""The jobs that accounting.py measures, and how each library is asked to do them.

Every peer is taken at its best documented settings. Nothing here is imported from a library before a job runs, so that
the process which only counts stays small.
"""

import functools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

OURS, GOOGLE, MICROSOFT = "sitr", "dp-accounting", "prv-accountant"
DEEP = 1e-9  # below this delta, dp-accounting is also run with less of the mass cut off
EVENTS = 10_000  # that a filter admits

# --- The jobs ---------------------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """One kind of event, its parameters as exact decimals or fractions, and how often it runs."""

    kind: str
    args: tuple[str, ...]
    count: int = 1

    @property
    def numbers(self) -> tuple[float, ...]:
        """The parameters, each rounded once."""
        return tuple(float(Fraction(arg)) for arg in self.args)

    def __str__(self) -> str:
        if self.kind == "poisson_sampled":
            text = "poisson_sampled(gaussian({}), {})".format(*self.args)
        else:
            text = f"{self.kind}({', '.join(self.args)})"
        return f"{text} * {self.count}" if self.count > 1 else text


class Case(NamedTuple):
    """One job that every library is given."""

    name: str
    parts: tuple[Part, ...]
    delta: str
    golden: str = ""  # a value to fall back on where there is no reference; it is good to the last digit shown
    grids: tuple[float, ...] = (1e-4, 1e-5)  # value_discretization_interval of dp-accounting, coarse to fine
    target: float | None = None  # calibrate the noise of a sampled Gaussian to this epsilon
    quick: bool = False

    @property
    def text(self) -> str:
        """The job in the notation of `sitr account`."""
        return " + ".join(map(str, self.parts))


def gaussian(sigma: str, count: int = 1) -> Part:
    return Part("gaussian", (sigma,), count)


def laplace(scale: str, count: int = 1) -> Part:
    return Part("laplace", (scale,), count)


def response(p: str, count: int = 1) -> Part:
    return Part("randomized_response", (p,), count)


def sampled(sigma: str, rate: str, count: int = 1) -> Part:
    return Part("poisson_sampled", (sigma, rate), count)


def decimal(numerator: int, denominator: int) -> str:
    return f"{numerator / denominator:.10g}"


A1 = (sampled("1.1", "256/60000", 14062),)
MIX = (
    *(sampled(decimal(80 + 2 * j, 100), decimal(1 + j % 5, 1000)) for j in range(50)),
    *(laplace(str(30 + j)) for j in range(50)),
    *(gaussian(str(40 + j)) for j in range(50)),
    *(response(decimal(5050 + 5 * j, 10000)) for j in range(50)),
)
RESPONSES = tuple(response(decimal(5100 + 5 * j, 10000)) for j in range(200))
LAPLACES = tuple(laplace(str(50 + j)) for j in range(200))
SGD = ("DP-SGD a1", "DP-SGD a2", "DP-SGD a3")
CASES = (
    Case(SGD[0], A1, "1e-5", "2.381597", quick=True),
    Case(SGD[1], (sampled("0.6", "0.001", 100000),), "1e-6", "6.960844"),
    Case(SGD[2], (sampled("0.8", "0.01", 1000000),), "1e-6", "268.397637"),
    Case("DP-SGD a1, deep", A1, "1e-12", "4.174469", quick=True),
    Case("DP-SGD a1, deepest", A1, "1e-30", "7.796468"),
    Case("1000 Laplace", (laplace("20", 1000),), "1e-6", "8.204440", quick=True),
    Case("1000 Laplace, deep", (laplace("20", 1000),), "1e-12", "11.819534"),
    Case("500 responses", (response("0.52", 500),), "1e-6", "9.569370", quick=True),
    Case("1000 Gaussians", (gaussian("50", 1000),), "1e-6", "2.921601"),
    Case("200 different events", MIX, "1e-6", quick=True),
    Case("200 different responses", RESPONSES, "1e-6"),
    Case("200 different Laplace", LAPLACES, "1e-6"),
    Case("tiny noise", (gaussian("0.02"),), "1e-6", "1486.71604", (1e-2, 1e-4)),
    Case("tiny noise, 1e6 times", (gaussian("0.02", 1000000),), "1e-6", "1250237670", (1e1, 1.0, 1e-4)),
    Case("tiny noise, sampled", (sampled("0.02", "0.01"),), "1e-6", "1430.38121", (1e-2, 1e-4)),
    Case("tiny noise, sampled, 1e6 times", (sampled("0.02", "0.01", 1000000),), "1e-6", "13037892", (1e1, 1.0, 1e-4)),
    Case("discrete Gaussian", (Part("discrete_gaussian", ("1.5", "1"), 100),), "1e-6"),
    Case("rare events, 1e6 steps", (sampled("1", "1e-4", 1000000),), "1e-30", "3.097628"),
    Case("rare events, 2 steps", (sampled("1", "1e-5", 2),), "1e-12"),
    Case("calibration of DP-SGD noise", (sampled("1", "0.01", 10000),), "1e-6", "4.302106", target=1.0),
)
BY_NAME = {case.name: case for case in CASES}

# --- What each library does with a job --------------------------------------------------------------------------------
#
# An answer is a dictionary: `upper` is what the library would have us believe, `lower` the other end where it has one.

Answer = dict[str, float]


def ours(case: Case) -> Answer:
    """Our answer: there is nothing to set."""
    from sitr import accounting

    make: dict[str, Callable[..., Any]] = {
        "gaussian": accounting.Gaussian,
        "laplace": accounting.Laplace,
        "randomized_response": accounting.RandomizedResponse,
        "discrete_gaussian": lambda scale, move: accounting.DiscreteGaussian(scale, int(move)),
        "poisson_sampled": lambda sigma, rate: accounting.PoissonSampled(accounting.Gaussian(sigma), rate),
    }
    if case.target is not None:
        part = case.parts[0]
        steps = functools.partial(_our_steps, rate=part.numbers[1], count=part.count)
        found = accounting.calibrate_noise(steps, epsilon=case.target, delta=float(case.delta))
        return {"upper": found.value}
    event = accounting.compose(*(make[part.kind](*part.numbers) * part.count for part in case.parts))
    bracket = event.epsilon(delta=float(case.delta))
    return {"lower": bracket.lower, "upper": bracket.upper}


def _our_steps(sigma: float, rate: float, count: int) -> Any:
    from sitr.accounting import Gaussian, PoissonSampled

    return PoissonSampled(Gaussian(sigma), rate) * count


def pld(case: Case, interval: float, deep: bool = False) -> Answer:
    """dp-accounting by privacy-loss distributions, both orders, connect-the-dots, self-composition where it can.

    Its low-level functions: the accountant over them forgets the count of randomized response. With `deep` the masses
    that it cuts off, 1e-15 and e^-50 by default, are put well under delta.
    """
    delta = float(case.delta)
    total = sum(part.count for part in case.parts)
    tail = {"tail_mass_truncation": min(1e-15, delta / 1e6)} if deep else {}
    cut = {"log_mass_truncation_bound": min(-50, math.log(delta / 1e6 / total))} if deep else {}
    composed = None
    for part in case.parts:
        one = _pld_of(part, interval, cut)
        one = one.self_compose(part.count, **tail) if part.count > 1 else one
        composed = one if composed is None else composed.compose(one, **tail)
    assert composed is not None
    return {"upper": float(composed.get_epsilon_for_delta(delta))}


def _pld_of(part: Part, h: float, cut: dict[str, float]) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as losses

    first, *rest = part.numbers
    options = {"value_discretization_interval": h}
    if part.kind == "gaussian":
        return losses.from_gaussian_mechanism(first, **options, **cut)
    if part.kind == "poisson_sampled":
        return losses.from_gaussian_mechanism(first, sampling_prob=rest[0], **options, **cut)
    if part.kind == "laplace":
        return losses.from_laplace_mechanism(first, **options)
    if part.kind == "discrete_gaussian":
        return losses.from_discrete_gaussian_mechanism(first, int(rest[0]), use_connect_dots=True, **options)
    return losses.from_randomized_response(2 * (1 - first), 2, **options)


def rdp(case: Case) -> Answer:
    """dp-accounting by Rényi divergences at its own orders: quick and loose."""
    import dp_accounting as dpa

    make = {
        "gaussian": dpa.GaussianDpEvent,
        "laplace": dpa.LaplaceDpEvent,
        "randomized_response": lambda p: dpa.RandomizedResponseDpEvent(2 * (1 - p), 2),
        "poisson_sampled": lambda sigma, q: dpa.PoissonSampledDpEvent(q, dpa.GaussianDpEvent(sigma)),
    }
    swaps = all(part.kind == "randomized_response" for part in case.parts)
    relation = dpa.NeighboringRelation.REPLACE_ONE if swaps else dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = dpa.rdp.RdpAccountant(neighboring_relation=relation)
    for part in case.parts:
        if part.kind not in make:
            raise NotImplementedError(f"no event for {part.kind}")
        accountant.compose(make[part.kind](*part.numbers), part.count)
    return {"upper": float(accountant.get_epsilon(float(case.delta)))}


def closed_form(case: Case) -> Answer:
    """dp-accounting's closed form for Gaussian noise; that m Gaussians are one is left to its user."""
    import dp_accounting as dpa

    precision = math.fsum(part.count / part.numbers[0] ** 2 for part in case.parts)
    return {"upper": float(dpa.get_epsilon_gaussian(1 / math.sqrt(precision), float(case.delta)))}


def smallest_noise(case: Case) -> Answer:
    """dp-accounting's own search for the noise of a sampled Gaussian; it picks its grid."""
    from dp_accounting.pld import accountant, common

    part = case.parts[0]
    target = common.DifferentialPrivacyParameters(case.target, float(case.delta))
    options = {"num_queries": part.count, "sampling_prob": part.numbers[1]}
    return {"upper": float(accountant.get_smallest_subsampled_gaussian_noise(target, **options))}


def calibrated(case: Case, interval: float) -> Answer:
    """dp-accounting's general calibration over its accountant, helped by where to look."""
    import dp_accounting as dpa

    part = case.parts[0]

    def steps(sigma: float) -> Any:
        step = dpa.PoissonSampledDpEvent(part.numbers[1], dpa.GaussianDpEvent(sigma))
        return dpa.SelfComposedDpEvent(step, part.count)

    fresh = functools.partial(dpa.pld.PLDAccountant, value_discretization_interval=interval)
    look = dpa.LowerEndpointAndGuess(1.0, 2.0)
    return {"upper": float(dpa.calibrate_dp_mechanism(fresh, steps, case.target, float(case.delta), look))}


def prv(case: Case, eps_error: float) -> Answer:
    """prv-accountant, with the error in delta that it advises."""
    import prv_accountant as prva

    make = {
        "gaussian": prva.GaussianMechanism,
        "laplace": lambda scale: prva.LaplaceMechanism(1 / scale),
        "randomized_response": lambda p: prva.PureDPMechanism(math.log(p / (1 - p))),
        "poisson_sampled": lambda sigma, q: prva.PoissonSubsampledGaussianMechanism(q, sigma),
    }
    if missing := {part.kind for part in case.parts} - set(make):
        raise NotImplementedError(f"no random variable for {', '.join(missing)}")
    delta, counts = float(case.delta), [part.count for part in case.parts]
    variables = [make[part.kind](*part.numbers) for part in case.parts]
    accountant = prva.PRVAccountant(variables, eps_error, delta / 1000, max_self_compositions=counts)
    lower, _, upper = accountant.compute_epsilon(delta, counts)
    return {"lower": lower, "upper": upper}


def prv_noise(case: Case, eps_error: float) -> Answer:
    """prv-accountant's search for the noise of DP-SGD."""
    from prv_accountant.dpsgd import find_noise_multiplier

    part = case.parts[0]
    sigma = find_noise_multiplier(part.numbers[1], part.count, case.target, float(case.delta), eps_error)
    return {"upper": float(sigma)}


class Setting(NamedTuple):
    """A library, how it is set, and the function that asks it."""

    library: str
    label: str
    ask: Callable[..., Answer]
    options: dict[str, Any]
    step: float = 0.0  # what makes it finer; 0 where nothing does


def settings_of(case: Case) -> Iterator[Setting]:
    """Yield what is run on a case, ours first, and each library from coarse to fine."""
    yield Setting(OURS, "", ours, {})
    if case.target is not None:
        yield Setting(GOOGLE, "smallest noise", smallest_noise, {})
        yield from (Setting(GOOGLE, f"PLD {h:.0e}", calibrated, {"interval": h}, h) for h in case.grids)
        yield from (Setting(MICROSOFT, f"error {e:g}", prv_noise, {"eps_error": e}, e) for e in (0.1, 0.01))
        return
    if all(part.kind == "gaussian" for part in case.parts):
        yield Setting(GOOGLE, "closed form", closed_form, {})
    yield Setting(GOOGLE, "RDP", rdp, {})
    yield from (Setting(GOOGLE, f"PLD {h:.0e}", pld, {"interval": h}, h) for h in case.grids)
    if float(case.delta) < DEEP:
        h = case.grids[0]
        yield Setting(GOOGLE, f"PLD {h:.0e}, less cut", pld, {"interval": h, "deep": True})
    yield from (Setting(MICROSOFT, f"error {e:g}", prv, {"eps_error": e}, e) for e in (0.1, 0.01))


# --- Filters: no peer has them ----------------------------------------------------------------------------------------

FILTERS = ("PureFilter", "AdvancedFilter", "ZCDPFilter", "GDPFilter", "RDPFilter", "choose_filter", "choose_union")
KINDS = ("identical", "a hundred different", "all different", "all different, sampled")


def make_filter(name: str) -> Any:
    """Return a filter with room for all events."""
    from sitr import accounting

    limits: dict[str, dict[str, float]] = {
        "PureFilter": {"epsilon": 1000},
        "AdvancedFilter": {"epsilon": 1000, "slack": 1e-6},
        "ZCDPFilter": {"rho": 100},
        "GDPFilter": {"mu": 100},
        "RDPFilter": {"alpha": 20, "epsilon": 1000},
        "choose_filter": {"epsilon": 100, "delta": 1e-6},
        "choose_union": {"epsilon": 100, "delta": 1e-6},
    }
    return getattr(accounting, name)(**limits[name])


def admit(name: str, kind: str) -> Answer:
    """Make the events and charge them, one by one. Gaussian noise, or Laplace where the filter needs bounded losses."""
    from sitr.accounting import Gaussian, Laplace, PoissonSampled

    noise = Laplace if name in ("PureFilter", "AdvancedFilter") else Gaussian
    spent = make_filter(name)
    different = {"identical": 1, "a hundred different": 100}.get(kind, EVENTS)
    for j in range(EVENTS):
        event = noise(100.0 + j % different / 100)
        spent.charge(PoissonSampled(event, 0.01) if kind.endswith("sampled") else event)
    return {"upper": float(EVENTS)}
