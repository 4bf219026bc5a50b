"""A year of a shop's invoices, asked privately: customers with thousands of lines, and lines that belong to nobody.

The data are 541,909 lines of invoices ("Online Retail", UCI): one file, online_retail.csv.gz; the spreadsheet of UCI
has to be saved as CSV first. 4,372 customers have 1 to 7,983 lines each. Other lines have no customer: they belong to
nobody, so they are dropped as they are read, and nothing says how many they are. What is protected is a customer with
all of their lines.

    python examples/retail.py PATH_TO/online_retail.csv.gz retail-output

It shows how to choose what is kept of heavy contributors, by a profile and by what `explain` says, before anything is
paid for. A second run in the same folder returns the same answers and costs nothing. It needs the engine (duckdb,
ibis, pyarrow) and matplotlib.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import sitr
from sitr.ledger import Ledger
from sitr.query.answer import Answer
from sitr.query.facts import Facts
from sitr.session.database import Database, create_budgets
from sitr.session.question import Question
from sitr.session.table import PrivateTable
from sitr.tables.declaration import Declaration

DECLARATION = """
sitr = 1
name = "shop"
version = 1

[privacy]
unit = "customer"
delta = 1e-7

[budgets.shop]
epsilon = 4.0
delta = 1e-5

[tables.lines]
source = {source}
unit = "CustomerID"                                # lines without one belong to nobody, and are dropped
max_rows_per_unit = 10000
max_rows = 10000000
columns.CustomerID = {{ type = "integer" }}
columns.InvoiceDate = {{ type = "timestamp", bounds = [2010-12-01, 2011-12-31], nulls = "drop" }}
columns.Quantity = {{ type = "integer", bounds = [-1000, 1000], nulls = "drop" }}      # negative: cancelled
columns.UnitPrice = {{ type = "decimal(10, 2)", bounds = [0, 1000], nulls = "drop" }}  # in pounds
columns.Country = {{ type = "string" }}              # no categories: those that enough customers are from are found
"""
ASKED = 1.0  # ε of the months' revenue


def open_shop(data: Path, folder: Path) -> Database:
    """Write the declaration, begin its ledger, and open the database as an analyst."""
    folder.mkdir(parents=True, exist_ok=True)
    declaration = folder / "shop.toml"
    declaration.write_text(DECLARATION.format(source=json.dumps(str(data.resolve()))), encoding="utf-8")
    declared = Declaration.read(declaration)
    ledger = Ledger.open(folder / "book.db")
    create_budgets(declared, ledger)
    return sitr.open(declared, analyst="amina", ledger=ledger)


def profile(lines: PrivateTable) -> tuple[Facts, float]:
    """How many lines do customers have, and what is a line worth? Returns also a bound for a line."""
    found = lines.profile("revenue").release(epsilon=0.6, operation="profile")
    assert found.facts is not None
    half, tenth, worth = _quantile(found.facts, 0.5), _quantile(found.facts, 0.9), found.bounds["revenue"][1]
    print(f"1. A profile (ε = 0.6): about {found.facts.units:,.0f} customers. Half of them have {half:.0f} lines or")
    print(f"   fewer, one in ten has more than {tenth:.0f}. Nearly all lines are worth less than £{worth:g}.\n")
    return found.facts, worth


def bounds(lines: PrivateTable) -> None:
    """How many lines of a customer to keep? To explain reads no row and costs nothing."""
    question = lines.group_by("month").aggregate(lines=sitr.count())
    print("2. How many lines of a customer to keep, for a count by month at ε = 0.5:")
    print("   kept   of all lines   noise within")
    for most in (10, 30, 100, 300, 1000):
        explained = question.bounded(max_rows_per_unit=most).explain(epsilon=0.5)
        noise = f"± {explained.errors['lines']:,.0f}"
        print(f"   {most:>4}{100 * (explained.kept or 0):>13.0f} %{noise:>15}")
    chosen = question.explain(epsilon=0.5).plan.bound
    assert chosen is not None
    print(f"   sitr would keep {chosen.rows}: there what is dropped and the noise make the least error.")
    print("   (The profile does not see the few customers with the most lines: of all lines less is kept.)\n")


def by_row(lines: PrivateTable, worth: float, most: int) -> Question:
    """Revenue by month from single lines: each is clipped, and some of a customer are kept."""
    question = lines.group_by("month").aggregate(revenue=sitr.sum("revenue", bounds=(-worth, worth)))
    return question.bounded(max_rows_per_unit=most)


def by_customer(lines: PrivateTable, worth: float, months: int) -> Question:
    """Revenue by month from the sums of customers: all lines are added up, and what a customer spends is clipped."""
    sums = lines.per_unit("month", revenue=sitr.sum("revenue", bounds=(-worth, worth)))
    return sums.group_by("month").aggregate(revenue=sitr.sum("revenue")).bounded(max_groups_per_unit=months)


def compare(lines: PrivateTable, facts: Facts, line_worth: float) -> Question:
    """Revenue by month, in two ways and several bounds: what would the noise be? Returns the question to ask."""
    sums = lines.per_unit("month", revenue=sitr.sum("revenue", bounds=(-100_000, 100_000)))
    found = sums.profile("revenue").release(epsilon=0.5, operation="profile of months")
    assert found.facts is not None
    worth = found.bounds["revenue"][1]
    print(f"3. What customers spend in a month (ε = 0.5): nearly all less than £{worth:g}, in", end=" ")
    print(f"{(found.facts.mean or 1):.1f} months of the 13 on average.")
    print(f"   Revenue by month at ε = {ASKED:g}, by what is kept of a customer:")
    print("   kept                                        of it      noise within")
    for most in (30, 100, 300):
        error = by_row(lines, line_worth, most).explain(epsilon=ASKED).errors["revenue"]
        kept = f"{most} lines, up to £{line_worth:g} each"
        print(f"   {kept:<40}{100 * (facts.kept(most) or 0):>5.0f} % of lines{error:>14,.0f}")
    for months in (2, 5, 13):
        error = by_customer(lines, worth, months).explain(epsilon=ASKED).errors["revenue"]
        kept = f"{months} months, up to £{worth:g} in each"
        print(f"   {kept:<40}{100 * (found.facts.kept(months) or 0):>5.0f} % of months{error:>13,.0f}")
    print("   To add up a customer's lines first keeps all of them, for less noise. We ask for 5 months.\n")
    return by_customer(lines, worth, 5)


def revenue(question: Question) -> Answer:
    """Revenue by month."""
    answer = question.release(epsilon=ASKED, operation="revenue by month")
    print(f"4. Revenue by month, of ordinary customers (ε = {ASKED:g}):")
    print("   month        pounds   within 95 %")
    for month, pounds, error in zip(
        answer.value["month"], answer.value["revenue"], answer.error95["revenue"], strict=True
    ):
        print(f"   {month:%Y-%m}{pounds:>12,.0f}   ± {error:,.0f}")
    total = answer.total("revenue")
    print(f"   all    {total.value:>12,.0f}   from {total.low:,.0f} to {total.high:,.0f}\n")
    return answer


def countries(lines: PrivateTable) -> Answer:
    """Where do customers live? A country is named if enough of them are from it."""
    question = lines.group_by("Country").aggregate(customers=sitr.count_units()).bounded(max_groups_per_unit=1)
    answer = question.release(epsilon=0.5, operation="countries")
    least = question.explain(epsilon=0.5).lines[0].noise
    print(f"5. Countries (ε = 0.5, δ = 1e-7; {least}):")
    for country, customers, error in ranked(answer):
        print(f"   {country:<16}{customers:>6,} ± {error:.0f}")
    print()
    return answer


def ranked(answer: Answer) -> list[tuple[str, int, float]]:
    """The countries, the most common first."""
    rows = zip(answer.value["Country"], answer.value["customers"], answer.error95["customers"], strict=True)
    return sorted(rows, key=lambda row: -row[1])


def findings(months: Answer, places: Answer) -> list[str]:
    """What the released numbers say, in sentences; nothing here reads the data."""
    sums = dict(zip(months.value["month"], months.value["revenue"], strict=True))
    whole = list(sums)[:-1]  # the last month was not over
    best, worst = max(whole, key=sums.__getitem__), min(whole, key=sums.__getitem__)
    apart = months.difference("revenue", {"month": best}, {"month": worst})
    found = [
        f"The best month is {best:%B %Y}; it is ahead of the worst, {worst:%B %Y}, by £{apart.value:,.0f} "
        f"(from {apart.low:,.0f} to {apart.high:,.0f} with 95 %)."
    ]
    autumn = [month for month in whole if month.year == 2011 and month.month in (9, 10, 11)]
    share = months.total("revenue", month=autumn).value / months.total("revenue", month=whole).value
    found.append(f"Autumn, three months of twelve, makes {100 * share:.0f} % of the revenue.")
    if rows := ranked(places):
        (first, many, _), all_of_them = rows[0], sum(row[1] for row in rows)
        found.append(
            f"{len(rows)} countries have enough customers to be named; {100 * many / all_of_them:.0f} % of the "
            f"customers there are from {first}."
        )
    return found


def draw(months: Answer) -> Any:
    """Return the picture: revenue with its intervals."""
    from matplotlib.figure import Figure

    from sitr.pictures import BLUE, GREY

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    names = [f"{month:%b %y}" for month in months.value["month"]]
    thousands = [pounds / 1000 for pounds in months.value["revenue"]]
    errors = [error / 1000 for error in months.error95["revenue"]]
    axes.bar(names, thousands, yerr=errors, color=BLUE, ecolor=GREY, capsize=3)
    axes.set_ylabel("thousand pounds")
    axes.set_title("Revenue of ordinary customers: with 95 % the noise stays inside the bars", loc="left")
    axes.tick_params(axis="x", rotation=45)
    return figure


def _quantile(facts: Facts, q: float) -> float:
    """How many rows a unit has, by what was released."""
    below = 0.0
    for size, part in facts.sizes:
        below += part
        if below >= q:
            return size
    return facts.sizes[-1][0]


def main(data: str | Path, folder: str | Path) -> list[str]:
    """Ask, print, and leave declaration, ledger and picture in a folder; return the findings."""
    from matplotlib import rc_context

    from sitr.pictures import METADATA, STYLE

    target = Path(folder)
    with open_shop(Path(data), target) as shop:
        lines = shop.table("lines")
        lines = lines.derive(
            revenue=lines["Quantity"] * lines["UnitPrice"], month=lines["InvoiceDate"].truncate("month")
        )
        facts, worth = profile(lines)
        bounds(lines)
        months = revenue(compare(lines, facts, worth))
        found = findings(months, countries(lines))
        print("What these numbers say. They are of customers as far as their bounds, and large ones spend more:")
        for sentence in found:
            print(f" - {sentence}")
        print(f"\n{shop.ledger.statement('shop')}")
        print(shop.ledger.verify())
    with rc_context(STYLE):
        draw(months).savefig(target / "revenue.svg", metadata=METADATA["svg"])
    print(target / "revenue.svg")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("Say where the data are and where to write: python examples/retail.py online_retail.csv.gz FOLDER")
    main(sys.argv[1], sys.argv[2])
