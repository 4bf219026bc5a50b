"""The job that every library does, and how a script hands back what it did. Standard library only.

A script of this folder is run in the environment of its library, in a fresh process:

    python with_opendp.py release costs.parquet --variant public --regions 50
    python with_opendp.py noise small.parquet --variant public --regions 50 --releases 200

and prints one line of JSON. `release` is timed from opening the file to the answers; imports, and what a library
starts once (Spark), are not in it. `noise` releases many times, on a table where bounding changes nothing.
"""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

EPSILON = 1.0
DELTA = 1e-6
MAX_ROWS = 5  # of one person
LOW, HIGH = 0.0, 100.0  # of a cost
MAX_LENGTH, MAX_GROUPS = 1_000_000, 50  # declared bounds on the rows of a region and on regions, where a library asks

Answers = dict[str, tuple[float, float, float]]  # region -> count, sum, mean


@dataclass(frozen=True)
class Job:
    """One release: which file, what is public, and how many threads may be used."""

    path: str
    variant: str  # "public": the regions are declared; "private": they are selected
    regions: int
    threads: int
    state: Any = None  # what `start` returned
    memory: str | None = None

    @property
    def names(self) -> list[str]:
        return [f"r{number:0{len(str(self.regions - 1))}}" for number in range(self.regions)]


def answer(count: float, total: float) -> tuple[float, float, float]:
    """The three numbers of a region, where the mean is the ratio of two noisy ones, held within the declared bounds."""
    ratio = total / count if count > 0 else (LOW + HIGH) / 2
    return float(count), float(total), float(min(max(ratio, LOW), HIGH))


def repeated(release: Callable[[Job], Answers]) -> Callable[[Job, int], list[Answers]]:
    """The plain way to see noise: release, and release again."""
    return lambda job, releases: [release(job) for _ in range(releases)]


def _peak_mb() -> float:
    """The most memory of this process alone: what `getrusage` says includes the program that started it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main(
    release: Callable[[Job], Answers],
    start: Callable[[int], Any] | None = None,
    noise: Callable[[Job, int], list[Answers]] | None = None,
) -> None:
    """Do what the command line asks for, and print it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=("release", "noise"))
    parser.add_argument("path", type=Path)
    parser.add_argument("--variant", choices=("public", "private"), default="public")
    parser.add_argument("--regions", type=int, default=50)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--memory", help="the most that the engine may use, where it can be told")
    options = parser.parse_args()
    begun = time.perf_counter()
    state = start(options.threads) if start else None
    started = time.perf_counter() - begun
    job = Job(str(options.path.resolve()), options.variant, options.regions, options.threads, state, options.memory)
    begun = time.perf_counter()
    try:
        if options.mode == "release":
            answers: Any = release(job)
        else:
            answers = (noise or repeated(release))(job, options.releases)
    except NotImplementedError as reason:
        print("\n" + json.dumps({"skipped": str(reason)}), flush=True)
        return
    found: dict[str, Any] = {"seconds": time.perf_counter() - begun, "answers": answers}
    found["start_seconds"] = started if start else 0.0
    found["peak_mb"] = _peak_mb()
    sys.stdout.flush()
    print("\n" + json.dumps(found), flush=True)
