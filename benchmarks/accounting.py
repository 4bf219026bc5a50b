"""Our accountant beside dp-accounting and prv-accountant on the same jobs: time, memory, and distance from the truth.

Every library answers every question in a process of its own, which is told to stop after a time and at a size. The first
call after the imports is timed apart; then the call is repeated, with all memos of the library emptied in between, so
that each repetition does the whole job: it describes the events, composes them and asks for epsilon. The truth comes
from tests/accounting/references.json, which is computed another way and to 30 digits.

    make bench ROOM=accounting
    python benchmarks/accounting.py --quick --json results.json
"""

import argparse
import functools
import gc
import importlib.metadata
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

REFERENCES = Path(__file__).parent.parent / "tests" / "accounting" / "references.json"
OURS, GOOGLE, MICROSOFT = "sitr", "dp-accounting", "prv-accountant"
PACKAGES = ("sitr", "dp_accounting", "prv_accountant")  # whose memos are emptied between repetitions
MOST_RUNS, ENOUGH = 7, 4.0  # repeat this often, or for so many seconds
DEEP = 1e-9  # below this delta, dp-accounting is also run with its truncations made smaller
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
    that it may cut off are put under delta, which they are not by default.
    """
    delta = float(case.delta)
    total = sum(part.count for part in case.parts)
    tail = {"tail_mass_truncation": delta / 1000} if deep else {}
    cut = {"log_mass_truncation_bound": math.log(delta / 1000 / total)} if deep else {}
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
        yield from (Setting(GOOGLE, f"PLD {h:g}", calibrated, {"interval": h}, h) for h in case.grids)
        yield from (Setting(MICROSOFT, f"error {e:g}", prv_noise, {"eps_error": e}, e) for e in (0.1, 0.01))
        return
    if all(part.kind == "gaussian" for part in case.parts):
        yield Setting(GOOGLE, "closed form", closed_form, {})
    yield Setting(GOOGLE, "RDP", rdp, {})
    yield from (Setting(GOOGLE, f"PLD {h:g}", pld, {"interval": h}, h) for h in case.grids)
    if float(case.delta) < DEEP:
        options = {"interval": case.grids[0], "deep": True}
        yield Setting(GOOGLE, f"PLD {case.grids[0]:g}, less cut", pld, options)
    yield from (Setting(MICROSOFT, f"error {e:g}", prv, {"eps_error": e}, e) for e in (0.1, 0.01))


# --- Filters: no peer has them ----------------------------------------------------------------------------------------

FILTERS = ("PureFilter", "AdvancedFilter", "ZCDPFilter", "GDPFilter", "RDPFilter", "choose_filter")
KINDS = ("identical", "all different", "all different, sampled")


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
    }
    return getattr(accounting, name)(**limits[name])


def admit(name: str, kind: str) -> Answer:
    """Make the events and charge them, one by one. Gaussian noise, or Laplace where the filter needs bounded losses."""
    from sitr.accounting import Gaussian, Laplace, PoissonSampled

    noise = Laplace if name in ("PureFilter", "AdvancedFilter") else Gaussian
    spent = make_filter(name)
    for j in range(EVENTS):
        event = noise(100.0 if kind == "identical" else 100.0 + j / 100)
        spent.charge(PoissonSampled(event, 0.01) if kind.endswith("sampled") else event)
    return {"upper": float(EVENTS)}


# --- One job in a process of its own ----------------------------------------------------------------------------------


def forget() -> None:
    """Empty the memos of the libraries, so that the next call does all of its work."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and str(thing.__module__).split(".")[0] in PACKAGES:
            thing.cache_clear()


def measure(ask: Callable[[], Answer]) -> dict[str, Any]:
    """Time the first call, then more of them, each from the start."""
    times: list[float] = []
    answer: Answer = {}
    while not times or (len(times) <= MOST_RUNS and sum(times) + times[-1] < ENOUGH):
        forget()
        start = time.perf_counter()
        answer = ask()
        times.append(time.perf_counter() - start)
    later = times[1:] or times
    return {**answer, "first": times[0], "median": statistics.median(later), "runs": len(later)}


