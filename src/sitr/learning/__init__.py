"""Private deep learning with PyTorch: a plan that is charged once, and a loop that keeps it.

`plan` needs no PyTorch; `attach`, `fix` and what they return do (`pip install "sitr[torch]"`).

Example:
    >>> from sitr.learning import plan
    >>> made = plan(n=60_000, batch=1024, max_grad_norm=1.0, delta=1e-5, epsilon=3.0, steps=1200)
    >>> round(made.noise_multiplier, 2)
    1.1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import MissingExtra
from .plan import TrainingPlan, plan

if TYPE_CHECKING:
    from .replacement import fix
    from .run import Run, Step, attach
    from .views import Views

__all__ = ["Run", "Step", "TrainingPlan", "Views", "attach", "fix", "plan"]

# What needs PyTorch, and where it is.
LATER = {"Run": "run", "Step": "run", "Views": "views", "attach": "run", "fix": "replacement"}


def __getattr__(name: str) -> Any:
    """Load what needs PyTorch when it is first used."""
    if name not in LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f".{LATER[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "safetensors"):
            raise
        raise MissingExtra(
            f"{error.name} is not installed, and sitr.learning.{name} needs it.", do='pip install "sitr[torch]"'
        ) from None
