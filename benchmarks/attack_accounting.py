"""The accountant under attack: random trees of events, each answer beside a truth that was computed another way.

    python benchmarks/attack_accounting.py --trees 10000 --seed 0 --seconds 1500

Ten thousand trees take half an hour to an hour on one core. The run ends when the trees are done or the seconds are
over, and says with which seed to go on. It ends with 1 if a bracket missed the truth, two answers contradicted each
other, something other than an error of ours was raised, a warning was heard, or a call took more than 2 s or 1 GB.
"""

import argparse
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one core, and little memory that is only set aside
sys.path.insert(0, str(Path(__file__).parents[1]))  # trees and truths are those of the tests

from tests.accounting.trials import Call, Campaign, Failure, shrunk

SHOWN = 2  # failures of one kind and check that are shrunk and shown


@dataclass(frozen=True)
class Attack:
    """What a run found, and the seed to go on with."""

    trees: int
    next_seed: int
    seconds: float
    checked: Counter[str]
    slowest: list[Call]
    failures: list[Failure]

    def __str__(self) -> str:
        rows = [f"accountant: {self.trees} trees in {self.seconds:.0f} s; go on with --seed {self.next_seed}", ""]
        rows += [f"  {count:8d}  {name}" for name, count in sorted(self.checked.items())]
        rows += ["", "the slowest calls, in seconds of processor time, with the memory they took:"]
        rows += [f"  {call.seconds:6.2f} s  {call.megabytes:7.1f} MB  {call.text}" for call in self.slowest]
        kinds = Counter((failure.kind, failure.check.name) for failure in self.failures)
        rows += ["", "no failures" if not kinds else "FAILURES:"]
        rows += [f"  {count:8d}  {kind} ({check})" for (kind, check), count in kinds.most_common()]
        return "\n".join(rows)


def run(trees: int, seed: int, seconds: float) -> Attack:
    """Put up to `trees` trees to the accountant, from `seed` on, for about so many seconds."""
    campaign, started, done = Campaign(), time.monotonic(), 0
    shown: Counter[tuple[str, str]] = Counter()
    while done < trees and time.monotonic() - started < seconds:
        before = len(campaign.failures)
        campaign.run(seed + done)
        done += 1
        for failure in campaign.failures[before:]:
            _show(failure, shown, seed + done - 1)
    spent = time.monotonic() - started
    return Attack(done, seed + done, spent, campaign.checked, campaign.slowest, campaign.failures)


def _show(failure: Failure, shown: Counter[tuple[str, str]], seed: int) -> None:
    """Print a failure as the smallest expression that was found to fail, unless its kind has been seen often."""
    key = failure.kind, failure.check.name
    shown[key] += 1
    if shown[key] <= SHOWN:
        print(f"seed {seed}: {shrunk(failure)}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1500.0)
    chosen = parser.parse_args(arguments)
    attack = run(chosen.trees, chosen.seed, chosen.seconds)
    print(attack)
    return 1 if attack.failures else 0


if __name__ == "__main__":
    sys.exit(main())
