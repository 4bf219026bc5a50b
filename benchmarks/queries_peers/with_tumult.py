"""Tumult Analytics: a session over Spark, on this machine.

`MaxRowsPerID(5)` bounds the rows; count and sum get half of ε each, with Laplace noise (zCDP would need more of it, as
five rows may lie in one region), and the mean is their ratio: its `average` would be a third query with a share of its
own. Regions come from a `KeySet`; or from `get_groups`, which takes δ and a tenth of ε. Each query bounds the rows
anew. Starting Spark is not in the time.
"""

import os
import sys
import warnings

os.environ["PYSPARK_PYTHON"] = sys.executable

import job
from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    Session,
)

warnings.filterwarnings("ignore")
SHARE_OF_GROUPS = 0.1


def start(threads: int) -> SparkSession:
    spark = (
        SparkSession.builder.master(f"local[{threads}]")
        .config("spark.driver.memory", "6g")
        .config("spark.sql.shuffle.partitions", str(2 * threads))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.range(10).count()
    return spark


def session_of(task: job.Job) -> Session:
    public = task.variant == "public"
    return Session.from_dataframe(
        privacy_budget=PureDPBudget(job.EPSILON) if public else ApproxDPBudget(job.EPSILON, job.DELTA),
        source_id="costs",
        dataframe=task.state.read.parquet(task.path),
        protected_change=AddRowsWithID(id_column="person"),
    )


def measure(task: job.Job, session: Session, keys: KeySet) -> job.Answers:
    public = task.variant == "public"
    half = job.EPSILON / 2 if public else job.EPSILON * (1 - SHARE_OF_GROUPS) / 2
    share = PureDPBudget(half) if public else ApproxDPBudget(half, 0.0)
    by_region = bounded().groupby(keys)
    counts = session.evaluate(by_region.count(name="n"), share).collect()
    sums = session.evaluate(by_region.sum("cost", low=job.LOW, high=job.HIGH, name="total"), share).collect()
    totals = {row["region"]: row["total"] for row in sums}
    return {row["region"]: job.answer(row["n"], totals[row["region"]]) for row in counts}


def bounded() -> QueryBuilder:
    return QueryBuilder("costs").enforce(MaxRowsPerID(job.MAX_ROWS))


def release(task: job.Job) -> job.Answers:
    session = session_of(task)
    if task.variant == "public":
        return measure(task, session, KeySet.from_dict({"region": task.names}))
    share = ApproxDPBudget(job.EPSILON * SHARE_OF_GROUPS, job.DELTA)
    return measure(task, session, KeySet.from_dataframe(session.evaluate(bounded().get_groups(["region"]), share)))


def noise(task: job.Job, releases: int) -> list[job.Answers]:
    """With declared regions in both variants: the noise of counts and sums does not depend on how keys were found."""
    keys = KeySet.from_dict({"region": task.names})
    return [measure(task, session_of(task), keys) for _ in range(releases)]


if __name__ == "__main__":
    job.main(release, start=start, noise=noise)
