"""Real tables as numbers of values, from ../shared/data: never a part of the project."""

import csv
import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DATA = Path(__file__).parents[2] / "shared" / "data"
CENSUS_NUMBERS = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
HOSPITAL_NUMBERS = {
    "age",
    "weight",
    "time_in_hospital",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "number_diagnoses",
}


@dataclass(frozen=True)
class Table:
    """Rows as numbers of values; `label` is the column that is predicted from the others."""

    rows: np.ndarray
    sizes: list[int]
    ordered: list[bool]
    label: int


def census() -> Table:
    """Adult, in the encoding of papers on synthetic data."""
    sizes = census_sizes()
    with gzip.open(DATA / "pgm_adult" / "adult.csv.gz", "rt") as lines:
        names = next(lines).strip().split(",")
        rows = np.loadtxt(lines, delimiter=",", dtype=np.int64)[:, [names.index(name) for name in sizes]]
    ordered = [name in CENSUS_NUMBERS for name in sizes]
    return Table(rows, list(sizes.values()), ordered, list(sizes).index("income>50K"))


def census_sizes() -> dict[str, int]:
    """How many values each of its columns has."""
    return json.loads((DATA / "pgm_adult" / "adult-domain.json").read_text())


def stays(*, diagnoses: bool) -> Table:
    """Hospital stays, one row each, with or without three columns of some 750 codes; values are taken as given."""
    with gzip.open(DATA / "diabetes_hospital" / "diabetic_data.csv.gz", "rt") as lines:
        names, *records = csv.reader(lines)
    dropped = {"encounter_id", "patient_nbr"} | (set() if diagnoses else {"diag_1", "diag_2", "diag_3"})
    kept = [name for name in names if name not in dropped]
    columns = dict(zip(names, zip(*records, strict=True), strict=True))
    numbered = [_numbered(columns[name], by_size=name in HOSPITAL_NUMBERS) for name in kept]
    rows = np.stack([codes for codes, _ in numbered], axis=1)
    ordered = [name in HOSPITAL_NUMBERS for name in kept]
    return Table(rows, [size for _, size in numbered], ordered, kept.index("diabetesMed"))


def _numbered(column: tuple[str, ...], *, by_size: bool) -> tuple[np.ndarray, int]:
    def place(value: str) -> tuple[float, str]:
        return (float(value) if by_size and value.isdigit() else np.inf), value

    values = {value: number for number, value in enumerate(sorted(set(column), key=place))}
    return np.array([values[value] for value in column]), len(values)
