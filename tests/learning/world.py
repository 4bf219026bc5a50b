"""Processes that train together, for tests of ranks and of shards: what each of them saw and said.

As a program: python -m tests.learning.world FOLDER SCENARIO/SIZE... It forks as many processes as a scenario has ranks,
which find each other by a file and talk over the loopback interface, and prints as JSON what each of them returned.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

TIMEOUT = 60  # seconds that a collective waits: none of what is tested here waits for it
DEADLINE = 150  # after which a process that hangs is killed, so that its test fails


@dataclass(frozen=True)
class Member:
    """One process of a world."""

    rank: int
    size: int
    folder: Path

    @property
    def last(self) -> bool:
        return self.rank == self.size - 1


Scenario = Callable[[Member], Any]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def ended(do: Callable[[], Any]) -> dict[str, Any]:
    """Return how something ended, and after how long."""
    begun, told = time.monotonic(), {"error": "", "what": ""}
    try:
        do()
    except Exception as error:
        told = {"error": type(error).__name__, "what": str(error)}
    return {**told, "seconds": time.monotonic() - begun}


class Fixed:
    """Draws the same examples in every step."""

    def __init__(self, places: Any) -> None:
        import numpy as np

        self.places = np.array(places, dtype=np.int64)

    def draw(self, step: int) -> Any:
        return self.places


@contextlib.contextmanager
def fixed(places: Any) -> Iterator[None]:
    """Let a scenario say who is drawn."""
    from sitr.learning import run as run_module

    before = run_module.sampler_of
    run_module.sampler_of = lambda *args, **more: Fixed(places)  # type: ignore[assignment]
    try:
        yield
    finally:
        run_module.sampler_of = before


def attached(plan: Any = None, lr: float = 0.01, **options: Any) -> Any:
    """A run on the same weights in every process."""
    import torch

    from sitr.learning import attach
    from tests.learning.loops import made, model_and_optimizer

    torch.manual_seed(7)
    model, optimizer = model_and_optimizer()
    optimizer.param_groups[0]["lr"] = lr
    return attach(model, optimizer, plan or made(), **options)


def gone_through(run: Any, wrong: Callable[[Any], None] = lambda run: None, microbatch: int | None = None) -> None:
    """The loop of a user, with something that may be done within a step."""
    import torch.nn.functional as F

    from tests.learning.loops import data

    for step in run.steps(data(run.plan.n), microbatch=microbatch):
        for x, y in step:
            losses = F.cross_entropy(run.model(x), y, reduction="none")
            wrong(run)
            step.backward(losses)


# ---- what is computed


@scenario
def sums(member: Member) -> Any:
    """Whole runs by seeded draws and noise, each example computed by itself."""
    from sitr.learning import run as run_module
    from sitr.learning.checkpoint import digest_of
    from tests.learning.loops import made, trained

    told: dict[str, Any] = {}
    noisy = run_module.StepNoise.on_sums
    plans = {
        "flat": made(steps=3),
        "per_layer": made(steps=3, clipping="per_layer"),
        "automatic": made(steps=3, clipping="automatic"),
        "adaptive": made(steps=3, clipping="adaptive", loss_bound=2.0),
        "shuffle": made(steps=4, sampling="shuffle"),
        "float": made(steps=3, noise="float"),
    }
    for name, plan in plans.items():
        seen: list[Any] = []

        def kept(self: Any, given: Any, seen: list[Any] = seen) -> Any:
            seen.append({name: one.tolist() for name, one in given.items()})
            return noisy(self, given)

        run_module.StepNoise.on_sums = kept  # type: ignore[method-assign,assignment]
        run = attached(plan, unsafe_seed=3)
        run._position = run_module.replace(run._position, order=5)  # of shuffled passes, which is drawn anew always
        trained(run, microbatch=1, unsafe_losses=True)
        told[name] = {
            "sums": seen,
            "weights": digest_of(run.model),
            "norm": run.norm,
            "losses": run.losses,
            "unsafe": run.unsafe_losses,
        }
    run_module.StepNoise.on_sums = noisy  # type: ignore[method-assign]
    return told


@scenario
def noise(member: Member) -> Any:
    """Gradients of steps that nobody is in, and of steps with one example for all processes."""
    from tests.learning.loops import made, trained

    told: dict[str, Any] = {}
    for kind in ("exact", "float"):
        values: list[float] = []

        def gradients(run: Any, values: list[float] = values) -> None:
            values += [one for weight in run.model.parameters() for one in weight.grad.flatten().tolist()]

        with fixed([]):
            trained(attached(made(steps=25, noise=kind), lr=0.0), after=gradients)
        told[kind] = values
    with fixed([5]):
        told["done"] = trained(attached()).done
    return told


@scenario
def draws(member: Member) -> Any:
    """Shares of many draws, without any model."""
    from fractions import Fraction

    from torch import nn

    from sitr.learning.ranks import Ranks
    from sitr.learning.sampling import PoissonSampler

    ranks, sampler = Ranks.of(None, nn.Linear(2, 2)), PoissonSampler(100, Fraction(3, 10))
    return [ranks.share(lambda: sampler.draw(0)).tolist() for _ in range(500)]


@scenario
def seen(member: Member) -> Any:
    """Which examples each process is handed, in a run."""
    import torch
    import torch.nn.functional as F

    from tests.learning.loops import N, data

    run, told = attached(), []
    x = torch.arange(N).float()[:, None].repeat(1, 3)
    for step in run.steps((x, data()[1]), microbatch=member.rank + 1):
        told.append([])
        for inputs, labels in step:
            told[-1] += inputs[:, 0].int().tolist()
            step.backward(F.cross_entropy(run.model(inputs / N), labels, reduction="none"))
    return told


# ---- what is paid and kept


def charged(member: Member, plan: Any = None, *, epsilon: float = 3.0, operation: str = "model", **options: Any) -> Any:
    """A run that is charged; only the first process finds the ledger."""
    import torch.distributed as dist

    from sitr.ledger import Budget, Ledger

    book = member.folder / "book.db"
    if member.rank == 0 and not book.exists():
        with Ledger.open(book) as ledger:
            ledger.create_budget("clinic", Budget(epsilon=epsilon, delta=1e-4))
    dist.barrier()
    who = {"dataset": "clinic", "analyst": "amina", "operation": operation}
    return attached(plan, ledger=book if member.rank == 0 else "nowhere/none.db", **who, **options)


def book_of(member: Member) -> Any:
    from sitr.ledger import Ledger

    with Ledger.open(member.folder / "book.db") as ledger:
        kinds = [entry.kind for entry in ledger.entries() if entry.operation]
        states = [[line.operation, line.state] for line in ledger.releases()]
        return {"kinds": kinds, "states": states, "spent": ledger.spent("clinic").value, "valid": ledger.verify().valid}


@scenario
def ledger(member: Member) -> Any:
    run = charged(member)
    told = ended(lambda: gone_through(run, microbatch=member.rank + 1))
    told |= {"done": run.done, "paid": [list(one) for one in run.paid], "charged": repr(run), "says": run.explain()}
    return told | (book_of(member) if member.rank == 0 else {})


@scenario
def refused(member: Member) -> Any:
    from tests.learning.loops import made

    run = charged(member, made(noise_multiplier=0.3, batch=40))
    told = ended(lambda: gone_through(run))
    return told | (book_of(member) if member.rank == 0 else {})


@scenario
def start_fails(member: Member) -> Any:
    """The ledger is lost between the charge and the first noise; then another error of the first process."""
    from sitr.errors import LedgerUnavailable

    def lost() -> None:
        raise LedgerUnavailable("the ledger is not reached.", do="try again.")

    told = []
    for name, fails in {"lost": lost, "wrong": lambda: 1 / 0}.items():
        run = charged(member, operation=name)
        if member.rank == 0:
            run.account.start = fails
        told.append(ended(lambda run=run: gone_through(run)) | {"done": run.done})
    return told


@scenario
def crash(member: Member) -> Any:
    """Dies behind step 5; the checkpoint was written before steps 1, 3 and 5."""
    from tests.learning.loops import trained

    kept = member.folder / "run" if member.rank == 0 else Path("nowhere") / "run"
    run = charged(member, checkpoint=kept, every=2, epsilon=10.0)

    def die(run: Any) -> None:
        if run.done == 5:
            time.sleep(0.3 * (member.rank == 0))  # so that the others have its last message
            os._exit(3)

    return trained(run, after=die)


@scenario
def resume(member: Member) -> Any:
    from sitr.learning.checkpoint import digest_of

    kept = member.folder / "run" if member.rank == 0 else Path("nowhere") / "run"
    run, made_again = charged(member, checkpoint=kept, every=2), []
    for _ in run.model.parameters():  # other weights in every process: those of the file replace them
        _.data += member.rank
    told = ended(lambda: gone_through(run, lambda run: made_again.append(run.done)))
    told |= {"done": run.done, "paid": [list(one) for one in run.paid], "weights": digest_of(run.model)}
    told |= {"made": sorted(set(made_again)), "state": len(run.optimizer.state_dict()["state"])}
    return told | (book_of(member) if member.rank == 0 else {})


# ---- what goes wrong


@scenario
def fails_first(member: Member) -> Any:
    """The last process fails in the first step, by an error of the user's; nothing is spent."""
    run = charged(member)

    def wrong(run: Any) -> None:
        if member.last:
            raise ZeroDivisionError

    with fixed(range(8)):
        told = ended(lambda: gone_through(run, wrong))
        told |= {"again": ended(lambda: gone_through(run)), "done": run.done}
    return told | (book_of(member) if member.rank == 0 else {})


