"""What a training run does and costs: public numbers, fixed before any example is seen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from .. import _validate
from ..accounting import (
    ApproximateDP,
    Bracket,
    Event,
    Gaussian,
    PoissonSampled,
    ShuffledEpochs,
    calibrate_count,
    calibrate_noise,
)
from ..display import counted, rounded_up, scientific
from ..errors import InvalidArgument, InvalidRecord
from ..units import Adjacency
from .correlated import MOST_BANDS, BandedNoise
from .correlated import MOST_STEPS as MOST_CORRELATED_STEPS

Sampling = Literal["poisson", "shuffle"]
Clipping = Literal["flat", "per_layer", "automatic", "adaptive"]
Noise = Literal["exact", "float"]

SAMPLINGS: tuple[Sampling, ...] = ("poisson", "shuffle")
CLIPPINGS: tuple[Clipping, ...] = ("flat", "per_layer", "automatic", "adaptive")
NOISES: tuple[Noise, ...] = ("exact", "float")

MOST_EXAMPLES = 10**12
MOST_STEPS = 10**9
LEAST_NORM, MOST_NORM = 1e-9, 1e9
LEAST_NOISE, MOST_NOISE = 0.01, 1e6

SMOOTHING = 4.0  # the variance, in grid steps, that discrete noise gives up to pass for a Gaussian (THEORY 3.5),
MOST_CELLS = 2**26  # how many grid steps one example may move the sum in ℓ2,
LEAST_SCALE = 32.0  # and how many the noise has at least: then
OUTSIDE = 1e-50  # it passes for one in each step but for this chance (`test_plan` works it out)

FRACTION_OF_BATCH = 0.1  # the noise on what is measured beside gradients: of the batch,
BESIDE = 4.0  # but at least so many times the noise multiplier, so that it takes little from the gradients
VERSION = 1


@dataclass(frozen=True)
class TrainingPlan:
    """A training run as it is charged; made by `plan`.

    Attributes:
        n: How many examples there are, publicly.
        batch: How many of them a step takes on average; what a sum of gradients is divided by.
        steps: How many noisy updates.
        max_grad_norm: The ℓ2 norm that the gradient of one example is clipped to; the first one of adaptive clipping.
        noise_multiplier: The noise over `max_grad_norm` that is charged for: gradients have no less.
        delta: The δ at which ε is told.
        sampling: "poisson" or "shuffle".
        clipping: "flat", "per_layer", "automatic" or "adaptive".
        noise: "exact" or "float".
        quantile: Which part of the gradients adaptive clipping leaves as they are.
        loss_bound: Up to what each loss is measured privately; None where losses are not measured.
        bands: Over how many steps the noise is correlated; 1 is independent noise.

    Privacy: `event` is what the whole run costs. Each step is the Gaussian mechanism on a sum that one example moves by
    at most `max_grad_norm` (THEORY 7.1). Discrete noise passes for a Gaussian with less variance, but for a chance of
    1e-50 a step (THEORY 3.5). Correlated noise is that of `BandedNoise`: an example that was in a step is out of the
    `bands - 1` that follow (decision 0034).

    Example:
        >>> made = plan(n=60_000, batch=256, max_grad_norm=1.0, delta=1e-5, steps=14_062, noise_multiplier=1.1)
        >>> round(float(made.epsilon()), 4)
        2.3816
    """

    n: int
    batch: int
    steps: int
    max_grad_norm: float
    noise_multiplier: float
    delta: float
    sampling: Sampling = "poisson"
    clipping: Clipping = "flat"
    noise: Noise = "exact"
    quantile: float | None = None
    loss_bound: float | None = None
    bands: int = 1

    def __post_init__(self) -> None:
        n = _validate.integer("n", self.n, 1, MOST_EXAMPLES)
        checked = {
            "n": n,
            "batch": _validate.integer("batch", self.batch, 1, n),
            "steps": _validate.integer("steps", self.steps, 1, MOST_STEPS),
            "max_grad_norm": _validate.real("max_grad_norm", self.max_grad_norm, LEAST_NORM, MOST_NORM),
            "noise_multiplier": _validate.real("noise_multiplier", self.noise_multiplier, LEAST_NOISE, MOST_NOISE),
            "delta": _validate.real("delta", self.delta, 0, 1, open_low=True, open_high=True),
            "sampling": _validate.choice("sampling", self.sampling, SAMPLINGS),
            "clipping": _validate.choice("clipping", self.clipping, CLIPPINGS),
            "noise": _validate.choice("noise", self.noise, NOISES),
            "bands": _validate.integer("bands", self.bands, 1, MOST_BANDS),
        }
        if self.clipping == "adaptive":
            share = _validate.real("quantile", self.quantile, 0, 1, open_low=True, open_high=True)
            checked["quantile"] = share
        elif self.quantile is not None:
            raise InvalidArgument("quantile is of adaptive clipping.", do='leave it out, or pass clipping="adaptive".')
        if self.loss_bound is not None:
            checked["loss_bound"] = _validate.real("loss_bound", self.loss_bound, 0, 1e9, open_low=True)
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.sampling == "shuffle" and self.steps % self.steps_per_epoch:
            raise InvalidArgument(
                f"steps={self.steps} are no whole passes over the examples, of {self.steps_per_epoch} steps each.",
                why="what a shuffled pass costs is known for whole passes.",
                do=f"pass steps={self.steps_per_epoch * max(round(self.steps / self.steps_per_epoch), 1)}.",
            )
        if self.bands > 1:
            self._check_bands()

    def _check_bands(self) -> None:
        """Refuse correlations under which an example could be in two steps that the noise connects."""
        _validate.integer("steps", self.steps, self.bands, MOST_CORRELATED_STEPS)
        batches = self.n // self.batch if self.sampling == "poisson" else self.steps_per_epoch
        if self.bands > batches:
            raise InvalidArgument(
                f"bands={self.bands} are more than the {batches:,} batches that all examples make.",
                why="who was in a step is out of all that its noise is correlated with, so others have to be left.",
                do=f"pass bands={batches} at most, or smaller batches.",
            )

    @property
    def rate(self) -> Fraction:
        """The chance of an example to be in a step of Poisson sampling, where it is the turn of its group.

        With one band there is one group: exactly batch/n.
        """
        return Fraction(self.batch * self.bands, self.n)

    @property
    def correlation(self) -> BandedNoise | None:
        """How the noise is correlated over steps; None where it is independent.

        Example:
            >>> made = plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, noise_multiplier=4.0, bands=3)
            >>> made.correlation
            BandedNoise(coefficients=(256, 175, 142), steps=50)
        """
        return _best_noise(self.bands, self.steps) if self.bands > 1 else None

    @property
    def steps_per_epoch(self) -> int:
        """How many steps a shuffled pass has; the last one may be on fewer examples."""
        return -(-self.n // self.batch)

    @property
    def adjacency(self) -> Adjacency:
        """Between which data sets the promise is: shuffled passes have one of public size."""
        return "add_remove" if self.sampling == "poisson" else "replace_one"

    @property
    def event(self) -> Event:
        """All that the run does, as the ledger is charged."""
        return self.event_between(0, self.steps)

    def event_between(self, first: int, last: int) -> Event:
        """Return what the steps from `first` up to, and without, `last` cost.

        Privacy: Poisson draws of different steps are independent, so steps compose (THEORY 2.7, 4.5). Of a shuffled
        pass, however few of its steps are made, an example is in one at most, and moves the sum by twice the norm where
        it is replaced (THEORY 1.1, 4.9). With correlated noise a step moves what is released in a block of rows of its
        own, as far as one release of this noise: an example has as many as its group has turns, and in passes of one
        order as many as fit a whole pass apart (decision 0034).

        Example:
            >>> made = plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, noise_multiplier=4.0)
            >>> made.event_between(0, 2) + made.event_between(2, 50) == made.event
            True
        """
        first = _validate.integer("first", first, 0, self.steps)
        last = _validate.integer("last", last, first + 1, self.steps)
        if self.sampling == "poisson":
            return self._step_event() * -(-(last - first) // self.bands)
        if self.bands > 1:
            return ShuffledEpochs(self._step_event(), -(-(last - first) // self.steps_per_epoch))
        return ShuffledEpochs(self._step_event(), -(-last // self.steps_per_epoch) - first // self.steps_per_epoch)

    def _step_event(self) -> Event:
        """One step; of a shuffled pass, what is run on a batch."""
        if self.sampling == "poisson":
            step: Event = PoissonSampled(Gaussian(self.noise_multiplier), at_least(self.rate))
        else:
            step = Gaussian(self.noise_multiplier / 2, adjacency="replace_one")
        # What is measured beside gradients has exact noise always.
        return step + ApproximateDP(0.0, OUTSIDE) if self.noise == "exact" or self.measured else step

    def epsilon(self, delta: float | None = None) -> Bracket:
        """Return the ε of the whole run.

        Example:
            >>> plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, epsilon=2.0).epsilon().upper <= 2.0
            True
        """
        return self.event.epsilon(self.delta if delta is None else delta)

    @property
    def measured(self) -> int:
        """How many numbers a step measures beside the gradients."""
        return (self.clipping == "adaptive") + (self.loss_bound is not None)

    @property
    def beside_multiplier(self) -> float:
        """The noise over sensitivity on each number that is measured beside the gradients."""
        return max(FRACTION_OF_BATCH * self.batch, BESIDE * self.noise_multiplier)

    @property
    def gradient_multiplier(self) -> float:
        """The noise on gradients: where more is measured in a step, it is raised, so that the step costs the same.

        The parts of one Gaussian vector add up as 1/σ² = Σ 1/σ_i² (THEORY 2.3; Andrew et al. 2021).
        """
        if not self.measured:
            return self.noise_multiplier
        share = self.measured * (self.noise_multiplier / self.beside_multiplier) ** 2
        return self.noise_multiplier / math.sqrt(1 - share) * (1 + 2.0**-45)

    def explain(self) -> str:
        """Return the plan in words.

        Example:
            >>> made = plan(n=1000, batch=50, max_grad_norm=1.0, delta=1e-5, steps=100, noise_multiplier=2.0)
            >>> print(made.explain().splitlines()[-1])
            Cost     ε = 1.10 at δ = 1e-05, for one example added or removed.
        """
        return "\n".join(f"{name:<9}{text}" for name, text in self._told().items())

    def __str__(self) -> str:
        return self.explain()

    def _told(self) -> dict[str, str]:
        norm = f"{self.max_grad_norm:g}"
        how = {
            "flat": f"each gradient to norm {norm}",
            "per_layer": f"each gradient, layer by layer, to norm {norm} in all",
            "automatic": f"each gradient scaled to a norm just under {norm}, whatever it was",
            "adaptive": f"each gradient to a norm that begins at {norm} and follows the {self.quantile}-quantile",
        }
        drawn = {
            "exact": "whole numbers on a grid, of exactly the law that is charged",
            "float": "floating-point numbers; their last digits, and who may guess the generator, are not covered",
        }
        times = f"{self.gradient_multiplier:.4g} × {norm} on each sum of gradients"
        if self.correlation is not None:
            kept = f"{100 * self.correlation.ratio:.0f} % of the error of independent noise"
            times += f", correlated over {self.bands} steps: running sums have {kept}"
        told = {
            "Data": f"{counted(self.n, 'example')}, a public number",
            "Steps": f"{self.steps:,}, on batches of {self.batch:,} {self._drawn_how()}",
            "Clipping": f"{how[self.clipping]}",
            "Noise": f"{times}; {drawn[self.noise]}",
        }
        if self.loss_bound is not None:
            told["Loss"] = f"measured privately in each step, up to {self.loss_bound:g}"
        neighbours = "added or removed" if self.adjacency == "add_remove" else "replaced by another"
        cost = rounded_up(float(self.epsilon()))
        told["Cost"] = f"ε = {cost} at δ = {scientific(self.delta)}, for one example {neighbours}."
        return told

    def _drawn_how(self) -> str:
        if self.sampling == "poisson" and self.bands > 1:
            return (
                f"on average: {self.bands} groups take turns, and each example of a step's group is in it with "
                f"probability {self.batch * self.bands:,}/{self.n:,}, by itself"
            )
        if self.sampling == "poisson":
            return f"on average: each example is in a step with probability {self.batch:,}/{self.n:,}, by itself"
        passes = counted(self.steps // self.steps_per_epoch, "pass").replace("passs", "passes")
        order = "shuffled examples, always in one order" if self.bands > 1 else "shuffled examples"
        return f"in {passes} over {order}; no amplification is claimed"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON holds it.

        Example:
            >>> made = plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, noise_multiplier=4.0)
            >>> TrainingPlan.from_dict(made.to_dict()) == made
            True
        """
        return {"type": "training_plan", "version": VERSION} | asdict(self)

    def to_json(self) -> str:
        """Return the plan as JSON; `TrainingPlan.from_json` reads it back.

        Example:
            >>> made = plan(n=100, batch=10, max_grad_norm=1.0, delta=1e-5, steps=50, noise_multiplier=4.0)
            >>> TrainingPlan.from_json(made.to_json()) == made
            True
        """
        return json.dumps(self.to_dict(), sort_keys=True)

    @classmethod
    def from_dict(cls, record: Any) -> TrainingPlan:
        """Read a plan from what `to_dict` returns.

        Raises:
            InvalidRecord: It is no plan, or one of a later version.

        Example:
            >>> TrainingPlan.from_dict({})
            Traceback (most recent call last):
            sitr.errors.InvalidRecord: InvalidRecord [SITR-R01]: this is no training plan of version 1...
        """
        names = {field.name for field in fields(cls)}
        kind = record.get("type") if isinstance(record, Mapping) else None
        if kind != "training_plan" or record.get("version") != VERSION or record.keys() - {"type", "version"} != names:
            raise InvalidRecord(
                f"this is no training plan of version {VERSION}.", do="make it with a plan's to_dict()."
            )
        try:
            return cls(**{name: record[name] for name in names})
        except InvalidArgument as error:
            raise InvalidRecord(f"a training plan cannot be read: {error.what}", why=error.why) from None

    @classmethod
    def from_json(cls, text: str) -> TrainingPlan:
        """Read a plan from the text of `to_json`.

        Raises:
            InvalidRecord: It is none.
        """
        try:
            record = json.loads(text)
        except (TypeError, ValueError):
            raise InvalidRecord("a training plan cannot be read: it is not JSON.") from None
        return cls.from_dict(record)


