"""What every method does alike: a model and a batch are made, and whole steps are timed. It needs PyTorch alone.

A script is started with the name of a method, of a case and of a precision, and the seconds to measure for, and prints
one line of JSON. A step is forward, backward, clipping and noise where there are any, and the optimizer's update.
"""

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from learning_models import CASES, Case, Losses
from torch import Tensor, nn

WARM_UP = 3
LEAST_STEPS = 5
CLIP, NOISE, RATE = 1.0, 1.0, 1e-3  # they change no time; a small rate keeps a random model finite

Step = Callable[[], Any]
Method = Callable[[nn.Module, torch.optim.Optimizer, Tensor, Tensor, Callable[[], Any]], Step]


def serve(methods: dict[str, Method]) -> None:
    """Time steps of one of the methods."""
    method, name, precision, seconds = sys.argv[1:]
    case = CASES[name]
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    model, (x, y) = case.model().to(case.device), (t.to(case.device) for t in case.batch())
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    half = precision == "bf16"
    cast = (lambda: torch.autocast(case.device, torch.bfloat16)) if half else contextlib.nullcontext
    memory = Memory(case)
    step = methods[method](model, optimizer, x, y, cast)
    print(json.dumps({**_timed(step, case, float(seconds)), "memory": memory.peak(), "torch": torch.__version__}))


def not_private(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, cast: Any) -> Step:
    return ordinary(model, optimizer, Losses("mean"), x, y, cast)


def ordinary(model: nn.Module, optimizer: Any, criterion: Any, x: Tensor, y: Tensor, cast: Any) -> Step:
    """The loop that everyone writes, by a criterion."""

    def step() -> None:
        optimizer.zero_grad()
        with cast():
            loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

    return step


class Memory:
    """The most memory that steps need, in MB: on a CPU what they add to the process, on a GPU all that is allocated."""

    def __init__(self, case: Case) -> None:
        self.device, self.before = case.device, _status("VmRSS")
        if self.device == "cuda":
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> float:
        if self.device == "cuda":
            return torch.cuda.max_memory_allocated() / 2**20
        return max(_status("VmHWM") - self.before, 0.0)


def _timed(step: Step, case: Case, seconds: float) -> dict[str, float]:
    for _ in range(WARM_UP):
        step()
    walls, spent = [], 0.0
    while spent < seconds or len(walls) < LEAST_STEPS:
        wall, cpu = _once(step, case)
        walls.append((wall, cpu))
        spent += wall
    wall, cpu = (statistics.median(column) for column in zip(*walls, strict=True))
    return {"seconds": wall, "cpu": cpu, "steps": len(walls)}


def _once(step: Step, case: Case) -> tuple[float, float]:
    wait = torch.cuda.synchronize if case.device == "cuda" else lambda: None
    wait()
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    wait()
    return time.perf_counter() - wall, time.process_time() - cpu


def _status(name: str) -> float:
    """A size of this process in MB. Linux only."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 1024


if __name__ == "__main__":
    serve({"not private": not_private})
