"""How each torch function's gradients are taken apart by person: one file for each family of functions.

A rule takes a `Call`, and returns what the function returns with parameters as constants, together with a function from
the gradient of that to pieces of the parameters' gradients; or None where it has nothing to say, and the operation is
expanded to one copy of its parameters for each person.
"""

from __future__ import annotations

from . import attention, convolution, embedding, linear, normalisation, recurrent

RULES = {
    **linear.RULES,
    **convolution.RULES,
    **embedding.RULES,
    **normalisation.RULES,
}

PRODUCTS = {*linear.RULES, *convolution.RULES}  # what autocast computes in 16 bits

COMPOSITES = {
    **linear.COMPOSITES,
    **attention.COMPOSITES,
    **recurrent.COMPOSITES,
}
