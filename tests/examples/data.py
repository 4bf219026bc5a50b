"""Where real data are, beside the repository; they are no part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def shared(*parts: str) -> Path:
    """A file of the real data; the test is skipped where there are none."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip("the real data are not in ../shared/data")
    return path
