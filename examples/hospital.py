"""Hospital stays of people with diabetes, asked privately: who comes back, how long they stay, and what for.

The data are 101,766 stays of 71,518 patients, who had 1 to 40 of them ("Diabetes 130-US hospitals", UCI): one file,
diabetic_data.csv.gz. What is protected is a patient with all of their stays. The owner's part is a declaration and a
ledger; the analyst's part is a few questions, of which each is charged before a row is read.

    python examples/hospital.py PATH_TO/diabetic_data.csv.gz hospital-output

Every release has an operation id, so that a second run in the same folder returns the same answers and costs nothing.
It needs the engine (duckdb, ibis, pyarrow) and matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import sitr
from sitr.ledger import Ledger
from sitr.query.answer import Answer
from sitr.query.facts import Facts
from sitr.session.database import Database, create_budgets
from sitr.session.table import PrivateTable
from sitr.tables.declaration import Declaration

AGES = tuple(f"[{low}-{low + 10})" for low in range(0, 100, 10))

# The owner's part. Nothing in it was read off the data: the bounds are those of the form that was filled in.
DECLARATION = """
sitr = 1
name = "hospital"
version = 1

[privacy]
unit = "patient"
delta = 1e-7                                     # of a release that needs one

[budgets.hospital]
epsilon = 3.0
delta = 1e-5

[tables.stays]
source = {source}
unit = "patient_nbr"                             # a patient is protected with all of their stays
max_rows_per_unit = 50
columns.patient_nbr = {{ type = "integer" }}
columns.age = {{ type = "string", categories = {ages} }}
columns.admission_type_id = {{ type = "integer", bounds = [1, 8], nulls = "drop" }}
columns.time_in_hospital = {{ type = "integer", bounds = [1, 14], nulls = "drop" }}
columns.num_medications = {{ type = "integer", bounds = [0, 100], nulls = "drop" }}
columns.diag_1 = {{ type = "string" }}             # no categories: the codes that occur are found privately
columns.readmitted = {{ type = "string", categories = ["NO", "<30", ">30"], nulls = "drop" }}

[tables.admissions]
source = "admissions.csv"
public = true                                    # about nobody: it costs nothing to read
key = "admission_type_id"
columns.admission_type_id = {{ type = "integer", bounds = [1, 8] }}

