"""Addresses of ledgers."""

import pytest

from sitr.errors import InvalidArgument
from sitr.ledger import Ledger


@pytest.mark.parametrize("url", ["", "a:b", "mysql://x", "sqlite://", "sqlite:///", "memory://x", 3, None])
def test_addresses_that_are_none(url):
    with pytest.raises(InvalidArgument, match=r"sqlite:///book\.db"):
        Ledger.open(url)


def test_a_book_is_opened_by_its_path(tmp_path):
    with Ledger.open(tmp_path / "book.db") as ledger, Ledger.open(str(tmp_path / "book.db")) as same:
        assert ledger.id == same.id