@scenario
def keeps_error(member: Member) -> Any:
    """The last process reduces its loss, and keeps the error while the others are in their step."""
    import torch.nn.functional as F

    from tests.learning.loops import data

    run, kept = attached(), []

    def loop() -> None:
        for step in run.steps(data()):
            for x, y in step:
                losses = F.cross_entropy(run.model(x), y, reduction="none")
                step.backward(losses.mean() if member.last else losses)

    def keep() -> None:
        try:
            loop()
        except Exception as error:
            kept.append(error)

    with fixed(range(8)):
        told = ended(keep)
    return told | {"error": type(kept[0]).__name__}


@scenario
def fails_later(member: Member) -> Any:
    """The last process reduces its loss in the third step; the others resume with it, and pay for what may have run."""
    import torch.nn.functional as F

    from tests.learning.loops import data

    run = charged(member, checkpoint=member.folder / "run", every=2, epsilon=10.0)

    def loop() -> None:
        for step in run.steps(data()):
            for x, y in step:
                losses = F.cross_entropy(run.model(x), y, reduction="none")
                step.backward(losses.mean() if member.last and run.done == 2 else losses)

    with fixed(range(8)):
        told = ended(loop) | {"done": run.done}
        again = charged(member, checkpoint=member.folder / "run", every=2)
        told["again"] = ended(lambda: gone_through(again)) | {"done": again.done, "paid": again.paid}
    return told | (book_of(member) if member.rank == 0 else {})


