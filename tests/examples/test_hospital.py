"""The hospital example: what it prints is near the truth, is paid for, and shows no patient."""

import contextlib
import csv
import gzip
import io

import pytest

from examples import hospital
from sitr.ledger import Ledger
from tests.examples.data import shared

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def data():
    return shared("diabetes_hospital", "diabetic_data.csv.gz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hospital")


@pytest.fixture(scope="module")
def told(data, folder):
    """What the example prints, and its findings."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        found = hospital.main(data, folder)
    return text.getvalue(), found


@pytest.fixture(scope="module")
def truth(data):
    with gzip.open(data, "rt", encoding="utf-8") as rows:
        return list(csv.DictReader(rows))


def test_it_says_what_the_data_say(told):
    """Heart disease leads by about 800 patients, at a scale of 4; 15 medications by thousands of stays, at tens."""
    text, found = told
    assert any("The most common primary diagnosis is chronic ischaemic heart disease" in one for one in found)
    assert "Half of the stays have more than 15 medications, or as many." in found
    assert "come back soonest" in found[0]
    assert "sitr, which tries all, would keep" in text


def test_rates_are_near_the_truth(told, folder, truth):
    """The noise of a large group's rate is 0.1 points, and what bounding drops moves it by about half a point."""
    with Ledger.open(folder / "book.db", create=False) as ledger:
        kept = ledger.answer("readmissions by age", analyst="amina").value
    rates = next(one["value"] for one in kept["aggregates"] if one["name"] == "rate")
    for age, rate in zip(kept["keys"][0]["cells"], rates, strict=True):
        stays = [row["readmitted"] == "<30" for row in truth if row["age"] == age]
        if len(stays) > 5000:
            assert abs(rate - sum(stays) / len(stays)) < 0.02


def test_it_is_paid_for_and_can_be_checked(told, folder):
    with Ledger.open(folder / "book.db", create=False) as ledger:
        assert ledger.verify().valid
        assert 0.42 < ledger.remaining("hospital").share < 0.44  # by pure ε: 1.3 of 3
    assert "valid: " in told[0]


def test_a_second_run_says_the_same_and_costs_nothing(told, data, folder):
    with Ledger.open(folder / "book.db", create=False) as ledger:
        before = ledger.spent("hospital").value
    with contextlib.redirect_stdout(io.StringIO()):
        assert hospital.main(data, folder) == told[1]
    with Ledger.open(folder / "book.db", create=False) as ledger:
        assert ledger.spent("hospital").value == before


def test_no_patient_is_shown_and_rare_codes_are_not_named(told, truth):
    assert not any(row["patient_nbr"] in told[0] for row in truth[:1000] if len(row["patient_nbr"]) > 6)
    answers = [line for line in told[0].splitlines() if not line.startswith("release ")]  # those repeat the questions
    assert "?" not in "\n".join(answers)


def test_the_picture_has_all_age_groups(told, folder):
    picture = (folder / "readmissions.svg").read_text(encoding="utf-8")
    assert picture.startswith("<?xml")
    assert len(picture) > 5000
