"""What is known beforehand to make an answer useless: the bill says it, and nothing is spent on it by mistake."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..tables.declaration import Declaration
from ..tables.expressions import Column, Comparison, Expression, In, Logic
from ..tables.relations import Derive, Filter, Join, PerUnit, Relation, Schema, Select
from .facts import Facts
from .measurements import Groups, Sums
from .planner import Plan
from .remarks import remark, unlisted

RARELY = 0.01  # a chance at which nothing is as good as certain


@dataclass(frozen=True)
class Doubt:
    """Why an answer may be of no use.

    Attributes:
        text: In a sentence or two.
        certain: Whether that follows from what is declared, or was released; else it is likely.
    """

    text: str
    certain: bool


def doubts(
    plan: Plan, facts: Facts, declared: Declaration, errors: Mapping[str, float], size: float | None
) -> tuple[Doubt, ...]:
    """Return what speaks against paying for a plan.

    Args:
        plan: What would be paid for.
        facts: What is publicly known.
        declared: The declaration.
        errors: What the intervals of aggregates will reach to either side.
        size: How many rows a group has, as far as that is known.
    """
    nothing = set(_on_nothing(plan.query.relation, declared))
    misspelt = [Doubt(text, text in nothing) for text in unlisted(plan.query, declared)]
    drowned = () if size is None else _drowned(plan, errors, size)
    return (*misspelt, *_few_units(plan, facts), *drowned)


def _on_nothing(relation: Relation, declared: Declaration) -> Iterator[str]:
    """The remarks on filters that no row passes whose value is a declared one."""
    if isinstance(relation, Join):
        yield from _on_nothing(relation.left, declared)
        if not relation.keep:
            yield from _on_nothing(relation.right, declared)
    elif isinstance(relation, (Filter, Derive, Select, PerUnit)):
        yield from _on_nothing(relation.source, declared)
        if isinstance(relation, Filter):
            schema = relation.source.schema(declared)
            for one in _conjuncts(relation.condition):
                yield from _impossible(one, schema)


def _conjuncts(condition: Expression) -> Iterator[Expression]:
    if isinstance(condition, Logic) and condition.operator == "and":
        yield from _conjuncts(condition.left)
        yield from _conjuncts(condition.right)
    else:
        yield condition


def _impossible(condition: Expression, schema: Schema) -> Iterator[str]:
    """The remarks on a condition that is true of no declared value."""
    if isinstance(condition, Comparison) and condition.operator == "==" and (sides := condition.against()) is not None:
        value, wanted = sides[0], [sides[2].value]
    elif isinstance(condition, In):
        value, wanted = condition.value, list(condition.values)
    else:
        return
    if isinstance(value, Column):
        found = [list(remark(value, one, schema)) for one in wanted]
        if all(found):
            yield from (text for texts in found for text in texts)


def _few_units(plan: Plan, facts: Facts) -> tuple[Doubt, ...]:
    """No group has as many units as it takes to be listed; near that number noise may list one all the same."""
    selection = next((one.selection for one in plan.measurements if isinstance(one, Groups)), None)
    if selection is None or facts.units is None or selection.threshold <= facts.units:
        return ()
    bounded = "" if plan.bound is None else "bound the groups of a unit (max_groups_per_unit), "
    advice = f"{bounded}declare the categories, or spend more."
    # All units may be in as many groups as one of them may be in; groups with fewer units are listed more rarely.
    chance = selection.max_groups_per_unit * selection.chance(max(int(facts.units), 1))
    said = "No group can be listed" if chance < RARELY else "Perhaps no group is listed"
    text = (
        f"{said}: that takes {selection.threshold:,} units, and there are about {facts.units:,.0f}. "
        f"{advice[0].upper()}{advice[1:]}"
    )
    return (Doubt(text, certain=chance < RARELY),)


def _drowned(plan: Plan, errors: Mapping[str, float], size: float) -> Iterator[Doubt]:
    """Means whose noise fills their bounds, and counts whose noise is larger than what is counted."""
    for name, aggregate in plan.query.aggregates.items():
        measured, error = plan.measurements[plan.places[name]], errors.get(name, 0.0)
        if aggregate.kind == "mean" and isinstance(measured, Sums):
            low, high = next(iter(measured.measures.values())).grid.ends
            if error >= (high - low) / 2:
                text = f"{name}: noise of ± {error:.3g} says no more than the bounds, {float(low):g} to {float(high):g}"
                # How large a group is, is a guess: as if all groups were alike.
                certain = not plan.keys
                yield Doubt(f"{text}. Spend more, ask for larger groups, or use narrower bounds.", certain)
        elif aggregate.kind == "count" and error >= size:
            text = f"{name}: noise of ± {math.ceil(error):,} is larger than a group, of about {size:,.0f} rows"
            yield Doubt(f"{text}. Spend more, or ask for larger groups.", certain=False)
