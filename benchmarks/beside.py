"""sitr beside an earlier sitr: the jobs of the other benchmarks, turn by turn, so that both see the same machine.

Every turn of a job is a process of its own, with the sources of one of the two; the machine should do nothing else. It
ends with 1 if the median of a job takes more than a tenth longer than it did.

    python benchmarks/beside.py 4e4d6bc
    python benchmarks/beside.py 4e4d6bc --jobs ledger queries --turns 3
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "beside"
SLOWER = 1.1  # times the earlier one, above which a job is worse
ENOUGH = 1.0  # seconds for the repetitions of one call
MOST_CALLS = 30

Times = Iterator[tuple[str, float]]

# --- The jobs, each in a process of its own ---------------------------------------------------------------------------


def repeated(call: Callable[[], object]) -> float:
    """The median of calls after the first, each of which does all of its work; of many, where they are short."""
    from accounting import forget

    times: list[float] = []
    while len(times) < 2 or (len(times) < MOST_CALLS and sum(times) < ENOUGH):
        forget()
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def accounting() -> Times:
    """ε of the cases of `accounting.py`, and what filters that both know take to admit their events."""
    from accounting_jobs import CASES, FILTERS, KINDS, admit, ours

    from sitr import accounting

    for case in CASES:
        yield case.name, repeated(lambda case=case: ours(case))
    for name in FILTERS:
        if name != "choose_union" and hasattr(accounting, name):
            yield f"{name}, {KINDS[1]}", repeated(lambda name=name: admit(name, KINDS[1]))


def mechanisms() -> Times:
    """A million draws, at a small and a large scale."""
    from sitr.mechanisms.randomness import SYSTEM
    from sitr.mechanisms.samplers import draws

    for scale in (1, 1000):
        yield f"Laplace noise, {scale}", repeated(lambda s=scale: draws.discrete_laplace(Fraction(s), 10**6, SYSTEM))
        yield (
            f"Gaussian noise, {scale}",
            repeated(lambda s=scale: draws.discrete_gaussian(Fraction(s) ** 2, 10**6, SYSTEM)),
        )


def ledger() -> Times:
    """The three steps of a release in either store, and in a book in memory."""
    from sitr.accounting import Laplace
    from sitr.ledger import Budget, Ledger
    from tests.ledger import cluster

    def steps(address: str, rounds: int) -> float:
        times = []
        with Ledger.open(address) as book:
            book.create_budget("clinic", Budget(epsilon=5.0))
            for turn in range(rounds):
                began = time.perf_counter()
                with book.reserve("clinic", Laplace(noise_multiplier=1e6 + turn % 10), analyst="amina") as grant:
                    grant.commit(42)
                times.append(time.perf_counter() - began)
        return statistics.median(times)

    with tempfile.TemporaryDirectory(dir=WORK) as folder:
        yield "reserve, start, commit: SQLite", steps(f"sqlite:///{folder}/book.db", 600)
    yield "reserve, start, commit: in memory", steps("memory://", 3000)
    if cluster.installed():
        server = cluster.Cluster(synced=True)
        try:
            yield "reserve, start, commit: PostgreSQL", steps(server.fresh_database(), 600)
        finally:
            server.remove()


def queries() -> Times:
    """One release from ten million rows, and many from a small table."""
    import queries_data
    import queries_sitr

    names = queries_data.region_names(50)
    large, small = queries_data.make(WORK, 10**7, 10**6, 50), queries_data.small(WORK, 50, 200)
    queries_sitr.start(2)
    for label, regions in (("declared regions", names), ("regions found", None)):
        began = time.perf_counter()
        queries_sitr.question(large, regions).release(epsilon=1.0, delta=1e-6)
        yield f"10^7 rows, {label}", time.perf_counter() - began
        asked, times = queries_sitr.question(small, regions), []
        for _ in range(40):
            began = time.perf_counter()
            asked.release(epsilon=1.0, delta=1e-6)
            times.append(time.perf_counter() - began)
        yield f"10^4 rows, {label}", statistics.median(times)


JOBS: dict[str, Callable[[], Times]] = {
    "accounting": accounting,
    "mechanisms": mechanisms,
    "ledger": ledger,
    "queries": queries,
}

# --- Turn by turn -----------------------------------------------------------------------------------------------------


def sources(commit: str) -> Path:
    """The tree of a commit, checked out once."""
    folder = WORK / commit
    if not folder.exists():
        subprocess.run(["git", "worktree", "add", "--detach", "-f", str(folder), commit], cwd=ROOT, check=True)
    return folder


def measured(tree: Path, job: str) -> dict[str, float]:
    """The seconds of one turn of a job, by the sources of a tree."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{ROOT}"}  # servers of the tests are the same for both
    command = [sys.executable, str(Path(__file__).resolve()), "--do", job]
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{job} failed by the sources in {tree}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compared(job: str, earlier: Path, turns: int) -> Iterator[tuple[str, float, float]]:
    """Each part of a job, with the medians of both."""
    found: dict[Path, dict[str, list[float]]] = {earlier: {}, ROOT: {}}
    for turn in range(turns):
        for tree in (earlier, ROOT) if turn % 2 == 0 else (ROOT, earlier):
            for name, seconds in measured(tree, job).items():
                found[tree].setdefault(name, []).append(seconds)
    for name in found[ROOT]:
        if name in found[earlier]:
            yield name, statistics.median(found[earlier][name]), statistics.median(found[ROOT][name])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="the earlier one")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    parser.add_argument("--turns", type=int, default=5, help="of each, alternately (5)")
    parser.add_argument("--do", choices=JOBS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if options.do:
        print(json.dumps(dict(JOBS[options.do]())))
        return 0
    if options.commit is None:
        parser.error("say which commit to stand beside")
    earlier, slower = sources(options.commit), 0
    print(f"{'job':<46}{'was':>12}{'is':>12}{'ratio':>8}")
    for job in options.jobs:
        for name, was, now in compared(job, earlier, options.turns):
            worse = now > SLOWER * was
            slower += worse
            print(f"{name:<46}{was * 1e3:>9.2f} ms{now * 1e3:>9.2f} ms{now / was:>8.2f}{' WORSE' * worse}", flush=True)
    print(f"{slower} more than a tenth slower.")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
