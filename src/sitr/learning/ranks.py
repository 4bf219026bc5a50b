"""Several processes that make one run: one draw, one noise and one charge, and every step made by all of them.

The first process (rank 0) draws who is in a step, pays, adds the noise and writes the checkpoint. Each of them sums the
clipped gradients of its share of the draw, and all of them make the same update. They meet before every draw and before
every sum, so that one that failed or left ends the run on all of them, and none waits for it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from .. import errors
from ..errors import InvalidArgument, NotAllowed, RanksParted, SitrError
from .checkpoint import Content
from .sampling import Integers

WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by bytes: to look at the bits of a number

FIRST_FSDP = "FullyShardedDataParallel"  # by name: importing it takes long


class Moment(IntEnum):
    """What a process is about to do when it meets the others."""

    BEGIN = 1
    DRAW = 2
    ADD = 3
    END = 4
    LEAVE = 5


class Ranks:
    """The processes of a run, as one of them sees them; a run of a single process has them too, and waits for nobody.

    Args:
        group: Whose collectives are used; None for that of all processes.
        rank: Which one this is.
        size: How many there are.
        device: Where the weights are: collectives take tensors there.

    Attributes:
        parted: Why the processes are no longer at the same step, in words; empty while they are.

    Privacy: a run of several processes releases what a run of one releases, by the same law (decision 0035). The first
    process alone draws: one Poisson draw, of which each example goes to one process, and one noise, on the sum over all
    processes, which alone is told to the others. Hence sensitivity, noise and sampling are those of THEORY 7.1.

    Example:
        >>> ranks = Ranks.of(None, nn.Linear(2, 2))
        >>> ranks.rank, ranks.size, ranks.first(lambda: 7)
        (0, 1, 7)
    """

    def __init__(self, group: dist.ProcessGroup | None, rank: int, size: int, device: torch.device) -> None:
        self.rank, self.size, self.parted = rank, size, ""
        self._group, self._device, self._inside = group, device, False

    @classmethod
    def of(cls, group: dist.ProcessGroup | None, model: nn.Module) -> Ranks:
        """Return the processes that train a model together: all of them, unless a group is given.

        Raises:
            InvalidArgument: This process is not of the group; or several were started, and do not know each other.
            NotAllowed: The model is wrapped in what averages gradients by itself.
        """
        _refuse_wrapped(model)
        device = next((weight.device for weight in model.parameters()), torch.device("cpu"))
        if not (dist.is_available() and dist.is_initialized()):
            _refuse_strangers()
            return cls(None, 0, 1, device)
        rank = dist.get_rank(group)
        if rank < 0:
            raise InvalidArgument("this process is not of the group.", do="attach in the processes of the group only.")
        return cls(group, rank, dist.get_world_size(group), device)

    @property
    def members(self) -> list[int]:
        """The processes as torch.distributed numbers them, in the order of their ranks."""
        return dist.get_process_group_ranks(self._group)

    @property
    def is_first(self) -> bool:
        """Whether this process draws, pays and writes."""
        return self.rank == 0

    # Meetings

    def begin(self, done: int) -> None:
        """Enter the loop, together.

        Raises:
            RanksParted: A process has gone, or is elsewhere.
        """
        self.meet(Moment.BEGIN, done)
        self._inside = True

    def meet(self, moment: Moment, done: int, weights: Iterable[Tensor] = ()) -> None:
        """Go on once all processes are at the same moment of the same step, with the same weights; else end on all.

        Raises:
            RanksParted: One of them has failed, left or gone; or weights differ.
        """
        if self.size == 1:
            return
        same = self._met(moment, done, bits_of(weights))
        if not same[2] and same[:2] == [True, True]:
            raise self._part(
                f"the weights of the processes differ before step {done + 1}.",
                why="each step gives all of them the same gradients, so something else has changed weights or the "
                "optimizer in some of them.",
                do="do in every process what you do in one, such as scheduler.step(); then attach again.",
            )
        if not all(same):
            raise self._part(
                f"the processes are not all at step {done + 1}.",
                why="every process makes every step.",
                do="go through the same loop in every process.",
            )

    def same(self, what: str, told: Callable[[], Any]) -> None:
        """Refuse, on all processes, what is not the same on all of them: of which is told what JSON holds.

        Raises:
            InvalidArgument: It differs.
        """
        if self.size == 1:
            return
        digest = hashlib.sha256(json.dumps(told()).encode()).hexdigest()
        if not all(self._met(Moment.BEGIN, 0, int(digest[:15], 16))):
            raise InvalidArgument(
                f"{what} differ from process to process.",
                why="they make one run together, from one beginning.",
                do="give all of them the same; weights by one state_dict, or by one seed before the model is made.",
            )

    def leave(self, done: int, was_open: bool, bring: Callable[[], None], tidy: Callable[[], Any]) -> Any:
        """Leave the loop: with all others, or as the one that the others then know of.

        Args:
            done: How many steps are behind.
            was_open: Whether it is left within a step.
            bring: What all processes then do first, if all leave at the same place.
            tidy: What the first process does; the others are told what it returns.

        Returns:
            What `tidy` returned; None where the processes have parted, and only the first one knows.
        """
        if self._left(done, was_open):
            bring()
            return self.first(tidy)
        return tidy() if self.is_first else None

    def _left(self, done: int, was_open: bool) -> bool:
        """Tell the others that this process leaves, and say whether all do, at the same place."""
        if self.size == 1:
            return True
        told, self._inside = self._inside and not self.parted, False
        if not told:
            return False
        try:
            if all(self._compared(Moment.LEAVE, done, int(was_open))[0]):
                return True
            self._part("the processes left the loop at different places.")
        except RanksParted:
            pass  # whoever is gone says why
        return False

    # What one does for all

    def first(self, do: Callable[[], Any]) -> Any:
        """Let the first process do something, and return on all what it returned, or raise on all what it raised.

        What is returned has to be such as JSON holds.
        """
        if self.size == 1:
            return do()
        if not self.is_first:
            told = self._told(None)
            if "error" in told:
                raise _error_of(*told["error"])
            return told["value"]
        try:
            value = do()
        except BaseException as error:  # the others wait, whatever it is
            self._told({"error": _told_of(error)})
            raise
        self._told({"value": value})
        return value

    def share(self, draw: Callable[[], Integers]) -> Integers:
        """Return this process's share of what the first one draws: of each example, its place says whose it is.

        Privacy: nobody's presence moves another example to another process, which may compute it a little differently.
        """
        if self.size == 1:
            return draw()
        drawn: list[Integers] = []

        def size() -> int:
            drawn.append(draw())
            return int(drawn[0].size)

        count = self.first(size)
        places = torch.tensor(drawn[0], device=self._device) if drawn else self._empty((count,), torch.int64)
        self._broadcast(places)
        mine: Integers = places[places % self.size == self.rank].cpu().numpy()
        return mine

    def content(self, read: Callable[[], Content | None]) -> Content | None:
        """Return on all processes the checkpoint that the first one reads, if there is any."""
        if self.size == 1:
            return read()
        found: list[Content] = []

        def described() -> Any:
            if (content := read()) is None:
                return None
            found.append(content)
            return content[1], [(name, [*one.shape], str(one.dtype)[6:]) for name, one in content[0].items()]

        told = self.first(described)
        if told is None:
            return None
        tensors = {}
        for name, shape, kind in told[1]:
            one = found[0][0][name].to(self._device) if found else self._empty(shape, getattr(torch, kind))
            self._broadcast(one)
            tensors[name] = one.cpu()
        return tensors, told[0]

    def spread(
        self, draw: Callable[[], tuple[dict[str, Tensor], Any]], like: Mapping[str, Tensor]
    ) -> tuple[dict[str, Tensor], Any]:
        """Return on all processes what the first one draws: tensors of known shapes, and something beside them."""
        drawn: dict[str, Tensor] = {}

        def beside() -> Any:
            found, more = draw()
            drawn.update(found)
            return more

        told = self.first(beside)
        for name, weight in like.items():
            if not self.is_first:
                drawn[name] = self._empty(weight.shape, weight.dtype)
            self._broadcast(drawn[name])
        return drawn, told

    # What all do together

    def total(self, *numbers: float) -> tuple[float, ...]:
        """Return numbers summed over processes; whole ones stay exact up to 2^53."""
        if self.size == 1:
            return numbers
        held = torch.tensor(numbers, dtype=torch.float64, device=self._device)
        self._collective(dist.all_reduce, held)
        return tuple(held.tolist())

    def add_up(self, sums: Mapping[str, Tensor]) -> None:
        """Add the sums of all processes up, in place, on the first one; what the others then hold means nothing.

        Privacy: whole numbers are added exactly, in any order. Sums without noise go to the first process alone.
        """
        for one in sums.values():
            if one.numel():
                self._collective(dist.reduce, one, group_dst=0)

    def scatter(self, total: Tensor) -> Tensor:
        """Return this process's rows of a sum over all processes, whose own shares are overwritten.

        Rows are shared out as `torch.chunk` does, which may leave none for the last processes.
        """
        parts = [*total.chunk(self.size), *[total[:0]] * self.size][: self.size]
        for rank, part in enumerate(parts):
            if part.numel():
                self._collective(dist.reduce, part, group_dst=rank)
        return parts[self.rank]

    # Messages

    def _met(self, moment: Moment, *numbers: int) -> list[bool]:
        """Say whether all are at the same moment, and of each number whether all have the same; end where one left."""
        same, left = self._compared(moment, *numbers)
        if left is None:
            return same
        raise self._part(
            f"process {left} of {self.size} left the loop, or failed.",
            why="every process makes every step: without its share the sum would be another one.",
            do="see what it says itself; then attach again, in all processes.",
        )

    def _compared(self, moment: Moment, *numbers: int) -> tuple[list[bool], int | None]:
        """Say of the moment and each number whether all processes have the same, and which process leaves, if any."""
        own = [int(moment), *numbers]
        held = [*own, *(~one for one in own), self.size - self.rank if moment is Moment.LEAVE else 0]
        told = torch.tensor(held, dtype=torch.int64, device=self._device)
        self._collective(dist.all_reduce, told, op=dist.ReduceOp.MAX)
        most = told.tolist()
        same = [most[k] == ~most[len(own) + k] for k in range(len(own))]
        return same, self.size - most[-1] if most[-1] else None

    def _told(self, message: Any) -> Any:
        """Return what the first process says."""
        text = json.dumps(message).encode() if self.is_first else b""
        length = torch.tensor([len(text)], dtype=torch.int64, device=self._device)
        self._broadcast(length)
        if self.is_first:
            held = torch.frombuffer(bytearray(text), dtype=torch.uint8).to(self._device)
        else:
            held = self._empty((int(length),), torch.uint8)
        self._broadcast(held)
        return message if self.is_first else json.loads(held.cpu().numpy().tobytes())

    def _empty(self, shape: Iterable[int], kind: torch.dtype) -> Tensor:
        return torch.empty(tuple(shape), dtype=kind, device=self._device)

    def _broadcast(self, held: Tensor) -> None:
        """Replace a tensor by that of the first process, to the last bit."""
        if held.numel():
            self._collective(dist.broadcast, held.contiguous().view(-1).view(torch.uint8), group_src=0)

    def _collective(self, collective: Callable[..., Any], held: Tensor, **options: Any) -> None:
        if self.size == 1:
            return
        try:
            collective(held, group=self._group, **options)
        except RuntimeError as error:
            raise self._part(
                "a process of the run has gone, or did not answer in time.",
                why="every process makes every step: without its share the sum would be another one.",
                do="see what it says itself; then start all processes again.",
            ) from error

    def _part(self, what: str, *, why: str = "", do: str = "") -> RanksParted:
        self.parted = "the processes of the run have parted"
        return RanksParted(what, why=why, do=do)


def bits_of(tensors: Iterable[Tensor]) -> int:
    """Return a number of all bits of tensors, and of the order of their rows: where it differs, they do.

    Example:
        >>> len({bits_of([torch.tensor(numbers)]) for numbers in ([1.0, 2.0], [1.0, 3.0], [2.0, 1.0])})
        3
    """
    found = 0
    for one in tensors:
        if one.numel():
            whole = one.detach().contiguous().view(-1).view(WHOLE.get(one.element_size(), torch.uint8))
            rows = whole.view(len(one) if one.ndim else 1, -1).sum(1)
            found += int((rows * torch.arange(1, len(rows) + 1, device=rows.device)).sum())
    return found % 2**62


def _told_of(error: BaseException) -> list[str]:
    """An error as others are told of it: of ours all, which holds nothing of the data, and of others the kind."""
    if isinstance(error, SitrError):
        return [type(error).__name__, error.what, error.why, error.do]
    return ["RanksParted", f"the first process ended with {type(error).__name__}.", "", "see what it says itself."]


def _error_of(kind: str, what: str, why: str, do: str) -> SitrError:
    made: SitrError = getattr(errors, kind)(what, why=why, do=do)
    return made


def _refuse_wrapped(model: nn.Module) -> None:
    for part in model.modules():
        if isinstance(part, (DataParallel, DistributedDataParallel)) or type(part).__name__ == FIRST_FSDP:
            raise NotAllowed(
                f"a {type(part).__name__} averages gradients by itself.",
                why="gradients are clipped for each example, summed over all processes, and noisy once.",
                do="pass model.module in every process: the run brings the processes together.",
            )


def _refuse_strangers() -> None:
    """Refuse one of several processes that would each make a run of their own, unseen by each other."""
    count = os.environ.get("WORLD_SIZE", "")
    if "TORCHELASTIC_RUN_ID" in os.environ and count.isdecimal() and int(count) > 1:
        raise InvalidArgument(
            f"torchrun has started {count} processes, and torch.distributed is not initialised.",
            why="each of them would make a run of its own on the same examples, and all of these would be released.",
            do="call torch.distributed.init_process_group() before attach.",
        )
