"""Tests that can fail: the code that carries the guarantee is changed, a little at a time, and its tests are run.

Mutants are drawn by a seed, equally many of each file, and each is put to the tests that run its line, likely and fast
ones first. What was found is kept in mutants_known.jsonl, so that a run goes on where another one stopped, on another
machine too: a mutant is one change of one function, and what is known of it stands while that function stays as it is
and the test that noticed is there; what survived is tried again once its tests change. Survivors are printed, a line
each; those that change no result are listed in mutants_equivalent.toml, each with its reason. It ends with 1 if more
than a twentieth of the mutants survive beside those.

    make bench ROOM=mutants
    python benchmarks/mutants.py --file sums --count 60 --seconds 600
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import mutants_trial
from mutations import Mutation, changes, home_of, homes, mutations, statement_lines

ROOT = Path(__file__).parents[1]
PACKAGE = "src/sitr"
WORK = ROOT / "build" / "mutants"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.toml")
KNOWN = Path(__file__).with_name("mutants_known.jsonl")
MOST_SURVIVORS = 0.05
LONGEST = 60.0  # seconds of tests for one mutant; those that come later in their order are not run
ACCOUNTANT = (
    "accounting/test_laws.py accounting/test_curve.py accounting/test_attacks.py accounting/test_references.py "
    "accounting/test_trees.py"
)
ENGINES = "accounting/engines/*.py accounting/test_orders.py"
QUERIES = (
    "query/test_stability.py query/test_execution.py query/test_leaks.py query/test_cases.py query/test_coverage.py "
    "attack/test_law.py"
)
BOOK = "ledger/*.py faults/test_storage.py faults/test_forks.py"
# Of each file the tests that should notice a change: its mirrored ones first. Its doctests come with them.
FILES = {
    "accounting/filters/*.py": "accounting/filters/test_*.py ledger/test_budget.py ledger/test_model.py",
    "accounting/parts.py": f"accounting/test_parts.py accounting/events/test_*.py {ACCOUNTANT}",
    "accounting/batch*.py": f"accounting/test_batch*.py accounting/events/test_*.py {ACCOUNTANT}",
    "accounting/losses/shuffled.py": "accounting/losses/test_shuffled.py accounting/test_batches.py",
    "accounting/engines/solve.py accounting/engines/ways.py": f"{ENGINES} {ACCOUNTANT}",
    "accounting/engines/delta.py accounting/engines/closed.py": f"{ENGINES} {ACCOUNTANT}",
    "mechanisms/samplers/*.py": "mechanisms/samplers/*.py mechanisms/test_additive.py mechanisms/test_attacks.py",
    "mechanisms/sums.py": "mechanisms/test_sums.py mechanisms/test_rows.py mechanisms/test_attacks.py",
    "query/noise.py": f"query/test_noise.py query/test_planner.py query/test_designs.py query/test_audit.py {QUERIES}",
    "query/planner.py": f"query/test_planner.py query/test_*.py {QUERIES}",
    "synthesis/measuring.py synthesis/choice.py synthesis/interactions.py": (
        "synthesis/test_measuring.py synthesis/test_choice.py synthesis/test_interactions.py synthesis/test_answers.py "
        "synthesis/test_synthesizer.py synthesis/test_whole_releases.py"
    ),
    "tables/emitter.py": (
        f"tables/test_emitter.py tables/test_engines.py tables/test_codes.py synthesis/test_plan.py {QUERIES}"
    ),
    "tables/statement.py": f"tables/test_statement.py tables/test_emitter.py tables/test_engines.py {QUERIES}",
    "ledger/totals.py": f"ledger/test_totals.py {BOOK}",
    "ledger/keeper.py": f"ledger/test_keeper.py {BOOK}",
    "ledger/migration.py ledger/joining.py": f"ledger/test_joining.py ledger/test_migration.py {BOOK}",
    "ledger/store.py": f"ledger/test_ledger.py {BOOK} faults/test_interrupts.py cli/test_ledger.py",
    "ledger/sqlite.py": f"ledger/test_ledger.py {BOOK} faults/test_interrupts.py cli/test_ledger.py",
    "ledger/postgres.sql": f"ledger/test_separation.py {BOOK}",
    "ledger/verification.py": f"ledger/test_verification.py {BOOK} cli/test_ledger.py",
    "ledger/reading.py": f"ledger/test_reading.py ledger/test_verification.py {BOOK} cli/test_ledger.py",
    "ledger/replay.py": f"ledger/test_verification.py {BOOK} cli/test_ledger.py",
}


class Target(NamedTuple):
    """A file that mutants are made of: its name, what it holds, and the files of its tests, likely killers first."""

    name: str
    source: bytes
    tests: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source).hexdigest()[:16]

    @property
    def server(self) -> bool:
        """Whether only PostgreSQL runs it; then lines are not traced, and all of its tests are asked."""
        return self.name.endswith(".sql")


class Mutant(NamedTuple):
    """One change of one file; its place says in which function, as it is, and where there."""

    target: Target
    mutation: Mutation
    place: str

    @property
    def key(self) -> str:
        return f"{self.target.name} {self.place} {self.mutation.text}"

    @property
    def line(self) -> int:
        return self.mutation.line(self.target.source)

    def __str__(self) -> str:
        before, after = _narrowed(*self.mutation.shown(self.target.source))
        return f"{self.target.name}:{self.line}: {before}  →  {after}"


def _narrowed(before: str, after: str, room: int = 60) -> tuple[str, str]:
    """Cut off what two lines share at their ends, beyond some room."""
    first = _shared(before, after)
    last = _shared(before[first:][::-1], after[first:][::-1])
    cut = max(first - room, 0)
    shown = [("…" if cut else "") + line[cut : len(line) - max(last - room, 0)] for line in (before, after)]
    return shown[0], shown[1]


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts have in common at their beginning."""
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def targets(only: str) -> list[Target]:
    """Return the files; a pattern that finds none is a mistake here, as the file was moved or cut in two."""
    found = []
    for patterns, tests in FILES.items():
        matches = [path for pattern in patterns.split() for path in (ROOT / PACKAGE).glob(pattern)]
        paths = sorted(path for path in matches if path.name != "__init__.py")
        if not paths:
            raise SystemExit(f"benchmarks/mutants.py: no file is named {patterns} any more; say where it went")
        for path in paths:
            name = str(path.relative_to(ROOT))
            if only in name:
                found.append(Target(name, path.read_bytes(), _tests_of(name, tests)))
    return found


