"""The auditor, pointed at whole queries on neighbouring databases: what it certifies in 100,000 releases."""

import itertools
import multiprocessing
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import processes

sys.path.insert(0, str(processes.ROOT))

from tests.query.audited import NEIGHBOURS, QUESTIONS, audited

RELEASES = 100_000  # of all questions and neighbours, on both databases
CONFIDENCE = 0.95  # of all audits together
CASES = tuple(itertools.product(QUESTIONS, NEIGHBOURS))


def run(folder: Path, options: Any) -> Iterator[dict[str, Any]]:
    """A row for each question and each person who is there or not."""
    total = RELEASES // 50 if options.quick else RELEASES
    samples = max(total // len(CASES) // 2, 100)
    print(
        f"{2 * samples * len(CASES):,} whole releases at ε = 1: planned, rehearsed, charged, run, answered and kept\n"
    )
    print(f"{'question':<16}{'one more person has':<22}{'claimed':>8}{'certified':>11}{'ms each':>9}  verdict")
    with ProcessPoolExecutor(options.threads, multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(_audited, CASES, itertools.repeat(samples)):
            numbers = f"{row['claimed']:>8.3f}{row['certified']:>11.3f}{row['milliseconds']:>9.1f}"
            print(f"{row['question']:<16}{row['neighbour']:<22}{numbers}  {row['verdict']}", flush=True)
            yield row


def _audited(case: tuple[str, str], samples: int) -> dict[str, Any]:
    question, neighbour = case
    begun = time.perf_counter()
    report = audited("duckdb", question, neighbour, samples, confidence=1 - (1 - CONFIDENCE) / len(CASES))
    return {
        "question": question,
        "neighbour": neighbour,
        "samples": samples,
        "claimed": report.claimed_epsilon,
        "certified": report.epsilon_lower,
        "violated": report.violated,
        "verdict": str(report.verdict),
        "milliseconds": 1e3 * (time.perf_counter() - begun) / (2 * samples),
    }
