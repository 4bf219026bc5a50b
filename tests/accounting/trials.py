"""Trees put to the accountant: what it says beside the truth, and how it behaves while it says it.

A failure is a bracket that misses the truth, a law that two answers break together, an exception that is not ours, a
warning, or a call that takes more time or memory than any may.
"""

import math
import resource
import signal
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sitr import accounting
from sitr.accounting import Bracket
from sitr.errors import SitrError
from tests.accounting.outcomes import MP, Normal
from tests.accounting.trees import CLAIMS, Question, Tree, drawn
from tests.accounting.truths import MOST_COUNT, MOST_TERMS, infinite_masses, truth_of

MOST_SECONDS = 2.0  # of processor time, for one call
GIVE_UP = 6.0  # and after so much it is stopped
MOST_BYTES = 2**30
NEAR = MP.mpf(10) ** -40  # relative error of what is computed at 100 digits, by far
ROUNDING = MP.mpf(10) ** -9  # allowed to floats that are no brackets
ORDERS = (1.0, 1.5, 2.0, 8.0, 64.0)
HIDING = ("PoissonSampled", "SampledWithoutReplacement", "ShuffledReports")  # who costs no more than what is inside
GAPS = (1e-6, 1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0, 30.0)  # lengths of chords
ANYWAY = ("epsilon", "delta", "tradeoff", "bad_outcome", "loss_tail", "infinite_mass")  # answered for every event


@dataclass(frozen=True)
class Failure:
    """What went wrong, where, and what is true."""

    kind: str
    check: object
    tree: Tree
    said: str

    def __str__(self):
        return f"{self.kind}: {self.check.text(self.tree)}\n    {self.said}"


@dataclass(frozen=True)
class Call:
    """One call of the accountant."""

    text: str
    seconds: float
    megabytes: float


class TooLong(BaseException):
    """A call was stopped."""


@dataclass
class Campaign:
    """Runs trees, counts checks, and keeps what failed and what was slow."""

    seconds: float | None = GIVE_UP
    checked: Counter = field(default_factory=Counter)
    slowest: list[Call] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def run(self, seed, deepest=3, laws_too=True, **shares):
        """Put the tree of one seed to the accountant; laws and calibrations take as long as all the questions."""
        tree, questions, draw = drawn(seed, deepest, **shares)
        try:
            tree.event()
        except SitrError:  # a count beyond what is accepted, say
            self.checked["refused tree"] += 1
            return
        questions += [Question("loss_tail", questions[0].argument), *near_mass(tree, draw)]
        more = [*laws(tree, questions), *calibrations(draw)] if laws_too else []
        for check in [*map(Answered, questions), *more]:
            self.failures += self.check(check, tree)

    def check(self, check, tree):
        """The failures of one check."""
        self.checked[check.name] += 1
        meter = Meter(check, tree, self.seconds)
        try:
            meter.failures += [Failure(kind, check, tree, said) for kind, said in check.judge(tree, meter)]
        except Refused:
            self.checked["no answer"] += 1
        self.slowest = sorted([*self.slowest, *meter.calls], key=lambda call: -call.seconds)[:10]
        self.checked["calls"] += len(meter.calls)
        return meter.failures


def near_mass(tree, draw):
    """ε at a δ not far above the mass at infinity, where little of δ is left for finite losses."""
    mass = float(max(infinite_masses(tree)))
    delta = mass * (1 + draw.logs(1e-6, 3))
    return [Question("epsilon", delta)] if mass > 0 and delta < 1 and draw.chance(0.5) else []


class Refused(Exception):
    """The accountant gave no answer, and that has been dealt with."""


