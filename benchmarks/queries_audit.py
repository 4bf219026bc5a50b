"""The auditor, pointed at whole queries on neighbouring databases: what it certifies in 100,000 releases."""

import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import queries_run

sys.path.insert(0, str(queries_run.ROOT))

from tests.query.audited import NEIGHBOURS, QUESTIONS, audited

RELEASES = 100_000  # of all questions and neighbours, on both databases
FRESH = 2_000  # of which the engine and the ledger run anew for each, as for users
CONFIDENCE = 0.95  # of all audits together


def run(folder: Path, options: Any) -> Iterator[dict[str, Any]]:
    """A row for each question and each person who is there or not."""
    cases = list(itertools.product(QUESTIONS, NEIGHBOURS))
    total = RELEASES // 50 if options.quick else RELEASES
    each, fresh = total // len(cases) // 2, max(FRESH * total // RELEASES // len(cases) // 2, 20)
    print(f"{total:,} releases at ε = 1, and {fresh * 2 * len(cases):,} with engine and ledger anew for each\n")
    print(f"{'question':<16}{'one more person has':<22}{'claimed':>8}{'certified':>11}  verdict")
    for question, neighbour in cases:
        begun = time.perf_counter()
        for samples, anew in ((each, False), (fresh, True)):
            confidence = 1 - (1 - CONFIDENCE) / (2 * len(cases))
            report = audited("duckdb", question, neighbour, samples, fresh=anew, confidence=confidence)
            name = f"{question}{' *' if anew else ''}"
            numbers = f"{report.claimed_epsilon:>8.3f}{report.epsilon_lower:>11.3f}"
            print(f"{name:<16}{neighbour:<22}{numbers}  {report.verdict}", flush=True)
            yield {
                "question": question,
                "neighbour": neighbour,
                "samples": samples,
                "fresh": anew,
                "claimed": report.claimed_epsilon,
                "certified": report.epsilon_lower,
                "violated": report.violated,
                "seconds": time.perf_counter() - begun,
            }
    print("\n*: engine and ledger anew for each release; the others draw new noise on six runs of the engine.")
