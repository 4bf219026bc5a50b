"""SmartNoise SQL: its private reader over a pandas frame.

`max_ids: 5` keeps five rows of each person. It takes its ε for each column that it measures, so count and sum get half
each; AVG would divide by a count of its own, for one share more, so the mean is computed from the two. Keys cannot be
declared: with `censor_dims: False` it returns every region of the table, which is right only where all of them are
known to be there. With `censor_dims: True` a region is kept where a third measurement, of people, exceeds a threshold.
What it says that it will spend is held to the budget.
"""

import warnings

import job
import pandas
import snsql

warnings.filterwarnings("ignore")


def release(task: job.Job) -> job.Answers:
    public = task.variant == "public"
    frame = pandas.read_parquet(task.path)
    table = {
        "row_privacy": False,
        "max_ids": job.MAX_ROWS,
        "sample_max_ids": True,
        "censor_dims": not public,
        "clamp_counts": False,
        "clamp_columns": True,
        "person": {"type": "int", "private_id": True},
        "region": {"type": "string"},
        "cost": {"type": "float", "lower": job.LOW, "upper": job.HIGH},
    }
    columns = 2 if public else 3
    privacy = snsql.Privacy(epsilon=job.EPSILON / columns, delta=job.DELTA / 1.5)
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"t": {"t": table}}})
    query = "SELECT region, COUNT(*) AS n, SUM(cost) AS total FROM t.t GROUP BY region"
    spent = reader.get_privacy_cost(query)
    if spent[0] > job.EPSILON * (1 + 1e-9) or spent[1] > job.DELTA:
        raise RuntimeError(f"it would spend {spent}")
    _, *rows = reader.execute(query)
    return {region: job.answer(count, total) for region, count, total in rows}


if __name__ == "__main__":
    job.main(release)
