"""Row-wise expressions: a short list of total functions, none of which can raise on any row.

They are our own, so that what may be asked is a list that can be read; `emitter` turns them into an engine's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, Literal

from .. import _validate
from ..errors import InvalidArgument
from ..habits import COLUMN, told_instead
from .calendar import buckets
from .domains import FARTHEST, FINE, Domain, Kind, number, power_of_two
from .limits import Extent, around

Schema = Mapping[str, Domain]
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/")
PARTS: dict[str, tuple[int, int]] = {
    "year": (1, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "weekday": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
}
BUCKETS = ("year", "quarter", "month", "week", "day", "hour")
QUOTIENT = 2**40  # steps on either side of zero that a quotient is rounded to
EXACT = 2**50  # steps between the bounds of whole numbers and decimals, which are not rounded below that
MOST_VALUES = 10_000  # of a list in `isin`
LISTED = 3  # values that cost an engine as much as one operation


def _found_once(domain: Callable[[Any, Schema], Domain]) -> Callable[[Any, Schema], Domain]:
    """A domain that is found once for the same columns, however often, and at how many levels above, it is needed."""

    @wraps(domain)
    def found(self: Expression, schema: Schema) -> Domain:
        known = vars(self).get("_domain")
        if known is None or known[0] is not schema:
            known = schema, domain(self, schema)
            object.__setattr__(self, "_domain", known)
        return known[1]

    return found


@told_instead(COLUMN, "a column", "it is a value of each row; numbers over many rows are asked of the table.")
class Expression:
    """A value of each row; written with operators, as in `(table["age"] >= 18) & table["region"].isin(["north"])`.

    Example:
        >>> print((Column("age") + 1) * 2 >= 38)
        ((age + 1) * 2) >= 38

    Attributes:
        extent: How large it is; none is made that is too large.
    """

    extent: Extent

    def __init_subclass__(cls) -> None:
        cls.domain = _found_once(cls.domain)  # type: ignore[assignment, method-assign]

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", self._extent(lambda part: part.extent))

    def domain(self, schema: Schema) -> Domain:
        """Return what the expression can hold, or refuse it."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the expression as JSON holds it: what a ledger's digest of a request is made of."""
        return {"is": type(self).__name__, **{field.name: _plain(getattr(self, field.name)) for field in fields(self)}}  # type: ignore[arg-type]

    def columns(self) -> set[str]:
        """Return the names of the columns that are read."""
        return {name for part in self._parts() for name in part.columns()}

    def extent_over(self, columns: Mapping[str, Extent]) -> Extent:
        """Return how large it is where some columns are themselves computed, and of which extent."""
        known: dict[int, Extent] = {}

        def extent(one: Expression) -> Extent:
            if id(one) not in known:
                computed = columns.get(one.name) if isinstance(one, Column) else None
                known[id(one)] = computed or one._extent(extent)
            return known[id(one)]

        return extent(self)

    def _parts(self) -> list[Expression]:
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        return [value for value in values if isinstance(value, Expression)]

    def _extent(self, of: Callable[[Expression], Extent]) -> Extent:
        """Its extent, by those of its parts."""
        return around(map(of, self._parts()))

    # Operators

    def __add__(self, other: Any) -> Expression:
        return Arithmetic("+", self, expression(other))

    def __radd__(self, other: Any) -> Expression:
        return Arithmetic("+", expression(other), self)

    def __sub__(self, other: Any) -> Expression:
        return Arithmetic("-", self, expression(other))

    def __rsub__(self, other: Any) -> Expression:
        return Arithmetic("-", expression(other), self)

    def __mul__(self, other: Any) -> Expression:
        return Arithmetic("*", self, expression(other))

    def __rmul__(self, other: Any) -> Expression:
        return Arithmetic("*", expression(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return Arithmetic("/", self, expression(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return Arithmetic("/", expression(other), self)

    def __neg__(self) -> Expression:
        return Arithmetic("-", Constant(0), self)

    def __abs__(self) -> Expression:
        return Case(self < 0, -self, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("==", self, expression(other))

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return Comparison("!=", self, expression(other))

    def __lt__(self, other: Any) -> Expression:
        return Comparison("<", self, expression(other))

    def __le__(self, other: Any) -> Expression:
        return Comparison("<=", self, expression(other))

    def __gt__(self, other: Any) -> Expression:
        return Comparison(">", self, expression(other))

    def __ge__(self, other: Any) -> Expression:
        return Comparison(">=", self, expression(other))

    def __and__(self, other: Any) -> Expression:
        return Logic("and", self, expression(other))

    def __rand__(self, other: Any) -> Expression:
        return Logic("and", expression(other), self)

    def __or__(self, other: Any) -> Expression:
        return Logic("or", self, expression(other))

    def __ror__(self, other: Any) -> Expression:
        return Logic("or", expression(other), self)

    def __invert__(self) -> Expression:
        return Not(self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidArgument(
            "an expression of columns is neither true nor false.",
            why="`and`, `or`, `not` and chained comparisons ask it that; it has a value for each row.",
            do="write (a) & (b), (a) | (b), ~(a), and each comparison in parentheses.",
        )

    # Functions

    def isin(self, values: Sequence[Any]) -> Expression:
        """Whether the value is one of a public list."""
        return In(self, _values(values))

    def between(self, lower: Any, upper: Any) -> Expression:
        """Whether the value lies between two ends, both included."""
        return Logic("and", self >= lower, self <= upper)

    def is_null(self) -> Expression:
        """Whether the value is missing; NaN is missing too."""
        return IsNull(self)

    def fill_null(self, value: Any) -> Expression:
        """The value, or another where it is missing."""
        return Coalesce(self, expression(value))

    def choose(self, value: Any, otherwise: Any) -> Expression:
        """One value where this condition is true, and another where it is false or missing.

        Example:
            >>> print((Column("days") > 7).choose(1, 0))
            case when days > 7 then 1 else 0
        """
        return Case(self, expression(value), expression(otherwise))

    def part(self, part: str) -> Expression:
        """A part of a date or a time: "year", "quarter", "month", "day", "weekday" (Monday is 0), "hour", "minute"."""
        return Part(self, _validate.choice("part", part, PARTS))

    def truncate(self, unit: str) -> Expression:
        """A date or a time, cut to the begin of its "year", "quarter", "month", "week", "day" or "hour"."""
        return Truncated(self, _validate.choice("unit", unit, BUCKETS))


@dataclass(frozen=True, eq=False)
class Column(Expression):
    """A column by its name."""

    name: str

    def __str__(self) -> str:
        return self.name

    def domain(self, schema: Schema) -> Domain:
        """As declared, or derived."""
        if self.name not in schema:
            raise unknown_column(self.name, schema)
        return schema[self.name]

    def columns(self) -> set[str]:
        """Itself."""
        return {self.name}


@dataclass(frozen=True, eq=False)
class Constant(Expression):
    """A public value."""

    value: bool | int | float | Decimal | str | date | datetime

    def __str__(self) -> str:
        return repr(self.value) if isinstance(self.value, (str, bool, int, float)) else str(self.value)

    def domain(self, schema: Schema) -> Domain:
        """Of its type; a number is exact. It is the one value that it can hold."""
        value = self.value
        if (kind := constant_kind(value)) != "number":
            return Domain(kind, categories=(value,) if is_key(value) else None, required=True)
        exact = Domain("number").measure(value)
        found = number(Fraction(1, exact.denominator), exact.numerator, exact.numerator, required=True)
        return replace(found, categories=(exact.numerator,)) if exact.denominator == 1 else found


@dataclass(frozen=True, eq=False)
class Arithmetic(Expression):
    """A sum, difference, product or quotient of numbers, in whole steps; a quotient by zero is missing."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"

    def domain(self, schema: Schema) -> Domain:
        """By interval arithmetic: what could leave 64 bits is refused."""
        left, right = (_bounded_number(side, schema) for side in (self.left, self.right))
        (left_low, left_high), (low, high) = left.span, right.span
        both = left.required and right.required
        if self.operator == "*":
            corners = [one * other for one in left.span for other in right.span]
            return number(left.step * right.step, min(corners), max(corners), required=both)
        if self.operator == "/":
            most = max(-left_low, left_high, 1)
            largest = most * left.step / right.step
            step = power_of_two(largest / QUOTIENT)
            ends = math.ceil(largest / step) + 1
            if most > 2**53 or max(-low, high) > 2**53:
                number(step, 0, FARTHEST + 1)  # refuse: the quotient of doubles would not be exact enough
            return number(step, 0 if min(left_low, low) >= 0 else -ends, ends)
        step, one, other = align(left, right)
        if self.operator == "-":
            low, high = -high, -low
        return number(step, left_low * one + low * other, left_high * one + high * other, required=both)

    def _extent(self, of: Callable[[Expression], Extent]) -> Extent:
        parts = [of(self.left), of(self.right)]
        if self.operator != "/":
            return around(parts)
        return around([*parts, of(self.right)], nodes=8, depth=6)  # whether the divisor is zero is asked first


@dataclass(frozen=True, eq=False)
class Comparison(Expression):
    """Whether one value is before, at or after another; missing where one of them is."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def domain(self, schema: Schema) -> Domain:
        """Two of one kind; text is compared for equality only, as engines sort it differently."""
        left, right = self.left.domain(schema), self.right.domain(schema)
        kinds = {left.kind, right.kind}
        if len(kinds) > 1 and kinds != {"date", "timestamp"}:
            do = _instead(left.kind, self.right) or _instead(right.kind, self.left)
            raise InvalidArgument(f"{self}: a {left.kind} is compared with a {right.kind}.", do=do)
        if left.kind in ("string", "boolean") and self.operator not in ("==", "!="):
            raise InvalidArgument(
                f"{self}: {left.kind}s are compared by == and != only.",
                why="engines sort text by different rules.",
                do="name the values: column.isin([...]).",
            )
        if not self._native(left, right):
            counted = _counted(self.left, left), _counted(self.right, right)
            if self.against() is None:
                align(*counted)
        return _truth(left, right)

    def against(self) -> tuple[Expression, str, Constant] | None:
        """Return a value, an operator and the constant that it is compared with, if one side is one."""
        if isinstance(self.left, Constant) == isinstance(self.right, Constant):
            return None
        if isinstance(self.right, Constant):
            return self.left, self.operator, self.right
        assert isinstance(self.left, Constant)
        return self.right, self.operator.translate(str.maketrans("<>", "><")), self.left

    def native(self, schema: Schema) -> bool:
        """Whether the engine compares what it holds; else whole steps are compared."""
        return self._native(self.left.domain(schema), self.right.domain(schema))

    def _native(self, left: Domain, right: Domain) -> bool:
        if left.kind != "number":
            return True
        sides = ((self.left, left), (self.right, right))
        plain = [isinstance(side, Constant) or not domain.steps for side, domain in sides]
        return all(plain) and not all(isinstance(side, Constant) for side, _ in sides)


@dataclass(frozen=True, eq=False)
class Logic(Expression):
    """Both, or at least one."""

    operator: Literal["and", "or"]
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"({self.left}) {self.operator} ({self.right})"

    def domain(self, schema: Schema) -> Domain:
        """Of two booleans."""
        return _truth(*(require(side, schema, "boolean") for side in (self.left, self.right)))


@dataclass(frozen=True, eq=False)
class Not(Expression):
    """The opposite."""

    value: Expression

    def __str__(self) -> str:
        return f"not ({self.value})"

    def domain(self, schema: Schema) -> Domain:
        """Of a boolean."""
        return _truth(require(self.value, schema, "boolean"))


@dataclass(frozen=True, eq=False)
class In(Expression):
    """Whether a value is one of a public list."""

    value: Expression
    values: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.value} in ({', '.join(map(repr, self.values[:5]))}{', …' if len(self.values) > 5 else ''})"

    def domain(self, schema: Schema) -> Domain:
        """The list has to be of the value's kind."""
        inner = self.value.domain(schema)
        for value in self.values:
            if constant_kind(value) != inner.kind:
                what = f"{_validate.shown(value)} is not a {inner.kind}, as {self.value} is."
                raise InvalidArgument(what, do=_instead(inner.kind, Constant(value)))
        return _truth(inner)

    def _extent(self, of: Callable[[Expression], Extent]) -> Extent:
        return around([of(self.value)], nodes=1 + len(self.values) // LISTED)


@dataclass(frozen=True, eq=False)
class IsNull(Expression):
    """Whether a value is missing."""

    value: Expression

    def __str__(self) -> str:
        return f"{self.value} is null"

    def domain(self, schema: Schema) -> Domain:
        """Always true or false."""
        self.value.domain(schema)
        return _truth()


@dataclass(frozen=True, eq=False)
class Coalesce(Expression):
    """A value, or another where it is missing."""

    value: Expression
    other: Expression

    def __str__(self) -> str:
        return f"coalesce({self.value}, {self.other})"

    def domain(self, schema: Schema) -> Domain:
        """As for `Case`; the other value may be one that no row lacks."""
        left, right = self.value.domain(schema), self.other.domain(schema)
        return _either(self.value, left, self.other, right, required=right.required)


@dataclass(frozen=True, eq=False)
class Case(Expression):
    """One value where a condition is true, another where it is false or missing."""

    condition: Expression
    then: Expression
    other: Expression

    def __str__(self) -> str:
        return f"case when {self.condition} then {self.then} else {self.other}"

    def domain(self, schema: Schema) -> Domain:
        """Numbers on a common grid, or two of one kind."""
        require(self.condition, schema, "boolean")
        then, other = self.then.domain(schema), self.other.domain(schema)
        return _either(self.then, then, self.other, other, required=then.required and other.required)


@dataclass(frozen=True, eq=False)
class Part(Expression):
    """A part of a date or a time, as a whole number."""

    value: Expression
    which: str

    def __str__(self) -> str:
        return f"{self.which}({self.value})"

    def domain(self, schema: Schema) -> Domain:
        """Between ends that the calendar gives, or the declared bounds where it is the year."""
        inner = require(self.value, schema, "date", "timestamp")
        if inner.kind == "date" and self.which in ("hour", "minute"):
            raise InvalidArgument(f"{self}: a date has no {self.which}.")
        low, high = PARTS[self.which]
        return number(Fraction(1), low, high, required=inner.required)


@dataclass(frozen=True, eq=False)
class Truncated(Expression):
    """The begin of the year, month, week, day or hour that a date or a time lies in."""

    value: Expression
    unit: str

    def __str__(self) -> str:
        return f"{self.unit}_of({self.value})"

    def domain(self, schema: Schema) -> Domain:
        """Of the same kind, with the same bounds; all that may be between them are public values."""
        inner = require(self.value, schema, "date", "timestamp")
        if inner.kind == "date" and self.unit == "hour":
            raise InvalidArgument(f"{self}: a date has no hour.")
        return replace(inner, categories=buckets(self.unit, inner) if inner.bounded else None)

    def _extent(self, of: Callable[[Expression], Extent]) -> Extent:
        return around([of(self.value)], nodes=3, depth=5)  # with casts before and after


@dataclass(frozen=True, eq=False)
class Bucket(Expression):
    """How many of some rising public edges lie at or below a value."""

    value: Expression
    edges: tuple[Any, ...]

    def __str__(self) -> str:
        return f"bucket({self.value}, {len(self.edges)} edges)"

    def domain(self, schema: Schema) -> Domain:
        """From 0 to the number of edges."""
        for edge in self.edges:
            self.reached(edge).domain(schema)
        return number(Fraction(1), 0, len(self.edges), required=self.value.domain(schema).required)

    def reached(self, edge: Any) -> Comparison:
        """Return whether an edge lies at or below the value."""
        return Comparison(">=", self.value, expression(edge))

    def _extent(self, of: Callable[[Expression], Extent]) -> Extent:
        """The value is compared with each edge, by halves."""
        value, edges = of(self.value), len(self.edges)
        return Extent(1 + edges * (value.nodes + 2), value.depth + 2 + edges.bit_length())


def expression(value: Any) -> Expression:
    """Return a value as an expression: a public constant, unless it is one already."""
    if isinstance(value, Expression):
        return value
    value = _validate.plain(value)
    if isinstance(value, (bool, int, float, Decimal, str, date)):
        literal = Constant(value)
        literal.domain({})
        return literal
    raise InvalidArgument(
        f"{_validate.shown(value)} is no value that can be compared with a column.",
        do="pass a number, a text, a date, a column, or use is_null().",
    )


def constant_kind(value: Any) -> Kind:
    """Return of which kind a constant is.

    Example:
        >>> constant_kind(True), constant_kind(0.5), constant_kind(date(2025, 6, 1))
        ('boolean', 'number', 'date')
    """
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, date):
        return "timestamp" if isinstance(value, datetime) else "date"
    return "number"


def unknown_column(name: str, schema: Schema) -> InvalidArgument:
    """Return the refusal of a name that is no column."""
    hint = _validate.meant(name, schema)
    return InvalidArgument(f"there is no column {_validate.shown(name)}.", do=f"{hint}Columns: {', '.join(schema)}.")


def require(value: Expression, schema: Schema, *kinds: str) -> Domain:
    """Return the domain of an expression of one of these kinds, or refuse it."""
    found = value.domain(schema)
    if found.kind not in kinds:
        raise InvalidArgument(f"{value} is a {found.kind}, where a {' or a '.join(kinds)} is needed.")
    return found


def _instead(kind: str, other: Expression) -> str:
    """What to write in the place of a constant that is of another kind than what it is compared with."""
    if not isinstance(other, Constant):
        return ""
    value = other.value
    if kind == "boolean":
        return "compare it with true or false, or use it as it is."
    if kind == "string":
        return f"a text stands in quotes: {str(value)!r}."
    if not isinstance(value, str):
        return ""
    if kind == "number":
        return f"a number stands without quotes: {_read(value, Decimal, 5)}."
    such = _read(value, date.fromisoformat, date(2025, 6, 1))
    if kind == "timestamp":
        such = _read(value, datetime.fromisoformat, datetime(2025, 6, 1, 12))
    return f"write {such!r}."


def _read(text: str, read: Callable[[str], Any], example: Any) -> Any:
    """A text as what was meant by it, or else an example."""
    try:
        return read(text)
    except (ValueError, ArithmeticError):
        return example


def steps_of(domain: Domain) -> Domain:
    """Return the grid on which arithmetic counts a column's numbers.

    Raises:
        InvalidArgument: It has no bounds.
    """
    if domain.steps:
        return domain
    finest = FINE if domain.float else EXACT
    return replace(domain.within(None, finest=finest), steps=True, float=False, categories=None)


def _bounded_number(value: Expression, schema: Schema) -> Domain:
    return _counted(value, require(value, schema, "number"))


def _counted(value: Expression, found: Domain) -> Domain:
    if not found.bounded:
        raise InvalidArgument(
            f"{value} has no declared bounds, so nothing can be computed with it.",
            why="a product or a sum of unbounded numbers may overflow on one row, and that would tell of it.",
            do="declare bounds for the column; comparisons with constants need none.",
        )
    return steps_of(found)


def common_step(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest step of which both are multiples.

    Example:
        >>> common_step(Fraction(1, 4), Fraction(1, 6))
        Fraction(1, 12)
    """
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )


def align(one: Domain, other: Domain) -> tuple[Fraction, int, int]:
    """Return a common step and by what each number of steps is multiplied; both stay within 64 bits."""
    step = common_step(one.step, other.step)
    factors = int(one.step / step), int(other.step / step)
    for domain, factor in zip((one, other), factors, strict=True):
        low, high = domain.span
        number(step, low * factor, high * factor)
    return step, *factors


def _truth(*parts: Domain) -> Domain:
    """What a condition holds: it is missing where one of its parts is, and that is a group of its own then."""
    required = all(part.required for part in parts)
    return Domain("boolean", nulls=not required, required=required)


def _either(one: Expression, left: Domain, other: Expression, right: Domain, *, required: bool) -> Domain:
    """What one of two expressions holds; the domains come with them, as a chain of cases would double the work.

    If all that either can be is public, so is all that this can be: then what is missing is a group of its own.
    """
    if left.kind != right.kind:
        raise InvalidArgument(f"{one} is a {left.kind}, and {other} a {right.kind}.")
    listed = _listed(left, right)
    nulls = not required and (listed is not None or left.kind == "boolean")
    if left.kind != "number":
        return Domain(left.kind, categories=listed, nulls=nulls, required=required)
    left, right = _counted(one, left), _counted(other, right)
    step, first, second = align(left, right)
    ends = [end * first for end in left.span] + [end * second for end in right.span]
    found = number(step, min(ends), max(ends), required=required)
    return replace(found, categories=listed, nulls=nulls) if step == 1 else found


def _listed(left: Domain, right: Domain) -> tuple[Any, ...] | None:
    """The values of two domains, where those of both are public: numbers by size, others as they come."""
    if left.categories is None or right.categories is None or left.kind == "boolean":
        return None
    values = dict.fromkeys((*left.categories, *right.categories))
    return tuple(sorted(values)) if left.kind == "number" else tuple(values)


def is_key(value: Any) -> bool:
    """Return whether every engine can hold a value as a key.

    PostgreSQL has no zero in a text, half of a pair is no sign of UTF-8, and what has a time zone is no time here.

    Example:
        >>> is_key("child"), is_key(10**30)
        (True, False)
    """
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= sign <= "\udfff" for sign in value)
    if isinstance(value, datetime):
        return value.tzinfo is None
    return not isinstance(value, int) or abs(value) <= FARTHEST


def _values(values: Sequence[Any]) -> tuple[Any, ...]:
    values = _validate.plain(values)
    if isinstance(values, (str, bytes)) or not isinstance(values, (list, tuple, set, frozenset, range)):
        raise InvalidArgument("isin takes a list of values.", do='column.isin(["north", "south"]).')
    if not 1 <= len(values) <= MOST_VALUES:
        raise InvalidArgument(
            f"isin takes 1 to {MOST_VALUES} values, and got {len(values)}.",
            do="join with a public table that lists them.",
        )
    made = tuple(_validate.plain(value) for value in values)
    for value in made:
        expression(value)
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Expression):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, (date, Decimal)):
        return f"{type(value).__name__}:{value}"
    return value
