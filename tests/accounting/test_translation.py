"""Events of other libraries: read with their meaning, or refused. Stand-ins have the names and fields of the peer's."""

import math
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, make_dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    ZeroConcentrated,
)
from sitr.accounting.translation import KINDS
from sitr.errors import IncompatibleAdjacency, InvalidArgument, InvalidRecord, NoSuchGuarantee
from tests.accounting.helpers import holds, law, logs

# The classes of dp_accounting 0.6.0, with their fields.
PEER = {
    "NoOpDpEvent": [],
    "NonPrivateDpEvent": [],
    "UnsupportedDpEvent": [],
    "RandomizedResponseDpEvent": ["noise_parameter", "num_buckets"],
    "GaussianDpEvent": ["noise_multiplier"],
    "LaplaceDpEvent": ["noise_multiplier"],
    "DiscreteLaplaceDpEvent": ["noise_parameter", "sensitivity"],
    "SelfComposedDpEvent": ["event", "count"],
    "ComposedDpEvent": ["events"],
    "PoissonSampledDpEvent": ["sampling_probability", "event"],
    "SampledWithReplacementDpEvent": ["source_dataset_size", "sample_size", "event"],
    "SampledWithoutReplacementDpEvent": ["source_dataset_size", "sample_size", "event"],
    "SingleEpochTreeAggregationDpEvent": ["noise_multiplier", "step_counts"],
    "RepeatAndSelectDpEvent": ["event", "mean", "shape"],
    "MixtureOfGaussiansDpEvent": ["standard_deviation", "sensitivities", "sampling_probs"],
    "ZCDpEvent": ["rho", "xi"],
    "TruncatedSubsampledGaussianDpEvent": [
        "dataset_size",
        "sampling_probability",
        "truncated_batch_size",
        "noise_multiplier",
    ],
}
CLASSES = {name: make_dataclass(name, fields, frozen=True) for name, fields in PEER.items()}
ADD, REPLACE = {"adjacency": "add_remove"}, {"adjacency": "replace_one"}


def peer(name, *values):
    return CLASSES[name](*values)


def gaussian(noise=2.0):
    return peer("GaussianDpEvent", noise)


def as_tuple(event):
    """What `to_named_tuple` makes of an event: another class, with the name of the first in a field."""
    fields = PEER[type(event).__name__]
    values = [getattr(event, field) for field in fields]
    values = [as_tuple(v) if hasattr(v, "__dataclass_fields__") else v for v in values]
    values = [[as_tuple(v) for v in value] if isinstance(value, list) else value for value in values]
    wrapper = namedtuple(f"_{type(event).__name__}NamedTupleWrapper", ["module_name", "class_name", *fields])
    return wrapper("dp_accounting.dp_event", type(event).__name__.encode(), *values)


SGD = peer("SelfComposedDpEvent", peer("PoissonSampledDpEvent", 0.01, gaussian(1.1)), 1000)
READ = [
    (gaussian(), "add_remove", Gaussian(2.0, **ADD)),
    (gaussian(), "replace_one", Gaussian(1.0, **REPLACE)),
    (peer("LaplaceDpEvent", 3.0), "add_remove", Laplace(3.0, **ADD)),
    (peer("LaplaceDpEvent", 3.0), "replace_one", Laplace(1.5, **REPLACE)),
    (peer("DiscreteLaplaceDpEvent", 0.5, 3), "add_remove", DiscreteLaplace(2.0, 3, **ADD)),
    (peer("DiscreteLaplaceDpEvent", 0.5, 3), "replace_one", DiscreteLaplace(2.0, 6, **REPLACE)),
    (peer("RandomizedResponseDpEvent", 0.5, 4), "replace_one", RandomizedResponse(0.625, 4, **REPLACE)),
    (peer("RandomizedResponseDpEvent", 0.5, 1), "replace_one", PureDP(0.0, **REPLACE)),
    (peer("ZCDpEvent", 0.01, 0.002), "add_remove", ZeroConcentrated(0.01, 0.002, **ADD)),
    (peer("ZCDpEvent", 0.01, 0.0), "replace_one", ZeroConcentrated(0.01, **REPLACE)),
    (SGD, "add_remove", PoissonSampled(Gaussian(1.1, **ADD), 0.01) * 1000),
    (peer("PoissonSampledDpEvent", 1, gaussian()), "add_remove", PoissonSampled(Gaussian(2.0, **ADD), 1.0)),
    (peer("PoissonSampledDpEvent", 0.0, gaussian()), "add_remove", PureDP(0.0, **ADD)),
    (peer("NoOpDpEvent"), "add_remove", PureDP(0.0, **ADD)),
    (peer("ComposedDpEvent", []), "add_remove", PureDP(0.0, **ADD)),
    (peer("SelfComposedDpEvent", gaussian(), 0), "add_remove", PureDP(0.0, **ADD)),
    (
        peer("ComposedDpEvent", [gaussian(), peer("NoOpDpEvent"), peer("ComposedDpEvent", [gaussian(), SGD])]),
        "add_remove",
        Gaussian(2.0, **ADD) * 2 + PoissonSampled(Gaussian(1.1, **ADD), 0.01) * 1000,
    ),
    (
        peer("PoissonSampledDpEvent", 0.1, peer("ComposedDpEvent", [gaussian(), peer("LaplaceDpEvent", 3.0)])),
        "add_remove",
        PoissonSampled(Gaussian(2.0, **ADD) + Laplace(3.0, **ADD), 0.1),
    ),
]


