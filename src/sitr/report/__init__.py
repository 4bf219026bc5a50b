"""Words and pictures: figures of the accountant with their numbers, how a budget burns down, how good a table is.

Example:
    >>> from sitr.report import numbers
    >>> numbers.rdp_curves(alphas=[2]).where(mechanism="laplace", parameter=2)["epsilon"].round(6)
    array([0.200304])
"""

from . import numbers
from .burn_down import write_burn_down
from .figures import FIGURES, write_figures
from .synthetic import write_quality

__all__ = ["FIGURES", "numbers", "write_burn_down", "write_figures", "write_quality"]