class Meter:
    """Calls the accountant, and watches it."""

    def __init__(self, check, tree, seconds):
        self.check, self.tree, self.seconds = check, tree, seconds
        self.failures, self.calls = [], []

    def call(self, ask, may_refuse=True):
        """What `ask` returns; whatever else it does is a failure."""
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            started, before = time.process_time(), _peak(reset=True)
            try:
                with _limits(self.seconds):
                    value = ask()
            except SitrError as refusal:
                if not may_refuse:
                    self._fail("refused", refusal)
                raise Refused from None
            except TooLong:
                self._fail("too long", f"stopped after {self.seconds:g} s")
                raise Refused from None
            except MemoryError as error:
                self._fail("memory", error)
                raise Refused from None
            except Exception as error:
                self._fail("bare exception", f"{type(error).__name__}: {error}")
                raise Refused from None
            finally:
                spent, size = time.process_time() - started, _peak() - before
                self.calls.append(Call(self.check.text(self.tree), spent, size / 2**20))
        if heard:
            self._fail("warning", f"{heard[0].category.__name__}: {heard[0].message}")
        if self.seconds is not None and spent > MOST_SECONDS:
            self._fail("too long", f"{spent:.2f} s")
        return value

    def _fail(self, kind, said):
        self.failures.append(Failure(kind, self.check, self.tree, str(said)))


@contextmanager
def _limits(seconds):
    """Within: no more memory than MOST_BYTES beyond what is there, and, where asked for, no more time."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, hard))
    if seconds is not None:
        before = signal.signal(signal.SIGPROF, _stop)
        signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        if seconds is not None:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _stop(*_):
    raise TooLong


def _peak(reset=False):
    """The largest resident size since it was reset, in bytes."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    row = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("VmHWM"))
    return int(row.split()[1]) * 1024


# --- Brackets beside the truth ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answered:
    """One question: the answer must hold the truth."""

    question: Question

    @property
    def name(self):
        return ("group: " if self.question.group > 1 else "") + self.question.name

    def text(self, tree):
        return f"({tree}){self.question}"

    def judge(self, tree, meter):
        question = self.question
        pure = question.name == "epsilon" and question.argument == 0
        sure = question.name in ANYWAY and question.group == 1 and not pure
        found = meter.call(lambda: question.ask(tree.event()), may_refuse=not sure)
        if isinstance(found, Bracket):
            yield from malformed(question.name, found)
        yield from JUDGES[question.name](tree, question, found)


def malformed(name, found):
    """What is wrong with a bracket by itself."""
    ends = float(found.lower), float(found.upper)
    most = math.inf if name == "epsilon" else 1.0
    if not 0 <= ends[0] <= ends[1] <= most:
        yield "malformed", f"{found} is not within [0, {most:g}] in this order"


def holds_delta(tree, question, found):
    low, high = truth_of(tree, question.group).delta(question.argument)
    yield from missed(found, low, high)


def missed(found, low, high):
    """A bracket that contradicts two bounds on the truth."""
    if MP.mpf(found.upper) < low * (1 - NEAR):
        near = _ulps(MP.mpf(found.upper), low)
        yield f"false upper end{near}", f"{found}; the truth is at least {MP.nstr(MP.mpf(low), 17)}"
    if MP.mpf(found.lower) > high * (1 + NEAR):
        near = _ulps(high, MP.mpf(found.lower))
        yield f"false lower end{near}", f"{found}; the truth is at most {MP.nstr(MP.mpf(high), 17)}"


def _ulps(small, large):
    """Misses by a few units of the last place are a kind of their own."""
    return " by its rounding" if large - small < large * MP.mpf(2) ** -48 else ""


def holds_epsilon(tree, question, found):
    truth, delta = truth_of(tree, question.group), MP.mpf(question.argument)
    if math.isfinite(found.upper):
        least = truth.below.delta(found.upper)
        if least * (1 - NEAR) > delta:
            yield "false upper end", f"{found}; δ there is at least {MP.nstr(MP.mpf(least), 12)}"
    if found.lower > 0 and delta > 0:
        most = truth.above.delta(min(found.lower, 1e15))
        if most * (1 + NEAR) < delta:
            yield "false lower end", f"{found}; δ there is at most {MP.nstr(MP.mpf(most), 12)}"


def holds_tradeoff(tree, question, found):
    low, high = truth_of(tree, question.group).power(question.argument)
    room = 2**-50 * MP.one  # 1 - f is rounded
    yield from missed(found, 1 - high - room, 1 - low + room)


def holds_power(tree, question, found):
    low, high = truth_of(tree, question.group).power(question.argument)
    yield from missed(found, low * (1 - MP.mpf(2) ** -50), high + MP.mpf(2) ** -50)