def _tests_of(name: str, patterns: str) -> tuple[str, ...]:
    mirrored = name.replace(PACKAGE, "tests").rpartition("/")[0] + f"/test_{Path(name).stem}.py"
    files = [mirrored] if (ROOT / mirrored).exists() else []
    files += [name] if name.endswith(".py") else []
    for pattern in patterns.split():
        paths = sorted(path for path in (ROOT / "tests").glob(pattern) if path.name.startswith("test_"))
        if not paths:
            raise SystemExit(f"benchmarks/mutants.py: no test is named tests/{pattern} any more; say where it went")
        files += [str(path.relative_to(ROOT)) for path in paths]
    return tuple(dict.fromkeys(files))


def drawn(files: Iterable[Target], seed: int, count: int) -> list[Mutant]:
    """Draw mutants, equally many of each file as far as there are so many, and of different places first."""
    queues = [_shuffled(target, seed) for target in files]
    turns = (mutant for turn in zip_longest(*queues) for mutant in turn if mutant is not None)
    return list(islice(turns, count))


def _shuffled(target: Target, seed: int) -> Iterator[Mutant]:
    """Yield all mutants of a file: by the digest of each, so that a change of one function moves no other's."""
    around = homes(target.name, target.source)

    def dice(*about: object) -> bytes:
        return hashlib.sha256(repr((seed, target.name, *about)).encode()).digest()

    def place(mutation: Mutation) -> str:
        home = home_of(mutation, around)
        digest = hashlib.sha256(target.source[home.start : home.end]).hexdigest()[:12]
        return f"{home.name}@{digest}:{mutation.start - home.start}-{mutation.end - home.start}"

    turns: Counter[str] = Counter()
    order = []
    made = [(place(mutation), mutation) for mutation in mutations(target.name, target.source)]
    for where, mutation in sorted(made, key=lambda one: dice(one[0], one[1].text)):
        order.append((turns[where], dice(where), Mutant(target, mutation, where)))
        turns[where] += 1
    for _, _, mutant in sorted(order, key=lambda one: one[:2]):
        if changes(target.name, target.source, mutant.mutation):
            yield mutant


