"""How near synthetic rows are to real ones: tables of one, two and three columns, and what can be learnt from them.

Ours, and bounds that are not private, run in processes of this environment; peers in environments of their own, with a
time limit, as they take minutes. What they are given is the same: rows as numbers, the sizes of columns, ε and δ.
"""

import tempfile
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import processes
from synthesis_data import DATA, Table, census, stays
from synthesis_peers.process import DELTA, Job, serve

from sitr.synthesis import synthesizer

TRIPLES = 60
MOST_CELLS = 2_000_000
SEEDS = 5
HERE = Path(__file__).resolve().parent
TIMEOUT = 600  # seconds for a method
HEADER = f"{'table':<18}{'ε':>5}  {'method':<15}{'one':>7}{'two':>8}{'worst':>8}{'three':>8}{'AUC':>8}{'s':>7}{'MB':>6}"


def ours(job: Job) -> np.ndarray:
    made = synthesizer(job.sizes, epsilon=job.epsilon, delta=DELTA, ordered=job.ordered)
    return made.release(job.rows, unsafe_seed=job.seed).value.sample(seed=job.seed)


def independent(job: Job) -> np.ndarray:
    """Not private: exact columns, without anything between them. What is worse is not worth its budget."""
    return np.random.default_rng(job.seed).permuted(job.rows, axis=0)


def bootstrap(job: Job) -> np.ndarray:
    """Not private: real rows drawn again, by which rows that are drawn at random can hardly be nearer."""
    return job.rows[np.random.default_rng(job.seed).integers(0, len(job.rows), len(job.rows))]


BOUNDS: dict[str, Callable[[Job], np.ndarray]] = {"independent": independent, "bootstrap": bootstrap}
PEERS = {  # by environment
    "mbi MST": "mbi",
    "dpmm MST": "dpmm",
    "SmartNoise MST": "smartnoise",
    "dpmm AIM": "dpmm",
    "SmartNoise AIM": "smartnoise",
}


TABLES: dict[str, tuple[Callable[[], Table], tuple[float, ...]]] = {
    "census": (census, (0.3, 1.0, 3.0, 10.0)),
    "stays, 45 columns": (lambda: stays(diagnoses=False), (1.0,)),
    "stays, 48 columns": (lambda: stays(diagnoses=True), (1.0,)),
}


def run(quick: bool, word: str) -> list[dict[str, object]]:
    if not DATA.exists():
        print(f"The real data are not in {DATA.name}.")
        return []
    print(HEADER)
    found = []
    for name, (load, epsilons) in TABLES.items():
        judge = Judge(load())
        asked = [(method, np.inf, 1) for method in BOUNDS] + [("sitr", epsilon, SEEDS) for epsilon in epsilons]
        if name == "census":
            asked += [(method, 1.0, 1) for method in PEERS]  # one run each: they take minutes
        for method, epsilon, seeds in (one for one in asked if word in one[0]):
            about = {"table": name, "epsilon": epsilon, "method": method}
            try:
                results = [judge.measured(method, epsilon, seed) for seed in range(1 if quick else seeds)]
            except processes.FailedError as error:
                found.append(about | {"failed": str(error)})
                print(f"{name:<18}{epsilon:>5g}  {method:<15}{error}", flush=True)
                continue
            row = {key: float(np.median([one[key] for one in results])) for key in results[0]}
            found.append(about | row)
            print(line(found[-1]), flush=True)
    return found


def line(row: dict[str, object]) -> str:
    shares = "".join(f"{row[key]:>{width}.4f}" for key, width in (("one", 7), ("two", 8), ("worst", 8), ("three", 8)))
    rest = f"{row['auc']:>8.3f}{row['seconds']:>7.2f}{row['memory']:>6.0f}"
    return f"{row['table']:<18}{row['epsilon']:>5g}  {row['method']:<15}{shares}{rest}"


class Judge:
    """Holds what is counted of the real rows."""

    def __init__(self, table: Table) -> None:
        self.table, columns = table, range(len(table.sizes))
        triples = list(combinations(columns, 3))
        picked = np.random.RandomState(0).choice(len(triples), min(TRIPLES, len(triples)), replace=False)
        fit = [triples[one] for one in picked if np.prod([float(table.sizes[c]) for c in triples[one]]) < MOST_CELLS]
        self.groups = {"one": [(column,) for column in columns], "two": list(combinations(columns, 2)), "three": fit}
        self.real = {group: self.shares(table.rows, group) for groups in self.groups.values() for group in groups}

    def shares(self, rows: np.ndarray, group: tuple[int, ...]) -> np.ndarray:
        shape = [self.table.sizes[column] for column in group]
        cells = np.ravel_multi_index([rows[:, column].astype(np.intp) for column in group], shape)
        return np.bincount(cells, minlength=int(np.prod(shape))) / max(len(rows), 1)

    def measured(self, method: str, epsilon: float, seed: int) -> dict[str, float]:
        """Let a process of its own make rows, so that its memory is its own, and judge them."""
        library = PEERS.get(method)
        script = HERE / "synthesis_peers" / f"with_{library}.py" if library else Path(__file__)
        with tempfile.TemporaryDirectory() as folder:
            here, out = Path(folder) / "table.npz", Path(folder) / "rows.npy"
            np.savez(here, **vars(self.table))
            command = [method, str(here), str(epsilon), str(seed), str(out)]
            threads = 2 if library else 1  # ours is measured on one core, peers have both
            python = processes.interpreter("synthesis", library)
            told = processes.run(python, script, command, threads=threads, timeout=TIMEOUT)
            rows = np.load(out)
        far = {
            name: [np.abs(self.real[group] - self.shares(rows, group)).sum() / 2 for group in groups]
            for name, groups in self.groups.items()
        }
        means = {name: float(np.mean(values)) for name, values in far.items()}
        return {**means, "worst": max(far["two"]), "auc": self.learnt(rows), **told}

    def learnt(self, rows: np.ndarray) -> float:
        """The area under the curve of a model that learnt from synthetic rows, on a third of the real ones."""
        try:
            from sklearn.ensemble import HistGradientBoostingClassifier
            from sklearn.metrics import roc_auc_score
        except ImportError:
            return float("nan")
        real, label = self.table.rows, self.table.label
        tested = real[np.random.RandomState(1).rand(len(real)) < 1 / 3]
        others = [column for column in range(real.shape[1]) if column != label]
        model = HistGradientBoostingClassifier(random_state=0).fit(rows[:, others], rows[:, label])
        return float(roc_auc_score(tested[:, label], model.predict_proba(tested[:, others])[:, 1]))


if __name__ == "__main__":
    serve({"sitr": ours, **BOUNDS})