def holds_tail(tree, question, found):
    """Chords of the true profile bound the largest tail: from below to the right, from above to the left."""
    truth, x = truth_of(tree, question.group), question.argument
    least, most = truth.below.delta(x), MP.one
    here = least
    for gap in GAPS:
        after, before = x + gap, x - gap
        if after > x:
            chord = here + (here - truth.above.delta(after)) / MP.expm1(MP.mpf(after) - MP.mpf(x))
            least = max(least, chord)
        if before < x:
            above = truth.above.delta(abs(before))
            above = above if before >= 0 else -MP.expm1(before) + MP.exp(before) * above
            most = min(most, above / -MP.expm1(MP.mpf(before) - MP.mpf(x)))
    if truth.above.delta(x) == 0:  # then no loss is above x, and none can be
        most = MP.zero
    yield from missed(found, least, most)


def holds_mass(tree, question, found):
    low = max(infinite_masses(tree))
    exact = not any(inner.kind in CLAIMS for inner in tree.walk())
    room = low * MP.mpf(10) ** -12
    many = MOST_COUNT * MP.mpf(2) ** -1074  # each of many events may add the smallest number there is
    if found < low - room or (exact and found > low + room + many):
        yield "false infinite mass", f"{found!r}; the truth is {MP.nstr(low, 15)}"


def divergence(tree, alpha):
    """D_α from below, the larger of both orders, at 100 digits where it is known."""
    side = truth_of(tree).below
    if not side.is_exact or side.pairs.p_only or side.pairs.q_only or not side.pairs.p.size:
        return None
    if side.whole is not None and (not isinstance(side.whole, Normal) or math.isinf(alpha)):
        return None
    noise = 0 if side.whole is None else MP.mpf(alpha) * side.whole.m**2 / 2
    return max(pairs.renyi(alpha) for pairs in (side.pairs, side.pairs.swapped)) + noise


def is_known(tree):
    """Whether the Rényi curve is known; of several events on one sample it is only bounded between whole orders.

    The truth cuts a continuous law where it is sampled or repeated, so that its curve is only bounded from below.
    """
    for inner in tree.walk():
        if inner.kind == "PoissonSampled" and any(one.kind in ("Composed", "Gaussian") for one in inner.walk()):
            return False
        if inner.kind in ("SampledWithoutReplacement", "ShuffledReports"):
            return False
    loose = CLAIMS | {"Exponential", "DiscreteGaussian", "Laplace"}
    counts = [count for inner in tree.walk() for _, count in inner.inside]
    counts += [inner.get("epochs", 1) for inner in tree.walk()]
    reach = (inner.get("sensitivity", 1) for inner in tree.walk())
    few = max(counts, default=1) <= MOST_COUNT and max(reach) <= MOST_TERMS
    return few and not any(inner.kind in loose for inner in tree.walk())


def holds_renyi(tree, question, found):
    truth = divergence(tree, question.argument or math.inf)
    if truth is None:
        return
    if found < truth * (1 - ROUNDING) - MP.mpf(10) ** -15:
        yield "false Rényi divergence", f"{found!r}; the truth is at least {MP.nstr(truth, 15)}"
    if is_known(tree) and found > truth * (1 + ROUNDING) + MP.mpf(10) ** -13:
        yield "loose Rényi divergence", f"{found!r}; the truth is {MP.nstr(truth, 15)}"


def holds_mean(tree, question, found):
    if math.isfinite(found):
        yield from holds_renyi(tree, Question("rdp", 1.0), found)


def holds_zcdp(tree, question, found):
    for alpha in ORDERS:
        truth = divergence(tree, alpha)
        if truth is not None and truth * (1 - ROUNDING) > found.xi + found.rho * alpha:
            yield "false zCDP", f"{found}; D_{alpha:g} is at least {MP.nstr(truth, 15)}"
            return


def holds_cdp(tree, question, found):
    truth = divergence(tree, 1.0)
    if truth is not None and truth * (1 - ROUNDING) > found.mu:
        yield "false CDP", f"{found}; the mean loss is at least {MP.nstr(truth, 15)}"