class Journal:
    """What is known of mutants, a line of JSON each: of survivors until any of their tests changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.known: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                record = json.loads(line)
                self.known[record["mutant"]] = record

    def verdict(self, mutant: Mutant, tests: str) -> dict[str, Any] | None:
        record = self.known.get(mutant.key)
        if record is None or (record["tests"] != tests if record["by"] == "" else _is_gone(record["by"])):
            return None
        return record

    def write(self, mutant: Mutant, **found: Any) -> None:
        record = {"mutant": mutant.key, "what": str(mutant), **found}
        self.known[mutant.key] = record
        with self._path.open("a") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _is_gone(test: str) -> bool:
    """Whether a test that noticed a mutant is not there any more; what is no test's name (a crash) stays."""
    file, _, name = test.partition("::")
    if not name:
        return False
    path, function = ROOT / file, name.rpartition("::")[2].partition("[")[0]
    return not path.exists() or (function.isidentifier() and f"def {function}(" not in path.read_text())


class Traces:
    """Which test runs which line of which target: traced once for each form of a test file and its targets."""

    def __init__(self, files: list[Target]) -> None:
        self._files = files
        self._paths = {(test, one.server): self._path(test, one.server) for one in files for test in one.tests}
        self._found: dict[Path, dict[str, Any]] = {}

    def _path(self, test: str, server: bool) -> Path:
        known = hashlib.sha256((ROOT / test).read_bytes())
        for target in self.traced(test, server):
            known.update(target.name.encode() + target.digest.encode())
        return WORK / "traces" / f"{known.hexdigest()[:32]}.json"

    def traced(self, test: str, server: bool) -> list[Target]:
        """The targets that a file of tests is to notice changes of."""
        return [target for target in self._files if test in target.tests and target.server == server]

    def path(self, test: str, server: bool) -> Path:
        """Where the trace of a file of tests is kept, as it was when the run began."""
        return self._paths[test, server]

    def missing(self, files: list[Target]) -> list[tuple[str, bool]]:
        """The files of tests of some targets that are not traced yet."""
        tests = dict.fromkeys((test, target.server) for target in files for test in target.tests)
        return [one for one in tests if not self.path(*one).exists()]

    def of(self, test: str, server: bool) -> dict[str, Any]:
        path = self.path(test, server)
        if path not in self._found:
            self._found[path] = json.loads(path.read_text())
        return self._found[path]

    def digest(self, target: Target) -> str:
        """A name for the tests of a target as they are now."""
        names = [self.path(test, target.server).name for test in target.tests]
        return hashlib.sha256(" ".join(names).encode()).hexdigest()[:16]

    def chosen(self, mutant: Mutant) -> list[tuple[str, float]]:
        """Return the tests that run the line, with their seconds: mirrored ones and doctests first, then by time."""
        target = mutant.target
        lines = statement_lines(mutant.target.name, mutant.target.source, mutant.line)
        found = []
        for rank, test in enumerate(target.tests):
            for name, traced in self.of(test, target.server).items():
                ran = traced["lines"].get(target.name, [])
                if target.server or (ran and (not lines or not lines.isdisjoint(ran))):
                    found.append((rank > 1, traced["seconds"], name))
        if not found:  # what a fork runs is not traced, nor a late call of a function that is called often
            hidden = [test for test in target.tests if test.startswith("tests/faults/") or test in target.tests[:2]]
            for test in hidden:
                found += [(True, traced["seconds"], name) for name, traced in self.of(test, target.server).items()]
        within, total = [], 0.0
        for _, seconds, name in sorted(found):
            total += seconds
            if within and total > LONGEST:
                break
            within.append((name, seconds))
        return within