def plan(
    *,
    n: int,
    batch: int,
    max_grad_norm: float,
    delta: float,
    epsilon: float | None = None,
    steps: int | None = None,
    noise_multiplier: float | None = None,
    sampling: Sampling = "poisson",
    clipping: Clipping = "flat",
    noise: Noise = "exact",
    quantile: float | None = None,
    loss_bound: float | None = None,
    bands: int = 1,
) -> TrainingPlan:
    """Return a plan; of `epsilon`, `steps` and `noise_multiplier` one is left out, and solved.

    Args:
        n: How many examples the data have. It is public.
        batch: How many examples a step takes on average.
        max_grad_norm: The ℓ2 norm that the gradient of one example is clipped to.
        delta: In (0, 1), and well under 1/n.
        epsilon: The ε of the whole run, at `delta`.
        steps: How many updates; of shuffled passes, whole ones.
        noise_multiplier: Noise over `max_grad_norm`.
        sampling: "poisson": each example is in a step with probability batch/n, by itself. "shuffle": passes in a
            random order, which cost more: nothing is gained from not knowing who is in a batch.
        clipping: "flat": the whole gradient of an example. "per_layer": each layer by itself. "automatic": every
            gradient to the same norm. "adaptive": as flat, to a norm that follows a private quantile.
        noise: "exact": on a grid of whole numbers. "float": for large models and for GPUs; `docs/learning.md` says what
            it does not cover.
        quantile: Which part of the gradients adaptive clipping leaves as they are; one half unless told.
        loss_bound: Measure the mean loss of each step privately, of losses up to this bound.
        bands: Correlate the noise of so many steps, so that each takes back a part of what those before it added. An
            example that was in a step is out of the `bands - 1` that follow: groups take turns, each drawn from with
            the chance bands·batch/n, or all passes are in one order. At small ε few bands are best, at ε = 2 or more
            about eight; decision 0034 has a table.

    Raises:
        InvalidArgument: Not exactly one of the three is left out; or a number is out of range.
        CannotCalibrate: Nothing in range meets ε.

    Privacy: what is solved is rounded to the private side: the certified ε of the plan is at most `epsilon` (THEORY
    2.7, 4.5, 4.9).

    Example:
        >>> made = plan(n=60_000, batch=1024, max_grad_norm=1.0, delta=1e-5, epsilon=3.0, steps=1200)
        >>> round(made.noise_multiplier, 3), made.epsilon().upper <= 3.0
        (1.099, True)
        >>> plan(n=60_000, batch=1024, max_grad_norm=1.0, delta=1e-5, epsilon=3.0, noise_multiplier=2.0).steps
        6112
    """
    asked = {"epsilon": epsilon, "steps": steps, "noise_multiplier": noise_multiplier}
    left_out = [name for name, value in asked.items() if value is None]
    if len(left_out) != 1:
        told = ", ".join(left_out) or "none of them"
        raise InvalidArgument(
            f"{told} left out: of epsilon, steps and noise_multiplier exactly one is solved from the other two.",
            do="pass two of them.",
        )
    if clipping == "adaptive" and quantile is None:
        quantile = 0.5
    drawn = TrainingPlan(
        n=n,
        batch=batch,
        steps=_least_steps(n, batch, sampling, bands) if steps is None else steps,
        max_grad_norm=max_grad_norm,
        noise_multiplier=1.0 if noise_multiplier is None else noise_multiplier,
        delta=delta,
        sampling=sampling,
        clipping=clipping,
        noise=noise,
        quantile=quantile,
        loss_bound=loss_bound,
        bands=bands,
    )
    if steps is None:
        return replace(drawn, steps=_most_steps(drawn, epsilon))
    if noise_multiplier is None:
        return replace(drawn, noise_multiplier=_least_noise(drawn, epsilon))
    return drawn


