"""Runs that are killed (-9) at random moments of random steps and resumed, until enough of them were killed.

Each is held to what a run promises: no step is free, no noise is used twice, and the book verifies.
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the run that is killed is that of the tests

from tests.learning.killed import campaign, faults

KILLS = 200
EACH = 10  # of one run; its last try ends


def run(kills: int = KILLS) -> dict[str, object]:
    began, killed, made, seed, wrong = time.perf_counter(), 0, 0, 0, []
    while killed < kills:
        with tempfile.TemporaryDirectory(prefix="sitr-kills-") as folder:
            told = campaign(Path(folder), min(EACH, kills - killed), seed)
        wrong += [f"seed {seed}: {fault}" for fault in faults(told)]
        killed, made, seed = killed + told["killed"], made + len(told["made"]), seed + 1
    print(f"\n{seed} runs were killed {killed} times in all and made {made} steps: {len(wrong)} faults;", end=" ")
    print(f"{time.perf_counter() - began:.0f} s.")
    print("".join(f"  {fault}\n" for fault in wrong), end="")
    return {"runs": seed, "killed": killed, "steps": made, "faults": wrong}
