"""A run that is killed again and again, and resumed until it is done: what ran, beside what was charged.

As a program: python -m tests.learning.killed FOLDER KILLS SEED. It forks a process for each try, which is killed (-9)
at a random moment of a random step, and prints as JSON which steps were made and what was charged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import sys
from pathlib import Path

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
        plan = made(steps=24, noise_multiplier=4.0)
        run = attach(model, optimizer, plan, ledger=ledger, **who, checkpoint=folder / "run", every=5)
        assert run.account is not None
        start, drawn = run.account.start, run_module.StepNoise.on_sums

        def started() -> None:
            die("reserved")
            start()
            die("started")

        def noisy(self: run_module.StepNoise, sums: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
            # What may have been seen is written down before it could be.
            found = drawn(self, sums)
            digest = hashlib.sha256(b"".join(one.numpy().tobytes() for one in found.values())).hexdigest()
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
    made = [json.loads(line) for line in (folder / "made").read_text().splitlines()]
    with Ledger.open(folder / "book.db") as ledger:
        spans = [
            [
                line.operation,
                line.state,
                next(entry for entry in ledger.entries() if entry.seq == line.seq).record["event"],
            ]
            for line in ledger.releases()
        ]
        valid = ledger.verify().valid
    return {"made": made, "charged": spans, "killed": killed, "valid": valid}


if __name__ == "__main__":
    print(json.dumps(experiment(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
