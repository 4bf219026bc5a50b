"""Reasons: a line that every report can show."""

import pytest

from sitr.errors import InvalidArgument
from sitr.ledger.reason import LONGEST_REASON, check_reason


def test_a_reason_is_kept_as_it_was_said():
    assert check_reason("x" * LONGEST_REASON) == "x" * LONGEST_REASON
    assert check_reason("الموجة الثانية") == "الموجة الثانية"


@pytest.mark.parametrize("wrong", [None, 7, "", "  ", "two\nlines", "\x1b[2J", "x" * (LONGEST_REASON + 1)])
def test_what_no_report_can_show_is_no_reason(wrong):
    with pytest.raises(InvalidArgument, match="a reason is a line"):
        check_reason(wrong)