def child(job: dict[str, Any]) -> None:
    """Do one job and write what came of it to standard output."""
    signal.alarm(job["timeout"])  # ends this process, wherever it is
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"] << 30, job["memory"] << 30))
    warnings.simplefilter("ignore")
    try:
        if "filter" in job:
            warm_up = functools.partial(__import__, "sitr.accounting")
            ask = functools.partial(admit, job["filter"], job["kind"])
        else:
            case = BY_NAME[job["case"]]
            setting = next(s for s in settings_of(case) if (s.library, s.label) == (job["library"], job["setting"]))
            warm_up = functools.partial(import_library, setting.library)
            ask = functools.partial(setting.ask, case, **setting.options)
        warm_up()
        result = measure(ask)
    except Exception as error:
        result = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
    print(json.dumps(result))


def import_library(library: str) -> None:
    """Import what a library needs, so that no call pays for it."""
    names = {
        OURS: ("sitr.accounting",),
        GOOGLE: ("dp_accounting", "dp_accounting.pld.accountant"),
        MICROSOFT: ("prv_accountant", "prv_accountant.dpsgd"),
    }
    for name in names[library]:
        __import__(name)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job in a fresh process; its peak memory is counted by the kernel, and an early end is an answer too."""
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", json.dumps(job)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode == -signal.SIGALRM:
        result = {"error": f"no answer in {job['timeout']} s"}
    elif process.returncode != 0 or not text:
        result = {"error": f"the process ended with {process.returncode}"}
    else:
        result = json.loads(text.splitlines()[-1])
    return {**result, "megabytes": usage.ru_maxrss / 1024}


# --- The truth --------------------------------------------------------------------------------------------------------


class Truth(NamedTuple):
    """A value, how far it may be off, and where it is from."""

    value: float
    error: float
    source: str


def truth_of(case: Case, references: list[dict[str, Any]]) -> Truth | None:
    """Find the reference of a case, or else its golden value."""
    for known in references if case.target is None else ():
        same = known["event"] == case.text and float(known["delta"]) == float(case.delta)
        if same and known["kind"] == "epsilon":
            value = float(known["epsilon"])
            return Truth(value, known["error"] + 4e-16 * value, REFERENCES.name)
    if case.golden:
        return Truth(float(case.golden), 10.0 ** -len(case.golden.partition(".")[2]), "golden value")
    return None


def load_references() -> list[dict[str, Any]]:
    return json.loads(REFERENCES.read_text()) if REFERENCES.exists() else []


# --- Running everything -----------------------------------------------------------------------------------------------

Row = dict[str, Any]


def judge(row: Row, truth: Truth | None) -> Row:
    """Add to a row what follows from the truth: signed relative error, and whether it is on the wrong side."""
    upper, lower = row.get("upper"), row.get("lower")
    if upper is None or math.isinf(upper):
        return row
    if lower is not None:
        row["width"] = (upper - lower) / abs(upper)
    if truth is not None:
        row["off"] = (upper - truth.value) / truth.value
        row["under"] = upper < truth.value - truth.error
        row["over"] = lower is not None and lower > truth.value + truth.error
        row["blur"] = truth.error / truth.value
    return row


def hopeless(setting: Setting, before: Row | None, timeout: float) -> str:
    """Why a finer setting is not tried: the coarser one failed, or says that this one cannot end in time."""
    if before is None or not setting.step or not before["step"]:
        return ""
    if "error" in before:
        return "not tried: the coarser setting gave no answer"
    expected = before["first"] * before["step"] / setting.step
    return f"not tried: would take about {seconds(expected)}" if expected > timeout else ""


def run_case(case: Case, truth: Truth | None, limits: dict[str, int]) -> list[Row]:
    """Ask every library at every setting."""
    rows: list[Row] = []
    last: dict[str, Row] = {}
    for setting in settings_of(case):
        row = {"library": setting.library, "setting": setting.label, "step": setting.step}
        if why := hopeless(setting, last.get(setting.library), limits["timeout"]):
            row["error"] = why
        else:
            row |= run({"case": case.name, "library": setting.library, "setting": setting.label, **limits})
        rows.append(judge(row, truth))
        if setting.step:
            last[setting.library] = row
    return rows


def run_filters(limits: dict[str, int], quick: bool) -> list[Row]:
    """Let every filter admit every kind of event."""
    names = FILTERS[-1:] if quick else FILTERS
    return [
        {"filter": name, "kind": kind, **run({"filter": name, "kind": kind, **limits})}
        for name in names
        for kind in KINDS
    ]


# --- Words and tables -------------------------------------------------------------------------------------------------


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.3g} s"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.3g} ms"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 2) -> str:
    """Align columns; the first `left` of them to the left. A row may be shorter: its last cell is free text."""
    lines = [list(head), *map(list, rows)]
    full = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(len(line[k]) for line in full) for k in range(len(lines[0]))]
    for line in lines:
        for k in range(min(len(line), left)):
            widths[k] = max(widths[k], len(line[k]) if k < len(line) - 1 or len(line) == len(widths) else 0)

    def shown(line: list[str]) -> str:
        cells = [c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=False))]
        return "  " + "  ".join(cells).rstrip()

    return "\n".join(map(shown, lines))


def show_case(case: Case, truth: Truth | None, rows: list[Row]) -> str:
    """One job: a line that says what it is, and a table."""
    text = case.text if len(case.parts) <= 3 else f"{len(case.parts)} parts, from {case.parts[0]} to {case.parts[-1]}"
    what = "epsilon" if case.target is None else "noise"
    asked = f"delta = {case.delta}" if case.target is None else f"noise for ({case.target:g}, {case.delta})"
    known = f"{what} = {truth.value:.12g} ({truth.source})" if truth else "no reference"
    head = ("library", "setting", "first", "median", "runs", what, "off by", "width", "memory", "times ours")
    body = [_cells(row, rows[0]) for row in rows]
    return f"{case.name}: {text}; {asked}; {known}\n{table(head, body)}\n"


def _cells(row: Row, our: Row) -> list[str]:
    start = [row["library"], row["setting"]]
    if "error" in row:
        shown = row["error"] if len(row["error"]) <= 90 else row["error"][:87] + "..."
        return [*start, f"{shown} [{row['megabytes']:.0f} MB]" if "megabytes" in row else shown]
    ratio = row["median"] / our["median"] if "median" in our and row is not our else None
    return [
        *start,
        seconds(row["first"]),
        seconds(row["median"]),
        str(row["runs"]),
        f"{row['upper']:.10g}",
        (f"{row['off']:+.1e}" + (" UNDER" if row["under"] else "")) if "off" in row else "",
        f"{row['width']:.1e}" if "width" in row else "",
        f"{row['megabytes']:.0f} MB",
        f"{ratio:.3g}" if ratio is not None else "",
    ]


def show_filters(rows: list[Row]) -> str:
    """The table of filters."""
    head = ("filter", "events", "first", "median", "runs", "memory")
    body = [
        [row["filter"], row["kind"], row["error"]]
        if "error" in row
        else [
            row["filter"],
            row["kind"],
            seconds(row["first"]),
            seconds(row["median"]),
            str(row["runs"]),
            f"{row['megabytes']:.0f} MB",
        ]
        for row in rows
    ]
    return f"Filters: {EVENTS} events made and admitted; no peer has filters\n{table(head, body)}\n"


# --- What follows -----------------------------------------------------------------------------------------------------


def label(row: Row) -> str:
    return f"{row['library']} {row['setting']}".strip()


def faster(row: Row, our: Row) -> bool:
    return row["median"] < our["median"] or row["first"] < our["first"]


def closer(row: Row, our: Row) -> bool:
    """Whether a row is nearer to the truth than ours, beyond what the truth itself may be off by; or narrower."""
    nearer = "off" in row and "off" in our and abs(row["off"]) + row["blur"] < abs(our["off"]) - row["blur"]
    return nearer or row.get("width", math.inf) < our.get("width", 0.0)


def compare(row: Row, our: Row) -> str:
    """Times and distances of a row and of ours, in words."""
    text = f"{seconds(row['median'])} (first call {seconds(row['first'])})"
    text += f", ours {seconds(our['median'])} ({seconds(our['first'])})"
    if "off" in row:
        text += f"; off by {row['off']:+.1e}{', which is under the truth' if row['under'] else ''}"
        text += f", ours {our['off']:+.1e}"
    return text


def answered(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if "upper" in row and math.isfinite(row["upper"])]


def losses(results: dict[str, list[Row]]) -> dict[str, list[str]]:
    """List, over all cases, where a peer did better than we, by the way in which it did."""
    found: dict[str, list[str]] = {
        "No answer from us, one from a peer": [],
        "A peer is faster, and at least as close": [],
        "A peer is faster, and further off": [],
        "A peer is slower, and closer": [],
    }
    none, both, loose, slow = found.values()
    for name, (our, *peers) in results.items():
        for row in answered(peers):
            if not answered([our]):
                none.append(f"{name}: {label(row)} answers {row['upper']:.8g}; ours: {our.get('error', 'infinite')}")
                continue
            worse = "off" not in row or abs(row["off"]) > abs(our["off"]) + row["blur"]
            if faster(row, our):
                (loose if worse else both).append(f"{name}: {label(row)}: {compare(row, our)}")
            elif closer(row, our):
                slow.append(f"{name}: {label(row)}: {compare(row, our)}")
    return found


def wrong_side(results: dict[str, list[Row]]) -> list[str]:
    """List every answer that promises more privacy than there is, ours included, and every bracket above the truth."""
    return [
        f"{name}: {label(row)}: {row['upper']:.10g} ({row['off']:+.1e})"
        for name, rows in results.items()
        for row in rows
        if row.get("under") or row.get("over")
    ]


def no_answer(results: dict[str, list[Row]]) -> list[str]:
    """List what ended without a finite number."""
    return [
        f"{name}: {label(row)}: {row.get('error', 'infinite')[:110]}"
        for name, rows in results.items()
        for row in rows
        if row not in answered(rows)
    ]


def goals(results: dict[str, list[Row]], filters: list[Row]) -> list[str]:
    """Say how the numbers stand to what was asked of this library."""
    lines = []
    for name, needed in (*((name, 20) for name in SGD), ("200 different events", 10)):
        our, *peers = results.get(name, [{}])
        for row in answered(peers) if answered([our]) else ():
            if row["setting"].startswith("PLD"):
                lines.append(f"{name}: {row['median'] / our['median']:.3g} times as fast as {label(row)}; asked: {needed}")
    sizes = [rows[0]["megabytes"] for rows in results.values()]
    lines += [f"memory, over all cases: at most {max(sizes):.0f} MB; asked: 500 MB"] if sizes else []
    times = [row["first"] for row in filters if "first" in row]
    lines += [f"{EVENTS} events through the slowest filter: {seconds(max(times))}; asked: 1 s"] if times else []
    return lines


def listed(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines or ["nowhere in this run"]), ""])


# --- The command ------------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    import sitr

    found = {"Python": platform.python_version(), OURS: sitr.__version__}
    for name in (GOOGLE, MICROSOFT, "numpy", "scipy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cases, about a minute and a half")
    parser.add_argument("--only", metavar="WORD", help="only cases whose name has this word; `filters` for the filters")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    parser.add_argument("--timeout", type=int, default=90, metavar="SECONDS", help="for one library on one case")
    parser.add_argument("--memory", type=int, default=8, metavar="GIBIBYTES", help="address space of one process")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the jobs, print the tables, and then what they say."""
    options = arguments()
    if options.child:
        child(options.child)
        return
    limits = {"timeout": options.timeout, "memory": options.memory}
    started, references, word = time.perf_counter(), load_references(), options.only or ""
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    print("first: the first call after the imports; median: of the calls after it, with memos emptied between them")
    print("off by: of the upper end, against the reference; + is the safe side; width: of the bracket; both relative\n")
    results: dict[str, list[Row]] = {}
    truths: dict[str, Truth | None] = {}
    for case in CASES:
        if word in case.name and (case.quick or not options.quick):
            truths[case.name] = truth_of(case, references)
            results[case.name] = run_case(case, truths[case.name], limits)
            print(show_case(case, truths[case.name], results[case.name]), flush=True)
    filters = run_filters(limits, options.quick) if word in "filters" else []
    if filters:
        print(show_filters(filters))
    lost = losses(results)
    print(listed("What was asked", goals(results, filters)))
    print("WHERE WE LOSE\n")
    for title, lines in lost.items():
        print(listed(title, lines))
    print(listed("ON THE WRONG SIDE: answers under the truth, brackets beside it", wrong_side(results)))
    print(listed("NO ANSWER", no_answer(results)))
    print(f"The whole run took {seconds(time.perf_counter() - started)}.")
    if options.json:
        record = {
            "versions": versions(),
            "limits": limits,
            "truths": {name: truth and truth._asdict() for name, truth in truths.items()},
            "results": results,
            "filters": filters,
            "losses": lost,
            "wrong_side": wrong_side(results),
        }
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
