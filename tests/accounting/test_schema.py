"""Events as JSON: golden files that are read for ever, the published schema, and strict reading."""

import copy
import importlib.resources
import inspect
import json
import math
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

from sitr.accounting import (
    ApproximateDP,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
    ZeroConcentrated,
    event_schema,
)
from sitr.accounting.schema import SCHEMA_VERSION, TYPES, from_dict, from_json, to_dict, to_json
from sitr.errors import IncompatibleAdjacency, InvalidArgument, InvalidRecord
from tests.accounting.strategies import any_event

GOLDEN = Path(__file__).parent / "golden" / "v1"
SGD = PoissonSampled(Gaussian(1.1), 256 / 60000)

# What each golden file means. Never change an entry: ledgers hold such records. Only add.
MEANINGS = {
    "approximate_dp": ApproximateDP(0.5, 1e-6),
    "composed": SGD * 14062 + Laplace(20) * 30,
    "composed_adjacency": Composed(((Gaussian(2.0), 1),), adjacency="add_remove"),
    "composed_claimed": PrivacyProfile([(0, 0.1), (1, 0)]) * 3 + PureDP(0.1, adjacency="replace_one"),
    "concentrated": Concentrated(0.5, 1.0),
    "discrete_gaussian": DiscreteGaussian(1.5, 2),
    "discrete_laplace": DiscreteLaplace(3.0, 2),
    "discrete_laplace_default": DiscreteLaplace(0.7),
    "exponential": Exponential(0.25),
    "gaussian": Gaussian(1.1),
    "gaussian_adjacency": Gaussian(1e-4, adjacency="replace_one"),
    "guarantees": Guarantees([(0.5, 1e-6), (1.0, 1e-9)]),
    "laplace": Laplace(20),
    "loss_distribution": LossDistribution([-1.0, 1.0], [0.2689414213699951, 0.7310585786300049]),
    "loss_distribution_infinite": LossDistribution([-0.5, 0.25], [0.125, 0.75], 0.125),
    "poisson_sampled": SGD,
    "poisson_sampled_composed": PoissonSampled(Gaussian(2) * 3 + Laplace(5), 1e-3),
    "privacy_profile": PrivacyProfile([(0.0, 0.1), (0.5, 1e-3), (1.0, 0.0)]),
    "pure_dp": PureDP(0.1, adjacency="add_remove"),
    "randomized_response": RandomizedResponse(0.6, 5),
    "randomized_response_binary": RandomizedResponse(0.75),
    "renyi": Renyi(points=[(2, 0.01), (32, 0.2), (math.inf, 3)]),
    "renyi_formula": Renyi(formula=SGD, delta=1e-7),
    "sampled_without_replacement": SampledWithoutReplacement(Gaussian(1.1), 60000, 256),
    "sampled_without_replacement_composed": SampledWithoutReplacement(Gaussian(2) * 3 + Laplace(5), 10**6, 1000),
    "shuffled_epochs": ShuffledEpochs(Gaussian(4) + Laplace(10), 20),
    "shuffled_reports": ShuffledReports(RandomizedResponse(0.6, 5), 10_000),
    "shuffled_reports_claimed": ShuffledReports(
        LossDistribution([-1.0, 1.0], [0.2689414213699951, 0.7310585786300049]), 100
    ),
    "zero_concentrated": ZeroConcentrated(0.5),
    "zero_concentrated_approximate": ZeroConcentrated(0.5, 0.1, 1e-8, adjacency="add_remove"),
}
LAPLACE = {"schema_version": 1, "type": "laplace", "noise_multiplier": 2.0}
SAMPLED = {"schema_version": 1, "type": "poisson_sampled", "sampling_prob": 0.1}
INNER = {"type": "laplace", "noise_multiplier": 2.0}


@pytest.fixture(scope="module")
def validator():
    jsonschema.Draft202012Validator.check_schema(event_schema())
    return jsonschema.Draft202012Validator(event_schema())


# --- golden files ----------------------------------------------------------


@pytest.mark.parametrize("name", MEANINGS)
def test_a_golden_file_reads_to_the_same_event_and_writes_back_the_same(name):
    text = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    assert from_json(text) == MEANINGS[name]
    assert to_json(MEANINGS[name]) + "\n" == text


def test_every_golden_file_has_a_meaning():
    assert sorted(path.stem for path in GOLDEN.glob("*.json")) == sorted(MEANINGS)


def test_every_event_type_has_a_golden_file():
    assert {event.type for event in MEANINGS.values()} == set(TYPES)


