"""Releases: what leaves says what it cost, whether that was charged, and whether it protects anyone."""

from datetime import UTC, datetime

import numpy as np
import pytest

from sitr import __version__
from sitr.accounting import Laplace, PureDP
from sitr.release import NOT_PRIVATE, Release

EVENT = PureDP(epsilon=1.0)


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (Release(3, 2.0, EVENT), "3 (± 2 with 95 %), not charged"),
        (Release(3.25, 0.123456, EVENT, entry="b7c1/41"), "3.25 (± 0.1235 with 95 %), entry b7c1/41"),
        (Release("north", None, EVENT), "north, not charged"),
        (Release(None, None, EVENT, entry="b7c1/41"), "None, entry b7c1/41"),
        (Release(3, 2.0, EVENT, private=False), f"3 (± 2 with 95 %), not charged; {NOT_PRIVATE}"),
        (Release(np.array([1, 2]), np.array([0.5, 0.5]), EVENT), "[1 2], not charged"),
    ],
)
def test_a_release_says_it_in_a_line(release, text):
    assert str(release) == text


def test_a_release_cannot_be_changed_and_speaks_of_the_neighbours_of_its_event():
    release = Release(3, 2.0, Laplace(2.0, adjacency="replace_one"))
    assert release.adjacency == "replace_one"
    assert Release(3, 2.0, EVENT).adjacency is None
    with pytest.raises(AttributeError):
        release.private = True


def test_when_it_was_made_does_not_tell_releases_apart():
    before = datetime.now(UTC)
    first, second = Release(3, 2.0, EVENT), Release(3, 2.0, EVENT)
    assert first == second
    assert before <= first.time <= second.time
    assert first.version == __version__
    assert first != Release(3, 2.0, EVENT, private=False)
