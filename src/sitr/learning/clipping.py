"""Sums of clipped gradients, one for each person, from one backward pass."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from ..errors import InvalidArgument, NotAllowed
from .forward import Book, Watched
from .ownership import Owned, Owner
from .pieces import SUM_BITS, Kept, Permuted, Piece, bounds_of, combine, whole_products
from .probe import (
    Findings,
    Graph,
    Inputs,
    changed_state,
    cuda_devices,
    draws_random_numbers,
    graph_of,
    is_checked_at_full_size,
    keeps_something,
    kept,
    probe,
    random_state,
    whose,
)
from .totals import Totals
from .watch import Step, flags, mixes_people, said, tensors, unlike_trials

Style = Literal["flat", "per_layer", "automatic"]

GRID_BITS = 22  # the clipping bound in steps of the grid that sums are rounded to
FINER_BITS = SUM_BITS - GRID_BITS
FINER = 2**FINER_BITS  # fine steps, in which people's gradients are added, to a step of that grid
MOST_PEOPLE = 2 ** (62 - SUM_BITS)  # in a step: so many contributions fit into 64 bits
SAFETY = 1 - 2.0**-20  # covers the rounding of factors and of their products
FLOAT_PEOPLE = 2**14  # in a step with float sums,
FLOAT_ROUNDING = 2.0**-22  # whose sum is rounded by at most this share of C for each of them (decision 0031)
LEAST_FACTOR = 2.0**-36  # of floats: below, what a gradient times it loses may add up to more than C (decision 0031)
STABILITY = 0.01  # what automatic clipping adds to a norm (Bu et al. 2023)
MOST_WAYS = 256  # to call a model, of which it is known what trials showed: texts in the call may be new each time
SMALL = 2**14  # numbers of a parameter: on a GPU, gradients of so few are put side by side


@dataclass(frozen=True)
class Explanation:
    """How one parameter's gradients are clipped.

    Attributes:
        name: Of the parameter.
        shape: Its shape.
        rule: How norms are found: "kept", "product", "scatter", "tied", or "-" before the first micro-batch.
        bytes: What the last micro-batch held for it.
        work: Multiplications that its norms took there.
    """

    name: str
    shape: tuple[int, ...]
    rule: str
    bytes: int
    work: int


@dataclass
class Tried:
    """What trials of a model showed that is called in one way.

    Attributes:
        found: By a probe on few rows.
        largest: The number of people in the largest micro-batch that was checked at full size.
        losses: By what losses are made of, the number of people they were checked with.
    """

    found: Findings
    largest: int = 0
    losses: dict[Graph, int] = field(default_factory=dict)


class Later:
    """A yes or no on a device, which is asked for while the device goes on with what it was given since.

    Args:
        answer: A tensor of one truth value.
    """

    def __init__(self, answer: Tensor) -> None:
        self._answer, self._known = answer, None
        if answer.is_cuda:
            self._answer = torch.empty((), dtype=torch.bool, pin_memory=True, device="cpu").copy_(
                answer, non_blocking=True
            )
            self._known = torch.cuda.Event()
            self._known.record(torch.cuda.current_stream(answer.device))

    def is_true(self) -> bool:
        """Return the answer, once it is known."""
        if self._known is not None:
            self._known.synchronize()
        return bool(self._answer)


class Clipper:
    """Sums of clipped per-sample gradients of a model.

    While attached, the model's forward pass is watched; the model keeps its class, `state_dict` and output. Each call
    of `backward` adds one micro-batch to `sums`; `clear` begins the next step.

    Args:
        model: Its trainable parameters are tracked.
        max_grad_norm: C, the bound of each person's contribution.
        style: "flat" scales each person's whole gradient down to norm C; "per_layer" each parameter's to C/√(number of
            parameters); "automatic" scales every gradient to C/(norm + 0.01).
        exact_sums: `sums` are whole multiples of `grid`, as int64, and adding a person changes them by that person's
            contribution alone if the numbers that the model computes of others stay the same; else they are float32.

    Attributes:
        parameters: The trainable parameters by name, tied ones once.
        max_grad_norm: C.
        style: As given.

    Privacy: one person's contribution has an ℓ2 norm of at most C, in all parameters together (THEORY 7.1, 7.3). With
    `exact_sums`, adding or removing a person moves `sums` by at most C *if* what the model computes of one person, to
    the last bit, does not depend on who else is in the micro-batch. Models that are seen to mix people are refused;
    decision 0031 says what is not seen, rounding that depends on the batch size among it.

    Example:
        >>> model = nn.Linear(2, 1, bias=False)
        >>> with Clipper(model, 1.0, exact_sums=True) as clipper:
        ...     out = model(torch.tensor([[3.0, 4.0], [0.0, 0.5]]))
        ...     clipper.backward(out[:, 0])
        >>> clipper.gradients()["weight"]
        tensor([[0.6, 1.3]])
    """

    def __init__(self, model: nn.Module, max_grad_norm: float, *, style: Style = "flat", exact_sums: bool) -> None:
        if not (math.isfinite(max_grad_norm) and 1e-10 <= max_grad_norm <= 1e10):
            raise InvalidArgument("max_grad_norm has to lie between 1e-10 and 1e10.")
        if style not in get_args(Style):
            raise InvalidArgument(f"style={style!r} is none of {', '.join(get_args(Style))}.")
        if any(hasattr(part, "_orig_mod") or part._compiled_call_impl is not None for part in model.modules()):
            raise NotAllowed(
                "a compiled model cannot be watched.",
                why="its operations are not seen one by one, so that gradients could go around the clipping.",
                do="pass the model before torch.compile.",
            )
        self.model, self.max_grad_norm, self.style, self.exact_sums = model, float(max_grad_norm), style, exact_sums
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise InvalidArgument("no parameter of the model is trainable.", do="set requires_grad on some.")
        for name, p in self.parameters.items():
            if not p.is_floating_point():
                raise NotAllowed(f"the parameter {name!r} is of type {p.dtype}.", do="use real floating-point numbers.")
        self._names = {id(p): name for name, p in self.parameters.items() if p.numel()}  # the others have no gradients
        self._limits = self._allowed()
        self._totals = Totals(self.parameters, torch.int64 if exact_sums else torch.float64)
        self._handles: list[RemovableHandle] = []
        self._tried: dict[tuple[object, ...], Tried] = {}
        self._way: tuple[object, ...] = ()  # in which the model was called last
        self._devices: list[int] = []
        self._numbers: list[Tensor] = []
        self._book = Book()
        self._people: int | None = None
        self._outputs: list[tuple[GradientEdge, Owned]] = []
        self._modes: list[Watched | None] = []
        self._kept: dict[str, tuple[Tensor, int]] = {}
        self._busy = False
        self._last: dict[str, tuple[str, int, int]] = {}
        self.clear()

    def __enter__(self) -> Clipper:
        self.attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def attach(self) -> None:
        """Begin to watch the model's forward pass."""
        if self._handles:
            return
        self._handles = [
            # Before all other hooks: what these do is watched too, and a probe is not within their forward pass.
            self.model.register_forward_pre_hook(self._before, prepend=True, with_kwargs=True),
            self.model.register_forward_hook(self._after, with_kwargs=True, always_call=True),
        ]

    def detach(self) -> None:
        """Leave the model as it was."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._forget()

    def clear(self) -> None:
        """Begin a step: nobody is in the sums."""
        self._totals.clear()
        self._added = 0
        self._norms: list[Tensor] = []
        self._forget()

    @property
    def grid(self) -> float | None:
        """The step of the grid that exact sums are counted in; None for floats."""
        return math.ldexp(self.max_grad_norm, -GRID_BITS) if self.exact_sums else None

    @property
    def sums(self) -> dict[str, Tensor]:
        """The sums of clipped gradients: int64 in steps of `grid`, or float32.

        Finer whole numbers were added; each is rounded once. One person moves them by at most `sensitivity`.
        """
        return self._totals.mapped(self.rounded)

    def rounded(self, total: Tensor) -> Tensor:
        """Return one of `totals`, or a part of it, as `sums` are."""
        return (total + FINER // 2) >> FINER_BITS if self.exact_sums else total.float()

    @property
    def totals(self) -> dict[str, Tensor]:
        """The sums before they are rounded, as they are held: processes add theirs up in place. NOT PRIVATE."""
        return {name: self._totals[name] for name in self.parameters}

    @property
    def added(self) -> int:
        """How many people have come, wholly or in part, into the sums of this step: NOT PRIVATE."""
        return self._added

    def refuse_more(self, people: int) -> None:
        """Refuse a step of more people than sums hold, or than their rounding is bounded for.

        Raises:
            InvalidArgument: There are more, in all processes together.
        """
        most = MOST_PEOPLE if self.exact_sums else FLOAT_PEOPLE
        if people > most:
            raise InvalidArgument(f"a step may have more than {most:,} people.", do="take smaller batches.")

    def gradients(self) -> dict[str, Tensor]:
        """Return the sums as float32, without any noise: NOT PRIVATE, for tests."""
        step = self.grid
        return {n: s.float() if step is None else (s.double() * step).float() for n, s in self.sums.items()}

    @property
    def sensitivity(self) -> float:
        """How far, in ℓ2, one person moves `sums`, times `grid` where they are whole numbers.

        Privacy: exact sums: C, a theorem under the assumption of decision 0031. Float sums: C and twice the rounding of
        a sum of at most `FLOAT_PEOPLE` contributions, in the rounding model of that decision.
        """
        return self.max_grad_norm * (1 if self.exact_sums else 1 + 2 * FLOAT_PEOPLE * FLOAT_ROUNDING)

    def explain(self) -> list[Explanation]:
        """Say for each parameter how the last micro-batch was clipped. It tells how many were in it: NOT PRIVATE."""
        return [
            Explanation(name, tuple(p.shape), *self._last.get(name, ("-", 0, 0))) for name, p in self.parameters.items()
        ]

    def backward(self, losses: Tensor) -> None:
        """Add the clipped gradients of one micro-batch to the sums.

        No `.grad` is filled, of the model or of anything else: a parameter outside the model is not trained.

        Args:
            losses: One for each person, in the order of the rows that the model was called with.
        """
        if losses.dim() != 1:
            raise InvalidArgument("losses have to be one-dimensional, one for each person.", do='use reduction="none".')
        if not self._handles:
            raise InvalidArgument("the model is not attached.", do="call attach() before the forward pass.")
        device = next(iter(self.parameters.values())).device.type
        # A norm and the sum that it bounds are two products: on a CPU their rounding is taken for that of 24 bits.
        some_on_cpu = any(p.device.type == "cpu" for p in self.parameters.values())
        precise = whole_products("mkldnn") if some_on_cpu else contextlib.nullcontext()
        try:
            with torch.autocast(device, enabled=False), precise:
                if len(losses):
                    self._add(self._pieces(losses), len(losses))
        finally:
            self._forget()

    def balance(self, bound: float) -> int:
        """Return how many people's gradients in this step have norms up to `bound`, less how many have longer ones.

        Whose gradient is not finite counts for neither, as it adds nothing to the sum. NOT PRIVATE as it is.
        """
        longer = sum(int((torch.isfinite(norms) & (norms > bound)).sum()) for norms in self._norms)
        return sum(int((norms <= bound).sum()) for norms in self._norms) - longer

    # ---- watching

    def _before(self, model: nn.Module, args: Any, kwargs: Any) -> None:
        if self._busy:
            return
        mode = None
        if torch.is_grad_enabled():
            self._kept = {name: (x, x._version) for name, x in kept(model)}
            self._refuse_others()
            self._refuse_batch_norm()
            inputs = Inputs.of(args, kwargs)
            if self._people not in (None, inputs.people):
                self._forget()
            self._people = inputs.people
            self._look(inputs)
            self._devices = cuda_devices(inputs, (x for x, _ in self._kept.values()))
            self._numbers = random_state(self._devices)

            def again() -> tuple[Step, ...]:
                return self._probe(inputs)

            steps = self._tried[self._way].found.steps if inputs.people else ()
            mode = Watched(self._names, self._book, inputs.people, steps, again, whole=self.exact_sums)
            mode.__enter__()  # type: ignore[no-untyped-call]
        self._modes.append(mode)

    def _after(self, model: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        if self._busy or not self._modes:
            return
        mode = self._modes.pop()
        if mode is not None:
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            if out is not None:  # nothing comes out of a pass that failed either
                self._keep_outputs(said(out), Inputs.of(args, kwargs), mode.made)
            if changed_state(self._numbers, random_state(self._devices)):
                raise draws_random_numbers()
            for name, x in kept(model):
                before, version = self._kept.get(name, (None, 0))
                if before is None or before._version != version or (before is not x and not torch.equal(before, x)):
                    raise keeps_something(name, restored=False)

    def _keep_outputs(self, outputs: list[Tensor], inputs: Inputs, made: tuple[Step, ...]) -> None:
        """Keep where gradients reach what came out, and whose it is.

        Not the tensors: what came out may be the largest of all, and is let go as early as in any training.
        """
        people = self._people
        if not people:
            return
        for x, owner in zip(outputs, self._confirmed(inputs, made, len(outputs)).outputs, strict=True):
            if owner is not None and not owner.fits(x, people):
                raise mixes_people("what comes out")
            if owner is not None and x.requires_grad:
                self._outputs.append((get_gradient_edge(x), owner))

    def _confirmed(self, inputs: Inputs, made: tuple[Step, ...], outputs: int) -> Findings:
        """Return what trials showed of the way in which a pass was made; it is tried now if it was not before.

        `_circumstances` do not tell all ways, as by an attribute: then the pass makes fewer calls than the probe, or
        others, for which a probe was made in its midst, or more or fewer tensors come out.
        """

        def is_of(found: Findings) -> bool:
            return made == found.steps and outputs == len(found.outputs)

        if not is_of(self._tried[self._way].found):
            self._probe(inputs)
        if inputs.people > max(self._tried[self._way].largest, 1):  # what was checked at this size was another way
            self._check_at_full_size(inputs)
        found = self._tried[self._way].found
        if not is_of(found):
            raise unlike_trials()
        return found

    def _look(self, inputs: Inputs) -> None:
        """Probe the model where it was not, or in other circumstances, or with fewer rows."""
        if not inputs.people:
            return
        self._way = self._circumstances(inputs)
        if self._way not in self._tried or not self._tried[self._way].found.settled:
            self._probe(inputs)
        if inputs.people > max(self._tried[self._way].largest, 1):
            self._check_at_full_size(inputs)

    def _check_at_full_size(self, inputs: Inputs) -> None:
        """Check the model with all rows; where more or fewer tensors come out than in the probe, it is made again."""
        if not self._is_checked_at_full_size(inputs):
            self._probe(inputs)
            if not self._is_checked_at_full_size(inputs):
                raise mixes_people("what comes out")
        self._tried[self._way].largest = inputs.people

    def _is_checked_at_full_size(self, inputs: Inputs) -> bool:
        self._busy = True
        try:
            return is_checked_at_full_size(self.model, self._tried[self._way].found, inputs)
        finally:
            self._busy = False

    def _circumstances(self, inputs: Inputs) -> tuple[object, ...]:
        """Return on what, beside the data, it may depend what a model does: flags and texts in the call, for one."""
        given = tensors(inputs.args, inputs.kwargs)
        named = (*((str(place), x) for place, x in enumerate(inputs.args)), *inputs.kwargs.items())
        kinds = sorted({x.device.type for x in (*given, *self.parameters.values())})
        return (
            tuple((name, flags(x)) for name, x in named),
            tuple(part.training for part in self.model.modules()),
            tuple(x.dtype for x in (*given, *self.parameters.values())),
            tuple((kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds),
        )

    def _refuse_others(self) -> None:
        """Refuse parameters that became trainable after the clipper was made."""
        for name, (p, _) in self._kept.items():
            if p.requires_grad and p.numel() and id(p) not in self._names:
                raise NotAllowed(
                    f"the parameter {name!r} became trainable after the model was attached.",
                    why="its gradients are not clipped.",
                    do="set requires_grad before attaching.",
                )

    def _refuse_batch_norm(self) -> None:
        """Refuse what a single row cannot show, before it changes anything."""
        for part in self.model.modules():
            if isinstance(part, _BatchNorm) and (part.training or part.running_mean is None):
                name = next(name for name, each in self.model.named_modules() if each is part)
                raise mixes_people(f"{name or 'the model'}, a {type(part).__name__}")

    def _probe(self, inputs: Inputs) -> tuple[Step, ...]:
        """Probe the model. What else was seen of this way to call it holds on only if it is made of the same calls."""
        self._busy = True
        try:
            found = probe(self.model, self._names, inputs)
        finally:
            self._busy = False
        tried = self._tried.pop(self._way, None)
        if tried is None or (tried.found.steps, tried.found.outputs) != (found.steps, found.outputs):
            tried = Tried(found)
        tried.found = found
        self._tried[self._way] = tried
        if len(self._tried) > MOST_WAYS:
            del self._tried[next(iter(self._tried))]
        return found.steps

    def _forget(self) -> None:
        self._book, self._people, self._outputs = Book(), None, []

    # ---- summing

    def _pieces(self, losses: Tensor) -> Mapping[str, Piece]:
        if self._people is None:
            raise InvalidArgument("these losses come from no forward pass of the attached model.")
        if len(losses) != self._people:
            raise InvalidArgument(
                "there are not as many losses as people: the rows of the first tensor that the model is called with.",
                do="pass one loss for each row, and call the model on the micro-batch's rows.",
            )
        if not losses.requires_grad:
            raise InvalidArgument("losses have no gradient.", do="compute them with gradients enabled.")
        graph = graph_of(losses, [edge for edge, _ in self._outputs])
        known = self._tried[self._way].losses if self._way in self._tried else {}
        if len(losses) > known.get(graph, 1) and self._are_checked(losses):
            known[graph] = len(losses)  # else there was too little to see, and the next losses are checked too
        self._outputs = []
        self._book.collect(losses, {name: self.parameters[name] for name in self._names.values()})
        found = self._book.finish()
        if not found:
            raise InvalidArgument(
                "these losses have no gradient in the last forward pass.", do="call backward after each forward pass."
            )
        with torch.no_grad():
            return {name: combine(pieces) for name, pieces in found.items()}

    def _are_checked(self, losses: Tensor) -> bool:
        """Refuse losses that see several people, by those of the first and the last whose loss says something.

        Returns:
            Whether both gradients reached their own person.
        """
        telling = ((losses != 0) & losses.isfinite()).nonzero().flatten().tolist() or range(len(losses))
        own = []
        for person in sorted({telling[0], telling[-1]}):
            reached = self._reached(losses, person)
            own.append(bool(reached[person]))
            reached[person] = False
            if bool(reached.any()):
                raise NotAllowed(
                    "a person's loss depends on what the model says of others.",
                    why="that person's data would move other people's gradients.",
                    do='compute each loss from its own row, as with reduction="none".',
                )
        return len(own) > 1 and all(own)

    def _reached(self, losses: Tensor, person: int) -> Tensor:
        """Return whom the gradient of one person's loss reaches: at the model's outputs and inside, at junctions."""
        reached = torch.zeros(len(losses), dtype=torch.bool, device="cpu")

        def hear(gradient: Tensor, owner: Owner) -> None:
            if owner is not None:
                reached.logical_or_(whose(gradient, owner, len(losses)))

        self._book.overhear(losses[person], self._outputs, hear)
        return reached

    @torch.no_grad()
    def _add(self, pieces: Mapping[str, Piece], people: int) -> None:
        self._added += people
        self.refuse_more(self._added)
        groups = self._grouped(pieces)
        bounds = bounds_of([piece for _, piece in groups])
        whole = bounds.square().sum(0).sqrt()
        self._norms.append(whole)
        if self.style == "per_layer":
            factors = [
                self._factors(bound, piece.slack(), self._limits[names[0]])
                for bound, (names, piece) in zip(bounds.unbind(), groups, strict=True)
            ]
        else:
            factors = [self._factors(whole, self._slack(pieces, whole), self._limits[""])] * len(groups)
        if self.exact_sums:
            for (names, piece), each in zip(groups, factors, strict=True):
                piece.add(self._totals[names[0]], each)
        else:
            self._add_floats(groups, factors)
        for name, piece in pieces.items():
            told = piece.piece if isinstance(piece, Permuted) else piece
            self._last[name] = (type(told).__name__.lower(), 4 * piece.numbers(), piece.work())

    def _grouped(self, pieces: Mapping[str, Piece]) -> list[tuple[list[str], Piece]]:
        """Put small gradients on a GPU side by side: one operation takes them all in the time of one of them."""
        small: dict[str, Tensor] = {}
        if self.style != "per_layer" and not self.exact_sums:
            for name, piece in pieces.items():
                if isinstance(piece, Kept) and piece.gradients.is_cuda and self.parameters[name].numel() <= SMALL:
                    small[name] = piece.gradients.reshape(len(piece.gradients), -1).float()
        groups = [([name], piece) for name, piece in pieces.items() if name not in small]
        return [*groups, (list(small), Kept(torch.cat(list(small.values()), 1)))] if small else groups

    def _add_floats(self, groups: list[tuple[list[str], Piece]], factors: list[Tensor]) -> None:
        asked = factors if self.style == "per_layer" else factors[:1]
        everybody = Later(torch.stack(asked).all())
        sums = [piece.summed(each, masked=False) for (_, piece), each in zip(groups, factors, strict=True)]
        # 0·inf is no 0. Mostly everybody has a factor, and then nothing has to be summed again.
        for place, ((_, piece), each) in enumerate(zip(groups, factors, strict=True)):
            if not piece.masks() and not everybody.is_true():
                sums[place] = piece.summed(each, masked=True)
        found: dict[str, Tensor] = {}
        for (names, _), total in zip(groups, sums, strict=True):
            shapes = [self.parameters[name].shape for name in names]
            parts = total.split([shape.numel() for shape in shapes]) if names[1:] else [total]
            found |= {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        self._totals.add(found)

    def _slack(self, pieces: Mapping[str, Piece], whole: Tensor) -> Tensor | float:
        """Return how far rounding to whole fine steps moves a contribution to all parameters."""
        if not self.exact_sums:
            return 0.0
        slack = torch.zeros_like(whole)
        for piece in pieces.values():
            slack += torch.as_tensor(piece.slack()).square()
        return slack.sqrt()

    def _factors(self, norms: Tensor, slack: Tensor | float, limit: float) -> Tensor:
        """Return what each person's gradient is multiplied by: the result has norm at most `limit`."""
        most = 2.0**SUM_BITS / self.max_grad_norm if self.exact_sums else 1.0
        room = (limit - slack) if self.exact_sums else torch.full_like(norms, limit)
        if self.style == "automatic":
            found = room / (norms + STABILITY)
        else:
            found = torch.clamp(room / norms, max=most)
        least = 0.0 if self.exact_sums else LEAST_FACTOR
        fits = torch.isfinite(norms) & torch.isfinite(found) & (found > least)
        return torch.where(fits, found * SAFETY, torch.zeros_like(found))

    def _allowed(self) -> dict[str, float]:
        """Return how long contributions may be, of each parameter and ("") of all: in fine steps where sums are exact.

        Rounding the sum to the grid moves each number by less than a step, so that contributions give up √d steps.
        """
        share = 1 / math.sqrt(len(self.parameters))
        sizes = {name: p.numel() for name, p in self.parameters.items()}
        if not self.exact_sums:
            return {"": self.max_grad_norm} | dict.fromkeys(sizes, self.max_grad_norm * share)
        steps = 2.0**GRID_BITS
        limits = {name: steps * share - math.sqrt(size) for name, size in sizes.items()}
        limits[""] = steps - math.sqrt(sum(sizes.values()))
        if min(limits.values()) < steps * share / 2:
            raise NotAllowed("the model has too many parameters for exact sums.", do="take float noise.")
        return {name: limit * FINER for name, limit in limits.items()}


def refuse_watched(model: nn.Module) -> None:
    """Refuse a second run on a model of which a step is open: each would take the other's examples for its own."""
    hooks = [hook for part in model.modules() for hook in part._forward_pre_hooks.values()]
    if any(isinstance(getattr(hook, "__self__", None), Clipper) for hook in hooks):
        raise InvalidArgument(
            "the model is within a step of another run, or of this one.",
            why="examples of the one would come into the sum of the other.",
            do="finish or leave that step first.",
        )
