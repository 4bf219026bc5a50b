"""How near synthetic rows are to real ones: tables of one, two and three columns, and what can be learnt from them.

`METHODS` has each method by its name: from rows and their public description to synthetic rows. A peer is one more
entry; what is not installed is left out.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
from synthesis_data import DATA, Table, census, stays

from sitr.synthesis import synthesizer

DELTA = 1e-9
TRIPLES = 60
MOST_CELLS = 2_000_000
SEEDS = 5
TIMEOUT = 3600
HEADER = f"{'table':<18}{'ε':>5}  {'method':<14}{'one':>7}{'two':>8}{'worst':>8}{'three':>8}{'AUC':>8}{'s':>7}{'MB':>6}"


def ours(table: Table, epsilon: float, seed: int) -> np.ndarray:
    made = synthesizer(table.sizes, epsilon=epsilon, delta=DELTA, ordered=table.ordered)
    return made.release(table.rows, unsafe_seed=seed).value.sample(seed=seed)


def independent(table: Table, epsilon: float, seed: int) -> np.ndarray:
    """Not private: exact columns, without anything between them. What is worse is not worth its budget."""
    return np.random.default_rng(seed).permuted(table.rows, axis=0)


def bootstrap(table: Table, epsilon: float, seed: int) -> np.ndarray:
    """Not private: real rows drawn again, by which rows that are drawn at random can hardly be nearer."""
    return table.rows[np.random.default_rng(seed).integers(0, len(table.rows), len(table.rows))]


METHODS: dict[str, Callable[[Table, float, int], np.ndarray]] = {"sitr": ours}
BOUNDS = {"independent": independent, "bootstrap": bootstrap}


TABLES: dict[str, tuple[Callable[[], Table], tuple[float, ...]]] = {
    "census": (census, (0.3, 1.0, 3.0, 10.0)),
    "stays, 45 columns": (lambda: stays(diagnoses=False), (1.0,)),
    "stays, 48 columns": (lambda: stays(diagnoses=True), (1.0,)),
}


def run(quick: bool) -> list[dict[str, object]]:
    if not DATA.exists():
        print(f"The real data are not in {DATA.name}.")
        return []
    print(HEADER)
    found = []
    for name, (load, epsilons) in TABLES.items():
        judge = Judge(load())
        asked = [*((method, (np.inf,), 1) for method in BOUNDS), *((method, epsilons, SEEDS) for method in METHODS)]
        for method, at, seeds in asked:
            for epsilon in at:
                results = [judge.measured(method, epsilon, seed) for seed in range(1 if quick else seeds)]
                row = {key: float(np.median([one[key] for one in results])) for key in results[0]}
                found.append({"table": name, "epsilon": epsilon, "method": method, **row})
                print(line(found[-1]), flush=True)
    return found


def line(row: dict[str, object]) -> str:
    shares = "".join(f"{row[key]:>{width}.4f}" for key, width in (("one", 7), ("two", 8), ("worst", 8), ("three", 8)))
    rest = f"{row['auc']:>8.3f}{row['seconds']:>7.2f}{row['memory']:>6.0f}"
    return f"{row['table']:<18}{row['epsilon']:>5g}  {row['method']:<14}{shares}{rest}"


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
        with tempfile.TemporaryDirectory() as folder:
            here, out = Path(folder) / "table.npz", Path(folder) / "rows.npy"
            np.savez(here, **vars(self.table))
            order = [sys.executable, __file__, method, str(here), str(epsilon), str(seed), str(out)]
            told = subprocess.run(order, check=True, capture_output=True, text=True, timeout=TIMEOUT).stdout
            rows = np.load(out)
        far = {
            name: [np.abs(self.real[group] - self.shares(rows, group)).sum() / 2 for group in groups]
            for name, groups in self.groups.items()
        }
        means = {name: float(np.mean(values)) for name, values in far.items()}
        return {**means, "worst": max(far["two"]), "auc": self.learnt(rows), **json.loads(told)}

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


def make(method: str, here: str, epsilon: str, seed: str, out: str) -> None:
    """Make rows, and say in how many seconds, and by how many MB the peak of memory rose. Linux only."""
    with np.load(here) as kept:
        table = Table(kept["rows"], kept["sizes"].tolist(), kept["ordered"].tolist(), int(kept["label"]))
    begun, started = _peak(), time.perf_counter()
    rows = {**METHODS, **BOUNDS}[method](table, float(epsilon), int(seed))
    print(json.dumps({"seconds": time.perf_counter() - started, "memory": max(_peak() - begun, 0)}))
    np.save(out, rows)


def _peak() -> float:
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


if __name__ == "__main__":
    make(*sys.argv[1:])
