"""Sums of clipped gradients, one for each person, from one backward pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from ..errors import InvalidArgument, NotAllowed
from .forward import Book, Watched
from .pieces import SUM_BITS, Kept, Permuted, Piece, bounds_of, combine
from .probe import (
    COMPARED,
    Findings,
    Inputs,
    changed_state,
    check_at_full_size,
    cuda_devices,
    draws_random_numbers,
    keeps_something,
    kept,
    probe,
    random_state,
)
from .totals import Totals
from .watch import Step, mixes_people, tensors

Style = Literal["flat", "per_layer", "automatic"]

GRID_BITS = 22  # the clipping bound in steps of the grid that sums are rounded to
FINER = 2 ** (SUM_BITS - GRID_BITS)  # fine steps, in which people's gradients are added, to a step of that grid
MOST_PEOPLE = 2 ** (62 - SUM_BITS)  # in a step: so many contributions fit into 64 bits
SAFETY = 1 - 2.0**-20  # covers the rounding of factors and of their products
FLOAT_PEOPLE = 2**14  # in a step with float sums,
FLOAT_ROUNDING = 2.0**-22  # whose sum is rounded by at most this share of C for each of them (decision 0031)
STABILITY = 0.01  # what automatic clipping adds to a norm (Bu et al. 2023)
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
        self._names = {id(p): name for name, p in self.parameters.items()}
        self._limits = self._allowed()
        self._totals = Totals(self.parameters, torch.int64 if exact_sums else torch.float64)
        self._handles: list[RemovableHandle] = []
        self._found: Findings | None = None
        self._probed_in: tuple[object, ...] = ()
        self._largest = 0  # number of people that a full micro-batch was checked with
        self._devices: list[int] = []
        self._numbers: list[Tensor] = []
        self._book = Book()
        self._people: int | None = None
        self._outputs: list[list[Tensor]] = []
        self._checked_losses = False
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
        return torch.floor_divide(total + FINER // 2, FINER) if self.exact_sums else total.float()

    @property
    def totals(self) -> dict[str, Tensor]:
        """The sums before they are rounded, as they are held: processes add theirs up in place. NOT PRIVATE."""
        return {name: self._totals[name] for name in self.parameters}

    def refuse_more(self, people: int) -> None:
        """Refuse a step of more people than sums hold, or than their rounding is bounded for.

        Raises:
            InvalidArgument: There are more, in all processes together.
        """
        most = MOST_PEOPLE if self.exact_sums else FLOAT_PEOPLE
        if people > most:
            raise InvalidArgument(f"a step has more than {most} people.", do="take smaller batches.")

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
        try:
            with torch.autocast(device, enabled=False):
                if len(losses):
                    self._add(self._pieces(losses), len(losses))
        finally:
            self._forget()

    def under(self, bound: float) -> int:
        """Return how many people of this step so far had gradients of norm at most `bound`: NOT PRIVATE as it is."""
        return int(sum(int((norms <= bound).sum()) for norms in self._norms))

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

            steps = self._found.steps if self._found else ()
            mode = Watched(self._names, self._book, inputs.people, steps, again, whole=self.exact_sums)
            mode.__enter__()  # type: ignore[no-untyped-call]
        self._modes.append(mode)

    def _after(self, model: nn.Module, args: Any, kwargs: Any, out: Any) -> None:
        if self._busy or not self._modes:
            return
        mode = self._modes.pop()
        if mode is not None:
            mode.__exit__(None, None, None)  # type: ignore[no-untyped-call]
            self._outputs.append(tensors(out))
            if changed_state(self._numbers, random_state(self._devices)):
                raise draws_random_numbers()
            for name, x in kept(model):
                before, version = self._kept.get(name, (None, 0))
                if before is None or before._version != version or (before is not x and not torch.equal(before, x)):
                    raise keeps_something(name, restored=False)

    def _look(self, inputs: Inputs) -> None:
        """Probe the model where it was not, or in other circumstances, or with fewer rows."""
        if not inputs.people:
            return
        now = self._circumstances(inputs)
        if self._found is None or not self._found.settled or now != self._probed_in:
            self._probe(inputs)
            if now != self._probed_in:
                self._largest = 0
            self._probed_in = now
        if inputs.people > max(self._largest, 1) and self._found is not None:
            self._busy = True
            try:
                check_at_full_size(self.model, self._found, inputs)
            finally:
                self._busy = False
            self._largest = inputs.people

    def _circumstances(self, inputs: Inputs) -> tuple[object, ...]:
        """Return on what, beside the data, it may depend what a model does."""
        given = tensors(inputs.args, inputs.kwargs)
        kinds = sorted({x.device.type for x in (*given, *self.parameters.values())})
        return (
            tuple(part.training for part in self.model.modules()),
            tuple(x.dtype for x in (*given, *self.parameters.values())),
            tuple((kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds),
        )

    def _refuse_others(self) -> None:
        """Refuse parameters that became trainable after the clipper was made."""
        for name, (p, _) in self._kept.items():
            if p.requires_grad and id(p) not in self._names:
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
        self._busy = True
        try:
            self._found = probe(self.model, self._names, inputs)
        finally:
            self._busy = False
        return self._found.steps

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
        if not self._checked_losses and len(losses) > 1:
            self._check_losses(losses)
        self._outputs = []  # what came out may be the largest tensor of all
        self._book.collect(losses, self.parameters)
        found = self._book.finish()
        if not found:
            raise InvalidArgument(
                "these losses have no gradient in the last forward pass.", do="call backward after each forward pass."
            )
        with torch.no_grad():
            return {name: combine(pieces) for name, pieces in found.items()}

    def _check_losses(self, losses: Tensor) -> None:
        """Refuse losses that see several people's outputs."""
        owners = self._found.outputs if self._found else ()
        owned = [
            (x, owner)
            for outputs in self._outputs
            for x, owner in zip(outputs, owners, strict=False)
            if owner is not None and x.requires_grad
        ]
        for person in (0, len(losses) - 1) if owned else ():
            wanted = [x for x, _ in owned]
            found = torch.autograd.grad(losses[person], wanted, retain_graph=True, materialize_grads=True)
            for gradient, (_, owner) in zip(found, owned, strict=True):
                # 0 times somebody's infinite derivative is NaN, which says nothing about a dependence.
                rows = owner.split(gradient, len(losses)).flatten(1)
                few = max(1, COMPARED // max(1, rows.shape[1]))
                moved = torch.cat([some.nan_to_num(nan=0.0).any(1) for some in rows.split(few)])
                moved[person] = False
                if bool(moved.any()):
                    raise NotAllowed(
                        "a person's loss depends on what the model says of others.",
                        why="that person's data would move other people's gradients.",
                        do='compute each loss from its own row, as with reduction="none".',
                    )
        self._checked_losses = True

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
            if len(names) == 1:
                found[names[0]] = total
                continue
            parts = total.split([self.parameters[name].numel() for name in names])
            found |= {name: part.view(self.parameters[name].shape) for name, part in zip(names, parts, strict=True)}
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
        found = torch.where(torch.isfinite(norms) & torch.isfinite(found), found * SAFETY, torch.zeros_like(found))
        return found.clamp_min(0)

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
