"""Laws with a last outcome: where the first bits are those of a step, more decide for either side of it."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers.laws import Coin, Digit
from sitr.mechanisms.samplers.table import Table
from tests.mechanisms.statistics import fits
from tests.mechanisms.truths import Scripted


@pytest.mark.statistical
@pytest.mark.parametrize("fine", [4, 8, 64])
def test_coins_and_digits_follow_their_law_however_few_bits_decide_first(fine):
    coins = Table(Coin(Fraction(1, 3)), fine).draw(SYSTEM, 3000)
    assert fits(coins, 0, [1 - math.exp(-1 / 3), math.exp(-1 / 3)])
    digits = Table(Digit(Fraction(1, 4), 5), fine).draw(SYSTEM, 3000)
    weights = np.exp(-np.arange(5) / 4)
    assert fits(digits, 0, weights / weights.sum())


@pytest.mark.parametrize(("then", "heads"), [(0, 0), (255, 1)])
def test_a_coin_at_its_step_falls_on_either_side(then, heads):
    table = Table(Coin(Fraction(1)))
    source = Scripted(int(table.floors[0]).to_bytes(8, "little"), then)
    assert table.draw(source, 1)[0] == heads
