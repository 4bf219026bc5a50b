"""The tables of the query benchmark: people, regions and costs, the same in every run, kept as Parquet.

`make` draws a table of any size; `small` is the one on which noise is measured: as everyone in it has five rows in five
regions, bounding changes nothing, and what an answer is off by is noise and nothing else.
"""

from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

SEED = 20260101
CHUNK = 5_000_000  # rows drawn at once; part of the recipe, as the generator is restarted for each chunk
RECIPE = 1  # raise it when the tables change, so that old files are not taken for new ones


def region_names(regions: int) -> list[str]:
    """What the regions are called: declared public, and so known without a look at the table."""
    return [f"r{number:0{len(str(regions - 1))}}" for number in range(regions)]


def make(folder: Path, rows: int, people: int, regions: int) -> Path:
    """A table of `rows` rows: person and region uniform, cost in [0, 100] with a mean that differs by region."""
    path = folder / f"costs-{RECIPE}-{rows}-{people}-{regions}.parquet"

    def chunks():
        for number, start in enumerate(range(0, rows, CHUNK)):
            size = min(CHUNK, rows - start)
            generator = numpy.random.default_rng([SEED, number])
            person = generator.integers(people, size=size)
            region = generator.integers(regions, size=size)
            low = 60.0 * region / regions
            yield person, region, numpy.round(low + 40.0 * generator.beta(2.0, 3.0, size=size), 2)

    return _write(path, chunks, regions)


def small(folder: Path, regions: int, rows_each: int) -> Path:
    """A table in which everyone has five rows, each in another region, and every region has `rows_each` rows."""
    path = folder / f"small-{RECIPE}-{regions}-{rows_each}.parquet"

    def chunks():
        row = numpy.arange(regions * rows_each)  # five rows in a line are one person's, in five regions in a line
        generator = numpy.random.default_rng([SEED, regions, rows_each])
        yield row // 5, row % regions, numpy.round(100.0 * generator.beta(2.0, 3.0, size=len(row)), 2)

    return _write(path, chunks, regions)


def _write(path: Path, chunks, regions: int) -> Path:
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    names = pyarrow.array(region_names(regions))
    schema = pyarrow.schema([("person", pyarrow.int64()), ("region", pyarrow.string()), ("cost", pyarrow.float64())])
    unfinished = path.with_suffix(".unfinished")
    with pyarrow.parquet.ParquetWriter(unfinished, schema) as writer:
        for person, region, cost in chunks():
            columns = [pyarrow.array(person), names.take(pyarrow.array(region)), pyarrow.array(cost)]
            writer.write_table(pyarrow.table(columns, schema=schema))
    unfinished.rename(path)
    return path