[tables.admissions.columns.admission]
type = "string"
categories = ["emergency", "urgent", "elective", "newborn", "trauma", "unknown"]
"""
ADMISSIONS = """admission_type_id,admission
1,emergency
2,urgent
3,elective
4,newborn
5,unknown
6,unknown
7,trauma
8,unknown
"""
# ICD-9, for people: a public list.
DIAGNOSES = {
    "38": "septicaemia",
    "276": "disorders of fluid balance",
    "410": "acute myocardial infarction",
    "414": "chronic ischaemic heart disease",
    "427": "cardiac dysrhythmias",
    "428": "heart failure",
    "434": "occlusion of cerebral arteries",
    "486": "pneumonia",
    "491": "chronic bronchitis",
    "584": "acute kidney failure",
    "682": "cellulitis and abscess",
    "715": "osteoarthrosis",
    "780": "general symptoms",
    "786": "symptoms of the chest",
    "820": "fracture of the neck of the femur",
    "996": "complications of procedures",
}


def open_hospital(data: Path, folder: Path) -> Database:
    """Write the declaration, begin its ledger, and open the database as an analyst."""
    folder.mkdir(parents=True, exist_ok=True)
    declaration = folder / "hospital.toml"
    text = DECLARATION.format(source=json.dumps(str(data.resolve())), ages=json.dumps(AGES))
    declaration.write_text(text, encoding="utf-8")
    (folder / "admissions.csv").write_text(ADMISSIONS, encoding="utf-8")
    declared = Declaration.read(declaration)
    ledger = Ledger.open(folder / "book.db")
    create_budgets(declared, ledger)
    return sitr.open(declared, analyst="amina", ledger=ledger)


def profile(stays: PrivateTable) -> Facts:
    """How many stays do patients have? What is found chooses the bounds of all later questions."""
    found = stays.profile().release(epsilon=0.2, operation="profile")
    assert found.facts is not None
    print(f"1. Stays of a patient (ε = 0.2): {found}.")
    share = {size: part for size, part in found.facts.sizes if part >= 0.005}
    print("   " + ", ".join(f"{100 * part:.1f} % have {size:.0f}" for size, part in share.items()) + ".\n")
    return found.facts


def bounds(stays: PrivateTable, facts: Facts) -> int:
    """What do bounds drop, and which is best? To explain reads no row and costs nothing. Returns the best."""
    question = stays.group_by("age").aggregate(stays=sitr.count())
    group = (facts.rows or 0.0) / len(AGES)
    errors = {}
    print(f"2. How many stays of a patient to keep, for a count by age group at ε = 0.5 (about {group:,.0f} in each):")
    print("   kept   dropped   noise within   both together")
    for most in (1, 3, 10):
        explained = question.bounded(max_rows_per_unit=most).explain(epsilon=0.5)
        lost = group * (1 - (explained.kept or 0.0))
        errors[most] = lost + explained.errors["stays"]
        noise = f"± {explained.errors['stays']:.0f}"
        print(f"   {most:>4}   {lost:>7,.0f}   {noise:>12}   {errors[most]:>13,.0f}")
    best = min(errors, key=errors.__getitem__)
    chosen = question.explain(epsilon=0.5).plan.bound
    assert chosen is not None
    print(f"   Of these {best} is best; sitr, which tries all, would keep {chosen.rows}.\n")
    return best


def readmissions(stays: PrivateTable) -> Answer:
    """Which part of the stays is followed by another within 30 days, by age?"""
    soon = stays.derive(soon=(stays["readmitted"] == "<30").choose(1, 0))
    question = soon.group_by("age").aggregate(rate=sitr.mean("soon"), stays=sitr.count())
    answer = question.release(epsilon=0.5, operation="readmissions by age")
    print("3. Readmitted within 30 days, by age (ε = 0.5):")
    print("   age          stays     rate   with 95 %")
    for age, count, rate, low, high in _rows(answer, "age", "stays", "rate", "rate_low", "rate_high"):
        print(f"   {age:<9}{count:>9,}{100 * rate:>7.1f} %   from {100 * low:.1f} to {100 * high:.1f} %")
    print()
    return answer


def days(stays: PrivateTable) -> Answer:
    """How long do patients stay, by the kind of their admission, which a public table names?"""
    named = stays.join("admissions", on="admission_type_id")
    question = named.group_by("admission").aggregate(days=sitr.mean("time_in_hospital"), stays=sitr.count())
    answer = question.release(epsilon=0.3, operation="days by admission")
    print("4. Days in hospital, by kind of admission (ε = 0.3):")
    print("   admission     stays   days   with 95 %")
    for kind, count, mean, low, high in _rows(answer, "admission", "stays", "days", "days_low", "days_high"):
        print(f"   {kind:<10}{count:>9,}{mean:>7.2f}   from {low:.2f} to {high:.2f}")
    print()
    return answer


def diagnoses(stays: PrivateTable) -> Answer:
    """What are stays for? Codes are not declared, so those that enough patients have are found privately."""
    known = stays.filter(stays["diag_1"] != "?")  # how this file writes that it is missing
    question = known.group_by("diag_1").aggregate(patients=sitr.count_units()).bounded(max_groups_per_unit=2)
    answer = question.release(epsilon=0.5, operation="diagnoses")
    error = answer.error95["patients"][0]
    print(
        f"5. Primary diagnoses (ε = 0.5, δ = 1e-7): {len(answer)} codes found. The most common, ± {error:.0f} patients:"
    )
    for code, patients in ranked(answer)[:10]:
        print(f"   {code:<7}{patients:>7,}   {DIAGNOSES.get(code, '')}")
    print()
    return answer


def ranked(answer: Answer) -> list[tuple[str, int]]:
    """The codes, the most common first."""
    return sorted(_rows(answer, "diag_1", "patients"), key=lambda row: -row[1])


def medications(stays: PrivateTable) -> Answer:
    """How many medications are given in a stay, in the middle?"""
    question = stays.aggregate(medications=sitr.median("num_medications"))
    answer = question.release(epsilon=0.2, operation="medications")
    (middle, low, high), *_ = _rows(answer, "medications", "medications_low", "medications_high")
    print(f"6. Medications in a stay, the median (ε = 0.2): {middle:.0f} (from {low:.0f} to {high:.0f} with 95 %).\n")
    return answer


def findings(rates: Answer, lengths: Answer, codes: Answer, middle: Answer) -> list[str]:
    """What the released numbers say, in sentences; nothing here reads the data."""
    sure = [row for row in _rows(rates, "age", "rate", "rate_low", "rate_high") if row[3] - row[2] < 0.03]
    found = []
    if len(sure) > 1:
        low, high = min(sure, key=lambda row: row[1]), max(sure, key=lambda row: row[1])
        apart = "their intervals do not meet" if low[3] < high[2] else "though their intervals meet"
        found.append(
            f"Of the age groups that are known to 3 points, those of {high[0]} come back soonest: "
            f"{100 * high[1]:.1f} % within 30 days, against {100 * low[1]:.1f} % of {low[0]}; {apart}."
        )
        left_out = [age for age in AGES if age not in {row[0] for row in sure}]
        if left_out:
            found.append(f"Of {', '.join(left_out)} there are too few stays to say at this ε.")
    long = [row for row in _rows(lengths, "admission", "days", "days_low", "days_high") if row[3] - row[2] < 0.5]
    if long:
        longest, shortest = max(long, key=lambda row: row[1]), min(long, key=lambda row: row[1])
        found.append(
            f"Stays that began as {longest[0]} are the longest, {longest[1]:.1f} days; those as {shortest[0]} have "
            f"{shortest[1]:.1f}."
        )
    (first, many), (second, fewer) = ranked(codes)[:2]
    found.append(
        f"The most common primary diagnosis is {DIAGNOSES.get(first, first)}, of about {many:,} patients, before "
        f"{DIAGNOSES.get(second, second)} of {fewer:,}."
    )
    found.append(f"Half of the stays have more than {middle.value['medications'][0]:.0f} medications, or as many.")
    return found


def draw(rates: Answer) -> Any:
    """Return the picture: rates with their intervals."""
    from matplotlib.figure import Figure

    from sitr.pictures import BLUE

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    rows = _rows(rates, "age", "rate", "rate_low", "rate_high")
    middle = [100 * row[1] for row in rows]
    around = [[100 * (row[1] - row[2]) for row in rows], [100 * (row[3] - row[1]) for row in rows]]
    axes.errorbar(range(len(rows)), middle, yerr=around, fmt="o", color=BLUE, capsize=4)
    axes.set_xticks(range(len(rows)), [row[0].strip("[)").replace("-", " to ") for row in rows])
    axes.set_ylim(0, 25)
    axes.set_xlabel("age, the upper end not included")
    axes.set_ylabel("stays, per cent")
    axes.set_title("Readmitted within 30 days: with 95 % the noise stays inside the bars", loc="left")
    return figure


def _rows(answer: Answer, *names: str) -> list[tuple[Any, ...]]:
    columns = answer.columns
    return list(zip(*(columns[name] for name in names), strict=True))


def main(data: str | Path, folder: str | Path) -> list[str]:
    """Ask, print, and leave declaration, ledger and picture in a folder; return the findings."""
    from matplotlib import rc_context

    from sitr.pictures import METADATA, STYLE

    target = Path(folder)
    with open_hospital(Path(data), target) as hospital:
        stays = hospital.table("stays")
        bounds(stays, profile(stays))
        answers = readmissions(stays), days(stays), diagnoses(stays), medications(stays)
        found = findings(*answers)
        print("What these numbers say. An interval covers the noise, and not what was dropped: patients with very many")
        print("stays come back more often, so the rates are a little low.")
        for sentence in found:
            print(f" - {sentence}")
        print(f"\n{hospital.ledger.statement('hospital')}")
        print(hospital.ledger.verify())
    with rc_context(STYLE):
        draw(answers[0]).savefig(target / "readmissions.svg", metadata=METADATA["svg"])
    print(target / "readmissions.svg")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Say where the data are and where to write: python examples/hospital.py diabetic_data.csv.gz FOLDER")
    main(sys.argv[1], sys.argv[2])
