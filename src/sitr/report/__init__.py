"""Words and pictures: figures of the accountant, and of budgets, synthetic tables and training runs.

Example:
    >>> from sitr.report import numbers
    >>> numbers.rdp_curves(alphas=[2]).where(mechanism="laplace", parameter=2)["epsilon"].round(6)
    array([0.200304])
"""

from . import numbers
from .burn_down import write_burn_down
from .figures import FIGURES, write_figures
from .synthetic import write_quality
from .training import write_training

__all__ = ["FIGURES", "numbers", "write_burn_down", "write_figures", "write_quality", "write_training"]
