"""What still fits: the forecast agrees with the ledger, and names an ε that the ledger then takes."""

import psycopg
import pytest

import sitr
from sitr.accounting import ApproximateDP, PureDP
from sitr.errors import BudgetExceeded, LedgerUnavailable
from sitr.ledger import Budget, Ledger
from sitr.query.planner import Target
from sitr.session.room import largest
from sitr.tables import Declaration
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared
from tests.tables import clinic


def content(**limits):
    return clinic.CONTENT | {"budgets": {"clinic": limits}}


def counted(database):
    return database.table("visits").aggregate(n=sitr.count())


def test_a_budget_is_full_where_the_ledger_says_so():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    for _ in range(10):
        assert ledger.left_for("clinic", analyst="amina")["clinic"].admits(PureDP(epsilon=0.1))
        ledger.reserve("clinic", PureDP(epsilon=0.1), analyst="amina")
    room = ledger.left_for("clinic", analyst="amina")["clinic"]
    assert not room.admits(PureDP(epsilon=1e-6))
    assert not room.admits(ApproximateDP(epsilon=0.0, delta=1e-9))


@pytest.mark.parametrize("most", [0.41, 0.9999, 1e-3, 3.999])
def test_nothing_is_proposed_that_was_refused(most):
    """Also where a forecast finds that it fits after all."""
    assert largest(lambda amount: True, most) < most


@pytest.mark.parametrize("most", [0.1, 0.41234, 0.9999, 1.0, 3.0, 3.999])
def test_the_largest_of_three_digits(most):
    found = largest(lambda amount: amount <= most, 4.0)
    assert most / 1.01 < found <= most
    assert largest(lambda amount: False, 4.0) is None


@pytest.mark.parametrize("limits", [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}])
def test_what_is_said_to_be_affordable_is_taken_and_little_more_is_not(limits):
    with clinic.database(content(**limits)) as database:
        question = counted(database)
        question.release(epsilon=0.2)
        found = question.forecast().affordable(Target(5.0, 0.0))
        with pytest.raises(BudgetExceeded) as refused:
            question.release(epsilon=1.02 * found)
        assert refused.value.do == f"what is left pays for ε = {found:g} of this question."
        question.release(epsilon=found)


def test_a_share_limits_as_well_and_so_does_a_price_in_rho():
    shared = {"rho": 0.1, "analysts": {"amina": {"rho": 0.01}}, "purposes": {"audit": {"rho": 0.001}}}
    with clinic.database(content(**shared)) as database:
        question, target = counted(database), Target(None, 0.0, 1.0)
        assert question.forecast().affordable(target) == 0.01
        assert question.forecast(purpose="audit").advice(target).startswith("what is left pays for ρ = 0.001 ")


def test_a_delta_that_does_not_fit_and_an_empty_budget_are_told_apart():
    with clinic.database(content(epsilon=1.0, delta=1e-6)) as database:
        found = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        assert "a smaller δ" in found.forecast().advice(Target(0.1, 1e-3))
    with clinic.database(content(epsilon=1.0)) as database:
        counted(database).release(epsilon=1.0)
        assert "at no price" in counted(database).forecast().advice(Target(9.0, 0.0))


def test_a_book_that_cannot_be_read_leaves_the_refusal_as_it_is(monkeypatch):
    def unavailable(*_, **__):
        raise LedgerUnavailable("locked.")

    with clinic.database(content(epsilon=1.0)) as database:
        monkeypatch.setattr(database.ledger, "left_for", unavailable)
        with pytest.raises(BudgetExceeded, match=r"9\.00 requested, 1\.00 left"):
            counted(database).release(epsilon=9.0)


def test_an_analyst_of_postgresql_sees_the_bill_and_what_still_fits(tmp_path):
    """She may see the budgets that she is charged to, and no list of all."""
    owner, role = stores.fresh("postgresql", tmp_path)(), "amina_who_asks"
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
    with Ledger.open(owner) as ledger:
        ledger.create_budget("clinic", Budget(epsilon=1.0))
        ledger.create_budget("clinic", Budget(epsilon=0.5), analyst=role)
        ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="badr")
        ledger.allow(role)
    url = shared().url(database_of(owner), role)
    declared = Declaration.of(content(epsilon=1.0))
    with sitr.open(declared, ledger=url, analyst=role, frames=clinic.frames()) as database:
        question = counted(database)
        assert list(question.explain(epsilon=0.25).remaining) == ["clinic", f"clinic/analyst/{role}"]
        question.release(epsilon=0.25)
        with pytest.raises(BudgetExceeded) as refused:
            question.release(epsilon=0.5)
        assert refused.value.do == "what is left pays for ε = 0.25 of this question."
        assert "This does not fit: what is left pays for ε = 0.25" in str(question.explain(epsilon=0.5))
