"""A request: what is asked, and how much of it an entry holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import Gaussian, PoissonSampled
from sitr.errors import IncompatibleAdjacency, InvalidArgument
from sitr.ledger import Budget, request
from sitr.ledger.entry import canonical
from sitr.ledger.keeper import Keeper
from sitr.ledger.request import Request, units_of
from tests.ledger.acts import ONE, spent


def test_a_request_that_is_too_large_is_not_charged(clinic):
    many = [f"{number:0200}" for number in range(6000)]
    deep = ONE
    for _ in range(60):
        deep = PoissonSampled(deep, 1.0)
    for about in ({"event": ONE, "blocks": many}, {"event": deep}):
        with pytest.raises(InvalidArgument, match=r"too large for an entry(.|\n)*nothing was charged"):
            clinic.reserve("clinic", analyst="amina", **about)
    assert spent(clinic) == 0


def test_what_a_reservation_charges_is_read_in_both_forms():
    assert units_of({"units": [5, None, 0], "version": 1}) == (5, None, 0)
    assert units_of({"cost": 5, "delta": 7, "version": 1}) == (5, 7)


nested = st.recursive(
    st.one_of(st.integers(), st.text(alphabet="ab[{")),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(alphabet="a["), inner, max_size=3)),
)


@given(nested, st.integers(1, 6))
def test_depth_is_counted_or_known_to_be_small(record, deepest):
    body = canonical(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request, "DEEPEST_BODY", deepest)
        assert request.fits(record, body) == (depth(record) <= deepest)


def depth(record):
    inner = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return 1 + max(map(depth, inner), default=0)


def test_a_reservation_paid_what_its_event_costs_today():
    keeper = Keeper.of(Budget(epsilon=8.0))
    asked = Request("clinic", ONE, "amina", "q", None, (), None)
    due = keeper.units(ONE)[0]
    for units, version, paid in (
        ([due, 0], 1, True),
        ([due + 1, 5], 1, True),
        ([due, 0], 2, False),
        ([1, 0], 1, False),
    ):
        record = {"budgets": {"clinic": {"units": units, "version": version}}}
        assert asked.paid_by(record, {"clinic": (1, keeper)}) == paid
    assert asked.paid_by({"budgets": {"clinic": {"cost": due, "delta": 0, "version": 1}}}, {"clinic": (1, keeper)})
    assert not asked.paid_by({"budgets": {}}, {"clinic": (1, keeper)})


def test_no_reservation_pays_for_an_event_of_other_neighbours():
    event = Gaussian(noise_multiplier=20, adjacency="replace_one")
    asked = Request("clinic", event, "amina", "q", None, (), None)
    budgets = {name: Budget(epsilon=1.0, delta=1e-6, adjacency=name) for name in ("replace_one", "add_remove")}
    units = Keeper.of(budgets["replace_one"]).units(event)
    record = {"budgets": {"clinic": {"units": list(units), "version": 1}}}
    assert asked.paid_by(record, {"clinic": (1, Keeper.of(budgets["replace_one"]))})
    with pytest.raises(IncompatibleAdjacency):
        asked.paid_by(record, {"clinic": (1, Keeper.of(budgets["add_remove"]))})