def at_least(rate: Fraction) -> float:
    """Return the least float that is not under a probability: what is charged is never less than what is drawn.

    Example:
        >>> Fraction(at_least(Fraction(1, 3))) >= Fraction(1, 3), at_least(Fraction(1, 2))
        (True, 0.5)
    """
    near = float(rate)
    return near if Fraction(near) >= rate else math.nextafter(near, 1.0)


@lru_cache(maxsize=8)
def _best_noise(bands: int, steps: int) -> BandedNoise:
    return BandedNoise.best(bands, steps)


def _least_steps(n: Any, batch: Any, sampling: str, bands: Any) -> int:
    """The steps in which an example may be once, before they are solved; what is wrong is refused by the plan."""
    if sampling == "shuffle":
        return -(-n // batch) if type(n) is type(batch) is int and batch > 0 else 1
    return bands if type(bands) is int and bands > 0 else 1


def _most_steps(drawn: TrainingPlan, epsilon: float | None) -> int:
    once = drawn.event
    found = calibrate_count(
        once.event if isinstance(once, ShuffledEpochs) else once, epsilon=epsilon, delta=drawn.delta
    )
    most = MOST_STEPS if drawn.bands == 1 else MOST_CORRELATED_STEPS
    return min(int(found.value), most // drawn.steps) * drawn.steps


def _least_noise(drawn: TrainingPlan, epsilon: float | None) -> float:
    found = calibrate_noise(
        lambda noise: replace(drawn, noise_multiplier=noise).event,
        epsilon=epsilon,
        delta=drawn.delta,
        bounds=(LEAST_NOISE, MOST_NOISE),
    )
    return found.value
