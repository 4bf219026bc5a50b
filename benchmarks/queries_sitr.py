"""Our own release of the job, in the form that the scripts of `queries_peers/` have.

python benchmarks/queries_sitr.py release costs.parquet --variant public --regions 50 --threads 2
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "queries_peers"))

import job


def ours(
    parquet: Path,
    *,
    regions: list[str] | None,
    threads: int,
    epsilon: float,
    delta: float,
    max_rows: int,
    bounds: tuple[float, float],
) -> job.Answers:
    """Count, sum and mean of `cost` by `region`, for people named in `person`, from the file to the answers.

    Args:
        parquet: A table with the columns person (int64), region (string) and cost (double).
        regions: The declared regions, all of which are answered; None where they are to be selected privately.
        threads: How many threads the engine may use.
        epsilon: Of the whole release.
        delta: Of the whole release.
        max_rows: How many rows of one person may count, in all regions together.
        bounds: What a cost is clipped to.

    Returns:
        Count, sum and mean for each region.
    """
    raise NotImplementedError("not built yet")


def release(task: job.Job) -> job.Answers:
    return ours(
        Path(task.path),
        regions=task.names if task.variant == "public" else None,
        threads=task.threads,
        epsilon=job.EPSILON,
        delta=job.DELTA,
        max_rows=job.MAX_ROWS,
        bounds=(job.LOW, job.HIGH),
    )


if __name__ == "__main__":
    job.main(release)
