"""OpenDP: its context over a Polars scan.

Five rows of each identifier are kept by `truncate_per_group(5)`, so that one person moves all counts together by 5 and
all sums by 500. Laplace noise, with ε halved between `len` and `sum`; under zCDP there would be more of it, as five
rows may lie in one region. The regions are joined with `with_keys`; or they are kept where the noisy length exceeds a
threshold that δ pays for. Costs are floats, whose rounding in a sum is paid for with noise by the declared length.
"""

import warnings

import job
import opendp.prelude as dp
import polars

warnings.filterwarnings("ignore")
dp.enable_features("contrib", "honest-but-curious")


def query(task: job.Job):
    public = task.variant == "public"
    loss = dp.loss_of(epsilon=job.EPSILON) if public else dp.loss_of(epsilon=job.EPSILON, delta=job.DELTA)
    context = dp.Context.compositor(
        data=polars.scan_parquet(task.path),
        privacy_unit=dp.unit_of(contributions=1, identifier=polars.col("person")),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=["region"], max_length=job.MAX_LENGTH, max_groups=job.MAX_GROUPS)],
    )
    cost = polars.col("cost").fill_nan(0.0).fill_null(0.0)
    bounded = context.query().truncate_per_group(job.MAX_ROWS)
    asked = bounded.group_by("region").agg(dp.len(), cost.dp.sum((job.LOW, job.HIGH)))
    return asked.with_keys(polars.LazyFrame({"region": task.names})) if public else asked


def answers(frame: polars.DataFrame) -> job.Answers:
    return {region: job.answer(count, total) for region, count, total in frame.select("region", "len", "cost").rows()}


def release(task: job.Job) -> job.Answers:
    return answers(query(task).release().collect())


def noise(task: job.Job, releases: int) -> list[job.Answers]:
    """The mechanism is found once, as that takes seconds, and asked many times."""
    mechanism = query(task).resolve()
    frame = polars.scan_parquet(task.path)
    return [answers(mechanism(frame).collect()) for _ in range(releases)]


if __name__ == "__main__":
    job.main(release, noise=noise)
