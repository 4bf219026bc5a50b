"""Whose rows are whose: found by growth and change, never by size."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sitr.learning.ownership import Entangled, Owned, Owner, Probed, Untold


def find_owner(fewer: Tensor, base: Tensor, changed: list[Tensor]) -> Owner:
    """Whose rows are whose in a tensor that was seen in these runs."""
    probed = Probed(fewer, base)
    for run in changed:
        probed.compare(run)
    return probed.owner()


def laid_out(owner: Owned, values: Tensor) -> Tensor:
    """Values by person (people, several, time), as a tensor whose dimension `owner.dim` is people's."""
    moved = values.movedim(1, 1 + owner.dim) if owner.dim else values
    return owner.join(moved)


@given(
    dim=st.integers(0, 1),
    minor=st.booleans(),
    several=st.integers(1, 3),
    time=st.integers(1, 4),
    people=st.integers(2, 3),
)
def test_the_owner_is_found_whatever_the_sizes(dim: int, minor: bool, several: int, time: int, people: int) -> None:
    """Also where time is as long as the batch has people."""
    owner = Owned(dim, minor=minor and several > 1, several=several > 1)
    base = torch.randn(people, several, time)
    changed = []
    for person in range(people):
        other = base.clone()
        other[person] += 1
        changed.append(laid_out(owner, other))
    found = find_owner(laid_out(owner, base[:-1]), laid_out(owner, base), changed)
    assert found == owner
    x = laid_out(owner, base)
    assert torch.equal(owner.join(owner.split(x, people)), x)
    assert owner.fits(x, people)


def test_what_is_the_same_for_everybody_is_shared() -> None:
    x = torch.randn(4, 3)
    assert find_owner(x, x, [x, x]) is None
    spoilt = x.clone()
    spoilt[0, 0] = torch.nan
    assert find_owner(spoilt, spoilt, [spoilt, spoilt]) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda x, person: x + 1,  # everybody moves
        lambda x, person: x.index_add(0, torch.tensor([(person + 1) % 3]), torch.ones(1, 2)),  # somebody else moves
    ],
)
def test_what_moves_with_others_is_entangled(change: object) -> None:
    x = torch.randn(3, 2)
    with pytest.raises(Entangled):
        find_owner(x[:2], x, [change(x, person) for person in range(3)])  # type: ignore[operator]


def test_what_grows_strangely_is_entangled() -> None:
    x = torch.randn(3, 3)
    with pytest.raises(Entangled):  # pairs of people
        find_owner(x[:2, :2], x, [x, x, x])
    with pytest.raises(Entangled):  # it changes, and does not grow
        find_owner(x, x, [x + 1, x, x])


def test_what_nobody_moves_is_assumed_to_lie_together_only_where_that_makes_all_alike() -> None:
    """Several entries each, in an order that nothing shows: gradients have to show it (test_views)."""
    for base in (torch.zeros(6), torch.tensor([1.0, 2, 1, 2, 1, 2])):
        owner = find_owner(base[:4], base, [base] * 3)
        assert owner == Owned(0, several=True)
        assert isinstance(owner, Owned)
        assert owner.assumed
    base = torch.tensor([1.0, 1, 1, 2, 2, 2])
    with pytest.raises(Untold):
        find_owner(base[:4], base, [base] * 3)
    seen = find_owner(torch.zeros(4), torch.zeros(6), list(torch.eye(3).repeat_interleave(2, dim=1)))
    assert isinstance(seen, Owned)
    assert not seen.assumed