# --- round trip ------------------------------------------------------------


@given(any_event())
def test_json_round_trip(event):
    text = event.to_json()
    assert Event.from_json(text) == event
    assert Event.from_json(text).to_json() == text
    assert Event.from_dict(event.to_dict()) == event


def test_negative_zero_is_written_as_zero():
    assert to_json(PureDP(-0.0)) == to_json(PureDP(0.0))


def test_reading_brings_a_composition_to_its_one_form():
    twice = {"events": [{"event": INNER, "count": 1}, {"event": INNER, "count": 2}], "type": "composed"}
    nested = {"schema_version": 1, "type": "composed", "events": [{"event": twice, "count": 2}]}
    assert from_dict(nested) == Laplace(2) * 6


# --- the published schema --------------------------------------------------


def test_the_schema_is_published_with_the_package():
    assert importlib.resources.files("sitr.accounting").joinpath("event.schema.json").is_file()


@pytest.mark.parametrize("name", MEANINGS)
def test_the_schema_accepts_golden_files(validator, name):
    validator.validate(json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8")))


@given(event=any_event())
def test_the_schema_accepts_every_event(validator, event):
    validator.validate(event.to_dict())


@pytest.mark.parametrize("name", sorted(TYPES))
def test_the_schema_knows_the_parameters_of_every_type(name):
    described = event_schema()["$defs"][name]
    parameters = inspect.signature(TYPES[name]).parameters
    required = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty]
    assert list(described["properties"]) == ["type", *parameters]
    assert described["required"] == ["type", *required]
    for key, p in parameters.items():
        assert described["properties"][key].get("default", None) == (p.default if key not in required else None)


def test_the_schema_lists_exactly_the_types():
    listed = [entry["$ref"].removeprefix("#/$defs/") for entry in event_schema()["$defs"]["event"]["oneOf"]]
    assert listed == sorted(TYPES)


BAD = {
    "not an object": [1],
    "no version": INNER,
    "newer version": {**LAPLACE, "schema_version": 2},
    "older version": {**LAPLACE, "schema_version": 0},
    "version as text": {**LAPLACE, "schema_version": "1"},
    "version as bool": {**LAPLACE, "schema_version": True},
    "no type": {"schema_version": 1, "noise_multiplier": 2.0},
    "unknown type": {**LAPLACE, "type": "cauchy"},
    "type as list": {**LAPLACE, "type": ["laplace"]},
    "missing parameter": {"schema_version": 1, "type": "laplace"},
    "unknown parameter": {**LAPLACE, "sensitivity": 1},
    "parameter of another type": {**LAPLACE, "at_epsilon": 1},
    "null": {**LAPLACE, "noise_multiplier": None},
    "bool as number": {**LAPLACE, "noise_multiplier": True},
    "text as number": {**LAPLACE, "noise_multiplier": "2"},
    "infinite noise": {**LAPLACE, "noise_multiplier": "inf"},
    "list as number": {**LAPLACE, "noise_multiplier": [2.0]},
    "event as number": {**LAPLACE, "noise_multiplier": INNER},
    "out of range": {**LAPLACE, "noise_multiplier": 0},
    "unknown adjacency": {**LAPLACE, "adjacency": "substitution"},
    "null adjacency": {**LAPLACE, "adjacency": None},
    "inner event missing": SAMPLED,
    "inner event a number": {**SAMPLED, "event": 2},
    "inner event a list": {**SAMPLED, "event": [INNER]},
    "inner event with a version": {**SAMPLED, "event": LAPLACE},
    "inner event of unknown type": {**SAMPLED, "event": {"type": "cauchy"}},
    "inner event with an unknown parameter": {**SAMPLED, "event": {**INNER, "seed": 1}},
    "points not a list": {"schema_version": 1, "type": "guarantees", "points": {"0.5": 1e-6}},
    "points empty": {"schema_version": 1, "type": "guarantees", "points": []},
    "a row that is a number": {"schema_version": 1, "type": "guarantees", "points": [0.5, 1e-6]},
    "a row of three": {"schema_version": 1, "type": "guarantees", "points": [[0.5, 1e-6, 1]]},
    "a row with a list": {"schema_version": 1, "type": "guarantees", "points": [[[0.5], 1e-6]]},
    "an infinite epsilon": {"schema_version": 1, "type": "guarantees", "points": [["inf", 1e-6]]},
    "an infinite divergence": {"schema_version": 1, "type": "renyi", "points": [[2, "inf"]]},
    "renyi of nothing": {"schema_version": 1, "type": "renyi"},
    "renyi of both": {"schema_version": 1, "type": "renyi", "points": [[2, 0.1]], "formula": INNER},
    "losses not a list": {"schema_version": 1, "type": "loss_distribution", "losses": 1, "probabilities": [1]},
    "probability above one": {"schema_version": 1, "type": "loss_distribution", "losses": [0], "probabilities": [2]},
    "events not a list": {"schema_version": 1, "type": "composed", "events": INNER},
    "events empty": {"schema_version": 1, "type": "composed", "events": []},
    "an event without a count": {"schema_version": 1, "type": "composed", "events": [INNER]},
    "a count of zero": {"schema_version": 1, "type": "composed", "events": [{"event": INNER, "count": 0}]},
    "half a count": {"schema_version": 1, "type": "composed", "events": [{"event": INNER, "count": 1.5}]},
    "a note beside a count": {
        "schema_version": 1,
        "type": "composed",
        "events": [{"event": INNER, "count": 1, "note": ""}],
    },
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_is_refused_by_the_reader_and_by_the_schema(validator, name):
    record = copy.deepcopy(BAD[name])
    with pytest.raises((InvalidRecord, InvalidArgument)):
        from_dict(record)
    assert record == BAD[name]  # reading leaves what was passed as it was
    assert not validator.is_valid(record)


# --- what the reader says --------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("newer version", "schema_version=2 is newer than 1"),
        ("no version", "schema_version=None is not 1"),
        ("unknown type", "type='cauchy' is no known event"),
        ("missing parameter", "laplace lacks 'noise_multiplier'"),
        ("unknown parameter", "laplace has unknown 'sensitivity'"),
        ("inner event with a version", "laplace has unknown 'schema_version'"),
        ("bool as number", "noise_multiplier=True is not a number in [0.0001, 1e+12]"),
    ],
)
def test_the_message_names_what_is_wrong(name, message):
    with pytest.raises((InvalidRecord, InvalidArgument), match=re.escape(message)):
        from_dict(BAD[name])


