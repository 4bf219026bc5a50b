"""What every method does alike: read a table, make rows of it, and say in what time and memory. It needs NumPy alone.

A script is started with the name of a method, a file with the table, ε, a seed, and a file for the rows.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

DELTA = 1e-9


class Job(NamedTuple):
    """What is asked of a method; all but the rows is public."""

    rows: np.ndarray
    sizes: list[int]
    ordered: list[bool]
    epsilon: float
    seed: int


def serve(methods: dict[str, Callable[[Job], np.ndarray]]) -> None:
    """Make rows by one of the methods. The time is that of a call, imports and all; the memory what it adds."""
    method, here, epsilon, seed, out = sys.argv[1:]
    with np.load(here) as kept:
        job = Job(kept["rows"], kept["sizes"].tolist(), kept["ordered"].tolist(), float(epsilon), int(seed))
    begun, started = _peak(), time.perf_counter()
    rows = methods[method](job)
    print(json.dumps({"seconds": time.perf_counter() - started, "memory": max(_peak() - begun, 0)}))
    np.save(out, rows)


def _peak() -> float:
    """The largest resident size so far, in MB. Linux only."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
