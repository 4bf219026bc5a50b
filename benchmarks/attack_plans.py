"""Random plans on neighbouring databases: the law of `tests/attack/law.py`, for as long as one likes, on every engine.

python benchmarks/attack_plans.py --engine postgresql --seed 600 --plans 3000
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for the worlds of tests/

from tests.attack.law import Report, campaign
from tests.attack.shrinking import shrunk, told

# Spark keeps what a page could show of thousands of short queries; a heap of 1 GB is then collected without end.
JAVA = "--driver-memory 3g --driver-java-options -XX:+UseParallelGC --conf spark.sql.ui.retainedExecutions=1"
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"{JAVA} pyspark-shell")
QUESTIONS = 60  # to each world: to open one takes as long as to ask seven
SHOWN = 3  # failures of one law; the others are counted
SHRINKING = {"duckdb": 15.0, "postgresql": 20.0, "spark": 40.0}  # seconds for one failure


def run(plans: int, seed: int, engine: str, seconds: float) -> Report:
    """Hold up to `plans` plans against the law, in worlds from `seed` on, for about so many seconds."""
    gc.set_threshold(200_000, 20, 20)  # trees of queries are large and soon gone: looking through them takes a sixth
    until, shown = time.monotonic() + seconds, Counter[str]()

    def on(report: Report) -> bool:
        for failure in report.failures[sum(shown.values()) :]:
            shown[failure.law] += 1
            if shown[failure.law] <= SHOWN:
                print(told(shrunk(failure, SHRINKING[engine])), flush=True)
        return time.monotonic() < until

    report = campaign(seed, plans, engine, questions=QUESTIONS, on=on)
    on(report)
    return report


def summary(engine: str, report: Report, seconds: float) -> str:
    """Return what a run found, in a line."""
    broken = Counter(failure.law for failure in report.failures)
    told_of = ", ".join(f"{count} {law}" for law, count in broken.items()) or "none broken"
    return (
        f"{engine}: {report.plans:,} plans ({report.by_sql:,} by SQL), {report.vectors:,} pairs of vectors; in "
        f"{report.moved:,} plans something moved, in {report.full:,} as far as it may; {told_of}; {seconds:.0f} s."
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=tuple(SHRINKING), default="duckdb")
    parser.add_argument("--plans", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    report = run(chosen.plans, chosen.seed, chosen.engine, chosen.seconds)
    print(summary(chosen.engine, report, time.monotonic() - began))
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
