"""MST (McKenna, Miklau and Sheldon 2021) with mbi's inference.

The wheel of mbi has no mechanism, only the inference. So what is measured is written here after the paper: a third of ρ
on columns, whose rare values are put together, a third on choosing a tree of pairs, and a third on its tables.
"""

import math
from itertools import combinations

import numpy as np
from process import DELTA, Job, serve

RARE = 3.0  # deviations of the noise: values that seem to have fewer rows are put together


def mst(job: Job) -> np.ndarray:
    import jax

    jax.config.update("jax_enable_x64", True)
    from mbi import Dataset, Domain, LinearMeasurement
    from mbi.estimation import MirrorDescent

    rng, count = np.random.default_rng(job.seed), len(job.sizes)
    np.random.seed(job.seed)  # noqa: NPY002  # mbi draws rows with it
    names = [f"c{place}" for place in range(count)]
    data = Dataset(dict(zip(names, job.rows.T, strict=True)), Domain(names, job.sizes))
    rho = rho_of(job.epsilon)

    def measured(cliques: list[tuple[str, ...]]) -> list[LinearMeasurement]:
        deviation = math.sqrt(3 * len(cliques) / (2 * rho))
        vectors = [np.asarray(data.project(clique).datavector()) for clique in cliques]
        return [
            LinearMeasurement(one + rng.normal(0, deviation, one.size), clique, deviation)
            for one, clique in zip(vectors, cliques, strict=True)
        ]

    singles = measured([(name,) for name in names])
    mapping = {one.clique[0]: _together(one) for one in singles}
    data, singles = data.compress(mapping), [one.compress(mapping, data.domain) for one in singles]
    model = MirrorDescent().estimate(data.domain, singles)
    scores = {
        pair: float(np.abs(np.asarray((data.project(pair) - model.project(pair)).datavector())).sum())
        for pair in combinations(names, 2)
    }
    tree = _tree(scores, names, math.sqrt(8 * rho / 3 / (count - 1)), rng)
    model = MirrorDescent().estimate(data.domain, [*singles, *measured(tree)])
    rows = model.synthetic_data(rows=len(job.rows)).decompress(mapping).to_dict()
    return np.stack([np.asarray(rows[name], dtype=np.int64) for name in names], axis=1)


def _together(single) -> np.ndarray:
    """The number of each value among the frequent ones; all rare ones have the last."""
    often = np.asarray(single.noisy_measurement) >= RARE * single.stddev
    return np.where(often, np.cumsum(often) - 1, int(often.sum())).astype(np.int64)


def _tree(
    scores: dict[tuple[str, str], float], names: list[str], epsilon: float, rng: np.random.Generator
) -> list[tuple[str, ...]]:
    """A tree of pairs, each chosen by the exponential mechanism among those that join two parts."""
    part = {name: name for name in names}
    chosen: list[tuple[str, ...]] = []
    while len(chosen) < len(names) - 1:
        left = [pair for pair in scores if part[pair[0]] != part[pair[1]]]
        heights = [epsilon / 2 * scores[pair] + rng.gumbel() for pair in left]
        one, other = left[int(np.argmax(heights))]
        old = part[other]
        part = {name: part[one] if where == old else where for name, where in part.items()}
        chosen.append((one, other))
    return chosen


def rho_of(epsilon: float) -> float:
    """The largest ρ that is (ε, δ)-DP by the tight conversion of Canonne, Kamath and Steinke 2020."""

    def delta(rho: float) -> float:
        orders = 1 + np.geomspace(1e-3, 1e5, 20_000)
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return float(np.exp(logs.min()))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) <= DELTA else (low, middle)
    return low


if __name__ == "__main__":
    serve({"mbi MST": mst})
