"""A run: the loop in which each step is one draw, one noisy sum and one update, so that none can be left out."""

from __future__ import annotations

import contextlib
import math
import os
import secrets
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.optim import Optimizer

from .. import _validate
from ..errors import InvalidArgument, NotAllowed
from ..ledger import Ledger
from ..mechanisms.randomness import EXPANDED, Seeded
from .account import Account, Paid, Span, went_on
from .average import Average
from .canaries import Canaries
from .checkpoint import Checkpoint, Content, Position, State, digest_of, restored, structure_of
from .clipping import Clipper, refuse_watched
from .data import Examples, PeoplesExamples
from .explanation import Spent, Trace, progress_of, run_explained
from .noise import StepNoise, in_cells
from .plan import TrainingPlan
from .ranks import Moment, Ranks, bits_of
from .sampling import Integers, Sampler, microbatches, most_drawn, sampler_of
from .weights import weights_of

PARTS = 50  # of a run: so many checkpoints are written, unless told otherwise
MOST_MICROBATCH = 10**9


class Step:
    """One noisy update: micro-batches to go through, once; at their end come the noise and the optimizer's step.

    Attributes:
        number: Which step of the plan it is, from 1 on.

    Example:
        See `Run.steps`.
    """

    def __init__(self, run: Run, number: int, places: Integers, examples: Examples, most: int | None) -> None:
        self.number = number
        self._run, self._places, self._examples, self._most = run, places, examples, most
        self._due = 0  # losses of the micro-batch at hand that `backward` was not called with yet
        self._before = 0  # people whose gradients were in the sum before it
        self.state = "new"

    def __repr__(self) -> str:
        return f"Step({self.number})"  # how many examples it has is private

    def __iter__(self) -> Iterator[Any]:
        """Yield micro-batches; none, where nobody was drawn. Behind the last one the model is updated.

        Raises:
            InvalidArgument: A micro-batch went by without `backward`, or the step was gone through or left before; or
                another run is within a step of the same model.
        """
        self._refuse_left()
        if self.state != "new":
            raise InvalidArgument(
                f"step {self.number} is gone through twice.",
                why="a second pass over its examples would be a second release.",
                do="for x, y in step: ... once.",
            )
        refuse_watched(self._run.model)
        self.state = "open"
        with self._run.clipper:
            for places in microbatches(self._places, self._most):
                self._due, self._before = places.size, self._run.clipper.added
                yield self._examples.at(places)
                self._refuse_left()
                if self._due:
                    raise InvalidArgument(
                        f"a micro-batch of step {self.number} went by without step.backward(losses).",
                        why="its examples would be missing from the sum, and the noise would be the same.",
                        do="call step.backward(losses) once for each micro-batch.",
                    )
        self._run._update()
        self.state = "done"

    def backward(self, losses: Tensor) -> None:
        """Add the clipped gradients of the micro-batch at hand.

        Args:
            losses: One for each example: `F.cross_entropy(model(x), y, reduction="none")`.

        Raises:
            InvalidArgument: They are reduced to one number, or not one for each example, or have no gradient; or the
                micro-batch has been added already.
            NotAllowed: The model mixes examples, or does what no rule clips.

        Privacy: what one example adds has norm at most `max_grad_norm`, whatever its loss (THEORY 7.1). That it moves
        nothing else rests on rows that do not depend on one another; docs/learning.md says what you have to keep.
        """
        try:
            self._check(losses)
            self._run._add(losses)
        except BaseException:
            self._run._abandon()
            raise
        self._due = 0

    def _refuse_left(self) -> None:
        if self.state == "left":
            raise InvalidArgument(
                f"step {self.number} was left.",
                why="its examples would come into the sum of a later step, or make an update that was not planned.",
                do="go on with the steps that run.steps yields next.",
            )

    def _check(self, losses: Any) -> None:
        self._refuse_left()
        if self.state != "open" or not self._due:
            raise InvalidArgument(
                "step.backward was called twice for a micro-batch, or outside of one.",
                why="each example counts once.",
                do="for x, y in step: step.backward(losses), once.",
            )
        if self._run.clipper.added != self._before:
            raise InvalidArgument(
                "step.backward failed halfway for this micro-batch.",
                why="some of it is in the sum, and would be there twice.",
                do="leave the loop; another run.steps(...) goes on behind this step. If memory ran out, pass it a "
                "smaller microbatch.",
            )
        if not isinstance(losses, Tensor) or not losses.is_floating_point():
            raise InvalidArgument("losses are no tensor of real numbers.", do="pass what your loss function returns.")
        if losses.ndim == 0:
            raise InvalidArgument(
                "the losses were reduced to one number.",
                why="gradients are clipped for each example, which needs each example's loss.",
                do='pass reduction="none" to the loss function.',
            )
        if losses.ndim != 1 or len(losses) != self._due:
            raise InvalidArgument(
                "there is not one loss for each example of the micro-batch.",
                do="average over positions or outputs of an example, such as losses.mean(1), and never over examples.",
            )
        if not losses.requires_grad:
            raise InvalidArgument(
                "the losses have no gradient.",
                do="compute them from model(x), and neither under torch.no_grad() nor behind detach().",
            )


