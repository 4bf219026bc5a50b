"""From a failing plan to a small one: fewer rows and a shorter question that break the same law; and how to tell it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sitr.errors import SitrError
from sitr.query.query import Query
from sitr.session.question import Question
from sitr.tables.expressions import Case, Coalesce, Expression, Logic, Not
from sitr.tables.relations import Derive, Filter, Join, PerUnit, Relation, Select
from tests.attack.houses import closed, house
from tests.attack.law import Failure, Report, Trial, coupled
from tests.attack.questions import planned
from tests.attack.texts import Unwritten, query_text
from tests.attack.worlds import FIRST, World


def shrunk(failure: Failure, seconds: float = 20.0) -> Failure:
    """Return a smaller failure of the same law, found within some seconds; itself where there is none."""
    until = time.monotonic() + seconds
    with coupled():
        progress = failure.asked is not None
        while progress and time.monotonic() < until:
            progress = False
            for world, query in _smaller(failure):
                if time.monotonic() > until:
                    break
                found = _failing(failure, world, query)
                if found is not None:
                    failure, progress = found, True
                    break
    return failure


def _failing(failure: Failure, world: World, query: Query) -> Failure | None:
    """The failure of a world and a query by the same law, if there is one."""
    assert failure.asked is not None
    report = Report()
    trial = Trial(world, report)
    try:
        opened = house(world, world.database(*FIRST))
    except Exception:
        return None
    try:
        question = Question(opened.database, query)
        asked = replace(failure.asked, question=question, plan=planned(question, failure.asked.price), by_sql=False)
        trial.compare(opened, [asked])
    except Exception:
        return None
    finally:
        closed(opened)
    return next((one for one in report.failures if one.law == failure.law), None)


def _smaller(failure: Failure) -> Iterator[tuple[World, Query]]:
    """What is worth a try, the largest cuts first."""
    assert failure.asked is not None
    world, query = failure.world, failure.asked.question.query
    yield from ((world, one) for one in _shorter(query))
    for name, rows in world.rows.items():
        size = len(rows)
        while size:
            for at in range(0, len(rows), size):
                yield world.with_rows({**world.rows, name: rows[:at] + rows[at + size :]}), query
            size //= 2


def _shorter(query: Query) -> Iterator[Query]:
    for name in query.aggregates if len(query.aggregates) > 1 else ():
        yield replace(query, aggregates={other: one for other, one in query.aggregates.items() if other != name})
    for at in range(len(query.groupings)):
        yield replace(query, groupings=query.groupings[:at] + query.groupings[at + 1 :])
    for at, one in enumerate(query.groupings):
        for value in _parts(one.value):
            yield replace(
                query, groupings=(*query.groupings[:at], replace(one, value=value), *query.groupings[at + 1 :])
            )
    for name, aggregate in query.aggregates.items():
        for value in _parts(aggregate.value):
            yield replace(query, aggregates={**query.aggregates, name: replace(aggregate, value=value)})
    for relation in _fewer(query.relation):
        yield replace(query, relation=relation)


def _fewer(relation: Relation) -> Iterator[Relation]:
    """A relation with one step less, or a shorter condition."""
    if isinstance(relation, (Filter, Derive, Select, PerUnit)):
        yield relation.source
        yield from (replace(relation, source=source) for source in _fewer(relation.source))
    if isinstance(relation, Filter):
        yield from (replace(relation, condition=condition) for condition in _parts(relation.condition))
    if isinstance(relation, Join):
        yield relation.left
        yield from (replace(relation, left=left) for left in _fewer(relation.left))
        yield from (replace(relation, right=right) for right in _fewer(relation.right))


def _parts(value: Expression | None) -> Iterator[Any]:
    """The parts of an expression, and it with a part in place of a larger one."""
    if value is None:
        return
    inner = {name: part for name, part in vars(value).items() if isinstance(part, Expression)}
    if isinstance(value, (Logic, Not, Case, Coalesce)):
        yield from inner.values()
    for name, part in inner.items():
        yield from (replace(value, **{name: smaller}) for smaller in _parts(part))  # type: ignore[type-var]


def told(failure: Failure) -> str:
    """Return a failure as people read it: how to come by it again, the question, and the rows."""
    world, asked = failure.world, failure.asked
    lines = [
        f"BROKEN: {failure.law}. {failure.said}",
        f"  again: seed {world.seed}, engine {world.engine}, reader {world.reader}"
        + (f", question {asked.number}" if asked else ""),
    ]
    if asked is None:
        return "\n".join(lines)
    query = asked.question.query
    try:
        lines.append(f"  question: {query_text(query, world)}")
    except (Unwritten, SitrError):
        lines.append(f"  question: {query.to_dict()}")
    lines.append(f"  bound {asked.plan.bound}, {world.content['privacy']['adjacency']}, price {asked.price}")
    for name in sorted(set(query.relation.tables())):
        table = world.tables[name]
        lines.append(f"  {name}{table.names} {table.settings}")
        lines += [f"    {part}: {row}" for part, row in world.rows[name][:12]]
        if len(world.rows[name]) > 12:
            lines.append(f"    and {len(world.rows[name]) - 12} more rows")
    return "\n".join(lines)
