"""Checkpoints: weights, optimizer and position in one file, written whole or not at all, and nothing of the noise.

A file is of the safetensors format: tensors, and a text beside them, which is JSON here. Nothing in it is code. All
that it holds follows from what was released with noise, so it is as private as the model; keys of noise are in no file.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.optim import Optimizer

from ..errors import InvalidArgument, InvalidRecord
from ..ledger.disk import owner_only, sync_folder
from .account import Paid, Span
from .average import Average
from .plan import TrainingPlan

Content = tuple[dict[str, Tensor], dict[str, Any]]  # of a file: tensors by name, and the rest

VERSION = "1"
ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class Position:
    """Where a run is.

    Attributes:
        done: How many steps are behind it.
        until: Before which step it writes the next checkpoint: as far as it may have gone since this one.
        order: The seed of shuffled passes.
        norm: What gradients are clipped to now.
        paid: What was charged so far; nothing for a run that is not charged.
        operation: Under which id.
    """

    done: int
    until: int
    order: int
    norm: float
    paid: Paid = ()
    operation: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Position:
        """Read what `to_dict` returned."""
        made = cls(**record)
        return replace(made, paid=tuple(Span(*one) for one in record["paid"]))


@dataclass(frozen=True)
class State:
    """What model and optimizer hold at a moment.

    Attributes:
        tensors: By name, whole and apart from those in use.
        about: The rest, as JSON holds it: their structure, the optimizer's groups, and what of its state is no tensor.
    """

    tensors: dict[str, Tensor]
    about: dict[str, Any]

    @classmethod
    def of(cls, model: nn.Module, optimizer: Optimizer, average: Average | None = None) -> State:
        """Return what they hold now; of weights in shards, all processes bring theirs together.

        Raises:
            InvalidArgument: There is something that JSON and tensors cannot hold.
        """
        tensors = {f"model.{name}": one for name, one in _model_state(model).items()}
        groups, values = _optimizer_state(optimizer, tensors)
        about: dict[str, Any] = {"structure": structure_of(model, optimizer), "groups": groups, "values": values}
        if average is not None:
            tensors |= {f"average.{name}": one for name, one in average.values.items()}
            about["average"] = average.decay
        # Tied weights share memory, which the format does not hold.
        return cls({name: _whole(one).detach().cpu().contiguous().clone() for name, one in tensors.items()}, about)


class Checkpoint:
    """A file that a run is resumed from.

    Args:
        path: Where it is, or will be; its folder is there already.

    Raises:
        InvalidArgument: There is no such folder.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir() or self.path.is_dir():
            raise InvalidArgument(f"checkpoint={str(path)!r} is no file in a folder that is there.")

    @property
    def exists(self) -> bool:
        """Whether there is something to resume."""
        return self.path.exists()

    def remove(self) -> None:
        """Remove the file: nothing of the run was made."""
        self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file for one run: a second one from the same checkpoint would make its steps twice.

        Raises:
            InvalidArgument: Another process has it.
        """
        with open(f"{self.path}.lock", "w", opener=owner_only) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InvalidArgument(
                    f"another run goes on from {str(self.path)!r}.",
                    why="two runs from one checkpoint make the same steps twice, for the price of one.",
                    do="wait for it, or stop it.",
                ) from None
            yield

    def write(self, state: State, plan: TrainingPlan, position: Position) -> None:
        """Replace the file by one of a state, on the disk before this returns."""
        about = {"plan": plan.to_dict(), "position": position.to_dict(), **state.about}
        content = save(state.tensors, metadata={"sitr": json.dumps(about), "version": VERSION})
        beside = self.path.with_name(f"{self.path.name}.new")
        with open(beside, "wb", opener=owner_only) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        sync_folder(self.path.parent)

    def position(self) -> Position | None:
        """Return the position that the file holds, and None where there is no file.

        Raises:
            InvalidRecord: The file is no checkpoint, or of a later version.
        """
        return Position.from_dict(self._content(tensors=False)[1]["position"]) if self.exists else None

    def read(self, structure: str, plan: TrainingPlan, average: float | None = None) -> Content:
        """Return what the file holds, for `restored`.

        Args:
            structure: Of the model and the optimizer that it is to be of.
            plan: Likewise.
            average: The decay of the run's average, if it keeps one.

        Raises:
            InvalidRecord: The file is no checkpoint, or of a later version.
            InvalidArgument: It is of another plan, of a model or an optimizer of another structure, or of another
                average.
        """
        tensors, about = self._content()
        if about["plan"] != plan.to_dict():
            raise InvalidArgument(
                f"{str(self.path)!r} is of another plan.",
                why="what was charged was that plan, and the rest of it is what may run.",
                do="resume with the plan of the run, or begin a new one elsewhere.",
            )
        if about["structure"] != structure:
            raise InvalidArgument(
                f"{str(self.path)!r} is of another model, or of another optimizer.",
                why="layers, shapes, types or which weights are trained differ from those of the run.",
                do="make the model and the optimizer as they were when the run began.",
            )
        if about.get("average") != average:
            raise InvalidArgument(
                f"{str(self.path)!r} has average={about.get('average')!r}, and the run has another.",
                why="an average cannot be begun, or changed, where the steps behind are not there any more.",
                do="attach the run with the average that it was begun with.",
            )
        return tensors, about

    def _content(self, *, tensors: bool = True) -> Content:
        try:
            with safe_open(self.path, framework="pt") as file:
                told = file.metadata() or {}
                found = {name: file.get_tensor(name) for name in file.keys()} if tensors else {}  # noqa: SIM118
            if told.get("version") != VERSION:
                raise InvalidRecord(f"{str(self.path)!r} is no checkpoint of version {VERSION}.")
            return found, json.loads(told["sitr"])
        except (SafetensorError, OSError, ValueError, KeyError, TypeError):
            raise InvalidRecord(f"{str(self.path)!r} is no checkpoint.", do="use one that a run has written.") from None


def restored(
    model: nn.Module,
    optimizer: Optimizer,
    tensors: dict[str, Tensor],
    about: dict[str, Any],
    average: Average | None = None,
) -> Position:
    """Bring model, optimizer and average to what a checkpoint holds, and return the position of its run."""
    held = model.state_dict()
    model.load_state_dict({name: _placed(tensors[f"model.{name}"], one) for name, one in held.items()})
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Any]] = {}
    for name, value in {**about["values"], **tensors}.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".", 2)
            state.setdefault(int(index), {})[key] = _placed(value, weights[int(index)])
    optimizer.load_state_dict({"state": state, "param_groups": [_from_json(group) for group in about["groups"]]})
    if average is not None:
        average.load({name.removeprefix("average."): tensors[name] for name in tensors if name[:8] == "average."})
    return Position.from_dict(about["position"])


def _whole(held: Tensor) -> Tensor:
    """A tensor, of which all processes bring their shards where it is in shards."""
    found: Tensor = held.full_tensor() if hasattr(held, "full_tensor") else held
    return found


def _placed(value: Any, like: Any) -> Any:
    """A value, or this process's shard of it, where it is of the shape of a weight that is in shards."""
    if not hasattr(like, "placements") or not isinstance(value, Tensor) or value.shape != like.shape:
        return value
    from torch.distributed.tensor import distribute_tensor  # takes long to import

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def structure_of(model: nn.Module, optimizer: Optimizer) -> str:
    """Return a digest of layers, shapes, types, which weights are trained, and how they are grouped.

    Example:
        >>> one, other = nn.Linear(2, 3), nn.Linear(2, 3)
        >>> digests = [structure_of(model, torch.optim.SGD(model.parameters(), lr=0.1)) for model in (one, other)]
        >>> digests[0] == digests[1], len(digests[0])
        (True, 64)
    """
    names = {id(weight): name for name, weight in model.named_parameters(remove_duplicate=False)}
    about = {
        "model": [type(model).__qualname__, ADDRESS.sub("", repr(model))],
        "weights": [
            [name, list(one.shape), str(one.dtype), one.requires_grad]
            for name, one in model.named_parameters(remove_duplicate=False)
        ],
        "buffers": [[name, list(one.shape), str(one.dtype)] for name, one in model.named_buffers()],
        "optimizer": type(optimizer).__qualname__,
        "groups": [[names.get(id(one)) for one in group["params"]] for group in optimizer.param_groups],
    }
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def digest_of(model: nn.Module) -> str:
    """Return a digest of all weights, by which a model is known again.

    Example:
        >>> len(digest_of(nn.Linear(2, 3)))
        64
    """
    found = hashlib.sha256()
    for name, held in sorted(_model_state(model).items()):
        one = _whole(held)
        found.update(f"{name} {tuple(one.shape)} {one.dtype}".encode())
        found.update(
            one.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() if one.numel() else b""
        )
    return found.hexdigest()


