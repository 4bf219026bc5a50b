"""Plans: what shares a measurement, that every plan costs no more than its target, and that its noise can be drawn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sitr
from sitr.accounting import ZeroConcentrated
from sitr.errors import InvalidArgument, NotAllowed
from sitr.query.designs import Total
from sitr.query.facts import Facts, chosen_bound
from sitr.query.measurements import Bins, Distinct, Groups, Ranks, Sums, Units
from sitr.query.noise import LARGEST, Reach
from sitr.query.planner import Target, plan
from sitr.query.query import Grouping, Limits, Query
from sitr.tables.expressions import Column
from sitr.tables.relations import PerUnit, Scan, UnitAggregate
from sitr.tables.tally import Bound
from tests.tables import clinic

DECLARED = clinic.declared()
ONE = Target(1.0, 1e-6)


def planned(aggregates, keys=(), target=ONE, table="visits", limits=None, declared=DECLARED, facts=None):
    groupings = tuple(Grouping(name, Column(name)) for name in keys)
    query = Query(Scan(table), groupings, aggregates, limits or Limits())
    return plan(query, declared, target, facts or Facts())


def kinds(made):
    return [type(one).__name__ for one in made.measurements]


def test_count_sum_mean_and_variance_of_a_column_are_one_measurement():
    made = planned(
        {
            "n": sitr.count(),
            "m": sitr.mean("age"),
            "v": sitr.variance("age"),
            "s": sitr.stddev("age"),
            "t": sitr.sum("age"),
        }
    )
    assert kinds(made) == ["Sums"]
    assert set(made.places.values()) == {0}
    assert (made.measurements[0].design.degrees, made.measurements[0].design.missing) == ((2,), False)


def test_a_column_that_may_be_missing_costs_a_sum_more_where_rows_are_counted():
    assert not planned({"m": sitr.mean("cost")}).measurements[0].design.missing
    made = planned({"m": sitr.mean("cost"), "n": sitr.count()})
    assert (len(made.measurements), made.measurements[0].design.missing) == (1, True)
    both = planned({"m": sitr.mean("cost"), "a": sitr.mean("age"), "n": sitr.count()})
    assert both.places["n"] == both.places["a"]  # the column that no row lacks counts them more exactly
    assert not any(one.design.missing for one in both.measurements)


def test_a_sum_alone_is_one_number():
    made = planned({"s": sitr.sum("change")})
    assert isinstance(made.measurements[0].design, Total)
    grid = made.measurements[0].measures["x0_0"].grid
    assert made.measurements[0].noise.unit == max(map(abs, grid.span))
    assert not isinstance(planned({"s": sitr.sum("change"), "m": sitr.mean("change")}).measurements[0].design, Total)


def test_a_sum_far_from_zero_is_measured_with_its_count():
    """As one number a row would have more steps than the samplers draw."""
    made = planned({"s": sitr.sum("far")}, declared=_with({"far": {"type": "float", "bounds": [1e6, 1e6 + 1]}}))
    assert not isinstance(made.measurements[0].design, Total)
    assert made.measurements[0].noise.mechanism(3)


def test_a_column_with_other_bounds_is_another_measurement():
    made = planned({"a": sitr.mean("cost"), "b": sitr.mean("cost", bounds=(0, 100)), "c": sitr.sum("cost")})
    assert kinds(made) == ["Sums", "Sums"]
    assert made.places["a"] == made.places["c"] != made.places["b"]


def test_two_columns_share_their_products():
    made = planned({"c": sitr.covariance("age", "cost"), "r": sitr.correlation("age", "cost")})
    assert kinds(made) == ["Sums"]
    assert made.measurements[0].design.degrees == (2, 2)
    turned = planned({"c": sitr.covariance("age", "cost"), "r": sitr.correlation("cost", "age")})
    assert kinds(turned) == ["Sums", "Sums"]


def test_each_other_aggregate_has_its_own():
    made = planned(
        {"u": sitr.count_units(), "d": sitr.count_distinct("ward"), "m": sitr.median("age"),
         "q": sitr.quantile("age", 0.9),
         "p": sitr.median("paid"), "n": sitr.count()}
    )  # fmt: skip
    assert kinds(made) == ["Sums", "Units", "Distinct", "Ranks", "Ranks"]
    assert made.places == {"n": 0, "u": 1, "d": 2, "m": 3, "q": 3, "p": 4}
    assert len(made.tallies) == 4
    assert kinds(planned({"h": sitr.histogram("age", [0, 50, 120])})) == ["Bins"]


def test_groups_that_are_not_public_are_chosen_first():
    made = planned({"n": sitr.count()}, keys=("ward",), limits=Limits(max_groups_per_unit=2))
    assert (kinds(made), made.selects, made.groups) == (["Groups", "Sums"], True, None)
    assert made.tally.units
    known = planned({"n": sitr.count()}, keys=("region", "urgent"))
    assert (kinds(known), known.selects, known.groups) == (["Sums"], False, 8)


def test_units_of_chosen_groups_are_counted_by_the_choice():
    made = planned({"u": sitr.count_units()}, keys=("ward",))
    assert (kinds(made), made.places) == (["Groups"], {"u": 0})
    both = planned({"u": sitr.count_units(), "n": sitr.count()}, keys=("ward",))
    assert (kinds(both), both.places) == (["Groups", "Sums"], {"u": 0, "n": 1})


@pytest.mark.parametrize(("most", "kind", "part"), [(1, "laplace", 1.0), (50, "gaussian", 0.5)])
@pytest.mark.parametrize("aggregate", [sitr.count(), sitr.mean("cost"), sitr.count_units()])
def test_a_choice_of_groups_has_all_of_delta_or_half_of_it_where_noise_needs_one(most, kind, part, aggregate):
    declared = clinic.declared(tables={"visits": clinic.VISITS | {"max_rows_per_unit": most}})
    limits = Limits(max_groups_per_unit=most, max_rows_per_group=1)
    made = planned({"a": aggregate, "n": sitr.count()}, keys=("ward",), limits=limits, declared=declared)
    assert made.kind == kind
    assert made.event.epsilon(delta=ONE.delta).upper <= ONE.epsilon * (1 + 1e-9)
    assert made.measurements[0].selection.max_groups_per_unit == most
    event = made.measurements[0].event
    assert event.epsilon(delta=part * ONE.delta).upper < ONE.epsilon
    assert event.infinite_mass <= part * ONE.delta
    assert event.infinite_mass == pytest.approx(part * ONE.delta, rel=0.2 if kind == "laplace" else 0.96)


ASKED = [
    sitr.count(), sitr.count("level"), sitr.count_units(), sitr.count_distinct("ward"), sitr.mean("level"),
    sitr.sum("level"), sitr.median("level"), sitr.histogram("level", [-1, 0, 1]),
]  # fmt: skip


@pytest.mark.parametrize("aggregate", ASKED, ids=str)
@pytest.mark.parametrize("keys", [(), ("ward",)])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_rows_that_are_units_cost_what_units_of_one_row_do(aggregate, keys, adjacency):
    columns = clinic.LABS["columns"] | {"who": {"type": "integer"}}
    named = {"unit": "who", "max_rows_per_unit": 1, "columns": columns}
    declared = clinic.declared(tables={"rows": clinic.LABS, "people": named}, privacy={"adjacency": adjacency})
    target = Target(1.0, 1e-6)
    rows, people = (
        planned({"x": aggregate}, keys, target, table=name, declared=declared) for name in ("rows", "people")
    )
    assert rows.bound is None
    assert [one.event for one in rows.measurements] == [one.event for one in people.measurements]
    assert rows.event == people.event


def test_the_engine_is_asked_for_what_is_measured_and_nothing_else():
    for table, column in (("labs", "level"), ("visits", "cost")):
        made = planned({"m": sitr.mean(column), "v": sitr.variance(column, bounds=(0, 1))}, table=table)
        assert made.tally.sums == tuple(powers for one in made.measurements for powers in one.design.sums)
        assert not made.tally.units


def test_a_histogram_of_what_is_computed_leaves_a_column_of_any_name_alone():
    columns = {name: {"type": "integer", "bounds": [0, 9]} for name in ("value", "value_")}
    made = planned({"h": sitr.histogram(Column("value") + Column("value_"), [0, 9, 18])}, declared=_with(columns))
    ((name, _),) = made.measurements[0].tally.relation.source.columns
    assert name not in made.query.relation.schema(_with(columns))


def test_chosen_groups_need_a_delta_and_an_epsilon():
    for target in (Target(1.0, 0.0), Target(None, 1e-6, 0.1)):
        with pytest.raises(NotAllowed, match="groups are not public"):
            planned({"n": sitr.count()}, keys=("ward",), target=target)


@pytest.mark.parametrize(
    ("price", "message"),
    [
        ({"epsilon": None, "rho": None}, "say how much to spend"), ({"epsilon": 1.0, "rho": 1.0}, "both epsilon"),
        ({"epsilon": 0.0}, "epsilon=0"), ({"epsilon": -1.0}, "epsilon=-1"), ({"epsilon": math.nan}, "epsilon=nan"),
        ({"epsilon": math.inf}, "epsilon=inf"), ({"rho": 0.0}, "rho=0"), ({"epsilon": 1.0, "delta": 0.6}, "delta=0.6"),
        ({"epsilon": 1.0, "delta": -1e-9}, "delta="), ({"epsilon": "1"}, "epsilon='1'"),
    ],
)  # fmt: skip
def test_a_price_that_is_none_is_refused(price, message):
    with pytest.raises(InvalidArgument, match=message):
        Target.of(DECLARED, price.get("epsilon"), price.get("delta"), price.get("rho"))


@pytest.mark.parametrize(("name", "least", "most"), [("epsilon", 1e-9, 1e4), ("rho", 1e-18, 1e8)])
def test_a_price_is_as_low_or_high_as_any_noise_that_is_drawn(name, least, most):
    for price in (least, most):
        assert getattr(Target.of(DECLARED, **{"epsilon": None, "delta": 0.5, "rho": None, name: price}), name) == price
    for price in (least * (1 - 1e-9), most * (1 + 1e-9)):
        with pytest.raises(InvalidArgument, match=f"{name}="):
            Target.of(DECLARED, **{"epsilon": None, "delta": 0.5, "rho": None, name: price})


def test_the_declared_delta_stands_in():
    assert Target.of(DECLARED, 1.0, None, None) == Target(1.0, 1e-6)
    assert Target.of(DECLARED, 1.0, 0.0, None) == Target(1.0, 0.0)


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (sitr.mean("cost", bounds=(2000, 3000)), "outside the declared ones"),
        (sitr.mean("cost", bounds=(5, 5)), "not in order"),
        (sitr.median("at"), "at: the values have no bounds"),
        (sitr.mean("patient"), "patient: the values have no bounds"),
    ],
)
def test_bounds_that_are_none_are_refused(aggregate, message):
    with pytest.raises(InvalidArgument, match=message):
        planned({"x": aggregate})


def test_bounds_of_a_query_only_tighten():
    measure = planned({"m": sitr.mean("cost", bounds=(-500, 100.5))}).measurements[0].measures["x0_0"]
    assert measure.grid.ends[0] == 0
    assert 100.4 < measure.grid.ends[1] <= 100.5
    for name, lower, upper in (("cost", 2.25, 100.5), ("paid", 2.251, 100.509), ("change", -3.75, -1.5)):
        measure = planned({"m": sitr.mean(name, bounds=(lower, upper))}).measurements[0].measures["x0_0"]
        assert lower <= measure.grid.ends[0] < lower + 0.01
        assert upper - 0.01 < measure.grid.ends[1] <= upper


def test_one_number_of_each_unit_needs_one_row_of_it():
    total = PerUnit(Scan("visits"), (), (("total", UnitAggregate("sum", Column("cost"), (0, 5000))),))
    made = plan(Query(total, (), {"m": sitr.mean("total")}), DECLARED, ONE, Facts())
    assert made.bound.rows == 1


@pytest.mark.parametrize(("keys", "groups"), [(("region",), 4), (("region", "ward"), 40), (("urgent", "region"), 8)])
def test_a_unit_whose_rows_were_added_up_by_the_keys_has_one_in_each_group(keys, groups):
    """So that it moves no count by more than 1, and no more of them than there are, where they are public."""
    declared = clinic.declared(tables={"visits": clinic.VISITS | {"max_rows_per_unit": 40}})
    total = PerUnit(Scan("visits"), keys, (("total", UnitAggregate("sum", Column("cost"), (0, 5000))),))
    groupings = tuple(Grouping(name, Column(name)) for name in keys)
    made = plan(Query(total, groupings, {"m": sitr.mean("total")}), declared, ONE, Facts())
    assert made.bound == Bound(groups=groups, rows_per_group=1)
    assert made.measurements[-1].noise.reach == Reach(groups, math.sqrt(groups))
    limited = Query(total, groupings, {"m": sitr.mean("total")}, Limits(max_groups_per_unit=3))
    assert plan(limited, declared, ONE, Facts()).bound == Bound(groups=3, rows_per_group=1)
    limited = Query(total, groupings, {"m": sitr.mean("total")}, Limits(max_rows_per_unit=2))
    assert plan(limited, declared, ONE, Facts()).bound == Bound(rows=2)


def _with(columns, **privacy):
    visits = clinic.VISITS | {"columns": clinic.VISITS["columns"] | columns}
    return clinic.declared(tables={"visits": visits}, privacy=privacy or {"delta": 1e-6})


AGGREGATES = [
    sitr.count(), sitr.count("cost"), sitr.count_units(), sitr.count_distinct("ward"), sitr.sum("change"),
    sitr.sum("cost"),
    sitr.mean("cost"), sitr.mean("age", bounds=(10, 20)), sitr.variance("paid"), sitr.stddev("cost"),
    sitr.covariance("age", "cost"), sitr.correlation("paid", "change"), sitr.median("cost"), sitr.quantile("age", 0.1),
    sitr.max("day"),
]  # fmt: skip
limits = st.one_of(
    st.builds(Limits),
    st.builds(Limits, max_rows_per_unit=st.integers(1, 9)),
    st.builds(Limits, max_groups_per_unit=st.integers(1, 5), max_rows_per_group=st.integers(1, 5)),
)
targets = st.one_of(
    st.builds(Target, st.floats(1e-3, 20), st.sampled_from([0.0, 1e-9, 1e-6, 1e-3])),
    st.builds(Target, st.none(), st.just(1e-6), st.floats(1e-4, 20)),
)


@given(
    chosen=st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=5, unique_by=str),
    keys=st.sampled_from([(), ("region",), ("ward",), ("region", "ward"), ("urgent", "region")]),
    limits=limits,
    target=targets,
    adjacency=st.sampled_from(["add_remove", "replace_one"]),
    most=st.sampled_from([1, 3, 40]),
)
@settings(max_examples=40)
def test_no_plan_costs_more_than_its_target(chosen, keys, limits, target, adjacency, most):
    visits = clinic.VISITS | {"max_rows_per_unit": most}
    declared = clinic.declared(tables={"visits": visits}, privacy={"adjacency": adjacency})
    aggregates = {f"a{place}": one for place, one in enumerate(chosen)}
    if "ward" in keys and (not target.delta or target.rho):
        return
    made = planned(aggregates, keys, target, limits=limits, declared=declared)
    if target.epsilon is not None:
        assert made.event.epsilon(delta=target.delta).upper <= target.epsilon * (1 + 1e-9)
    else:
        most_epsilon = ZeroConcentrated(target.rho).epsilon(delta=target.delta).upper
        assert made.event.epsilon(delta=target.delta).upper <= most_epsilon * (1 + 1e-9)
    assert made.event.adjacency == adjacency
    for name, aggregate in aggregates.items():
        measured = made.measurements[made.places[name]]
        wanted = {"count_units": (Units, Groups), "count_distinct": (Distinct,), "quantile": (Ranks,), "max": (Ranks,)}
        assert isinstance(measured, wanted.get(aggregate.kind, (Sums,)))
    for measured in made.measurements:
        if isinstance(measured, (Sums, Units, Distinct, Bins)):
            reach = measured.noise.reach
            factor = 2 if adjacency == "replace_one" else 1
            per_group = 1 if isinstance(measured, Units) else made.bound.most_in_group
            assert reach.l1 >= factor * (_groups(made) if isinstance(measured, Units) else made.bound.l1)
            assert reach.l2 >= factor * per_group
            assert measured.noise.mechanism(7).scale > 0
        if isinstance(measured, Sums):
            degree = max(sum(measured.design.degrees), 1)
            widest = max(measured.widths.values(), default=1)
            assert declared.tables["visits"].max_rows * widest**degree <= 2**58
            assert measured.noise.unit == measured.design.unit(measured.widths)


def _groups(made):
    """How many groups a unit can be in: no more than there are, where they are public."""
    return made.bound.most_groups if made.groups is None else min(made.bound.most_groups, max(made.groups, 1))


@pytest.mark.parametrize(("keys", "groups"), [((), 1), (("urgent",), 2), (("region",), 4)])
def test_a_unit_is_counted_once_in_each_public_group_at_most(keys, groups):
    """Four rows may be in no more groups than there are; twelve times the noise was paid without need."""
    counted = next(one for one in planned({"u": sitr.count_units()}, keys).measurements if isinstance(one, Units))
    assert counted.noise.scale == pytest.approx(groups, rel=1e-6)


@pytest.mark.parametrize(
    ("aggregate", "degree", "fewest"),
    [(sitr.mean("cost"), 1, 128), (sitr.variance("cost"), 2, 128), (sitr.correlation("cost", "far"), 4, 31)],
)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("reach", [4, 8])
def test_a_grid_is_as_fine_as_the_noise_that_can_be_drawn(aggregate, degree, fewest, kind, reach):
    """Up to a quarter of it; steps of floats are powers of two, so that bounds may be half as many apart as allowed."""
    columns = {name: {"type": "float", "bounds": [0, 1024]} for name in ("cost", "far")}
    declared = _with(columns, adjacency="replace_one" if reach == 8 else "add_remove")
    found = []
    for steps in np.geomspace(fewest, 2 * fewest, 60) ** degree:
        scale = LARGEST[kind] / (4 * reach * steps)  # of the noise on a row, at which so many steps can be drawn
        target = Target(1 / scale, 0.0) if kind == "laplace" else Target(None, 1e-6, 1 / (2 * scale**2))
        (made,) = planned({"x": aggregate}, target=target, declared=declared).measurements
        found.append(made.noise.mechanism(1).scale / LARGEST[kind])
    assert max(found) == pytest.approx(1 / 4, rel=0.1)
    assert max(found) <= 1 / 4 * (1 + 1e-9)
    assert min(found) > 1 / 4 / 2.1**degree


def test_bounds_are_two_steps_apart_at_least():
    """Also at a price at which fewer are all that the samplers would draw with room to spare."""
    declared = clinic.declared(tables={"visits": clinic.VISITS | {"max_rows_per_unit": 400}})
    (made,) = planned({"m": sitr.mean("age")}, target=Target(1e-9, 0.0), declared=declared).measurements
    assert made.widths == {"x0_0": 2}
    assert made.noise.mechanism(2).scale == 2 * 400 / 1e-9


@pytest.mark.parametrize(("groups", "most"), [(1, 2**16), (16, 2**16), (17, 2**20 // 17), (2**12, 2**8), (2**13, 2**8)])
def test_a_histogram_for_quantiles_has_as_many_cells_as_the_groups_leave_it(groups, most):
    """All groups together have 2^20, each has 2^8 at least, and the mechanism takes 2^16 of one at most."""
    wards = Grouping("ward", Column("ward"), tuple(map(str, range(groups))))
    for distance in (most - 1, most):
        declared = _with({"far": {"type": "integer", "bounds": [0, distance]}})
        made = plan(Query(Scan("visits"), (wards,), {"m": sitr.median("far")}), declared, ONE, Facts())
        (ranks,) = made.measurements
        assert ranks.mechanism.cells == (most if distance < most else most // 2 + 1)


@pytest.mark.parametrize("rho", [1e-4, 1e-2, 1.0, 50.0])
def test_what_is_kept_of_a_unit_weighs_a_price_in_rho_as_that_in_epsilon(rho):
    """ρ is ε²/2 of the same noise over the reach, as far as the choice of a bound goes."""
    declared = clinic.declared(tables={"visits": clinic.VISITS | {"max_rows_per_unit": 100}})
    facts = Facts(units=1000, rows=20_000)
    aggregates = {"n": sitr.count(), "u": sitr.count_units()}
    made = planned(aggregates, target=Target(None, 1e-6, rho), declared=declared, facts=facts)
    same = planned(aggregates, target=Target(math.sqrt(2 * rho), 1e-6), declared=declared, facts=facts)
    assert made.bound == same.bound
    assert made.bound == chosen_bound(facts, 100, 2 / math.sqrt(2 * rho), 1)
