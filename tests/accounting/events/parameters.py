"""Parameters that no event takes, and how each is refused."""

import math

import numpy as np
import pytest

from sitr.errors import InvalidArgument

NAN, INF = math.nan, math.inf
NEVER = [NAN, -INF, -1, -(10**400), True, np.True_, "1", None, 1j, [], (), {}, 10**400, 1e300]


def bad_parameters(parameters):
    """All that is outside the ranges: each parameter's name, how to pass it, and a value."""
    for number, (name, make, more) in enumerate(parameters):
        for value in [*NEVER, *more]:
            if name == "losses" and value == -1 and value is not True:
                continue  # a negative loss is a loss
            if name == "alpha" and type(value) in (int, float) and value in (1e300, 10**400):
                continue  # an order, if a large one
            shown = f"{repr(value)[:3]}...({value > 0})" if len(repr(value)) > 40 else repr(value)
            yield pytest.param(name, make, value, id=f"{number}-{name}-{shown}")


def is_refused(name, make, value):
    """Whether a value is refused by the name and the range of its parameter."""
    with pytest.raises(InvalidArgument) as caught:
        make(value)
    return caught.value.what.startswith(f"{name}=") and (" in [" in caught.value.what or " in (" in caught.value.what)
