"""The retail example: months are near the truth, rare countries are not named, and lines of nobody are not counted."""

import contextlib
import csv
import gzip
import io
from collections import defaultdict

import pytest

from examples import retail
from sitr.ledger import Ledger
from tests.examples.data import shared

pytestmark = pytest.mark.statistical


@pytest.fixture(scope="module")
def data():
    return shared("online_retail", "online_retail.csv.gz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("retail")


@pytest.fixture(scope="module")
def told(data, folder):
    """What the example prints, and its findings."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        found = retail.main(data, folder)
    return text.getvalue(), found


@pytest.fixture(scope="module")
def spent(data):
    """What each customer spent in each month, by adding up."""
    sums = defaultdict(float)
    with gzip.open(data, "rt", encoding="utf-8") as rows:
        for row in csv.DictReader(rows):
            if row["CustomerID"]:
                number = min(max(int(row["Quantity"]), -1000), 1000)
                sums[row["InvoiceDate"][:7], row["CustomerID"]] += number * min(max(float(row["UnitPrice"]), 0), 1000)
    return sums


def test_months_are_near_what_customers_spent_up_to_their_bounds(told, folder, spent):
    """Below all that was spent up to a bound of 4096, the power of two above that found, and above a fifth of it.

    Of a customer's months 5 are kept, and the bound found is 2048 or so. Noise of 21 scales, 5 · 4096 at ε = 1 at most,
    has a chance under 1e-9.
    """
    with Ledger.open(folder / "book.db", create=False) as ledger:
        kept = ledger.answer("revenue by month", analyst="amina").value
    noise = 21 * 5 * 4096
    for month, revenue in zip(kept["keys"][0]["cells"], kept["aggregates"][0]["value"], strict=True):
        clipped = [min(one, 4096) for (when, _), one in spent.items() if when == month["timestamp"][:7]]
        assert 0.2 * sum(clipped) - noise < revenue < sum(clipped) + noise
    assert len(kept["keys"][0]["cells"]) == 13
    assert told[1][0].startswith("The best month is ")


def test_countries_of_few_customers_are_not_named(told):
    """Iceland, Lebanon and Singapore have one customer each: one is named with a chance of 1e-7, all with 1e-21."""
    text, _ = told
    assert "United Kingdom" in text
    assert not all(country in text for country in ("Iceland", "Singapore", "Lebanon"))


def test_lines_without_a_customer_are_not_counted(told):
    text, _ = told
    assert not any(number in text for number in ("135,080", "135080", "541,909"))


def test_to_add_up_by_customer_has_less_noise_than_to_keep_lines(told):
    lines = [line.split() for line in told[0].splitlines() if "% of lines" in line or "% of months" in line]
    noise = {(line[0], line[1].strip(",")): float(line[-1].replace(",", "")) for line in lines}
    assert noise["5", "months"] < noise["100", "lines"] < noise["300", "lines"]


def test_it_is_paid_for_and_a_second_run_costs_nothing(told, data, folder):
    with Ledger.open(folder / "book.db", create=False) as ledger:
        assert ledger.verify().valid
        before = ledger.spent("shop").value
    with contextlib.redirect_stdout(io.StringIO()):
        assert retail.main(data, folder) == told[1]
    with Ledger.open(folder / "book.db", create=False) as ledger:
        assert ledger.spent("shop").value == before
    assert (folder / "revenue.svg").read_text(encoding="utf-8").startswith("<?xml")