class Bench:
    """Trials in some forks at a time, until the time is over."""

    def __init__(self, processes: int, until: float) -> None:
        self._until = until
        self._free = [mutants_trial.Tree(ROOT, WORK / f"tree{place}") for place in range(processes)]
        self._running: dict[int, tuple[mutants_trial.Tree, Any, float]] = {}

    def run(self, jobs: Iterable[Any]) -> Iterable[tuple[Any, int, dict[str, Any], float]]:
        """Yield each job with its exit code, what it found and its seconds; a job has `start(tree)` and `end(tree)`."""
        try:
            for job in jobs:
                while not self._free:
                    yield self._ended()
                if time.monotonic() > self._until:
                    break
                tree = self._free.pop()
                self._running[job.start(tree)] = (tree, job, time.monotonic())
            while self._running:
                yield self._ended()
        finally:
            for keeper in self._running:  # of a run that is stopped by hand
                os.kill(keeper, signal.SIGTERM)

    def _ended(self) -> tuple[Any, int, dict[str, Any], float]:
        pid, status = os.wait()
        tree, job, began = self._running.pop(pid)
        job.end(tree)
        self._free.append(tree)
        found = json.loads(tree.found.read_text()) if tree.found.exists() else {}
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 1, 2):
            raise SystemExit(f"nothing was tested; {tree.said} says why")
        return job, code, found, time.monotonic() - began


class TraceJob:
    """Traces one file of tests on the unchanged tree."""

    def __init__(self, test: str, server: bool, files: list[Target]) -> None:
        self.test, self.server, self._files = test, server, files

    def start(self, tree: mutants_trial.Tree) -> int:
        paths = {str(tree.folder / target.name): target.name for target in self._files}
        plugin = mutants_trial.Tracer(paths, server=self.server)
        return mutants_trial.start(tree, [self.test], plugin, wall=3600)

    def end(self, tree: mutants_trial.Tree) -> None:
        """Nothing was changed."""


class MutantJob:
    """Puts one mutant to its tests."""

    def __init__(self, mutant: Mutant, chosen: list[tuple[str, float]]) -> None:
        self.mutant, self._chosen = mutant, chosen

    def start(self, tree: mutants_trial.Tree) -> int:
        target = self.mutant.target
        tree.write(target.name, self.mutant.mutation.apply(target.source))
        files = list(dict.fromkeys(test.partition("::")[0] for test, _ in self._chosen))
        wall = 120 + 10 * sum(seconds for _, seconds in self._chosen)  # for one that waits for ever
        return mutants_trial.start(tree, files, mutants_trial.Chosen(self._chosen), wall=wall)

    def end(self, tree: mutants_trial.Tree) -> None:
        tree.write(self.mutant.target.name, self.mutant.target.source)


def traced(traces: Traces, bench: Bench, files: list[Target]) -> None:
    """Trace all tests that are not traced yet; they have to pass."""
    missing = traces.missing(files)
    if missing:
        print(f"tracing {len(missing)} files of tests, to know which test runs which line", flush=True)
    for job, code, found, seconds in bench.run(TraceJob(*one, traces.traced(*one)) for one in missing):
        if code:
            raise SystemExit(f"{job.test} fails on the code as it is ({seconds:.0f} s): mend that first")
        path = traces.path(job.test, job.server)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
        print(f"  {job.test}: {len(found)} tests, {seconds:.0f} s", flush=True)
    if traces.missing(files):
        raise SystemExit("the time was over before all tests were traced: run it again, and it goes on")


