"""The public names of the tables room: exactly these, each with a docstring, and with an example."""

import inspect

from sitr import tables

PUBLIC = ["Declaration"]


def test_the_public_names_are_exactly_these():
    assert tables.__all__ == PUBLIC


def test_every_public_name_has_a_docstring_and_an_example():
    for name in PUBLIC:
        value = getattr(tables, name)
        methods = [
            f for m, f in vars(value).items() if not m.startswith("_") and isinstance(f, (classmethod, property))
        ]
        assert all(inspect.getdoc(found) for found in (value, *methods)), name
        assert any(">>>" in (inspect.getdoc(found) or "") for found in (value, *(m.__func__ for m in methods))), name
