"""The lesson of `sitr demo`: a small network learns handwritten digits, on a budget that questions share."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ..display import rounded_up, scientific

if TYPE_CHECKING:
    from rich.console import Console

    from ..learning import TrainingPlan

HELD_OUT = 297  # of 1,797 digits
EPSILON, DELTA, STEPS, BATCH = 3.0, 1e-5, 150, 200
PROMISED = 4.0  # ε of the budget
QUESTION = 0.2  # ε of each question
CODE = """\
made = plan(n=1500, batch=200, steps=150, epsilon=3, delta=1e-5, max_grad_norm=1.0)
run = attach(model, optimizer, made, ledger=book, dataset="digits")
for step in run.steps((pictures, digits)):
    for x, y in step:
        step.backward(F.cross_entropy(model(x), y, reduction="none"))"""


@dataclass(frozen=True)
class Lesson:
    """What was learned: the plan, the share of digits held out that are told, what it cost, and what came after."""

    plan: TrainingPlan
    told: float
    spent: str
    asked: int
    refusal: str


def learn() -> Lesson | None:
    """Train on scikit-learn's digits, then ask until the budget refuses; None where PyTorch is not installed."""
    if find_spec("torch") is None or find_spec("sklearn") is None:
        return None
    import torch
    from sklearn.datasets import load_digits  # type: ignore[import-untyped,unused-ignore]
    from torch.nn import functional

    from ..learning import attach, plan
    from ..ledger import Budget, Ledger

    held = load_digits()
    x, y = torch.tensor(held.data, dtype=torch.float32) / 16, torch.tensor(held.target)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    made = plan(n=len(x) - HELD_OUT, batch=BATCH, steps=STEPS, epsilon=EPSILON, delta=DELTA, max_grad_norm=1.0)
    with Ledger.open("memory://") as book:
        book.create_budget("digits", Budget(epsilon=PROMISED, delta=1e-4))
        run = attach(model, optimizer, made, ledger=book, dataset="digits", analyst="demo", operation="model")
        for step in run.steps((x[HELD_OUT:], y[HELD_OUT:])):
            for pictures, shown in step:
                step.backward(functional.cross_entropy(model(pictures), shown, reduction="none"))
        with torch.no_grad():
            told = float((model(x[:HELD_OUT]).argmax(1) == y[:HELD_OUT]).float().mean())
        asked, refusal = _asked(book)
        return Lesson(made, told, str(run.spent()), asked, refusal)


def _asked(book: Any) -> tuple[int, str]:
    """Ask for noisy counts until the budget refuses; how many were answered, and what it said."""
    from ..accounting import Laplace
    from ..errors import BudgetExceeded

    asked = 0
    try:
        while True:
            with book.reserve("digits", Laplace(noise_multiplier=1 / QUESTION), analyst="demo") as grant:
                grant.commit("a noisy count")
            asked += 1
    except BudgetExceeded as refusal:
        return asked, refusal.what


def tell(console: Console, lesson: Lesson | None) -> None:
    """Print what happened."""
    from rich.padding import Padding
    from rich.text import Text

    console.print(Text("Handwriting: train a model on the same kind of promise\n", style="bold underline"))
    if lesson is None:
        console.print(Text('Training needs PyTorch and scikit-learn: pip install "sitr[torch,compare]".\n'))
        return
    said = (
        f"A network learns to read handwriting from {lesson.plan.n:,} digits, so that nobody can tell from it whether "
        f"one of them was there. The whole training costs ε = {rounded_up(EPSILON)} at δ = {scientific(DELTA)}, and is "
        f"charged before its first step. The promise is ε = {rounded_up(PROMISED)}; questions share it."
    )
    console.print(Text(said))
    console.print(Padding(Text(CODE, style="dim"), (1, 0, 1, 2), expand=False))
    after = (
        f"It reads {lesson.told:.0%} of {HELD_OUT} digits that it has not seen. "
        f"Then {lesson.asked} questions of ε = {rounded_up(QUESTION)} were answered from what was left, and the next "
        f"was refused: {lesson.refusal}\n"
    )
    console.print(Text(after))


def record(lesson: Lesson | None) -> dict[str, Any] | None:
    """Return what happened as JSON holds it."""
    if lesson is None:
        return None
    return {
        "plan": lesson.plan.to_dict(),
        "told": lesson.told,
        "spent": lesson.spent,
        "asked": lesson.asked,
        "refusal": lesson.refusal,
    }
