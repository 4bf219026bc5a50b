"""PipelineDP: its local backend, over tuples.

Sums and means need a bound on regions and on rows in a region (`max_contributions` is refused for them): five regions, one
row in each, which keeps more rows than one region and five rows, for the same noise. COUNT, SUM and MEAN asked together
share one count and one sum about the middle of the bounds, each with half of ε and Laplace noise: its sums are so the
closest that this bound allows. Where the regions are selected, that takes a third of ε and all of δ.
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
    parameters = pipeline_dp.AggregateParams(
        metrics=[pipeline_dp.Metrics.COUNT, pipeline_dp.Metrics.SUM, pipeline_dp.Metrics.MEAN],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=job.MAX_ROWS,
        max_contributions_per_partition=1,
        min_value=job.LOW,
        max_value=job.HIGH,
    )
    public = task.names if task.variant == "public" else None
    found = engine.aggregate(rows, parameters, extractors, public_partitions=public)
    accountant.compute_budgets()
    return {region: job.answer(metrics.count, metrics.sum) for region, metrics in found}


if __name__ == "__main__":
    job.main(release)
