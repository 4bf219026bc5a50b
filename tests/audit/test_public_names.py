"""The public names of the auditor: exactly these, each with a doctest that shows a number."""

import doctest
import inspect
import re

import pytest

from sitr import audit
from sitr.audit import one_run, pairs, report

PUBLIC = ["AuditReport", "OneRunReport", "Witness", "audit", "audit_one_run"]
# Parts of the two audits, which their tests call by name.
UNEXPORTED = {"Chosen", "choose", "epsilon_lower_one_run", "p_value"}


def test_the_public_names_are_exactly_these():
    assert audit.__all__ == PUBLIC


@pytest.mark.parametrize("module", [one_run, pairs, report])
def test_nothing_public_is_left_out(module):
    defined = {
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) or inspect.isclass(value)
        if value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert defined - set(PUBLIC) <= UNEXPORTED


@pytest.mark.parametrize("name", PUBLIC)
def test_every_docstring_shows_a_number(name):
    text = inspect.getdoc(getattr(audit, name))
    examples = doctest.DocTestParser().get_examples(text)
    assert "Example:" in text
    assert any(re.search(r"(?<!\w)\d", example.want) for example in examples)


@pytest.mark.parametrize("name", ["audit", "audit_one_run"])
def test_every_promise_has_a_privacy_section_and_its_theorem(name):
    text = inspect.getdoc(getattr(audit, name))
    assert "\nPrivacy: " in text
    assert re.search(r"THEORY \d\.\d", text)
