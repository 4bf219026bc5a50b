"""Our own release of the job, in the form that the scripts of `queries_peers/` have.

python benchmarks/queries_sitr.py release costs.parquet --variant public --regions 50 --threads 2

From the declaration to the answers: open, rehearse, charge a ledger in memory, run, add noise. The test
of the engine, which a process does once, is part of its start, as Spark's own start is.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "queries_peers"))

import job

import sitr
from sitr.query.answer import Answer
from sitr.session.question import Question
from sitr.tables import Declaration

ENGINE = os.environ.get("SITR_ENGINE", "duckdb")  # or spark
COLUMNS = {
    "person": {"type": "integer"},
    "region": {"type": "string"},
    "cost": {"type": "float", "bounds": [job.LOW, job.HIGH], "nulls": "drop"},
}


def declared(path: Path, regions: list[str] | None) -> Declaration:
    columns = COLUMNS | ({} if regions is None else {"region": {"type": "string", "categories": regions}})
    table = {"source": path.name, "unit": "person", "max_rows_per_unit": job.MAX_ROWS, "columns": columns}
    content = {
        "sitr": 1,
        "name": "costs",
        "connection": {"engine": ENGINE} | ({"address": "local[2]"} if ENGINE == "spark" else {}),
        "privacy": {"delta": job.DELTA},
        "budgets": {"costs": {"epsilon": 1e4, "delta": 1e-2}},
        "tables": {"costs": table},
    }
    return Declaration.of(content, path.parent)


def question(path: Path, regions: list[str] | None, memory: str | None = None) -> Question:
    opened = sitr.open(declared(path, regions), ledger="memory://", analyst="bench", memory=memory)
    table = opened.table("costs")
    asked = table.group_by("region").aggregate(n=sitr.count(), total=sitr.sum("cost"), mean=sitr.mean("cost"))
    return asked.bounded(max_rows_per_unit=job.MAX_ROWS)


def answers(released: Answer) -> job.Answers:
    value = released.value
    rows = zip(value["region"], released.raw["n"], released.raw["total"], value["mean"], strict=True)
    return {region: (float(n), float(total), float(mean)) for region, n, total, mean in rows}


def release(task: job.Job) -> job.Answers:
    regions = task.names if task.variant == "public" else None
    return answers(question(Path(task.path), regions, task.memory).release(epsilon=job.EPSILON, delta=job.DELTA))


def noise(task: job.Job, releases: int) -> list[job.Answers]:
    asked = question(Path(task.path), task.names if task.variant == "public" else None)
    return [answers(asked.release(epsilon=job.EPSILON, delta=job.DELTA)) for _ in range(releases)]


def start(threads: int) -> None:
    """Start the engine, and test it: once in a process."""
    from sitr.session.database import connect
    from sitr.tables.conformance import require

    source = connect(declared(Path("none.parquet"), None))
    require(source)
    if ENGINE != "spark":
        source.close()


if __name__ == "__main__":
    job.main(release, start, noise)
