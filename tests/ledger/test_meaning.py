"""To whom a promise is made now, and to whom it was before: statements lead with the one and tell the other."""

import pytest

from sitr.ledger import Budget
from sitr.ledger.meaning import unit_word, unit_words
from sitr.ledger.terms import EACH_ROW, PUBLIC, Terms

PATIENT = Budget(epsilon=1.0, unit="patient")
BY_ID = {"unit": "patient", "tables.visits.unit": "named by patient_id", "tables.visits.source": "visits.csv"}
ROWS = BY_ID | {"tables.visits.unit": EACH_ROW}
CODES = {"tables.codes.unit": PUBLIC, "tables.codes.source": "codes.csv"}


def terms(promise, declaration="clinic", dataset="clinic", **more):
    return Terms(dataset, declaration, 1, promise, **more)


def lead(ledger, **share):
    rows = ledger.statement("clinic", **share).rows()
    return rows[1][1], [text for name, text in rows if name == "before"]


@pytest.fixture
def begun(ledger):
    """A book that promises ε = 1 to patients."""
    ledger.create_budget("clinic", PATIENT)
    ledger.declare(terms(BY_ID))
    return ledger


def test_what_was_never_changed_has_nothing_before(begun):
    assert lead(begun) == ("ε = 1 for one patient added or removed", [])
    assert ("unit", "visits: named by patient_id") in begun.statement("clinic").rows()


def test_a_budget_without_terms_speaks_for_itself(ledger):
    ledger.create_budget("clinic", PATIENT)
    assert lead(ledger) == ("ε = 1 for one patient added or removed", [])
    assert "unit" not in dict(ledger.statement("clinic").rows())


def test_a_promise_to_rows_is_told_as_one(begun):
    begun.create_budget("clinic", Budget(epsilon=0.5, unit="patient"), analyst="amina")
    begun.declare(terms(ROWS), reason="the board")
    begun.create_budget("clinic", Budget(epsilon=0.5, unit="patient"), purpose="audit")
    now, (before,) = lead(begun)
    assert now == "ε = 1 for one row, taken for one patient, added or removed"
    assert before.startswith("ε = 1 for one patient added or removed (visits: named by patient_id), until 20")
    now, (before,) = lead(begun, analyst="amina")
    assert now == "ε = 0.5 for one row, taken for one patient, added or removed"
    assert before.startswith("ε = 0.5 for one patient added or removed")
    assert lead(begun, purpose="audit") == (now, [])  # it came later


def test_every_step_is_told_with_the_limit_of_its_day(begun):
    begun.raise_budget("clinic", Budget(epsilon=2.0, unit="patient"), reason="second wave")
    begun.declare(terms(BY_ID | {"tables.visits.unit": "named by visit_id"}), reason="wrong column")
    begun.declare(terms(BY_ID | {"unit": "visit", "tables.visits.unit": "named by visit_id"}), reason="right word")
    now, (first, second) = lead(begun)
    assert now == "ε = 2 for one visit added or removed"
    assert first.startswith("ε = 2 for one patient added or removed (visits: named by patient_id), until")
    assert second.startswith("ε = 2 for one patient added or removed (visits: named by visit_id), until")


def test_tables_that_are_added_leave_what_was_promised(begun):
    more = {"tables.tests.unit": "named by patient_id", "tables.tests.source": "tests.csv"}
    begun.declare(terms(BY_ID | more | CODES), reason="a laboratory")
    assert lead(begun) == ("ε = 1 for one patient added or removed", [])
    assert begun.statement("clinic").units == "tests: named by patient_id; visits: named by patient_id"


def test_a_word_that_the_budget_did_not_have(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.declare(terms(BY_ID))
    now, (before,) = lead(ledger)
    assert now == "ε = 1 for one patient added or removed"
    assert before.startswith("ε = 1 for one person added or removed, until")


def test_two_declarations_are_both_told_until_one_has_no_table_any_more(begun):
    other = {"unit": "patient", "tables.wards.unit": EACH_ROW, "tables.wards.source": "wards.csv"}
    begun.declare(terms(other, "second"), reason="research")
    now, (before,) = lead(begun)
    assert now == "ε = 1 for one patient (by clinic) and one row, taken for one patient, (by second) added or removed"
    assert before.startswith("ε = 1 for one patient added or removed (visits")
    begun.declare(terms({"unit": "patient"}), reason="second goes on alone")
    now, befores = lead(begun)
    assert now == "ε = 1 for one row, taken for one patient, added or removed"
    assert len(befores) == 2


@pytest.mark.parametrize("places", [{}, {"visits": "/data/visits.csv"}])
def test_rows_that_another_budget_paid_for_come_on_top(begun, places):
    begun.create_budget("wards", PATIENT)
    begun.declare(terms(BY_ID, places=places))
    begun.declare(terms({"unit": "patient"}), reason="wards pay")
    begun.declare(terms(BY_ID, declaration="wards", dataset="wards", places=places))
    (before,) = begun.statement("wards").before
    assert before.startswith("visits.csv was paid from 'clinic' until 20")
    assert before.endswith("what was spent there comes on top")
    assert begun.verify()


def test_words_of_all_budgets(begun):
    begun.create_budget("clinic", PATIENT, analyst="amina")
    begun.create_budget("lab", Budget(epsilon=1.0))
    begun.declare(terms(ROWS), reason="the board")
    row = "row, taken for one patient,"
    assert unit_words(begun.terms(None), begun.budgets()) == {
        "clinic": row,
        "clinic/analyst/amina": row,
        "lab": "person",
    }


def test_a_row_that_is_called_one():
    assert unit_word(Budget(epsilon=1.0, unit="row"), [terms(ROWS | {"unit": "row"})]) == "row"
    assert unit_word(PATIENT, [terms(CODES)]) == "patient"
