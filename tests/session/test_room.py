"""What still fits: the forecast agrees with the ledger, and names an ε that the ledger then takes."""

import re
from dataclasses import replace

import psycopg
import pytest

import sitr
from sitr.accounting import ApproximateDP, PureDP
from sitr.errors import BudgetExceeded, LedgerUnavailable, NoSuchGuarantee
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


def advised(refused, ask):
    """Take the advice of a refusal, as it stands."""
    found = re.search(r"delta=([0-9.e-]+)", refused)
    assert found, refused
    return ask(delta=float(found[1].rstrip(".")))


def test_advice_on_a_share_without_delta_works():
    """Gaussian noise has no pure ε; groups that are found take a δ."""
    shares = {"analysts": {"amina": {"epsilon": 0.5, "delta": 0}}}
    declared = content(epsilon=5.0, delta=1e-5, **shares)
    with clinic.database(declared) as database:
        assert database.ledger.budget("clinic", analyst="amina").delta is None
        many = {f"n{place}": sitr.sum("cost", bounds=(0, place + 1)) for place in range(30)}
        question = database.table("visits").group_by("region").aggregate(**many)
        assert question.explain(epsilon=0.2, delta=1e-6).plan.kind == "gaussian"
        with pytest.raises((BudgetExceeded, NoSuchGuarantee)):
            question.release(epsilon=0.2, delta=1e-6)
        advised(question.forecast().advice(Target(0.2, 1e-6)), lambda delta: question.release(epsilon=0.2, delta=delta))
        found = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        with pytest.raises((BudgetExceeded, NoSuchGuarantee)) as refused:
            found.release(epsilon=0.2, delta=1e-8, anyway=True)
        assert "sitr budget replace clinic --analyst amina --epsilon 0.5 --reason ..." in refused.value.do
        share = replace(database.ledger.budget("clinic"), epsilon=0.5)
        database.ledger.replace_share("clinic", share, reason="as advised", analyst="amina")
        found.release(epsilon=0.1, delta=1e-8, anyway=True)


def test_advice_on_a_delta_that_is_too_large_works():
    with clinic.database(content(epsilon=1.0, delta=1e-6)) as database:
        found = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        with pytest.raises(BudgetExceeded) as refused:
            found.release(epsilon=0.1, delta=1e-3)
        advised(refused.value.do, lambda delta: found.release(epsilon=0.1, delta=delta))


def test_a_release_says_what_is_left_and_how_many_more_like_it_fit():
    with clinic.database(content(epsilon=1.0)) as database:
        answer = counted(database).release(epsilon=0.1)
        assert answer.left == ("90.0 % of the budget clinic is left: about 9 more like this, at ε = 0.1",)
        assert answer.left[0] in str(answer)
        again = counted(database).release(epsilon=0.1, operation="a")
        assert counted(database).release(epsilon=0.1, operation="a").left == ()
        assert again.left != ()
    with clinic.database(content(epsilon=1.0, delta=1e-6)) as database:
        found = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        (left,) = found.release(epsilon=0.1, delta=2.3e-7).left
        assert re.match(
            r"ε part [0-9.]+ %, δ part [0-9.]+ % of the budget clinic is left: no more questions whose", left
        )


def test_a_delta_that_is_large_for_the_number_of_units_is_remarked_on_where_it_is_spent():
    declared = content(epsilon=9.0, delta=1e-2)
    visits = clinic.VISITS | {"expected_units": 200, "expected_rows": 600}
    declared["tables"] = declared["tables"] | {"visits": visits}
    with clinic.database(declared) as database:
        found = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        words = "PrivacyWarning: δ = 1e-03 is not well below 1/200"
        assert words in str(found.explain(epsilon=0.1, delta=1e-3))
        assert any(note.startswith(words) for note in found.release(epsilon=0.1, delta=1e-3, anyway=True).notes)
        assert words not in str(found.explain(epsilon=0.1, delta=1e-5))
        assert words not in str(counted(database).explain(epsilon=0.1, delta=1e-3))  # it spends none


def test_a_share_that_is_declared_without_delta_has_that_of_its_dataset():
    shares = {"analysts": {"amina": {"epsilon": 0.5}, "badr": {"epsilon": 0.5, "delta": 1e-7}}}
    shares["purposes"] = {"audit": {"epsilon": 0.25, "delta": 0}}
    with clinic.database(content(epsilon=5.0, delta=1e-5, **shares)) as database:
        promised = database.ledger.budgets()
        deltas = {name.partition("/")[2]: budget.delta for name, budget in promised.items()}
        assert deltas == {"": 1e-5, "analyst/amina": 1e-5, "analyst/badr": 1e-7, "purpose/audit": None}
    with clinic.database(content(epsilon=5.0, analysts={"amina": {"epsilon": 0.5}})) as database:
        assert database.ledger.budget("clinic", analyst="amina").delta is None


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
