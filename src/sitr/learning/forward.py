"""The watched forward pass: parameters become constants, and each junction hands its people's gradients to a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from ..errors import NotAllowed
from .pieces import Applied, Kept, Permuted, Piece
from .rules import COMPOSITES, RULES
from .rules.expansion import expanded, quiet
from .watch import Call, Function, Step, Token, name_of, replaced, tensors

Receive = Callable[[Tensor], list[tuple[Tensor, Piece]]]


class Tap(torch.autograd.Function):
    """The identity, whose backward pass hands on the gradient. In place, so that an in-place ReLU may follow."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, anchor: Tensor, receive: Callable[[Tensor], None]) -> Tensor:  # noqa: D102
        ctx.receive = receive
        ctx.mark_dirty(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # noqa: D102
        if torch.is_grad_enabled():
            raise NotAllowed(
                "a gradient of the model is itself differentiated (create_graph), as a gradient penalty is.",
                why="the gradient of a gradient goes around the clipping.",
                do="take a loss of the model's outputs alone.",
            )
        ctx.receive(gradient)
        return gradient, None, None


class Book:
    """What one forward and backward pass collect: pieces of gradients, by the tensor that they are gradients of."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Tensor, Piece]] = []
        self.copies: dict[int, Tensor] = {}  # of parameters, by their id: the leaves of all that is like one
        self.names: dict[int, str] = {}  # of those copies
        self.transposed: dict[int, Tensor] = {}  # by the id of a transposed matrix, what it was made of
        self.expanded: list[tuple[Tensor, Tensor]] = []  # what is like a parameter; a leaf of a copy for each person
        self.pulling, self.muted = False, True  # heard only in Clipper.backward
        self.anchor = torch.zeros((), requires_grad=True)  # every tap leads to it
        self._held: list[Tensor] = []

    def hold(self, x: Tensor) -> Tensor:
        """Keep a tensor, so that its id stays its own."""
        self._held.append(x)
        return x

    def copy(self, parameter: Tensor, name: str) -> Tensor:
        """Return the constant that stands for a parameter in this pass; no gradient of a loss may reach it."""
        found = self.copies.get(id(parameter))
        if found is None:
            found = self.copies[id(parameter)] = parameter.detach().requires_grad_()
            self.names[id(found)] = name
            found.register_hook(lambda _: self._refuse(name))
        return found

    def _refuse(self, name: str) -> None:
        if not self.pulling:
            raise escaped(name)

    def collect(self, losses: Tensor, parameters: Iterable[Tensor]) -> None:
        """Run the backward pass: taps are heard, and no gradient is left anywhere else.

        Args:
            losses: One for each person.
            parameters: Those whose alarm has to ring if a gradient reaches them.
        """
        leaves = [leaf for _, leaf in self.expanded]
        for leaf in leaves:
            leaf.grad = None
        self.muted = False
        try:
            ends = [self.anchor, *leaves, *self.copies.values(), *parameters]
            torch.autograd.backward(losses, torch.ones_like(losses), inputs=ends)
        finally:
            self.muted = True

    def finish(self) -> dict[str, list[Piece]]:
        """Return the pieces by parameter, those of tensors made of parameters taken back to them."""
        found: dict[str, list[Piece]] = {}
        made: dict[int, tuple[Tensor, Tensor]] = {}
        pieces = self.pieces + [(like, Kept(leaf.grad)) for like, leaf in self.expanded if leaf.grad is not None]
        for like, piece in pieces:
            if id(like) in self.transposed:
                like, piece = self.transposed[id(like)], _transposed(piece)
            if id(like) in self.names:
                found.setdefault(self.names[id(like)], []).append(piece)
            else:
                total = piece.dense()
                made[id(like)] = (like, made[id(like)][1] + total if id(like) in made else total)
        if made:
            self.pulling = True
            leaves = list(self.copies.values())
            likes, totals = zip(*made.values(), strict=True)
            with quiet():
                pulled = torch.autograd.grad(likes, leaves, totals, is_grads_batched=True, allow_unused=True)
            for leaf, gradient in zip(leaves, pulled, strict=True):
                if gradient is not None:
                    found.setdefault(self.names[id(leaf)], []).append(Kept(gradient))
        return found


def _transposed(piece: Piece) -> Piece:
    return piece.transposed() if isinstance(piece, Applied) else Kept(piece.dense().transpose(1, 2))


def escaped(name: str) -> NotAllowed:
    """Return the error for a gradient that went around the rules."""
    return NotAllowed(
        f"a gradient reached the parameter {name!r} in a way that was not seen in the model's forward pass.",
        why="it would not be clipped.",
        do="use parameters only inside forward of the attached model: no weight decay written into the loss (the "
        "optimizer has it), no call of a part of the model by itself, no checkpointing, no custom autograd function.",
    )


class Watched(TorchFunctionMode):
    """Takes gradients apart by person at each junction.

    Args:
        parameters: Names of the tracked parameters by their id.
        book: Where pieces go.
        people: How many rows the micro-batch has.
        steps: What the probe found.
        probe: Makes the steps again for this very micro-batch, where it calls other functions.
        whole: Sums will be of whole numbers.
    """

    def __init__(
        self,
        parameters: dict[int, str],
        book: Book,
        people: int,
        steps: tuple[Step, ...],
        probe: Callable[[], tuple[Step, ...]],
        *,
        whole: bool,
    ) -> None:
        super().__init__()
        self.parameters, self.book, self.people, self.steps, self.whole = parameters, book, people, steps, whole
        self._probe, self._place, self._probed = probe, 0, False
        self._made: dict[int, Token] = {}
        self._uses: Counter[str | None] = Counter()

    def __torch_function__(self, func: Function, types: object, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSITES and self.people:
            with self:
                return COMPOSITES[func](*args, **kwargs)
        if not torch.is_grad_enabled() or not any(self._known(x) for x in tensors(args, kwargs)):
            return func(*args, **kwargs)
        args, kwargs = replaced((args, kwargs), self._copied)
        if not self.people:
            return func(*args, **kwargs)
        step = self._step(func, args, kwargs)
        if step is not None and step.junction:
            return self._junction(step, args, kwargs)
        before = [x._version for x in self.book.copies.values()]
        out = func(*args, **kwargs)
        if before != [x._version for x in self.book.copies.values()]:
            raise NotAllowed(
                f"{name_of(func)} changes a parameter inside forward.", do="leave parameters to the optimizer."
            )
        results = [x for x in tensors(out) if x.requires_grad]
        if step is None and results:
            raise self._other(func)
        if step is not None:
            self._place += 1
            for k, x in enumerate(results):
                self._made[id(self.book.hold(x))] = Token(step.place, k)
            if name_of(func).rsplit(".", 1)[-1] == "t" and id(args[0]) in self.book.names and args[0].dim() == 2:
                self.book.transposed[id(out)] = args[0]
        return out

    def _known(self, x: Tensor) -> bool:
        return id(x) in self.parameters or id(x) in self._made

    def _copied(self, x: Tensor) -> Tensor:
        name = self.parameters.get(id(x))
        return x if name is None else self.book.copy(x, name)

    def _step(self, func: Function, args: Any, kwargs: Any) -> Step | None:
        """Return what to do at this call; None if it is none that the probe recorded."""
        given = list(tensors(args, kwargs))
        origins = tuple(self.book.names.get(id(x)) or self._made.get(id(x)) for x in given)
        found = self._next(func, given, origins)
        if found is None and not _only_looks(func) and not self._probed:
            self._probed = True
            steps = self._probe()
            if [(s.func, s.origins) for s in steps[: self._place]] == [
                (s.func, s.origins) for s in self.steps[: self._place]
            ]:
                self.steps = steps
                found = self._next(func, given, origins)
        return found

    def _next(self, func: Function, given: list[Tensor], origins: tuple[str | Token | None, ...]) -> Step | None:
        if self._place < len(self.steps):
            step = self.steps[self._place]
            if step.func == func and step.origins == origins:
                fits = all(o is None or o.fits(x, self.people) for x, o in zip(given, step.owners, strict=True))
                return step if fits else None
        return None

    def _other(self, func: Function) -> NotAllowed:
        return NotAllowed(
            f"the model called {name_of(func)} on parameters where it did not in the probe.",
            why="whose gradient is whose is found by running it on few rows, and holds for what was run.",
            do="make what the model calls independent of the data and of the batch size.",
        )

    def _junction(self, step: Step, args: Any, kwargs: Any) -> Any:
        if not self._uses:
            self._uses.update(origin for each in self.steps for origin in each.origins if isinstance(origin, str))
        given = list(tensors(args, kwargs))
        likes = {id(x): x for x, origin in zip(given, step.origins, strict=True) if origin}
        owners = {id(x): owner for x, owner in zip(given, step.owners, strict=True) if id(x) not in likes}
        self._place += 1
        call = Call(step, args, kwargs, self.people, self.whole, owners, likes)
        rule = RULES.get(step.func)
        ruled = rule(call) if rule else None
        if ruled is None:
            return expanded(call, self.book.expanded)
        out, receive = ruled
        if out._is_view():
            out = out.clone()
        saved = [(x, x._version) for x in given if id(x) not in likes]
        anchor = self.book.anchor.to(out.device)
        tapped: Tensor = Tap.apply(out, anchor, lambda g: self._receive(step, saved, receive, g))  # type: ignore[no-untyped-call]
        return tapped

    def _receive(self, step: Step, saved: list[tuple[Tensor, int]], receive: Receive, gradient: Tensor) -> None:
        if self.book.muted:
            return
        if any(x._version != version for x, version in saved):
            raise NotAllowed(
                f"an input of {name_of(step.func)} with {step.names()} was changed in place after its use.",
                why="the gradient of a parameter needs it.",
                do="use the operation that is not in place.",
            )
        with torch.no_grad():
            for like, piece in receive(gradient.detach()):
                alone = self._uses[self.book.names.get(id(like))] == 1
                settled = piece.settle() if alone and isinstance(piece, Applied | Permuted) else piece
                self.book.pieces.append((like, settled))


def _only_looks(func: Function) -> bool:
    """Say whether a function only asks for the shape or the like: the probe records none of those."""
    name = getattr(func, "__name__", "")
    return name in {"__get__", "dim", "size", "numel", "stride", "__len__", "is_floating_point", "data_ptr", "detach"}
