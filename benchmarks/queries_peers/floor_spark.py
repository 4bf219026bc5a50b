"""The bounded aggregate in plain Spark, on this machine, without noise. Starting Spark is not in the time."""

import os
import sys

os.environ["PYSPARK_PYTHON"] = sys.executable

import job
from pyspark.sql import SparkSession

QUERY = f"""
    select region, count(*) as n, sum(cost) as total
    from (
        select region, cost, row_number() over (partition by person order by r) - 1 as rn
        from (select *, rand() as r from parquet.`{{}}`)
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
    spark.range(10).count()
    return spark


def release(task: job.Job) -> job.Answers:
    rows = task.state.sql(QUERY.format(task.path)).collect()
    return {row["region"]: job.answer(row["n"], row["total"]) for row in rows}


if __name__ == "__main__":
    job.main(release, start=start)
