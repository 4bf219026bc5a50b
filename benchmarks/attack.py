"""The attack on what carries the guarantee: random plans, random expressions and random event trees, by seed.

Plans are held against the law of the house on every engine (`attack_plans.py`), expressions against their reference
(`attack_expressions.py`), and brackets against exact convolution (`attack_accounting.py`). A failure is printed as the
smallest case that was found, with the seed that leads to it. The next run goes on from the seed that this one prints.

    make bench ROOM=attack
    python benchmarks/attack.py --seed 1000 --only plans --seconds 600
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

WORLDS = 1000  # seeds that one run takes: no two of its parts share a world, nor do two runs
SHARES = {"spark": 500 / 20_000, "postgresql": 3_000 / 20_000}  # of the plans; the others are DuckDB's
FIRST = {"spark": 900, "postgresql": 750, "duckdb": 0}  # where the worlds of an engine begin among those of a run
PIECES = 4  # of DuckDB's plans, and of the trees, so that both processes have work until the end


@dataclass(frozen=True)
class Part:
    """A part of the attack, which a process of its own does.

    Attributes:
        name: What is attacked.
        kind: "plans", "expressions" or "trees".
        count: How many.
        seed: Of the first.
        share: About what it takes of the time of a run; what earlier parts leave, later ones have.
    """

    name: str
    kind: str
    count: int
    seed: int
    share: float


def parts(seed: int, plans: int, trees: int, expressions: int) -> list[Part]:
    """Return the parts of a run, the longest first."""
    counts = {engine: round(plans * share) for engine, share in SHARES.items()}
    made = [
        Part("spark", "plans", counts["spark"], seed + FIRST["spark"], 0.18),
        Part("postgresql", "plans", counts["postgresql"], seed + FIRST["postgresql"], 0.11),
    ]
    left, first = plans - sum(counts.values()), seed * trees // WORLDS
    for piece in range(PIECES):
        begin = seed + FIRST["duckdb"] + piece * (FIRST["postgresql"] // PIECES)
        made.append(Part("duckdb", "plans", -(-left // PIECES), begin, 0.36 / PIECES))
        made.append(Part("trees", "trees", trees // PIECES, first + piece * (trees // PIECES), 0.36 / PIECES))
    return [*made, Part("expressions", "expressions", expressions, seed, 0.04)]


def attacked(part: Part, until: float, share: float) -> tuple[str, bool]:
    """Do a part in a share of the time until the end; return what to print of it, and whether it found nothing."""
    began = time.monotonic()
    seconds = share * (until - began)
    if part.kind == "plans":
        import attack_plans

        report = attack_plans.run(part.count, part.seed, part.name, seconds)
        return attack_plans.summary(part.name, report, time.monotonic() - began), not report.failures
    if part.kind == "trees":
        attack = importlib.import_module("attack_accounting").run(part.count, part.seed, seconds)
        return str(attack), not attack.failures
    engines = ("duckdb", "postgresql")
    found = importlib.import_module("attack_expressions").run(part.count // len(engines), part.seed, engines)
    spent = time.monotonic() - began
    text = f"expressions: {part.count:,} on {' and '.join(engines)}, {len(found)} differ; {spent:.0f} s."
    return "\n".join([*found[:5], text]), not found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help=f"where to go on; a run takes {WORLDS} of them (0)")
    parser.add_argument("--seconds", type=float, default=3580.0, help="for all of it, on two cores (3580)")
    parser.add_argument("--plans", type=int, default=20_000, help="on all engines together (20,000)")
    parser.add_argument("--trees", type=int, default=10_000, help="for the accountant (10,000)")
    parser.add_argument("--expressions", type=int, default=4_000, help="on DuckDB and PostgreSQL (4,000)")
    parser.add_argument("--only", metavar="WORD", help="parts of this name or kind: spark, plans, trees, expressions")
    parser.add_argument(
        "--processes", type=int, default=3, help="at a time: one that asks an engine waits now and then (3)"
    )
    return parser.parse_args()


def main() -> int:
    options, began = arguments(), time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended as well
    wanted = [
        part
        for part in parts(options.seed, options.plans, options.trees, options.expressions)
        if options.only in (None, part.name, part.kind)
    ]
    clean, until = True, began + options.seconds
    context: Any = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context, max_tasks_per_child=1) as pool:
        work: Callable[[Part, float, float], tuple[str, bool]] = attacked
        running = {}
        for place, part in enumerate(wanted):
            share = options.processes * part.share / sum(one.share for one in wanted[place:])
            running[pool.submit(work, part, until, min(share, 1.0))] = part
        for done in as_completed(running):
            try:
                text, fine = done.result()
            except Exception as error:  # a part that cannot run shall not end the others
                text, fine = f"{running[done].name}: it did not run: {type(error).__name__}: {error}", False
            print(text, flush=True)
            clean = clean and fine
    print(f"The whole run took {time.monotonic() - began:.0f} s. To go on: --seed {options.seed + WORLDS}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
