"""Train a small network on scikit-learn's handwritten digits, privately, on a budget that questions share.

Run it: python examples/digits.py [--epsilon 8] [--steps 250]. It takes less than a minute on one core.
"""

from __future__ import annotations

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn

from sitr.accounting import Laplace
from sitr.errors import BudgetExceeded
from sitr.learning import attach, plan
from sitr.ledger import Budget, Ledger

HELD_OUT = 297  # of 1,797 digits


def digits() -> tuple[Tensor, Tensor]:
    """Return pictures of 8 × 8 greys in [0, 1], and what they show, in an order that no picture decides."""
    held = load_digits()
    order = torch.randperm(len(held.target), generator=torch.Generator().manual_seed(0))
    x = torch.tensor(held.data, dtype=torch.float32)[order] / 16
    return x, torch.tensor(held.target)[order]


def main(epsilon: float = 8.0, steps: int = 250) -> float:
    """Train, ask, and be refused; return how many of the digits held out are told."""
    x, y = digits()
    train, test = (x[HELD_OUT:], y[HELD_OUT:]), (x[:HELD_OUT], y[:HELD_OUT])
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    ledger = Ledger.open("memory://")
    ledger.create_budget("digits", Budget(epsilon=epsilon + 1, delta=1e-4))
    made = plan(n=len(train[0]), batch=200, max_grad_norm=1.0, delta=1e-5, epsilon=epsilon, steps=steps)
    run = attach(model, optimizer, made, ledger=ledger, dataset="digits", analyst="amina", operation="model-1")
    print(run.explain(), end="\n\n")

    for step in run.steps(train, progress=True):
        for pictures, shown in step:
            step.backward(F.cross_entropy(model(pictures), shown, reduction="none"))
    with torch.no_grad():
        told = float((model(test[0]).argmax(1) == test[1]).float().mean())
    print(f"\n{told:.1%} of {HELD_OUT} digits that were held out are told; {run.spent()}.")

    asked = 0
    try:
        while True:
            with ledger.reserve("digits", Laplace(noise_multiplier=5), analyst="amina") as grant:
                grant.commit("a noisy count")
            asked += 1
    except BudgetExceeded as refusal:
        print(f"Then {asked} questions were answered from what was left, and the next one was refused: {refusal.what}")
    return told


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=250)
    chosen = parser.parse_args()
    main(chosen.epsilon, chosen.steps)