def holds_gdp(tree, question, found):
    below = truth_of(tree).below
    if below.is_exact and 0 < found < math.inf:
        overlap, claimed = 1 - below.delta(0), 2 * MP.ncdf(-MP.mpf(found) / 2)
        if NEAR < overlap < claimed * (1 - ROUNDING):  # of less, no digits are left
            yield "false Gaussian DP", f"{found!r}; 1 - δ(0) is at most {MP.nstr(overlap, 12)}"
            return
    for epsilon in (0, found / 2, found * found):
        claimed = Normal(MP.mpf(found)).profile(MP.mpf(epsilon))[0] if 0 < found < math.inf else found > 0
        least = below.delta(epsilon)
        if least > claimed * (1 + ROUNDING) + MP.mpf(10) ** -15:
            yield "false Gaussian DP", f"{found!r}; δ({float(epsilon):g}) is at least {MP.nstr(MP.mpf(least), 12)}"
            return


JUDGES = {
    "delta": holds_delta,
    "epsilon": holds_epsilon,
    "tradeoff": holds_tradeoff,
    "bad_outcome": holds_power,
    "loss_tail": holds_tail,
    "infinite_mass": holds_mass,
    "rdp": holds_renyi,
    "pure": holds_renyi,
    "expected_loss": holds_mean,
    "zcdp": holds_zcdp,
    "cdp": holds_cdp,
    "gdp": holds_gdp,
}


# --- Laws that two answers keep together ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """Two answers that cannot both be true."""

    name: str
    argument: float

    def text(self, tree):
        return f"[{self.name}, {self.argument!r}] {tree}"

    def judge(self, tree, meter):
        try:
            yield from LAWS[self.name](tree, self.argument, lambda event, name, x: self._ask(meter, event, name, x))
        except SitrError:  # a law that cannot be stated for this tree: twice its count is beyond what is accepted, say
            raise Refused from None

    @staticmethod
    def _ask(meter, event, name, x):
        return meter.call(lambda: getattr(event, name)(x), may_refuse=False)


def inverse(tree, delta, ask):
    """ε(δ) and δ(ε) are inverse to each other."""
    event = tree.event()
    epsilon = ask(event, "epsilon", delta)
    if math.isfinite(epsilon.upper) and epsilon.upper <= 1e15:
        there = ask(event, "delta", epsilon.upper)
        if there.lower > delta * (1 + 1e-12):
            yield "broken law", f"epsilon({delta!r}) is {epsilon}, and delta({epsilon.upper!r}) {there}"
    if 0 < epsilon.lower <= 1e15:
        there = ask(event, "delta", epsilon.lower)
        if there.upper < delta * (1 - 1e-12):
            yield "broken law", f"epsilon({delta!r}) is {epsilon}, and delta({epsilon.lower!r}) {there}"


def monotone(tree, epsilon, ask):
    """δ does not rise with ε."""
    event = tree.event()
    near, far = ask(event, "delta", epsilon), ask(event, "delta", 1.1 * epsilon + 1e-3)
    if far.lower > near.upper:
        yield "broken law", f"delta({epsilon!r}) is {near}, and delta({1.1 * epsilon + 1e-3!r}) {far}"


def parts_cost_less(tree, epsilon, ask):
    """A composition costs no less than any of its parts, nor a claim than who makes it; a sample costs no more."""
    whole = ask(tree.event(), "delta", epsilon)
    for inner, _ in tree.inside:
        part = ask(inner.event(), "delta", epsilon)
        less, more = (whole, part) if tree.kind in HIDING else (part, whole)
        if less.lower > more.upper:
            yield "broken law", f"delta({epsilon!r}) is {whole}, and of the part {inner} it is {part}"


def everyone_sampled(tree, epsilon, ask):
    """A sample of everyone is no sample, and nearly everyone nearly none."""
    event = tree.event()
    if event.adjacency == "replace_one":
        return
    plain = ask(event, "delta", epsilon)
    sampled = ask(accounting.PoissonSampled(event, 1.0), "delta", epsilon)
    if (plain.lower, plain.upper) != (sampled.lower, sampled.upper):
        yield "broken law", f"delta({epsilon!r}) is {plain}, and {sampled} where everyone is sampled"
    nearly = ask(accounting.PoissonSampled(event, 1 - 2**-53), "delta", epsilon)
    # What only Q can produce has a finite loss in a sample, -ln(1-q): beyond that it no longer fails.
    less = epsilon < 30 and nearly.upper * (1 + 1e-12) + 1e-12 < plain.lower * (1 - 1e-3)
    if nearly.lower > plain.upper or less:
        yield "broken law", f"delta({epsilon!r}) is {plain}, and {nearly} where nearly everyone is sampled"