class Run:
    """A model, its optimizer, and the plan by which they are trained; made by `attach`.

    Attributes:
        model: The user's own, whose class and state stay as they are.
        optimizer: Likewise.
        plan: What is done, and what it costs.
        ranks: The processes that make the run together; one, as a rule.
        clipper: What sums clipped gradients: NOT PRIVATE, as are the sizes of a draw that it tells.
        done: How many steps are behind.
        norm: What gradients are clipped to now; it changes with adaptive clipping alone.
        losses: The mean loss of each step as it was measured, where the plan measures it.
        unsafe_losses: The mean loss of each batch, where that was asked for: NOT PRIVATE.
        private: False where noise was seeded: then the model protects nobody.
        average: The moving average of the weights, where one is kept.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        plan: TrainingPlan,
        *,
        ranks: Ranks,
        account: Account | None,
        checkpoint: Checkpoint | None,
        every: int,
        unsafe_seed: int | None,
        average: float | None = None,
        canaries: Callable[[], Tensor] | None = None,
    ) -> None:
        self.model, self.optimizer, self.plan, self.ranks = model, optimizer, plan, ranks
        self.account, self.checkpoint, self.every = account, checkpoint, every
        source = EXPANDED if unsafe_seed is None else Seeded(unsafe_seed + ranks.rank)
        self.private, self._seed = source.private, unsafe_seed
        style = "flat" if plan.clipping == "adaptive" else plan.clipping
        self.weights = weights_of(model, optimizer, ranks)
        if self.weights.in_shards and (average is not None or canaries is not None):
            raise NotAllowed(
                "an average or canaries do not go together with weights in shards.",
                do="leave them out, or train the model whole in every process.",
            )
        with self.weights.gathered():
            self.clipper = Clipper(model, plan.max_grad_norm, style=style, exact_sums=plan.noise == "exact")
            size = sum(weight.numel() for weight in self.clipper.parameters.values())
        self.clipper.refuse_more(most_drawn(plan))  # here, and not when it is drawn: how many there are is private
        self.noise = StepNoise(plan, self.clipper.sensitivity, self.clipper.grid, source, size)
        self.average = None if average is None else Average(self.weights.held, average)
        self._canaries = None if canaries is None else Canaries(canaries)
        operation = account.operation if account else None
        self._position = Position(0, 0, secrets.randbits(63), plan.max_grad_norm, operation=operation)
        self.losses: list[float] = []
        self.unsafe_losses: list[float] = []
        self._keep_losses = False
        self._people, self._loss_cells, self._batch_loss = 0, 0, 0.0
        self._begun = self._in_loop = False
        self._current: Callable[[], Generator[Step, None, None] | None] = lambda: None
        self._process = os.getpid()  # in which the run was begun
        self._state: State | None = None  # of shards, for a checkpoint: all processes have brought theirs
        self._written: Position | None = None  # what the checkpoint holds, unless someone else went on from it
        self._broken = ""

    def __repr__(self) -> str:
        return f"Run({self.done} of {self.plan.steps} steps, {self.charged})"

    def __reduce__(self) -> NoReturn:
        raise InvalidArgument(
            "a run cannot be copied.",
            why="each copy would make the steps that are left, for the price of one.",
            do="copy the model, or its state_dict().",
        )

    @property
    def done(self) -> int:
        """How many steps are behind."""
        return self._position.done

    @property
    def norm(self) -> float:
        """What gradients are clipped to now."""
        return self._position.norm

    @property
    def paid(self) -> Paid:
        """The steps that were charged, or would be by a ledger: the plan's, and those that may have been made twice."""
        return self._position.paid

    @property
    def charged(self) -> str:
        """Where the run was charged, in words."""
        if not self.ranks.is_first:
            return f"charged as the first of {self.ranks.size} processes says"
        if self.account is None:
            return "not charged"
        entries = ", ".join(entry for entry, _ in self.account.charges)
        return f"charged in entry {entries}" if entries else "not charged yet"

    def steps(
        self,
        data: Any,
        *,
        people: Any = None,
        each: int = 1,
        microbatch: int | None = None,
        progress: bool = False,
        unsafe_losses: bool = False,
    ) -> Iterator[Step]:
        """Yield the steps of the plan that are left; the first one charges for all of them.

        Leaving the loop between two steps is allowed; `steps` then goes on, in this process, with what is left. A step
        that is left before its end counts as made. All steps are paid for, whether they are made or not.

        Args:
            data: The examples: tensors, or a dataset with a length.
            people: Where the plan's n are people with several examples each: the number of each example's owner, from 0
                to n - 1. A step then draws people, and micro-batches have the shape (people, each, ...).
            each: How many examples of a person a step takes: at random; some twice, where there are fewer.
            microbatch: How many examples to take at once, at most. It changes the memory that a step needs, and
                nothing else.
            progress: Show a bar with the ε so far.
            unsafe_losses: Keep the mean loss of each batch, which is NOT PRIVATE.

        Raises:
            InvalidArgument: The data are not those of the plan, or the loop was left in the middle of a step; before
                anything is charged, where it can be seen then.
            BudgetExceeded: The ledger has not enough for the plan.
            RanksParted: Another process of the run has failed, left the loop or gone.

        Privacy: the whole plan is charged before the first noise is drawn. What is refused before that is given back
        where the ledger allows it. A run is open beside other grants, which its price allows for (THEORY 5.3).

        Example:
            >>> import torch.nn.functional as F
            >>> from sitr.learning import attach, plan
            >>> model = nn.Linear(2, 2)
            >>> made = plan(n=100, batch=20, max_grad_norm=1.0, delta=1e-5, steps=5, noise_multiplier=4.0)
            >>> run = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made)
            >>> data = torch.randn(100, 2), torch.zeros(100, dtype=torch.int64)
            >>> for step in run.steps(data, microbatch=8):
            ...     for x, y in step:
            ...         step.backward(F.cross_entropy(model(x), y, reduction="none"))
            >>> run
            Run(5 of 5 steps, not charged)
        """
        examples = self._examples(data, people, each)
        most = None if microbatch is None else _validate.integer("microbatch", microbatch, 1, MOST_MICROBATCH)
        self._refuse_second_loop()
        self._refuse_broken()
        self._keep_losses = unsafe_losses
        loop = self._locked_loop(examples, most, progress)
        self._current = weakref.ref(loop)
        return loop

    def _examples(self, data: Any, people: Any, each: int) -> Examples:
        if people is not None:
            return PeoplesExamples(data, people, self.plan.n, each, self.noise.source)
        if each != 1:
            raise InvalidArgument(
                "each is given, and not whose the examples are.", do="pass people=..., or leave each out."
            )
        return Examples(data, self.plan.n)

    def _locked_loop(self, examples: Examples, most: int | None, progress: bool) -> Generator[Step, None, None]:
        with contextlib.ExitStack() as held:
            yield from self._loop(examples, most, progress, held)

    def _loop(self, examples: Examples, most: int | None, progress: bool, held: contextlib.ExitStack) -> Iterator[Step]:
        self._refuse_second_loop()
        self._refuse_broken()
        self._in_loop, step = True, None
        try:
            self._begin(examples, held)
            sampler = sampler_of(self.plan, order=self._position.order, source=self.noise.source)
            with progress_of(self, shown=progress) as advance:
                while self.done < self.plan.steps:
                    step = self._next(sampler, examples, most)
                    yield step
                    if step.state != "done":
                        raise InvalidArgument(
                            f"step {step.number} was left before its last micro-batch.",
                            why="its update is not made, and the next step would not be what was planned.",
                            do="go through all of a step: for x, y in step: ...",
                        )
                    advance()
            self.ranks.meet(Moment.END, self.done, self.weights.alike)
            self._bring()
            digest = digest_of(self.model) if self.account is not None or self.ranks.size > 1 else ""
            self.ranks.first(lambda: self._end(digest))
        finally:
            self._in_loop = False
            self._leave(step)

    def _next(self, sampler: Sampler, examples: Examples, most: int | None) -> Step:
        self._refuse_other_process()
        self.ranks.meet(Moment.DRAW, self.done, self.weights.alike)
        until = self._position.until
        if self.every and self.done >= until:
            self._bring()
            until = min(self.done + self.every, self.plan.steps)
        places = self.ranks.share(lambda: self._drawn(sampler, until))
        self._position = replace(self._position, until=until)
        self.weights.gather()
        self.clipper.clear()
        self._people, self._loss_cells, self._batch_loss = 0, 0, 0.0
        return Step(self, self.done + 1, examples.held(places), examples, most)

    def _drawn(self, sampler: Sampler, until: int) -> Integers:
        """Draw who is in the next step, behind the checkpoint where one is due."""
        if until != self._position.until:
            if self.account is not None:
                self.account.refuse_resumed(self.paid)
            self._save(until)
        return sampler.draw(self.done)

    # What is paid, and kept

    def _begin(self, examples: Examples, held: contextlib.ExitStack) -> None:
        """Charge the plan, or what may run twice of it, before anything is drawn: the first process, for all."""
        if self._begun:
            self._refuse_other_process()
        self._process = os.getpid()
        structure = structure_of(self.model, self.optimizer)
        self.ranks.begin(self.done)
        decay = None if self.average is None else self.average.decay
        settings = [self.plan.to_dict(), structure, self.every, self._seed, self._keep_losses, decay]
        self.ranks.same("plans, models, optimizers or settings", lambda: settings)
        self.ranks.same("examples", lambda: bits_of(examples.tensors))
        lock = contextlib.nullcontext() if self.checkpoint is None else self.checkpoint.locked()
        self.ranks.first(lambda: held.enter_context(lock))
        content = self.ranks.content(lambda: self._kept(structure))
        found = None if content is None else restored(self.model, self.optimizer, *content, self.average)
        self.ranks.same("weights", lambda: digest_of(self.model))
        if found is not None:
            self._position = self._written = found
            self._bring()
        told = self.ranks.first(lambda: self._pay(structure, found))
        if not self.ranks.is_first:
            self._position = Position.from_dict(told)
        self._begun = True

    def _kept(self, structure: str) -> Content | None:
        """Return what the checkpoint holds, where the run begins from it."""
        if self._begun or self.checkpoint is None or not self.checkpoint.exists:
            return None
        content = self.checkpoint.read(structure, self.plan, None if self.average is None else self.average.decay)
        operation = content[1]["position"]["operation"]
        if operation != self._position.operation:
            raise InvalidArgument(
                f"{str(self.checkpoint.path)!r} is of operation {operation!r}.",
                why="a run goes on under its own operation.",
                do="attach it with that operation, and the ledger that it was begun with.",
            )
        return content

    def _pay(self, structure: str, found: Position | None) -> dict[str, Any]:
        """Charge what is to be charged, and return where the run is."""
        whole = (Span(0, self.plan.steps),)
        if self._begun:
            self._refuse_resumed()
        elif found is None:
            paid = whole if self.account is None else self.account.charge(self.plan, structure)
            self._position = replace(self._position, paid=paid)
        elif found.done < self.plan.steps:
            before, lost = found.paid or whole, Span(found.done, found.until)
            more = (*before, lost)  # without a ledger too: what was made twice is told
            paid = more if self.account is None else self.account.resume(self.plan, structure, before, lost)
            self._position = replace(found, paid=paid)
            self._save(until=found.until)  # before it starts: who resumes this file again pays again
        return self._position.to_dict()

    def _bring(self) -> None:
        """Let all processes bring what a checkpoint needs of their shards, to the first one."""
        state = State.of(self.model, self.optimizer) if self.every and self.weights.in_shards else None
        self._state = state if self.ranks.is_first else None

    def _save(self, until: int) -> None:
        """Write the checkpoint, if there is one; that of shards only if all processes have brought theirs."""
        if self.checkpoint is None or (self.weights.in_shards and self._state is None):
            return
        position = replace(self._position, until=until)
        self.checkpoint.write(self._state or State.of(self.model, self.optimizer, self.average), self.plan, position)
        self._state, self._position, self._written = None, position, position

    def _end(self, digest: str) -> None:
        self._save(until=self.plan.steps)
        if self.account is not None and self.account.running:
            self.account.commit({"plan": self.plan.to_dict(), "weights": digest, "private": self.private})

    def _leave(self, step: Step | None) -> None:
        """Write down where the loop was left; what was charged and never started is given back."""
        was_open = step is not None and step.state == "open"
        if step is not None and step.state != "done":
            step.state = "left"
            self.clipper.detach()  # also where someone keeps the step's iterator
            self.weights.release()
        if self._process != os.getpid():  # the run, its charge and its checkpoint are the other process's
            return
        if was_open:  # in every process: where weights are in shards, each has noise of its own
            self.noise.forget()
        told = self.ranks.leave(self.done, was_open, self._bring, lambda: self._tidied(step, was_open))
        if told is not None and not self.ranks.is_first:
            self._position, self._broken = Position.from_dict(told[0]), told[1]

    def _tidied(self, step: Step | None, was_open: bool) -> tuple[dict[str, Any], str]:
        """Leave charge and checkpoint as they are to be, and return where the run is, and whether it is broken."""
        if self.account is not None and not self.account.running:  # no noise was drawn: all is as it was
            self._broken = ""
            if self.account.give_back():
                self._begun, self._written = False, None
                if self.checkpoint is not None:
                    self.checkpoint.remove()
        elif step is not None and self.done < self.plan.steps and not self._broken:
            if was_open:  # it is paid for, and nobody knows what was seen of it: it counts as made
                self._position = replace(self._position, done=self.done + 1)
            # To go on elsewhere costs one step at least, by which the ledger knows of it.
            self._save(until=min(self.done + 1, self.plan.steps))
        return self._position.to_dict(), self._broken

    def _abandon(self) -> None:
        """Leave the loop at once where other processes wait: the error that is raised may be kept for long."""
        if self.ranks.size > 1 and (loop := self._current()) is not None:
            loop.close()

    def _refuse_second_loop(self) -> None:
        if self._in_loop:
            raise InvalidArgument("the run is in its loop already.", do="leave it before you begin another.")

    def _refuse_broken(self) -> None:
        if broken := self._broken or self.ranks.parted:
            raise InvalidArgument(
                f"{broken}.",
                why="what has been drawn of it cannot be undone, and is paid for.",
                do="resume from the checkpoint in a new process, or begin a new run.",
            )

    def _refuse_resumed(self) -> None:
        """Refuse to go on where someone else may have made, or may be making, the steps that are left."""
        self._refuse_other_process()
        if self.checkpoint is not None and self.checkpoint.position() != self._written:
            raise went_on(self._position.operation)
        if self.account is not None:
            self.account.refuse_resumed(self.paid)

    def _refuse_other_process(self) -> None:
        if self._process != os.getpid():
            raise InvalidArgument(
                "the run was begun in another process.",
                why="each of the two would make the steps that are left, for the price of one.",
                do="go on in the process in which it was begun, or resume from its checkpoint once that has ended.",
            )

    # One step

    def _add(self, losses: Tensor) -> None:
        """Take the losses of a micro-batch: none of them counts before their gradients are in the sums."""
        # To clip at another norm than the first, what is clipped is scaled: the grid of sums stays.
        times = self.plan.max_grad_norm / self.norm
        self.clipper.backward(losses if times == 1 else losses * times)
        if self.plan.loss_bound is not None:
            self._loss_cells += in_cells(losses, self.plan.loss_bound)
        if self._keep_losses:
            self._batch_loss += float(losses.detach().sum())
        self._people += len(losses)

    def _update(self) -> None:
        """Draw the noise, once; divide by the expected batch; overwrite the gradients, and step."""
        self._refuse_other_process()
        self.ranks.meet(Moment.ADD, self.done)
        own = self.clipper.balance(self.plan.max_grad_norm) if self.plan.clipping == "adaptive" else 0
        people, balance, cells, loss = self.ranks.total(self._people, own, self._loss_cells, self._batch_loss)
        self.clipper.refuse_more(int(people))
        self._broken = "a step was interrupted while the model was updated"
        norm, measured = self.weights.overwrite(
            self.clipper, self._noisy, lambda: self._beside(int(balance), int(cells))
        )
        if self._canaries is not None:
            self._canaries.add(self.clipper.parameters)
        self.optimizer.step()
        if self.average is not None:
            self.average.update(self.done)
        self.losses += measured
        if self._keep_losses:
            self.unsafe_losses.append(loss / people if people else math.nan)
        self.clipper.clear()
        self._position = replace(self._position, done=self.done + 1, norm=norm)
        self._broken = ""

    def _noisy(self, sums: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The gradients of a step: sums with noise, over the expected batch."""
        times = self.norm / self.plan.max_grad_norm / self.plan.batch
        noisy = self.noise.on_sums(sums)
        torch._foreach_mul_(list(noisy.values()), times)
        return {name: noisy[name].to(one.dtype) for name, one in self.weights.held.items()}

    def _beside(self, balance: int, cells: int) -> tuple[float, list[float]]:
        """Start what was charged, and measure the next norm, and the mean loss where the plan does."""
        if self.account is not None:
            self.account.start()
        adaptive = self.plan.clipping == "adaptive"
        norm = self.noise.next_norm(self.norm, balance) if adaptive else self.norm
        bound = self.plan.loss_bound
        return norm, [] if bound is None else [self.noise.on_number(cells) * bound / self.plan.batch]

    # What is said of it

    def spent(self) -> Spent:
        """Return the ε of the steps behind, and of all that was charged.

        Privacy: what was made again after a crash counts twice, as it was charged. All of the plan is spent when the
        loop begins: less than that is a report on a run that may still go on.
        """
        return Spent.of_run(self)

    def averaged(self) -> nn.Module:
        """Return a copy of the model with the moving average of its weights, where `attach` was told to keep one.

        Raises:
            InvalidArgument: None is kept; or a step is open.

        Privacy: post-processing of the weights of all steps, which costs nothing.
        """
        if self.average is None:
            raise InvalidArgument("no average of the weights is kept.", do="attach(..., average=0.999).")
        refuse_watched(self.model)
        return self.average.copied(self.model)

    @property
    def scores(self) -> NDArray[np.float64]:
        """How much each canary seems to be in, over the steps that this process made: for `sitr.audit.audit_one_run`.

        Privacy: that of `Canaries`: free for canaries that are nobody's data.
        """
        if self._canaries is None:
            raise InvalidArgument("the run has no canaries.", do="attach(..., canaries=...).")
        return self._canaries.scores

    def trace(self, points: int = 100) -> Trace:
        """Return ε, and the losses where they are known, over the steps behind, for a picture."""
        return Trace.of_run(self, _validate.integer("points", points, 1, 10**6))

    def explain(self) -> str:
        """Return what is done to which weights, what it costs, and what is not covered; it costs nothing."""
        return run_explained(self)


def attach(
    model: nn.Module,
    optimizer: Optimizer,
    plan: TrainingPlan,
    *,
    ledger: Ledger | str | Path | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    operation: str | None = None,
    purpose: str | None = None,
    checkpoint: str | Path | None = None,
    every: int | None = None,
    average: float | None = None,
    canaries: Callable[[], Tensor] | None = None,
    group: ProcessGroup | None = None,
    unsafe_seed: int | None = None,
) -> Run:
    """Return a run of a plan on a model and its optimizer, which stay the objects that they are; nothing is spent.

    Args:
        model: Any module whose examples do not mix; `fix(model)` replaces layers that mix them.
        optimizer: Of all trainable weights of the model, and of no others.
        plan: Made by `plan`.
        ledger: What the run is charged to, or where it is. Without one the run is stamped "not charged".
        dataset: Whose budget pays.
        analyst: Who trains; the name of the operating system's user unless told.
        operation: The id of the run, for ever.
        purpose: What for; a budget for that purpose is charged as well.
        checkpoint: A file to resume from after a crash; it is written at the beginning and then now and then.
        every: How many steps are made between two checkpoints: as many may have to be paid for again. A fiftieth of
            the steps unless told.
        average: Keep a moving average of the weights, of which so much stays at each step, such as 0.999:
            `Run.averaged` is a model of it. It costs nothing.
        canaries: Returns the losses of canaries, which are scored in each step for an audit: `Run.scores`.
        group: The processes of torch.distributed that make the run together, each of which calls this; all of them
            unless told, where torch.distributed is initialised. The first of them pays and writes the checkpoint.
        unsafe_seed: Draw from a seeded stream, for a test: the run is NOT PRIVATE.

    Raises:
        InvalidArgument: The optimizer does not fit the model; or nothing is trainable; or a name is missing.
        NotAllowed: The model cannot be clipped, or is wrapped, as for distributed training.
        UnknownName: The dataset has no budget.

    Privacy: that of `plan.event`, for weights that see the data through `Run.steps` alone, where each example is
    computed by itself; docs/learning.md says what you have to keep. Losses and metrics that the loop shows are not
    private.

    Example:
        See `Run.steps`.
    """
    for given, kind in ((model, nn.Module), (optimizer, Optimizer), (plan, TrainingPlan)):
        if not isinstance(given, kind):
            raise InvalidArgument(
                f"a {type(given).__name__} is no {kind.__name__}.", do="attach(model, optimizer, plan), in this order."
            )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise InvalidArgument(
            "LBFGS asks for the loss again within a step.",
            why="each of its questions would be a release.",
            do="use an optimizer that takes one gradient a step, such as SGD or Adam.",
        )
    ranks = Ranks.of(group, model)
    pays = ledger is not None and ranks.is_first
    account = Account.of(ledger, dataset, analyst, operation, purpose) if pays else None
    if ledger is None and dataset is not None:
        raise InvalidArgument("a dataset is named, and no ledger.", do="pass ledger=..., or leave out the dataset.")
    each = max(plan.steps // PARTS, 1) if every is None else _validate.integer("every", every, 1, plan.steps)
    each = 0 if checkpoint is None else each
    kept = Checkpoint(checkpoint) if checkpoint is not None and ranks.is_first else None
    return Run(
        model,
        optimizer,
        plan,
        ranks=ranks,
        account=account,
        checkpoint=kept,
        every=each,
        unsafe_seed=unsafe_seed,
        average=average,
        canaries=canaries,
    )
