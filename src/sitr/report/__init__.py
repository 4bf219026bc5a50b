"""Words and pictures: the figures of the accountant with the numbers behind them, and how a budget burns down.

Example:
    >>> from sitr.report import numbers
    >>> numbers.rdp_curves(alphas=[2]).where(mechanism="laplace", parameter=2)["epsilon"].round(6)
    array([0.200304])
"""

from . import numbers
from .burn_down import write_burn_down
from .figures import FIGURES, write_figures

__all__ = ["FIGURES", "numbers", "write_burn_down", "write_figures"]
