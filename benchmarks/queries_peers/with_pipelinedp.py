"""PipelineDP: its local backend, over tuples.

`max_contributions=5` keeps five rows of each person. Private selection ends in an error with it (a bound on regions is
not passed on), so there it is five regions with one row in each, which keeps more rows than one region with five, for
the same noise. COUNT, SUM and MEAN asked together share one count and one sum about the middle of the bounds, each with
half of ε and Laplace noise. Where the regions are selected, that takes a third of ε and all of δ.
"""

import job
import pipeline_dp
import pyarrow.parquet


def release(task: job.Job) -> job.Answers:
    table = pyarrow.parquet.read_table(task.path)
    rows = list(zip(*(table[name].to_pylist() for name in ("person", "region", "cost")), strict=True))
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=job.EPSILON, total_delta=job.DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    if task.variant == "public":
        bounds = {"max_contributions": job.MAX_ROWS}
    else:
        bounds = {"max_partitions_contributed": job.MAX_ROWS, "max_contributions_per_partition": 1}
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        min_value=job.LOW,
        max_value=job.HIGH,
        **bounds,
    )
    public = task.names if task.variant == "public" else None
    found = engine.aggregate(rows, parameters, extractors, public_partitions=public)
    accountant.compute_budgets()
    return {region: job.answer(metrics.count, metrics.sum) for region, metrics in found}


if __name__ == "__main__":
    job.main(release)