def _model_state(model: nn.Module) -> dict[str, Tensor]:
    state = model.state_dict()
    wrong = next((name for name, one in state.items() if not isinstance(one, Tensor)), None)
    if wrong is not None:
        raise InvalidArgument(f"the state of the model has {wrong!r}, which is no tensor and cannot be kept.")
    return state


def _optimizer_state(optimizer: Optimizer, tensors: dict[str, Tensor]) -> tuple[list[Any], dict[str, Any]]:
    """The groups, and what of the state is no tensor, as JSON; tensors are put to the others."""
    held, values = optimizer.state_dict(), {}
    for index, state in held["state"].items():
        for key, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{key}"] = value
            else:
                values[f"optimizer.{index}.{key}"] = _to_json(value)
    return [_to_json(group) for group in held["param_groups"]], values


def _to_json(value: Any) -> Any:
    """What JSON can hold, and `_from_json` reads back as it was: a tuple is marked as one."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return {"tuple": [_to_json(one) for one in value]}
    if isinstance(value, list):
        return [_to_json(one) for one in value]
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {"dict": {name: _to_json(one) for name, one in value.items()}}
    raise InvalidArgument(
        f"the optimizer holds a {type(value).__name__}, which cannot be kept.",
        do="use an optimizer whose options are numbers.",
    )


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(one) for one in value]
    if isinstance(value, dict):
        if "tuple" in value:
            return tuple(_from_json(one) for one in value["tuple"])
        return {name: _from_json(one) for name, one in value["dict"].items()}
    return value
