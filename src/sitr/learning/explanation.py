"""What is said of a run: what is done to which weights, what it has cost, and how it went."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..accounting import Bracket, Event, compose
from ..display import counted, rounded_up, scientific
from ..release import IN_MEMORY, NOT_PRIVATE
from .account import price

if TYPE_CHECKING:
    from .run import Run

Floats = NDArray[np.float64]
UPDATES = 200  # of a bar: ε is worked out so often at most

NOT_COVERED = (
    "examples that see one another where a trial on a few rows does not show it, or by rounding of huge values;",
    "how long steps take, which depends on how many examples are drawn;",
    "losses, metrics and pictures of single examples that your own loop shows;",
    "choices made by looking at the data, such as of the model or of learning rates, unless each trial is charged.",
)
FLOAT_NOT_COVERED = "the last digits of floating-point noise, which leave holes, and a generator that is guessed;"


@dataclass(frozen=True)
class Spent:
    """What a run has cost.

    Attributes:
        steps: How many steps are behind,
        of: and how many the plan has.
        so_far: The ε of the steps behind, with those that were charged again after a crash.
        whole: The ε of all that was charged, or will be.
        delta: At which δ.
        charged: Where, in words.

    Example:
        >>> spent = Spent(10, 20, Bracket(0.5, 0.5, "by hand"), Bracket(0.7, 0.7, "by hand"), 1e-5, "not charged")
        >>> print(spent)
        ε = 0.500 at δ = 1e-05 after 10 of 20 steps, ε = 0.700 for all of them; not charged
    """

    steps: int
    of: int
    so_far: Bracket
    whole: Bracket
    delta: float
    charged: str

    @classmethod
    def of_run(cls, run: Run) -> Spent:
        """Return what a run has cost."""
        plan, again = run.plan, charged_again(run)
        behind = [plan.event_between(0, run.done)] if run.done else []
        nothing = Bracket(0.0, 0.0, "nothing was done")
        so_far = compose(*behind, *again).epsilon(plan.delta) if behind or again else nothing
        whole = compose(plan.event, *again).epsilon(plan.delta)
        return cls(run.done, plan.steps, so_far, whole, plan.delta, run.charged)

    def __str__(self) -> str:
        so_far, whole = (rounded_up(float(one)) for one in (self.so_far, self.whole))
        made = f"after {self.steps:,} of {self.of:,} steps"
        return f"ε = {so_far} at δ = {scientific(self.delta)} {made}, ε = {whole} for all of them; {self.charged}"


@dataclass(frozen=True, eq=False)
class Trace:
    """A run in numbers, for a picture.

    Attributes:
        steps: Some of the steps behind, the last one among them.
        epsilon: The ε of all steps up to each, rounded up.
        delta: At which δ.
        losses: The mean loss of every step behind; empty where it is not known.
        losses_private: Whether the losses were measured with noise; else they are NOT PRIVATE.
    """

    steps: NDArray[np.int64]
    epsilon: Floats
    delta: float
    losses: Floats
    losses_private: bool

    @classmethod
    def of_run(cls, run: Run, points: int) -> Trace:
        """Return the numbers of a run at some steps."""
        steps = np.unique(np.linspace(min(run.done, 1), run.done, min(points, run.done)).round().astype(np.int64))
        again = charged_again(run)
        epsilon = [float(compose(run.plan.event_between(0, int(one)), *again).epsilon(run.plan.delta)) for one in steps]
        private = bool(run.losses) or not run.unsafe_losses
        losses = run.losses if private else run.unsafe_losses
        return cls(steps, np.array(epsilon), run.plan.delta, np.array(losses), private)

    @property
    def losses_label(self) -> str:
        """What a picture writes beside the losses."""
        return "mean loss, measured privately" if self.losses_private else "mean loss, NOT PRIVATE"


def charged_again(run: Run) -> list[Event]:
    """Return what a run was charged for steps that may have been made twice."""
    return [run.plan.event_between(*span) for span in run.paid[1:]]


def run_explained(run: Run) -> str:
    """Return what is done to which weights, what it costs, and what is not covered."""
    weights = run.clipper.parameters
    size = sum(weight.numel() for weight in weights.values())
    # Rules and bytes of the clipper are those of the last draw: how many examples it had, and how long, is private.
    how = "each by itself" if run.clipper.style == "per_layer" else "together"
    told = [run.plan.explain(), f"Weights  {size:,} in {counted(len(weights), 'tensor')}, clipped {how}"]
    longest = max(map(len, weights))
    told += [f"  {name:<{longest}}  {'×'.join(map(str, one.shape)) or '1'}" for name, one in weights.items()]
    if run.average is not None:
        told.append(f"Average  of the weights is kept, {run.average.decay:g} of it at each step; it costs nothing.")
    if run.ranks.size > 1:
        told.append(f"Ranks    {run.ranks.size} processes: one draw, which they share out, one noise and one charge.")
    if not run.ranks.is_first:
        told.append("Ledger   as the first process says.")
    elif run.account is None:
        told.append("Ledger   none: the run is not charged, and no budget is kept by it.")
    else:
        told.append(f"Ledger   {run.account.explain()}: {price(run.plan.event, run.plan.delta)} before the first step.")
        told += [f"         {IN_MEMORY}"] if run.account.ledger.in_memory else []
        told.append(
            f"         The budget protects each {run.account.unit}, and each of the n = {run.plan.n:,} stands for one. "
            "Where one has several examples, pass people=... to run.steps."
        )
    if run.checkpoint is not None:
        again = run.plan.event_between(0, min(run.every, run.plan.steps))
        told.append(
            f"Restart  from {str(run.checkpoint.path)!r}, written every {counted(run.every, 'step')}; after a crash "
            f"at most {price(again, run.plan.delta)} is charged again."
        )
    told.append("Outside  of the promise are:")
    outside = (FLOAT_NOT_COVERED, *NOT_COVERED) if run.plan.noise == "float" else NOT_COVERED
    told += [f"         {one}" for one in outside]
    return "\n".join(told if run.private else [f"{NOT_PRIVATE}.", *told])


@contextlib.contextmanager
def progress_of(run: Run, *, shown: bool) -> Iterator[Callable[[], None]]:
    """Show a bar, where it is wanted, and yield what moves it on."""
    if not shown:
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    seldom = max(run.plan.steps // UPDATES, 1)
    with Progress(*columns) as bar:
        task = bar.add_task("ε = 0", total=run.plan.steps, completed=run.done)

        def advance() -> None:
            if run.done % seldom == 0 or run.done == run.plan.steps:
                so_far = rounded_up(float(run.spent().so_far))
                bar.update(task, completed=run.done, description=f"ε = {so_far} at δ = {scientific(run.plan.delta)}")

        yield advance
