"""A database of one table, whose rows are units, and answers to questions without noise."""

from sitr.query.execution import Execution
from sitr.query.facts import Facts
from sitr.query.planner import Target, plan
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration


def database(columns, table, **settings):
    content = {
        "sitr": 1,
        "name": "d",
        "tables": {"t": {"unit": "row", "columns": columns} | settings},
        "budgets": {"d": {"epsilon": 100.0, "delta": 1e-3}},
    }
    return opened(Declaration.of(content), ledger="memory://", analyst="amina", frames={"t": table})


def exact(question, name="x"):
    made = plan(question.query, question.database.declared, Target(1.0, 1e-6), Facts())
    return Execution(made, question.database.source, unsafe_without_noise=True, unsafe_key=1).answer().raw[name]
