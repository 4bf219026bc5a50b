"""The public names of the accountant: exactly these, each with a doctest that shows a number and with its theorem."""

import doctest
import inspect
import re
from functools import cached_property
from pathlib import Path
from types import FunctionType

import pytest

from sitr import accounting
from sitr.accounting import Event, Filter, allowances, batches, bracket, calibration, curve, divergent, theorems
from sitr.accounting.curve import Answers
from sitr.accounting.events import claims, event, mechanisms
from sitr.accounting.filters import filter as base
from sitr.accounting.filters import odometer, single, union, whole

PUBLIC = [
    "AdvancedFilter",
    "ApproximateDP",
    "Bracket",
    "Calibration",
    "Composed",
    "Concentrated",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Filter",
    "GDPFilter",
    "Gaussian",
    "Guarantees",
    "Laplace",
    "LossDistribution",
    "MaximallyDivergent",
    "Odometer",
    "PoissonSampled",
    "PrivacyProfile",
    "PureDP",
    "PureFilter",
    "RDPFilter",
    "RandomizedResponse",
    "Renyi",
    "SampledWithoutReplacement",
    "ShuffledEpochs",
    "ShuffledReports",
    "SingleFilter",
    "Split",
    "UnionFilter",
    "WholeFilter",
    "ZCDPFilter",
    "ZeroConcentrated",
    "abadi_gaussian_delta",
    "abadi_gaussian_noise",
    "allowance",
    "calibrate",
    "calibrate_count",
    "calibrate_noise",
    "calibrate_queries",
    "calibrate_sampling_prob",
    "choose_filter",
    "choose_union",
    "classical_allowance",
    "classical_gaussian_noise",
    "compose",
    "error_of_noise",
    "event_schema",
    "noise_for_error",
    "parse_event",
    "split_budget",
    "theorems",
]
THEOREMS = [
    "Guarantee",
    "advanced",
    "advanced_halved",
    "advanced_tanh",
    "bad_outcome_advanced",
    "bad_outcome_basic",
    "bad_outcome_generic_rdp",
    "basic",
    "generic_rdp",
    "kairouz_oh_viswanath",
    "kairouz_oh_viswanath_points",
    "loss_tail_concentrated",
    "loss_tail_renyi",
    "moments_accountant",
    "murtagh_vadhan",
    "murtagh_vadhan_exact",
    "tightest",
]

# They write an event down or read it back, and say nothing of what it costs: no theorem stands behind them.
WITHOUT_THEOREM = {
    "Event.from_dict",
    "Event.from_json",
    "Event.parameters",
    "Event.to_dict",
    "Event.to_json",
    "event_schema",
    "parse_event",
}
# They hand an event on, as text or as its parts, and answer no question about it.
WITHOUT_PRIVACY = {"Answers.curve", "Answers.parts", "event_schema", "parse_event"}
# The questions are met through Event and Curve; the whole numbers of filters and their limits through filters.
UNEXPORTED = {
    "curve": {"Answers"},
    "filter": {"added", "amount_of", "covers", "in_units", "rescaled"},
    "single": {"renyi_limit"},
    "union": {"Order"},
}

SOURCE = Path(accounting.__file__).parents[1]
THEORY = (Path(__file__).parents[2] / "docs" / "THEORY.md").read_text(encoding="utf-8")
ITEMS = set(re.findall(r"^(?:## )?(\d+(?:\.\d+)?) ", THEORY, re.MULTILINE))
CITED = re.compile(r"THEORY (\d+(?:\.\d+)?(?:(?:, |-)\d+(?:\.\d+)?)*)")
NUMBER = re.compile(r"(?<!\w)\d")


def own(cls):
    """The public methods and properties that a class itself defines; plain fields have no docstring."""
    kinds = (FunctionType, property, cached_property, staticmethod, classmethod)
    return {n: v for n, v in vars(cls).items() if isinstance(v, kinds) and not n.startswith("_")}


