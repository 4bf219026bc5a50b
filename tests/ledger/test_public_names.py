"""The public names of the ledger: exactly these, each with a docstring, and with an example."""

import inspect

from sitr import ledger

PUBLIC = ["Amount", "Answer", "Budget", "Entry", "Grant", "Head", "Ledger", "Point"]
PUBLIC += ["Standing", "Statement", "Verification"]


def test_the_public_names_are_exactly_these():
    assert ledger.__all__ == PUBLIC


def test_every_public_name_and_method_has_a_docstring():
    for name in PUBLIC:
        value = getattr(ledger, name)
        assert inspect.getdoc(value), name
        for method, found in vars(value).items():
            if not method.startswith("_") and (inspect.isfunction(found) or isinstance(found, (property, classmethod))):
                assert inspect.getdoc(found), f"{name}.{method}"


def test_every_public_name_has_an_example():
    for name in PUBLIC:
        value = getattr(ledger, name)
        methods = [f for m, f in vars(value).items() if not m.startswith("_") and inspect.isfunction(f)]
        examples = [inspect.getdoc(found) for found in (value, *methods)]
        assert any(">>>" in (text or "") for text in examples), name
    for method in (
        "open",
        "create_budget",
        "raise_budget",
        "reserve",
        "once",
        "answer",
        "refund",
        "verify",
        "statement",
    ):
        assert ">>>" in (inspect.getdoc(getattr(ledger.Ledger, method)) or ""), method
