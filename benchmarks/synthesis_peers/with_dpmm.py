"""dpmm's MST and AIM, as its pipelines run them; the domain is given, so nothing is spent on finding it."""

import numpy as np
import pandas as pd
from process import DELTA, Job, serve


def made(job: Job, pipeline: str) -> np.ndarray:
    from dpmm import pipelines

    names = [f"c{place}" for place in range(len(job.sizes))]
    domain = dict(zip(names, job.sizes, strict=True))
    pipe = getattr(pipelines, pipeline)(epsilon=job.epsilon, delta=DELTA, disable_processing=True, n_jobs=2)
    pipe.fit(pd.DataFrame(job.rows, columns=names), domain=domain, random_state=job.seed)
    return pipe.generate(n_records=len(job.rows), random_state=job.seed)[names].to_numpy(dtype=np.int64)


if __name__ == "__main__":
    serve({"dpmm MST": lambda job: made(job, "MSTPipeline"), "dpmm AIM": lambda job: made(job, "AIMPipeline")})
