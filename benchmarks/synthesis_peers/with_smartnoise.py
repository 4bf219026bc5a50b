"""SmartNoise's MST and AIM. It knows no given domain: it reads the categories off the rows, for nothing."""

import numpy as np
import pandas as pd
from process import DELTA, Job, serve


def made(job: Job, name: str) -> np.ndarray:
    from snsynth import Synthesizer

    np.random.seed(job.seed)  # noqa: NPY002  # it has no other seed
    names = [f"c{place}" for place in range(len(job.sizes))]
    synthesizer = Synthesizer.create(name, epsilon=job.epsilon, delta=DELTA)
    synthesizer.fit(pd.DataFrame(job.rows, columns=names), categorical_columns=names)
    rows = pd.DataFrame(synthesizer.sample(len(job.rows)))
    rows.columns = names
    return rows.to_numpy(dtype=np.int64)


if __name__ == "__main__":
    serve({"SmartNoise MST": lambda job: made(job, "mst"), "SmartNoise AIM": lambda job: made(job, "aim")})
