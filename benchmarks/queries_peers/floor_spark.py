"""The bounded aggregate in plain Spark, on this machine, without noise; starting and warming it is not in the time."""

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

import job
from pyspark.sql import SparkSession

QUERY = f"""
    select region, count(*) as n, sum(cost) as total
    from (
        select region, cost, row_number() over (partition by person order by r) - 1 as rn
        from (select *, rand() as r from {{}})
    )
    where rn < {job.MAX_ROWS}
    group by region
"""


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
    # Warm, as ours is after the test of the engine.
    spark.range(100_000).selectExpr("id % 999 as person", "'a' as region", "double(id) as cost").createTempView("warm")
    for _ in range(3):
        spark.sql(QUERY.format("warm")).collect()
    return spark


def release(task: job.Job) -> job.Answers:
    rows = task.state.sql(QUERY.format(f"parquet.`{task.path}`")).collect()
    return {row["region"]: job.answer(row["n"], row["total"]) for row in rows}


if __name__ == "__main__":
    job.main(release, start=start)
