"""The watched forward pass: parameters become constants, and each junction hands its people's gradients to a rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.overrides import TorchFunctionMode

from ..errors import NotAllowed
from .ownership import Owned, Owner
from .pieces import Applied, Kept, Permuted, Piece
from .rules import COMPOSITES, PRODUCTS, RULES
from .rules.expansion import expanded, quiet
from .watch import NESTED, Call, Function, Step, Token, name_of, replaced, tensors

Receive = Callable[[Tensor], list[tuple[Tensor, Piece]]]
Listener = Callable[[Tensor, Owner], None]


class Tap(torch.autograd.Function):
    """The identity, whose backward pass hands on the gradient. In place, so that an in-place ReLU may follow."""

    @staticmethod
    def forward(ctx: Any, out: Tensor, anchor: Tensor, receive: Callable[[Tensor], bool]) -> Tensor:  # noqa: D102
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
        if ctx.receive is not None and ctx.receive(gradient):
            ctx.receive = None  # it holds what the junction was given, and the graph lives on
        return gradient, None, None


class Book:
    """What one forward and backward pass collect: pieces of gradients, by the tensor that they are gradients of."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Tensor, Piece]] = []
        self.copies: dict[int, Tensor] = {}  # of parameters, by their id: the leaves of all that is like one
        self.names: dict[int, str] = {}  # of those copies
        self.transposed: dict[int, Tensor] = {}  # by the id of a transposed matrix, what it was made of
        self.expanded: list[tuple[Tensor, Tensor]] = []  # what is like a parameter; a leaf of a copy for each person
        self.muted = True  # heard only in Clipper.backward
        self.listener: Listener | None = None  # is told what passes a junction while that is muted
        self._anchors: dict[torch.device, Tensor] = {}
        self._held: list[Tensor] = []

    def anchor(self, device: torch.device) -> Tensor:
        """Return what every tap on a device leads to."""
        if device not in self._anchors:
            self._anchors[device] = torch.zeros((), device=device, requires_grad=True)
        return self._anchors[device]

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
        return found

    def collect(self, losses: Tensor, parameters: Mapping[str, Tensor]) -> None:
        """Run the backward pass: taps are heard, and no gradient is left anywhere else.

        Args:
            losses: One for each person.
            parameters: By name, those that no gradient may reach, nor a constant that stands for one.
        """
        leaves = [leaf for _, leaf in self.expanded]
        closed = [*parameters.items(), *((self.names[id(x)], x) for x in self.copies.values())]
        ends = [*leaves, *(x for _, x in closed), *self._anchors.values()]
        self.muted = False
        try:
            found = torch.autograd.grad(losses, ends, torch.ones_like(losses), allow_unused=True)
        finally:
            self.muted = True
        for (name, _), gradient in zip(closed, found[len(leaves) :], strict=False):
            if gradient is not None:
                raise escaped(name)
        for (like, _), gradient in zip(self.expanded, found, strict=False):
            if gradient is not None:
                self.pieces.append((like, Kept(gradient)))

    def overhear(self, loss: Tensor, ends: list[tuple[GradientEdge, Owned]], listener: Listener) -> None:
        """Tell a listener all gradients of one person's loss, and whose they are, at `ends` and at junctions.

        Junctions tell it as the gradient passes: all of their gradients at once might not fit into memory.
        """
        ends = [*ends, *((get_gradient_edge(leaf), Owned(0)) for _, leaf in self.expanded)]
        wanted = [*(edge for edge, _ in ends), *map(get_gradient_edge, self._anchors.values())]
        self.listener = listener
        try:
            found = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        finally:
            self.listener = None
        for gradient, (_, owner) in zip(found, ends, strict=False):
            if gradient is not None:
                listener(gradient, owner)

    def finish(self) -> dict[str, list[Piece]]:
        """Return the pieces by parameter, those of tensors made of parameters taken back to them."""
        found: dict[str, list[Piece]] = {}
        made: dict[int, tuple[Tensor, Tensor]] = {}
        for like, piece in self.pieces:
            if id(like) in self.transposed:
                like, piece = self.transposed[id(like)], _transposed(piece)
            if id(like) in self.names:
                found.setdefault(self.names[id(like)], []).append(piece)
            else:
                total = piece.dense()
                made[id(like)] = (like, made[id(like)][1] + total if id(like) in made else total)
        if made:
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

    @property
    def made(self) -> tuple[Step, ...]:
        """The steps that this pass has made."""
        return self.steps[: self._place]

    def __torch_function__(self, func: Function, types: object, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in COMPOSITES and self.people:
            with self:
                return COMPOSITES[func](*args, **kwargs)
        if not (self._knows(args) or self._knows(kwargs.values())) or not torch.is_grad_enabled():
            return func(*args, **kwargs)
        args, kwargs = replaced(args, self._copied), replaced(kwargs, self._copied)
        if not self.people:
            return func(*args, **kwargs)
        given = tensors(args, kwargs)
        step = self._step(func, given)
        if step is not None and step.junction:
            return self._junction(step, args, kwargs, given)
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

    def _knows(self, values: Iterable[Any]) -> bool:
        """Say whether something like a parameter is among values, or in tuples, lists and dicts among them."""
        for x in values:
            if id(x) in self.parameters or id(x) in self._made:
                return True
            if isinstance(x, NESTED) and self._knows(x.values() if isinstance(x, dict) else x):
                return True
        return False

    def _copied(self, x: Tensor) -> Tensor:
        name = self.parameters.get(id(x))
        return x if name is None else self.book.copy(x, name)

    def _step(self, func: Function, given: list[Tensor]) -> Step | None:
        """Return what to do at this call; None if it is none that the probe recorded."""
        origins = tuple(self.book.names.get(id(x)) or self._made.get(id(x)) for x in given)
        found = self._next(func, given, origins)
        if found is None and not _only_looks(func) and not self._probed:
            self._probed = True
            steps = self._probe()
            # Gradients of the calls so far are taken apart as was found before: not only the calls have to be the same.
            if _taken(steps[: self._place]) == _taken(self.made):
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

    def _junction(self, step: Step, args: Any, kwargs: Any, given: list[Tensor]) -> Any:
        if step.func in PRODUCTS and torch.is_autocast_enabled("cuda"):
            args, kwargs = lowered(step, args, kwargs)
            given = tensors(args, kwargs)
        if not self._uses:
            self._uses.update(origin for each in self.steps for origin in each.origins if isinstance(origin, str))
        likes = {id(x): x for x, origin in zip(given, step.origins, strict=True) if origin}
        owners = {id(x): owner for x, owner in zip(given, step.owners, strict=True) if id(x) not in likes}
        self._place += 1
        call = Call(step, args, kwargs, self.people, self.whole, owners, likes)
        rule = RULES.get(step.func)
        ruled = rule(call) if rule else None
        if ruled is None:
            return expanded(call, self.book.expanded)
        out, receive = ruled
        saved, shape = [(x, x._version) for x in given if id(x) not in likes], out.shape
        out = _itself(out, given)
        tapped: Tensor = Tap.apply(  # type: ignore[no-untyped-call]
            out, self.book.anchor(out.device), lambda g: self._receive(step, saved, receive, g.reshape(shape))
        )
        return tapped if tapped.shape == shape else tapped.view(shape)

    def _receive(self, step: Step, saved: list[tuple[Tensor, int]], receive: Receive, gradient: Tensor) -> bool:
        """Take a gradient, and say whether it was wanted."""
        if self.book.muted:
            if self.book.listener is not None:
                self.book.listener(gradient, step.results[0] if step.results else None)
            return False
        if any(x._version != version for x, version in saved):
            raise NotAllowed(
                f"an input of {name_of(step.func)} with {step.names()} was changed in place after its use.",
                why="the gradient of a parameter needs it.",
                do="use the operation that is not in place.",
            )
        with torch.no_grad():
            for like, piece in receive(gradient.detach()):
                alone = self._uses[self.book.names.get(id(like))] == 1
                if isinstance(piece, Applied | Permuted) and (alone or piece.is_made_at_once):
                    piece = piece.settle()
                self.book.pieces.append((like, piece))
        return True


def _taken(steps: tuple[Step, ...]) -> list[tuple[object, ...]]:
    """Return how calls take gradients apart."""
    return [(step.func, step.origins, step.owners, step.results) for step in steps]


def _itself(out: Tensor, given: list[Tensor]) -> Tensor:
    """Return the numbers that came out in a tensor that is no view, as a tap needs it: what it views, or a copy."""
    if not out._is_view():
        return out
    viewed = out._base
    same = viewed is not None and viewed.numel() == out.numel() and out.is_contiguous() and viewed.is_contiguous()
    return viewed if same and all(viewed is not x for x in given) else out.clone()  # type: ignore[return-value]


def lowered(step: Step, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Do to people's data what autocast on a GPU does in a product: done before, there is one copy, which is kept."""
    given = zip(tensors(args, kwargs), step.origins, strict=True)
    wide = {id(x) for x, origin in given if not origin and x.is_cuda and x.dtype == torch.float32}
    dtype = torch.get_autocast_dtype("cuda")
    changed: tuple[Any, Any] = replaced((args, kwargs), lambda x: x.to(dtype) if id(x) in wide else x)
    return changed


def _only_looks(func: Function) -> bool:
    """Say whether a function only asks for the shape or the like: the probe records none of those."""
    name = getattr(func, "__name__", "")
    return name in {"__get__", "dim", "size", "numel", "stride", "__len__", "is_floating_point", "data_ptr", "detach"}