def tried(mutants: list[Mutant], traces: Traces, journal: Journal, bench: Bench, equivalent: dict[str, str]) -> None:
    """Put those mutants to their tests of which nothing is known yet."""

    def jobs() -> Iterable[MutantJob]:
        for mutant in mutants:
            tests = traces.digest(mutant.target)
            if reason_of(mutant, equivalent) or journal.verdict(mutant, tests):
                continue
            chosen = traces.chosen(mutant)
            if chosen:
                yield MutantJob(mutant, chosen)
            else:
                journal.write(mutant, by="", tests=tests, seconds=0.0)
                print(f"  SURVIVES, no test runs it: {mutant}", flush=True)

    for job, code, found, seconds in bench.run(jobs()):
        by = {0: "", 2: "time"}.get(code, found.get("failed") or "an import, or a crash")
        journal.write(job.mutant, by=by, tests=traces.digest(job.mutant.target), seconds=round(seconds, 1))
        said = f"noticed by {by}" if by else "SURVIVES"
        print(f"  {seconds:5.1f} s  {said}: {job.mutant}", flush=True)


def reasons() -> dict[str, str]:
    """Return the equivalent mutants, as they are printed but for their lines, with the reasons."""
    found = {}
    for entry in tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))["mutants"]:
        found.update(dict.fromkeys(entry["changes"], entry["reason"]))
    return found


def reason_of(mutant: Mutant, equivalent: dict[str, str]) -> str | None:
    """Return why a mutant changes no result, if it is listed; the number of its line does not count."""
    name, _, change = str(mutant).partition(":")
    return equivalent.get(f"{name.removeprefix(PACKAGE + '/')}: {change.partition(': ')[2]}")


def report(mutants: list[Mutant], traces: Traces, journal: Journal, equivalent: dict[str, str]) -> int:
    """Print what is known, and return the exit code."""
    counts: Counter[tuple[str, str]] = Counter()
    alive, same = [], []
    for mutant in mutants:
        record = journal.verdict(mutant, traces.digest(mutant.target))
        if why := reason_of(mutant, equivalent):
            verdict = "equivalent"
            same.append(f"{mutant}\n      {why}")
        else:
            verdict = "not tried" if record is None else "noticed" if record["by"] else "alive"
        if verdict == "alive":
            alive.append(mutant)
        counts[mutant.target.name, verdict] += 1
    verdicts = ("noticed", "equivalent", "alive", "not tried")
    print(f"\n{'file':44}" + "".join(f"{verdict:>12}" for verdict in verdicts))
    for name in dict.fromkeys(mutant.target.name for mutant in mutants):
        print(f"{name:44}" + "".join(f"{counts[name, verdict]:12}" for verdict in verdicts))
    sums = {verdict: sum(n for (_, found), n in counts.items() if found == verdict) for verdict in verdicts}
    print(f"{'all':44}" + "".join(f"{sums[verdict]:12}" for verdict in verdicts))
    print(f"\n{len(same)} change no result:")
    print("".join(f"  = {line}\n" for line in same), end="")
    share = len(alive) / max(sums["noticed"] + len(alive), 1)
    print(f"\n{len(alive)} of {sums['noticed'] + len(alive)} that change one survive ({share:.1%}):")
    print("".join(f"  ! {mutant}\n" for mutant in alive), end="")
    return int(share > MOST_SURVIVORS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=13, help="which mutants are drawn")
    parser.add_argument("--count", type=int, default=520, help="how many, over all files")
    parser.add_argument("--file", default="", metavar="WORD", help="only files whose names hold it")
    parser.add_argument("--seconds", type=float, default=3600, help="when to stop; the next run goes on")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="try nothing, only tell what is known")
    asked = parser.parse_args()
    files = targets(asked.file)
    if not files:
        raise SystemExit(f"no file's name holds {asked.file!r}")
    WORK.mkdir(parents=True, exist_ok=True)
    mutants = drawn(files, asked.seed, asked.count)
    traces, journal, equivalent = Traces(targets("")), Journal(KNOWN), reasons()
    if not asked.report:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        mutants_trial.warm_up()
        bench = Bench(asked.processes, time.monotonic() + asked.seconds)
        traced(traces, bench, files)
        tried(mutants, traces, journal, bench, equivalent)
    return report(mutants, traces, journal, equivalent)


if __name__ == "__main__":
    sys.exit(main())
