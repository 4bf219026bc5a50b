"""The release of `queries_sitr.py`, with Spark as the engine."""

import os

os.environ["SITR_ENGINE"] = "spark"

import queries_sitr

if __name__ == "__main__":
    queries_sitr.job.main(queries_sitr.release, queries_sitr.start, queries_sitr.noise)
