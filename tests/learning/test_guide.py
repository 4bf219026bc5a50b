"""What docs/learning.md shows runs, on fewer examples."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from sitr.ledger import Budget, Ledger

GUIDE = Path(__file__).parents[2] / "docs" / "learning.md"


def test_what_it_shows_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger.open("study.db") as ledger:
        ledger.create_budget("patients", Budget(epsilon=4.0, delta=1e-4))
    text = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL))
    for_people = (("5_000", "50"), ("batch=100", "batch=10"), ("steps=500", "steps=5"))
    for many, few in (("60_000", "200"), ("1024", "20"), ("1200", "6"), *for_people):
        assert many in text
        text = text.replace(many, few)
    train_set = torch.utils.data.TensorDataset(torch.randn(200, 4), torch.randint(0, 3, (200,)))
    names = {"Net": lambda: nn.Linear(4, 3), "train_set": train_set, "owners": torch.randint(0, 50, (200,))}
    exec(compile(text, GUIDE.name, "exec"), names)
    shown = capsys.readouterr().out
    assert "after 6 of 6 steps" in shown
    assert "no violation found, and 50 guesses are too few to show one" in shown
    assert (tmp_path / "model-1.safetensors").exists()
