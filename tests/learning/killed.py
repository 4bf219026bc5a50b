"""A run that is killed again and again, and resumed until it is done: what ran, beside what was charged.

As a program: python -m tests.learning.killed FOLDER KILLS SEED. It forks a process for each try, which is killed (-9)
at a random moment of a random step, and prints as JSON which steps were made and what was charged, for which steps.
`campaign` starts it, and `faults` says what is wrong with what it printed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

STEPS = 24
MOMENTS = ("reserved", "started", "open", "noisy", "made")  # of a step, at which the process is killed


def tried(folder: Path, moment: str | None, steps: int) -> None:
    """Train, or go on, until the run is over, or up to a moment after some steps."""
    import torch
    import torch.nn.functional as F

    from sitr.learning import attach
    from sitr.learning import run as run_module
    from sitr.ledger import Ledger
    from tests.learning.loops import data, made, model_and_optimizer

    torch.set_num_threads(1)
    made_here = 0

    def die(now: str) -> None:
        if now == moment and made_here >= steps:
            os.kill(os.getpid(), signal.SIGKILL)

    with Ledger.open(folder / "book.db") as ledger:
        model, optimizer = model_and_optimizer()
        who = {"dataset": "clinic", "analyst": "amina", "operation": "model"}
        plan = made(steps=STEPS, noise_multiplier=4.0)
        run = attach(model, optimizer, plan, ledger=ledger, **who, checkpoint=folder / "run", every=5)
        assert run.account is not None
        start, drawn = run.account.start, run_module.StepNoise.on_sums

        def started() -> None:
            with open(folder / "paid", "a") as file:
                file.write(json.dumps(run.paid) + "\n")
            die("reserved")
            start()
            die("started")

        def noisy(self: run_module.StepNoise, sums: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            # What may have been seen is written down before it could be.
            found = drawn(self, sums)
            assert self.grid is not None
            # Of the noise alone, in steps of the grid: what was drawn once is found again beside any other sums.
            noise = [(found[name] / self.grid).long() - total for name, total in sums.items()]
            digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in noise)).hexdigest()
            with open(folder / "made", "a") as file:
                file.write(json.dumps([run.done, digest]) + "\n")
            die("noisy")
            return found

        run.account.start = started  # type: ignore[method-assign]
        run_module.StepNoise.on_sums = noisy  # type: ignore[method-assign,assignment]
        for step in run.steps(data(), microbatch=4):
            die("open")
            for x, y in step:
                step.backward(F.cross_entropy(model(x), y, reduction="none"))
            made_here += 1
            die("made")


def experiment(folder: Path, kills: int, seed: int) -> dict[str, object]:
    """Kill so many times, let the last try end, and say what ran."""
    import torch  # noqa: F401  # once, before processes are forked

    from sitr.learning import attach  # noqa: F401
    from sitr.ledger import Budget, Ledger

    with Ledger.open(folder / "book.db") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=100.0, delta=1e-3))
    chosen, killed = random.Random(seed), 0
    for attempt in range(kills + 1):
        moment = chosen.choice(MOMENTS) if attempt < kills else None
        steps = 0 if moment in ("reserved", "started") else chosen.randrange(0, 8)
        child = os.fork()
        if child == 0:
            code = 1
            with contextlib.suppress(BaseException):
                tried(folder, moment, steps)
                code = 0
            os._exit(code)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            if os.WEXITSTATUS(status):
                raise RuntimeError("a try failed")
            break
    return {**collected(folder), "killed": killed}


def collected(folder: Path) -> dict[str, Any]:
    """Return what ran, beside what was charged, as it was written down."""
    from sitr.ledger import Ledger

    made, paid = ([json.loads(line) for line in _lines(folder / name)] for name in ("made", "paid"))
    with Ledger.open(folder / "book.db") as ledger:
        events = {entry.seq: entry.record.get("event") for entry in ledger.entries()}
        charged = [[line.operation, line.state, events[line.seq]] for line in ledger.releases()]
        valid = ledger.verify().valid
    return {"made": made, "charged": charged, "paid": paid[-1] if paid else [], "valid": valid}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def campaign(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """Let a process of its own do the experiment, and return what it found."""
    command = [sys.executable, "-m", "tests.learning.killed", str(folder), str(kills), str(seed)]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    if found.returncode:
        raise RuntimeError(found.stderr)
    told: dict[str, Any] = json.loads(found.stdout)
    return told


def faults(told: dict[str, Any]) -> list[str]:
    """Say what is wrong: steps that are missing or were free, noise that was drawn twice, a book that is not valid."""
    from sitr.accounting import Event
    from tests.learning.loops import made

    plan, counts = made(steps=STEPS, noise_multiplier=4.0), Counter(step for step, _ in told["made"])
    charged, paid = told["charged"], told["paid"]
    names = ["model", *(f"model/resumed-{k}" for k in range(1, len(charged)))]
    # The book does not say which steps an event is for, as all of one number cost the same: the run does.
    prices = [plan.event_between(first, last) for first, last in paid]
    times = Counter(
        step
        for (_, state, _), (first, last) in zip(charged, paid, strict=False)
        for step in range(first, last)
        if state != "refunded"
    )
    wrong = {
        "the book does not verify": not told["valid"],
        "not every step was made": set(counts) != set(range(STEPS)),
        "noise was drawn twice": len({digest for _, digest in told["made"]}) < len(told["made"]),
        "the plan was not charged first": paid[:1] != [[0, STEPS]],
        "charges are not those of the run": [name for name, _, _ in charged] != names or len(charged) != len(paid),
        "a charge is not the price of its steps": [Event.from_dict(event) for _, _, event in charged] != prices,
        "a step was made more often than it was charged": any(counts[step] > times[step] for step in counts),
        "the last charge was not committed": [state for _, state, _ in charged[-1:]] != ["committed"],
    }
    return [fault for fault, is_so in wrong.items() if is_so]


if __name__ == "__main__":
    print(json.dumps(experiment(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