@scenario
def all_fail(member: Member) -> Any:
    """All processes make the same mistake, and go on together."""
    run = charged(member)

    def wrong(run: Any) -> None:
        if run.done == 2:
            raise ZeroDivisionError

    with fixed(range(8)):
        told = ended(lambda: gone_through(run, wrong)) | {"left": run.done}
        told |= {"again": ended(lambda: gone_through(run)), "done": run.done}
    return told | (book_of(member) if member.rank == 0 else {})


@scenario
def leaves(member: Member) -> Any:
    """All leave the loop behind the second step; then the last one leaves it by itself, behind the fourth."""
    import torch.nn.functional as F

    from tests.learning.loops import data

    run = charged(member)

    def until(done: int) -> None:
        for step in run.steps(data()):
            for x, y in step:
                step.backward(F.cross_entropy(run.model(x), y, reduction="none"))
            if run.done == done:
                break

    told = [ended(lambda: until(2)) | {"done": run.done}]
    told.append(ended(lambda: until(4 if member.last else 6)) | {"done": run.done})
    told.append(ended(lambda: until(6)))
    return told


@scenario
def killed(member: Member) -> Any:
    from tests.learning.loops import made, trained

    def die(run: Any) -> None:
        if member.last and run.done == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    run = attached(made(steps=40))
    return ended(lambda: trained(run, after=die)) | {"done": run.done}


@scenario
def differ(member: Member) -> Any:
    """What is not the same in every process."""
    import torch
    from torch import nn

    from sitr.learning import attach
    from sitr.learning.checkpoint import Checkpoint
    from tests.learning.loops import data, made, trained

    told = {}
    run = attached()
    with torch.no_grad():
        run.model[0].bias += 1e-6 * member.last
    told["weights"] = ended(lambda: trained(run))
    told["plan"] = ended(lambda: trained(attached(made(steps=6 + 2 * member.last))))
    told["examples"] = ended(lambda: trained(attached(), [one.roll(member.rank, 0) for one in data()]))
    told["seed"] = ended(lambda: trained(attached(unsafe_seed=1 + member.last)))
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU() if member.last else nn.Tanh(), nn.Linear(4, 2))
    other = attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made())
    told["model"] = ended(lambda: trained(other))
    drifts = attached()

    def drift(run: Any) -> None:
        if member.last and run.done == 2:
            run.optimizer.param_groups[0]["lr"] = 0.5

    told["drift"] = ended(lambda: trained(drifts, after=drift)) | {"done": drifts.done}
    with Checkpoint(member.folder / "run").locked() if member.rank == 0 else contextlib.nullcontext():
        told["locked"] = ended(lambda: trained(attached(checkpoint=member.folder / "run")))
    return told