@pytest.mark.parametrize(("event", "adjacency", "meaning"), READ)
def test_an_event_of_dp_accounting_is_read_with_its_meaning(event, adjacency, meaning):
    assert Event.from_dp_accounting(event, adjacency=adjacency) == meaning
    assert Event.from_dp_accounting(as_tuple(event), adjacency=adjacency) == meaning


def test_neighbours_are_those_of_the_accountant_by_default():
    assert Event.from_dp_accounting(gaussian()).adjacency == "add_remove"


@law(40)
@given(noise=logs(1e-6, 0.999), k=st.integers(2, 50))
def test_a_response_is_rounded_to_the_safe_side(noise, k):
    """The truth with 1 - noise + noise/k: ε = ln(1 + k (1 - noise)/noise) is never less."""
    event = Event.from_dp_accounting(peer("RandomizedResponseDpEvent", noise, k), adjacency="replace_one")
    assert Fraction(event.p) >= 1 - Fraction(noise) + Fraction(noise) / k
    assert math.isclose(event.pure(), math.log1p(k * (1 - noise) / noise), rel_tol=1e-8)


@law(40)
@given(rate=logs(1e-3, 1e3), sensitivity=st.integers(1, 10))
def test_a_rate_is_rounded_to_the_safe_side(rate, sensitivity):
    event = Event.from_dp_accounting(peer("DiscreteLaplaceDpEvent", rate, sensitivity))
    assert 1 / Fraction(event.scale) >= Fraction(rate)
    assert math.isclose(event.scale * rate, 1, rel_tol=1e-15)


@pytest.mark.parametrize("name", sorted(set(PEER) - set(KINDS)))
def test_what_has_no_counterpart_is_refused(name):
    values = [gaussian() if field == "event" else 1 for field in PEER[name]]
    for event in (peer(name, *values), peer("ComposedDpEvent", [gaussian(), peer(name, *values)])):
        with pytest.raises(InvalidRecord, match="counterpart"):
            Event.from_dp_accounting(event)


@pytest.mark.parametrize("event", [3, None, "gaussian", Gaussian(1.0), object()])
def test_what_is_no_event_of_the_peer_is_refused(event):
    with pytest.raises(InvalidRecord):
        Event.from_dp_accounting(event)


@dataclass
class GaussianDpEvent:
    noise_multiplier: float
    clipped: bool = False


def test_a_field_that_is_not_known_is_refused():
    with pytest.raises(InvalidRecord, match="other fields"):
        Event.from_dp_accounting(GaussianDpEvent(1.0))
    with pytest.raises(InvalidRecord, match="other fields"):
        Event.from_dp_accounting(namedtuple("GaussianDpEvent", [])())
    bare = type("GaussianDpEvent", (), {"noise_multiplier": 1.0})  # a class that does not say what its fields are
    with pytest.raises(InvalidRecord, match="other fields"):
        Event.from_dp_accounting(bare())


def test_what_is_not_private_is_refused():
    for event in (peer("NonPrivateDpEvent"), peer("ComposedDpEvent", [gaussian(), peer("NonPrivateDpEvent")])):
        with pytest.raises(NoSuchGuarantee):
            Event.from_dp_accounting(event)


