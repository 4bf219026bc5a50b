"""Executions without noise give the exact bounded answers; with noise the answer is private and consistent."""

from decimal import Decimal

import numpy as np
import pyarrow
import pytest

import sitr
from sitr.query.execution import Execution, _whole
from sitr.query.facts import Facts
from sitr.query.planner import Target, plan
from tests.tables import clinic


@pytest.fixture(scope="module")
def database():
    with clinic.database() as opened:
        yield opened


def run(database, question, **options):
    made = plan(question.query, database.declared, Target(1.0, 1e-6), Facts())
    return Execution(made, database.source, **options).answer()


def test_exact_numbers_are_those_of_pandas(database):
    frame = clinic.visits().to_pandas()
    frame["cost"], frame["change"] = frame["cost"].clip(0, 1000), frame["change"].clip(-50, 100)
    asked = {
        "n": sitr.count(), "k": sitr.count("cost"), "u": sitr.count_units(), "d": sitr.count_distinct("ward"),
        "s": sitr.sum("change"), "m": sitr.mean("cost"), "v": sitr.variance("age"),
        "r": sitr.correlation("age", "paid"),
    }  # fmt: skip
    question = database.table("visits").group_by("region").aggregate(**asked)
    found = run(database, question, unsafe_without_noise=True).raw
    groups = frame.groupby("region")
    assert found["n"] == groups.size().tolist()
    assert found["k"] == groups["cost"].count().tolist()
    assert found["u"] == groups["patient"].nunique().tolist()
    assert found["d"] == groups["ward"].nunique().tolist()
    assert found["s"] == pytest.approx(groups["change"].sum().tolist(), abs=0.1)
    assert found["m"] == pytest.approx(groups["cost"].mean().tolist(), abs=0.01)
    assert found["v"] == pytest.approx(groups["age"].var(ddof=0).tolist())
    corr = [one["age"].corr(one["paid"]) for _, one in groups]
    assert found["r"] == pytest.approx(corr, abs=0.02)  # on a coarse grid


def test_a_histogram_is_that_of_numpy(database):
    edges = [0, 18, 65, 120]
    question = database.table("visits").aggregate(h=sitr.histogram("age", edges))
    answer = run(database, question, unsafe_without_noise=True)
    assert answer.raw["h"] == np.histogram(clinic.visits().column("age").to_numpy(), edges)[0].tolist()
    assert answer.value["h_bin"] == ["[0, 18)", "[18, 65)", "[65, 120]"]


def test_what_a_test_may_leave_out_is_stamped(database):
    question = database.table("visits").aggregate(n=sitr.count())
    assert not run(database, question, unsafe_without_noise=True).private
    assert not run(database, question, unsafe_key=1).private
    assert run(database, question).private


def test_a_private_answer_is_consistent(database):
    question = database.table("visits").group_by("region", "urgent").aggregate(n=sitr.count(), s=sitr.sum("cost"))
    answer = run(database, question)
    assert len(answer) == 8
    assert sum(answer.value["n"]) == max(round(sum(answer.raw["n"])), 0)
    assert min(answer.value["n"]) >= 0
    assert min(answer.value["s"]) >= 0
    for name in ("n", "s"):
        for low, value, high in zip(answer.low[name], answer.raw[name], answer.high[name], strict=True):
            assert low <= max(value, 0) <= high or value < 0


def test_groups_that_are_found_are_those_with_enough_units(database):
    question = database.table("visits").group_by("ward").aggregate(n=sitr.count(), u=sitr.count_units())
    answer = run(database, question)
    assert set(answer.value["ward"]) <= {"a", "b", "c"}
    assert {"a", "b"} <= set(answer.value["ward"])


def test_listed_keys_that_do_not_occur_have_a_row(database):
    question = database.table("visits").group_by("ward", values={"ward": ["zzz", "a"]}).aggregate(n=sitr.count())
    answer = run(database, question, unsafe_without_noise=True)
    assert answer.value["ward"] == ["zzz", "a"]
    assert answer.raw["n"][0] == 0


def test_quantiles_rise_with_their_rank(database):
    """Also where noise is larger than the groups, whatever the order they are asked in."""
    table = database.table("visits").filter(database.table("visits")["age"] > 110)
    question = table.group_by("region", "urgent").aggregate(
        high=sitr.quantile("age", 0.9), low=sitr.quantile("age", 0.1), middle=sitr.median("age")
    )
    made = plan(question.query, database.declared, Target(0.05, 1e-6), Facts())
    for _ in range(20):
        answer = Execution(made, database.source).answer()
        for side in (answer.value, answer.low, answer.high):
            assert np.all(np.diff([side["low"], side["middle"], side["high"]], axis=0) >= 0)


def test_that_no_group_could_be_named_is_said(database):
    table = database.table("visits")
    question = table.filter(table["ward"] == "nowhere").group_by("ward").aggregate(n=sitr.count())
    answer = run(database, question)
    assert len(answer) == 0
    assert any("No group had enough units to be listed" in note for note in answer.notes)


@pytest.mark.statistical
def test_that_noise_has_left_nothing_is_said(database):
    """An empty group passes for one with rows with 0.025 at most, as its interval says; all eight with under 1e-12."""
    table = database.table("visits")
    asked = {"m": sitr.mean("cost"), "q": sitr.median("age")}
    nobody = run(database, table.filter(table["age"] > 119).group_by("region", "urgent").aggregate(**asked))
    said = [note for note in nobody.notes if note.endswith("its interval is all that is possible.")]
    assert any(note.startswith("m says nothing in ") for note in said)
    everyone = run(database, table.aggregate(m=sitr.mean("cost")), unsafe_without_noise=True)
    assert not any("says nothing" in note for note in everyone.notes)


@pytest.mark.parametrize("largest", [5, 2**63 - 1, 2**63, 10**37])
def test_sums_of_any_width_are_read_without_loss_and_missing_is_nothing(largest):
    numbers = [Decimal(largest), None, Decimal(-3)]
    table = pyarrow.table({"sum0": pyarrow.array(numbers, pyarrow.decimal128(38, 0))})
    assert _whole(table, "sum0").tolist() == [largest, 0, -3]