@scenario
def limit(member: Member) -> Any:
    """More examples than a step may have, though no process has too many by itself."""
    from sitr.learning import clipping

    clipping.MOST_PEOPLE = 7
    with fixed(range(8)):
        return ended(lambda: gone_through(attached()))


@scenario
def groups(member: Member) -> Any:
    """A wrapped model, a group that this process is not of, and one that it is alone in."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from sitr.learning import attach
    from tests.learning.loops import made, model_and_optimizer, trained

    alone = [dist.new_group([rank]) for rank in range(member.size)]
    model, optimizer = model_and_optimizer()
    wrapped = DistributedDataParallel(model)
    told = {
        "wrapped": ended(lambda: attach(wrapped, optimizer, made())),
        "others": ended(lambda: attached(group=alone[member.rank - 1])),
    }
    run = trained(attached(group=alone[member.rank]))
    return told | {"size": run.ranks.size, "done": run.done, "first": run.ranks.is_first}


# ---- shards


def sharded(plan: Any = None, mesh: Any = None, lr: float | None = None, **options: Any) -> Any:
    """A run on the same weights as `attached`, in shards."""
    import torch
    from torch.distributed.fsdp import fully_shard

    from sitr.learning import attach
    from tests.learning.loops import made, model_and_optimizer

    torch.manual_seed(7)
    model, _ = model_and_optimizer()
    for part in (model[0], model[2], model):
        fully_shard(part, mesh=mesh)
    if lr is None:
        optimizer: Any = torch.optim.Adam(model.parameters(), lr=0.01)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return attach(model, optimizer, plan or made(), **options)


def full(run: Any) -> list[Any]:
    """All weights of a run, as lists: all processes bring their shards."""
    return [getattr(one, "full_tensor", lambda one=one: one)().tolist() for one in run.model.parameters()]


@scenario
def shard_sums(member: Member) -> Any:
    """Sums of the same draws, from the same weights in every step, in shards or whole."""
    from sitr.learning import run as run_module
    from tests.learning.loops import made, trained

    told: dict[str, Any] = {}
    noisy = run_module.StepNoise.on_sums
    for name in ("flat", "per_layer", "adaptive"):
        seen: list[Any] = []

        def kept(self: Any, given: Any, seen: list[Any] = seen) -> Any:
            seen.append({name: one.tolist() for name, one in given.items()})
            return noisy(self, given)

        run_module.StepNoise.on_sums = kept  # type: ignore[method-assign,assignment]
        run_module.StepNoise.on_number = lambda self, cells: cells / 1024  # type: ignore[method-assign]
        plan = made(steps=3, clipping=name)
        with fixed(range(9)):
            run = trained(attached(plan, lr=0.0) if member.size == 1 else sharded(plan, lr=0.0), microbatch=1)
        told[name] = {"sums": seen, "norm": run.norm}
    run_module.StepNoise.on_sums = noisy  # type: ignore[method-assign]
    return told


@scenario
def shard_gpt(member: Member) -> Any:
    """Sums of a transformer whose blocks are sharded by themselves, with the table of words as its head."""
    import torch
    import torch.nn.functional as F
    from torch.distributed.fsdp import fully_shard

    from sitr.learning import attach
    from sitr.learning import run as run_module
    from tests.learning.loops import made
    from tests.learning.models import GPT

    torch.manual_seed(7)
    model, ids = GPT(tied=True), torch.randint(11, (40, 6))
    if member.size > 1:
        for part in (*model.blocks, model):
            fully_shard(part)
    seen: list[Any] = []
    noisy = run_module.StepNoise.on_sums

    def kept(self: Any, given: Any) -> Any:
        seen.append({name: one.tolist() for name, one in given.items()})
        return noisy(self, given)

    run_module.StepNoise.on_sums = kept  # type: ignore[method-assign,assignment]
    run = attach(model, torch.optim.SGD(model.parameters(), lr=0.0), made(steps=2))
    with fixed(range(5)):
        for step in run.steps(ids, microbatch=1):
            for x in step:
                found = F.cross_entropy(model(x)[:, :-1].transpose(1, 2), x[:, 1:], reduction="none")
                step.backward(found.mean(1))
    return seen


@scenario
def shard_noise(member: Member) -> Any:
    """Gradients of steps that nobody is in."""
    from tests.learning.loops import made, trained

    told: dict[str, Any] = {}
    for kind in ("exact", "float"):
        values: list[list[float]] = []

        def gradients(run: Any, values: list[list[float]] = values) -> None:
            values.append([one for w in run.model.parameters() for one in w.grad.to_local().flatten().tolist()])

        with fixed([]):
            trained(sharded(made(steps=25, noise=kind), lr=0.0), after=gradients)
        told[kind] = values
    return told


@scenario
def shard_training(member: Member) -> Any:
    """Training without any noise, by Adam, sharded and whole; the model is used between the steps."""
    import torch

    from sitr.learning import run as run_module
    from tests.learning.loops import data, made, trained

    def use(run: Any) -> None:
        with torch.no_grad():
            run.model(data()[0][: member.rank + 1])

    noisy = run_module.StepNoise.on_sums
    run_module.StepNoise.on_sums = lambda self, sums: {  # type: ignore[method-assign,assignment,misc]
        name: one.double() * self.grid for name, one in sums.items()
    }
    with fixed(range(7)):
        run = trained(attached(made(steps=5)) if member.size == 1 else sharded(made(steps=5)), after=use, microbatch=1)
    run_module.StepNoise.on_sums = noisy  # type: ignore[method-assign]
    told = {"weights": full(run)}
    run.model.zero_grad()
    run.model(data()[0]).sum().backward()  # as without a run
    told["trains"] = all(one.grad is not None and one.grad.shape == one.shape for one in run.model.parameters())
    return told


@scenario
def shard_loop(member: Member) -> Any:
    """Charged, with empty shares and numbers of micro-batches that differ; then the last one fails within `forward`."""
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.distributed.tensor import DTensor

    from sitr.learning.checkpoint import digest_of
    from sitr.ledger import Budget, Ledger
    from tests.learning.loops import data, made

    book = member.folder / "book.db"
    if member.rank == 0:
        with Ledger.open(book) as ledger:
            ledger.create_budget("clinic", Budget(epsilon=20.0, delta=1e-4))
    dist.barrier()
    who = {"ledger": book, "dataset": "clinic", "analyst": "amina"}
    with fixed([5]):
        gone_through(sharded(**who, operation="one"))
    run = sharded(**who, operation="two")
    gone_through(run, microbatch=member.rank + 1)
    told = {"done": run.done, "weights": digest_of(run.model)}

    left = sharded(made(bands=3, noise_multiplier=8.0))
    for step in left.steps(data()):  # all processes leave within the third step
        told["streams"] = [len(left.noise._streams)]
        if left.done == 2:
            next(iter(step), None)
            break
        for x, y in step:
            step.backward(F.cross_entropy(left.model(x), y, reduction="none"))
    told["streams"].append(len(left.noise._streams))

    run = sharded(**who, operation="three")

    def wrong(*given: Any) -> None:
        if member.last and run.done == 2:
            raise ZeroDivisionError

    run.model[1].register_forward_hook(wrong)
    with fixed(range(8)):
        told |= ended(lambda: gone_through(run))
    told["sharded"] = all(isinstance(one, DTensor) for one in run.model.parameters())
    told["again"] = ended(lambda: gone_through(sharded(**who, operation="four")))
    if member.rank == 0:
        with Ledger.open(book) as ledger:
            told["states"] = [[line.operation, line.state] for line in ledger.releases()]
            told["kept"] = ledger.answer("two", analyst="amina").value["weights"]
    return told


@scenario
def shard_crash(member: Member) -> Any:
    """Dies behind step 5; the checkpoint was written before steps 1, 3 and 5. Says in a file what it had then."""
    from tests.learning.loops import made, trained

    def die(run: Any) -> None:
        if run.done == 4:
            (member.folder / f"had-{member.rank}.json").write_text(json.dumps(full(run)))
        if run.done == 5:
            time.sleep(0.3 * (member.rank == 0))
            os._exit(3)

    kept = member.folder / "run" if member.rank == 0 else Path("nowhere") / "run"
    return trained(sharded(made(noise_multiplier=0.5), checkpoint=kept, every=2), after=die)


@scenario
def shard_resume(member: Member) -> Any:
    """Goes on from it, in more processes; the loop is left before the first step, and entered again."""
    from tests.learning.loops import data, made

    kept = member.folder / "run" if member.rank == 0 else Path("nowhere") / "run"
    run = sharded(made(noise_multiplier=0.5), checkpoint=kept, every=2)
    steps = run.steps(data())
    next(steps)
    run.weights.release()
    told = {"weights": full(run), "done": run.done, "had": json.loads((member.folder / "had-0.json").read_text())}
    moments = [one["exp_avg"] for one in run.optimizer.state_dict()["state"].values()]
    told["moments"] = [getattr(one, "full_tensor", lambda one=one: one)().tolist() for one in moments]
    steps.close()
    gone_through(run)
    return told | {"ended": run.done}


@scenario
def shard_refusals(member: Member) -> Any:
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    from sitr.learning import attach
    from tests.learning.loops import made, model_and_optimizer

    def partly(ignored: bool) -> Any:
        model, _ = model_and_optimizer()
        if ignored:
            fully_shard(model, ignored_params={model[0].bias})
        else:
            fully_shard(model[0])
        return attach(model, torch.optim.SGD(model.parameters(), lr=0.1), made())

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("whole", "shards"))
    return {
        "ignored": ended(lambda: partly(True)),
        "partly": ended(lambda: partly(False)),
        "mesh": ended(lambda: sharded(mesh=mesh)),
        "others": ended(lambda: sharded(mesh=mesh["shards"])),
        "crossed": ended(lambda: sharded(mesh=mesh["shards"], group=mesh["whole"].get_group())),
        "fits": ended(lambda: gone_through(sharded(mesh=mesh["shards"], group=mesh["shards"].get_group()))),
    }


# ---- processes


def play(name: str, size: int, folder: Path) -> list[Any]:
    """Run a scenario in as many processes, and return what each of them returned."""
    folder.mkdir(exist_ok=True)
    children = []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            _live(name, Member(rank, size, folder))
        children.append(child)
    deadline = time.monotonic() + DEADLINE
    while children and time.monotonic() < deadline:
        children = [child for child in children if os.waitpid(child, os.WNOHANG) == (0, 0)]
        time.sleep(0.01)
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    files = [folder / f"{name}-{rank}-of-{size}.json" for rank in range(size)]
    return [json.loads(file.read_text()) if file.exists() else None for file in files]


def _live(name: str, member: Member) -> None:
    """Be one process, and end."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    store = member.folder / f"{name}-{member.size}.store"
    try:
        wait = timedelta(seconds=TIMEOUT)
        dist.init_process_group(
            "gloo", init_method=f"file://{store}", rank=member.rank, world_size=member.size, timeout=wait
        )
        told = SCENARIOS[name](member)
    except BaseException:
        told = {"failed": traceback.format_exc()}
    (member.folder / f"{name}-{member.rank}-of-{member.size}.json").write_text(json.dumps(told))
    os._exit(0)