def doubled(tree, epsilon, ask):
    """Twice is one and one more, and costs no less than once."""
    event = tree.event()
    if event * 2 != event + event:
        yield "broken law", "event * 2 is not event + event"
    once, twice = ask(event, "delta", epsilon), ask(event * 2, "delta", epsilon)
    if once.lower > twice.upper:
        yield "broken law", f"delta({epsilon!r}) is {once}, and {twice} for two"


LAWS = {
    "inverse": inverse,
    "monotone": monotone,
    "parts": parts_cost_less,
    "everyone": everyone_sampled,
    "doubled": doubled,
}


def laws(tree, questions):
    """A law for one tree, at what is asked of it."""
    epsilon, delta = questions[0].argument, questions[1].argument
    name = ("inverse", "inverse", "monotone", "parts", "parts", "everyone", "doubled")[len(str(tree)) % 7]
    if name == "inverse":
        return [Law(name, delta)] if delta > 0 else []
    return [Law(name, epsilon)] if epsilon <= 5e3 else []


# --- Calibrations -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibrated:
    """A calibration: what it returns must keep its target."""

    parameter: str
    epsilon: float
    delta: float
    count: int

    @property
    def name(self):
        return f"calibrated {self.parameter}"

    def text(self, tree):
        target = f"epsilon={self.epsilon!r}, delta={self.delta!r}"
        if self.parameter == "count":
            return f"calibrate_count({tree}, {target})"
        make = "PoissonSampled(event, q)" if self.parameter == "rate" else f"Gaussian(s) * {self.count} + event"
        return f"calibrate [{make} for event={tree}] to {target}"

    def judge(self, tree, meter):
        event, target = tree.event(), {"epsilon": self.epsilon, "delta": self.delta}
        if self.parameter == "rate" and event.adjacency == "replace_one":
            raise Refused
        if self.parameter == "count":
            found = meter.call(lambda: accounting.calibrate_count(event, **target))
            made = Tree("Composed", (), ((tree, found.value),))
        elif self.parameter == "rate":
            found = meter.call(
                lambda: accounting.calibrate_sampling_prob(lambda q: accounting.PoissonSampled(event, q), **target)
            )
            made = Tree("PoissonSampled", (("sampling_prob", found.value),), ((tree, 1),))
        else:
            found = meter.call(
                lambda: accounting.calibrate_noise(lambda s: accounting.Gaussian(s) * self.count + event, **target)
            )
            noise = Tree("Gaussian", (("noise_multiplier", found.value),))
            made = Tree("Composed", (), ((noise, self.count), (tree, 1)))
        if found.achieved.upper > self.epsilon:
            yield "missed target", f"{found.value!r} achieves {found.achieved}"
        least = truth_of(made).below.delta(self.epsilon)
        if least > self.delta:
            yield "missed target", f"{found.value!r}; δ is at least {MP.nstr(MP.mpf(least), 12)}"


def calibrations(draw):
    """Now and then one."""
    if not draw.chance(0.03):
        return []
    parameter = draw.random.choice(["count", "rate", "noise"])
    return [Calibrated(parameter, draw.logs(0.05, 5), draw.rounded(draw.logs(1e-10, 0.1)), draw.random.randint(1, 50))]


# --- Shrinking --------------------------------------------------------------------------------------------------------


def shrunk(failure, seconds=10.0):
    """The smallest tree that was found to fail the same check in the same way."""
    campaign, until = Campaign(), time.monotonic() + seconds
    best, changed = failure, True
    while changed and time.monotonic() < until:
        changed = False
        for tree in best.tree.smaller():
            if time.monotonic() > until:
                break
            again = _same(campaign, failure, tree)
            if again is not None:
                best, changed = again, True
                break
    return best


def _same(campaign, failure, tree):
    try:
        tree.event()
        again = campaign.check(failure.check, tree)
    except Exception:  # a smaller tree that is no event, or of which no truth is known
        return None
    return next((found for found in again if found.kind == failure.kind), None)
