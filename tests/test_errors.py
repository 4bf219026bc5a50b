"""Errors: one family, stable codes, three lines, and nothing lost in a pickle."""

import inspect
import pickle

import pytest

from sitr import errors
from sitr.errors import InvalidArgument, NoSuchGuarantee, SitrError

KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, SitrError)]
CODES = {
    "SitrError": "SITR-000",
    "InvalidArgument": "SITR-A01",
    "NoSuchGuarantee": "SITR-G01",
    "IncompatibleAdjacency": "SITR-G02",
    "CannotCalibrate": "SITR-G03",
    "BudgetExceeded": "SITR-B01",
    "InvalidRecord": "SITR-R01",
    "InvalidNotation": "SITR-N01",
    "MissingExtra": "SITR-X01",
}


def test_codes_never_change():
    assert {kind.__name__: kind.code for kind in KINDS}.items() >= CODES.items()


def test_codes_are_distinct():
    assert len({kind.code for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_says_what_why_and_what_to_do(kind):
    error = kind("it broke.", why="it matters.", do="mend it.")
    assert str(error) == f"{kind.__name__} [{kind.code}]: it broke.\nWhy: it matters.\nDo: mend it."


def test_empty_lines_are_left_out():
    assert str(InvalidArgument("it broke.")) == "InvalidArgument [SITR-A01]: it broke."


@pytest.mark.parametrize("kind", KINDS)
def test_errors_survive_a_pickle(kind):
    error = kind("it broke.", why="it matters.", do="mend it.")
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert str(back) == str(error)


@pytest.mark.parametrize("kind", [InvalidArgument, NoSuchGuarantee])
def test_a_caller_may_catch_value_error(kind):
    assert issubclass(kind, ValueError)


def test_warnings_are_user_warnings():
    assert issubclass(errors.PrivacyWarning, UserWarning)
    assert issubclass(errors.AccuracyWarning, UserWarning)