def worlds(folder: Path, *wanted: str) -> dict[str, list[Any]]:
    """Play scenarios, such as "sums/2", in a process of their own, and return what each process of each returned."""
    command = [sys.executable, "-m", "tests.learning.world", str(folder), *wanted]
    found = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    )
    assert found.returncode == 0, found.stderr
    told: dict[str, list[Any]] = json.loads(found.stdout)
    for name, members in told.items():
        for member in members:
            assert not (isinstance(member, dict) and "failed" in member), f"{name}: {member['failed']}"
    return told


def main(folder: Path, wanted: list[str]) -> None:
    import torch  # noqa: F401  # all that takes long, once, before processes are forked

    from sitr.learning import run  # noqa: F401
    from sitr.ledger import Budget, Ledger
    from tests.learning.loops import model_and_optimizer

    model_and_optimizer()  # the first optimizer imports what compiles
    if any(one.startswith("shard") for one in wanted):
        from sitr.learning import shards  # noqa: F401
    with Ledger.open("memory://") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=3.0, delta=1e-4))
    kept = {"crash": "kept", "resume": "kept", "shard_crash": "shards", "shard_resume": "shards"}
    told = {}
    for one in wanted:
        name, size = one.split("/")
        told[one] = play(name, int(size), folder / kept.get(name, f"{name}-{size}"))
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