def test_a_number_that_is_not_whole_by_its_spelling_is_no_count():
    with pytest.raises(InvalidArgument, match=re.escape("count=3.0 is not a whole number")):
        from_dict({"schema_version": 1, "type": "composed", "events": [{"event": INNER, "count": 3.0}]})


def test_sampling_under_another_adjacency_is_refused():
    with pytest.raises(IncompatibleAdjacency):
        from_dict({**SAMPLED, "event": INNER, "adjacency": "replace_one"})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_cannot_hold_are_refused(value):
    with pytest.raises(InvalidRecord):
        from_dict({**LAPLACE, "noise_multiplier": value})
    with pytest.raises(InvalidRecord):
        from_dict({"schema_version": 1, "type": "renyi", "points": [[value, 0.1]]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "laplace(2)",
        "{",
        "[" * 100_000,
        '{"schema_version":1,"type":"laplace","noise_multiplier":NaN}',
        '{"schema_version":1,"type":"renyi","points":[[Infinity,1]]}',
        '{"schema_version":1,"type":"renyi","points":[[1e999,1]]}',
        '{"schema_version":1,"type":"laplace","noise_multiplier":2,"noise_multiplier":20}',
        '{"schema_version":1,"type":"laplace","noise_multiplier":' + "9" * 5000 + "}",
        '{"schema_version":1,"type":"poisson_sampled","sampling_prob":0.5,"event":' * 2000,
        b"\xff\xfe\x00",
    ],
    ids=lambda text: repr(text[:40]),
)
def test_what_is_not_json_is_an_invalid_record(text):
    with pytest.raises(InvalidRecord):
        from_json(text)


def test_a_record_nested_beyond_reason_is_refused():
    record = INNER
    for _ in range(5000):
        record = {"type": "poisson_sampled", "sampling_prob": 0.5, "event": record}
    with pytest.raises(InvalidRecord, match="nested too deeply"):
        from_dict({"schema_version": SCHEMA_VERSION, **record})


@pytest.mark.parametrize("text", [None, 3, {"type": "laplace"}])
def test_what_is_not_text_is_an_invalid_argument(text):
    with pytest.raises(InvalidArgument):
        from_json(text)


def test_messages_quote_at_most_a_little_of_a_record():
    with pytest.raises(InvalidRecord) as caught:
        from_dict({**LAPLACE, "type": "x" * 10_000})
    assert len(str(caught.value)) < 500


def test_a_record_starts_with_its_version():
    assert list(to_dict(PureDP(0.5))) == ["schema_version", "type", "epsilon"]
