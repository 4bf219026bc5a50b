"""Words and pictures: today, the figures of the accountant and the numbers behind them.

Example:
    >>> from sitr.report import numbers
    >>> numbers.rdp_curves(alphas=[2]).where(mechanism="laplace", parameter=2)["epsilon"].round(6)
    array([0.200304])
"""

from . import numbers
from .figures import FIGURES, write_figures

__all__ = ["FIGURES", "numbers", "write_figures"]