def with_methods(name, value):
    """The docstring of a public name and of each method; one that overrides another has both."""
    found = {name: inspect.getdoc(value) if inspect.ismodule(value) else inspect.cleandoc(value.__doc__ or "")}
    for cls in inspect.getmro(value) if inspect.isclass(value) else ():
        if cls.__module__.startswith("sitr."):
            for method in own(cls):
                texts = [vars(base)[method].__doc__ or "" for base in cls.__mro__ if method in vars(base)]
                found[f"{cls.__name__}.{method}"] = "\n\n".join(map(inspect.cleandoc, texts))
    return found


def documented():
    names = [(name, getattr(accounting, name)) for name in accounting.__all__]
    names += [(f"theorems.{name}", getattr(theorems, name)) for name in theorems.__all__]
    return {label: text for name, value in names for label, text in with_methods(name, value).items()}


DOCUMENTED = documented()


def shows_a_number(text):
    examples = doctest.DocTestParser().get_examples(text)
    return "Example:" in text and any(NUMBER.search(example.want) for example in examples)


def items_cited(text):
    return {item for found in CITED.findall(" ".join(text.split())) for item in re.split(", |-", found)}


def names_a_theorem(text):
    return any("." in item for item in items_cited(text))


def test_the_public_names_are_exactly_these():
    assert accounting.__all__ == PUBLIC


def test_the_theorems_are_exactly_these():
    assert theorems.__all__ == THEOREMS


@pytest.mark.parametrize(
    "module",
    [
        *(allowances, batches, bracket, calibration, claims, curve, divergent, event, mechanisms, theorems),
        *(base, single, whole, union, odometer),
    ],
)
def test_nothing_public_is_left_out(module):
    exported = set(theorems.__all__ if module is theorems else accounting.__all__)
    defined = {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) or inspect.isclass(value)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert defined - exported == UNEXPORTED.get(module.__name__.rpartition(".")[2], set())


def test_methods_are_found():
    assert {"Answers.epsilon", "Event.to_json", "Bracket.width", "Filter.charge", "Odometer.event"} <= set(DOCUMENTED)


def test_every_docstring_shows_a_number():
    assert [label for label, text in DOCUMENTED.items() if not shows_a_number(text)] == []


def test_every_docstring_names_its_theorem():
    assert {label for label, text in DOCUMENTED.items() if not names_a_theorem(text)} == WITHOUT_THEOREM


def test_every_guarantee_has_a_privacy_section():
    """Of functions, of the kinds of events and filters, and of the questions that all events answer."""
    kinds = {
        name
        for name in accounting.__all__
        if inspect.isclass(kind := getattr(accounting, name)) and issubclass(kind, (Event, Filter))
    } - {"Event", "Filter"}
    functions = {name for name in accounting.__all__ if inspect.isfunction(getattr(accounting, name))}
    functions |= {f"theorems.{name}" for name in theorems.__all__ if inspect.isfunction(getattr(theorems, name))}
    questions = {f"Answers.{name}" for name in own(Answers)}
    asked = kinds | functions | questions | {"Odometer"}
    assert {label for label in asked if "\nPrivacy: " not in DOCUMENTED[label]} == WITHOUT_PRIVACY


@pytest.mark.parametrize(
    ("text", "number", "theorem"),
    [
        ("Nothing.", False, False),
        ("By THEORY 3.2.\n\nExample:\n    >>> 1 + 1\n    2", True, True),
        ("By THEORY 4.1-4.5, and seed 000.\n\nExample:\n    >>> 1 == 1\n    True", False, True),
        ("By THEORY 3.\n\nExample:\n    >>> name\n    'B01'", False, False),
        ("In 2016.\n\nExample:\n    >>> x = 0.5", False, False),
    ],
)
def test_the_checks_check(text, number, theorem):
    assert (shows_a_number(text), names_a_theorem(text)) == (number, theorem)


def test_what_is_cited_is_there():
    cited = {item for path in SOURCE.rglob("*.py") for item in items_cited(path.read_text(encoding="utf-8"))}
    assert {"2.3", "4.5", "8"} <= ITEMS
    assert cited <= ITEMS, sorted(cited - ITEMS)