@pytest.mark.parametrize(
    ("event", "adjacency"),
    [
        (SGD, "replace_one"),
        (peer("RandomizedResponseDpEvent", 0.5, 4), "add_remove"),
        (peer("PoissonSampledDpEvent", 0.5, peer("RandomizedResponseDpEvent", 0.5, 4)), "add_remove"),
    ],
)
def test_an_event_between_other_neighbours_is_refused(event, adjacency):
    with pytest.raises(IncompatibleAdjacency):
        Event.from_dp_accounting(event, adjacency=adjacency)


@pytest.mark.parametrize(
    "event",
    [
        gaussian(0.0),
        gaussian(-1.0),
        gaussian(math.nan),
        gaussian("2"),
        peer("LaplaceDpEvent", None),
        peer("DiscreteLaplaceDpEvent", 0.5, 1.5),
        peer("DiscreteLaplaceDpEvent", 0.0, 1),
        peer("ZCDpEvent", -1.0, 0.0),
        peer("PoissonSampledDpEvent", 1.5, gaussian()),
        peer("SelfComposedDpEvent", gaussian(), -1),
        peer("SelfComposedDpEvent", gaussian(), 1.5),
        peer("SelfComposedDpEvent", gaussian(), 10**10),
        peer("ComposedDpEvent", gaussian()),
    ],
)
def test_a_parameter_out_of_range_is_refused(event):
    with pytest.raises(InvalidArgument):
        Event.from_dp_accounting(event)


def test_other_neighbours_than_ours_are_refused():
    with pytest.raises(InvalidArgument):
        Event.from_dp_accounting(gaussian(), adjacency="replace_special")


def test_an_event_nested_without_end_is_refused():
    event = gaussian()
    for _ in range(sys.getrecursionlimit()):
        event = peer("SelfComposedDpEvent", event, 1)
    with pytest.raises(InvalidRecord, match="too deeply"):
        Event.from_dp_accounting(event)


def test_numbers_of_the_peer_lie_in_the_brackets():
    """Measured with dp_accounting 0.6.0 (PLD, 1e-4; pessimistic), at δ = 1e-6."""
    for (event, adjacency), truth in {
        (gaussian(), "add_remove"): 2.254085,
        (gaussian(), "replace_one"): 4.886554,
        (SGD, "add_remove"): 1.752985,
    }.items():
        assert holds(Event.from_dp_accounting(event, adjacency=adjacency).epsilon(1e-6), truth, 1e-5)


# --- Opacus -----------------------------------------------------------------------------------------------------------

ROWS = [(1.1, 0.01, 500), (1.3, 0.01, 200), (1.1, 0.01, 100), (2.0, 1.0, 3)]
MEANING = PoissonSampled(Gaussian(1.1), 0.01) * 600 + PoissonSampled(Gaussian(1.3), 0.01) * 200
MEANING = MEANING + PoissonSampled(Gaussian(2.0), 1.0) * 3


class Accountant:
    """As of Opacus: its history, and the dictionary that it is saved in."""

    def __init__(self, history):
        self.history = history

    def state_dict(self):
        return OrderedDict(history=self.history, mechanism="rdp")


@pytest.mark.parametrize(
    "history", [ROWS, tuple(ROWS), [list(row) for row in ROWS], Accountant(ROWS), Accountant(ROWS).state_dict()]
)
def test_a_history_of_opacus_is_read(history):
    event = Event.from_opacus(history)
    assert event == MEANING
    assert event.adjacency == "add_remove"


@pytest.mark.parametrize(
    "history", [[], None, 3, {}, {"history": []}, "history", [(1.1, 0.01)], [1.1, 0.01, 500], [("1.1", 0.01, 500, 1)]]
)
def test_what_is_no_history_is_refused(history):
    with pytest.raises(InvalidRecord):
        Event.from_opacus(history)


@pytest.mark.parametrize("row", [(0.0, 0.01, 5), (1.1, 0.0, 5), (1.1, 1.5, 5), (1.1, 0.01, 0), (1.1, 0.01, 1.5)])
def test_a_row_out_of_range_is_refused(row):
    with pytest.raises(InvalidArgument):
        Event.from_opacus([row])


def test_neither_library_is_imported():
    assert not {"dp_accounting", "opacus"} & {name.partition(".")[0] for name in sys.modules}
