"""From text to sqlglot's tree: tokens, BigQuery's OPTIONS cut out of them, one SELECT, and nothing too long or deep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from ... import _validate
from ...errors import InvalidArgument, NotAllowed
from ...tables.limits import Extent
from .refusals import refused

LONGEST = 200_000  # characters
BRACKETS = 40  # within one another
JOINS = 10  # sqlglot's work doubles with each JOIN that has no ON
PARSED_FUNCTIONS = ("CAST", "EXTRACT")  # that have a grammar of their own; all others are a name and arguments
OPENING, CLOSING = (
    (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE),
    (
        TokenType.R_PAREN,
        TokenType.R_BRACKET,
        TokenType.R_BRACE,
    ),
)
OPTIONS = ("epsilon", "delta", "max_groups_contributed", "privacy_unit_column")


class Sitr(Dialect):
    """Standard SQL with few functions; names stand in double quotes or backticks, texts in single quotes."""

    NULL_ORDERING = "nulls_are_last"

    class Tokenizer(tokens.Tokenizer):
        """Standard tokens."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 - as the parent has it

    class Parser(parser.Parser):
        """A parser that knows no function by name, so that a function is what our own list makes of it."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {  # noqa: RUF012
            name: one for name, one in parser.Parser.FUNCTION_PARSERS.items() if name in PARSED_FUNCTIONS
        }
        COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            sign: parser.Parser.COLUMN_OPERATORS[sign] for sign in (TokenType.DOT, TokenType.DCOLON)
        }
        STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {}

        def _parse_as_command(self, start: Token) -> exp.Command:
            raise ParseError("no SELECT")  # the parent logs the text, and goes on


@dataclass(frozen=True)
class Options:
    """What `WITH DIFFERENTIAL_PRIVACY OPTIONS(...)` says.

    Attributes:
        epsilon: Of the release.
        delta: Of the release.
        max_groups: Groups that are kept of a unit.
        unit: The column that is said to be the unit.
    """

    epsilon: float | None = None
    delta: float | None = None
    max_groups: int | None = None
    unit: exp.Column | None = None


@dataclass(frozen=True)
class Statement:
    """One SELECT.

    Attributes:
        tree: As sqlglot reads it.
        options: What stood in OPTIONS.
    """

    tree: exp.Select
    options: Options = field(default_factory=Options)


def read(text: str) -> Statement:
    """Return the one SELECT of a text.

    Raises:
        NotAllowed: It cannot be read, or is another statement, or too long or deep.

    Example:
        >>> read("SELECT COUNT(*) FROM visits").tree.key
        'select'
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"{_validate.shown(text)} is no text.", do='db.sql("SELECT COUNT(*) FROM visits").')
    if len(text) > LONGEST:
        raise NotAllowed(f"the query has more than {LONGEST} characters.", do="ask in several queries.")
    found = _tokens(text)
    _check_tokens(found)
    found, options = _cut(found)
    tree = _tree(found, text)
    while isinstance(tree, exp.Subquery) and not any(tree.args.get(name) for name in tree.args if name != "this"):
        tree = tree.this
    if not isinstance(tree, exp.Select):
        raise refused(tree)
    _check_depth(tree)
    return Statement(tree, options)


def number(text: str) -> int | float | Decimal:
    """Return a literal as the number that was written: 0.1 is a tenth.

    Example:
        >>> number("12"), number("1e3"), number("0.1"), number("0.12345678901234567890")
        (12, 1000, 0.1, Decimal('0.12345678901234567890'))
    """
    try:
        exact = Decimal(text if text.isascii() and "_" not in text else "")
    except InvalidOperation:
        raise NotAllowed(f"{_validate.shown(text)} is no number.", do="such as 12, 0.5 or 1e-6.") from None
    if not exact.is_finite() or len(exact.as_tuple().digits) > 40 or not -40 < exact.adjusted() < 40:
        raise NotAllowed(
            f"the number {_validate.shown(text)} is too long, too large or too small.", do="use fewer digits."
        )
    if exact == exact.to_integral_value():
        return int(exact)
    near = float(exact)
    return near if Fraction(repr(near)) == Fraction(exact) else exact


def _tokens(text: str) -> list[Token]:
    try:
        text.encode()
        return list(Sitr().tokenize(text))
    except Exception:
        pass
    raise NotAllowed(
        "the text cannot be read as SQL.", why="a quote or a comment does not end.", do="close every ' and \" and /*."
    )


def _check_tokens(found: Sequence[Token]) -> None:
    begin = next((token for token in found if token.token_type != TokenType.L_PAREN), None)
    if begin is None:
        raise NotAllowed("the query is empty.", do="SELECT COUNT(*) FROM a_table.")
    if begin.token_type not in (TokenType.SELECT, TokenType.WITH):
        raise NotAllowed(
            f"a statement that begins with {_validate.shown(begin.text)}.",
            why="a database is only asked: nothing is written, set or run.",
            do="SELECT ..., or WITH ... SELECT ....",
        )
    last = max(place for place, token in enumerate(found) if token.token_type != TokenType.SEMICOLON)
    if any(token.token_type == TokenType.SEMICOLON for token in found[:last]):
        raise NotAllowed("several statements.", do="ask one question at a time; each has its own price.")
    if sum(token.token_type == TokenType.JOIN for token in found) > JOINS:
        raise NotAllowed(f"more than {JOINS} joins.", do="ask in several queries.")
    depth = 0
    for token in found:
        depth += (token.token_type in OPENING) - (token.token_type in CLOSING)
        if depth > BRACKETS:
            raise NotAllowed(f"more than {BRACKETS} brackets within one another.", do="write it flatter.")


def _tree(found: list[Token], text: str) -> exp.Expr:
    """The tree; whatever goes wrong in the parser is a refusal."""
    what = "the text cannot be read as SQL"
    try:
        made = [one for one in Sitr().parser().parse(found, text) if one is not None]
        if len(made) == 1 and isinstance(made[0], exp.Expr):
            return made[0]
    except ParseError as error:
        place = error.errors[0] if error.errors else {}
        near = _validate.shown(place.get("highlight") or "")
        what = f"line {place.get('line', 1)}, column {place.get('col', 1)}, near {near}: {what}"
    except RecursionError:
        what = "the query is nested too deeply"
    except Exception:  # a fault of the parser is no answer about anybody
        pass
    raise NotAllowed(f"{what}.", do="docs/sql.md has examples of all that can be asked.")


def _check_depth(tree: exp.Expr) -> None:
    level, depth = [tree], 0
    while level:
        depth += 1
        Extent(0, depth)
        level = [below for node in level for below in node.iter_expressions()]


# BigQuery's form


def _cut(found: list[Token]) -> tuple[list[Token], Options]:
    """The tokens without `WITH DIFFERENTIAL_PRIVACY OPTIONS(...)`, and what it said."""
    depth, options = 0, None
    place = 0
    while place < len(found):
        depth += (found[place].token_type in OPENING) - (found[place].token_type in CLOSING)
        if _begins(found, place):
            if depth or options is not None:
                raise NotAllowed(
                    "WITH DIFFERENTIAL_PRIVACY in a subquery, or twice.",
                    why="it says what the whole release may cost.",
                    do="say it once, in the outermost SELECT.",
                )
            end = _end(found, place + 3)
            options = _options(found[place + 5 : end - 1] if end > place + 3 else [])
            found = found[: place + 1] + found[end:]
        place += 1
    return found, options if options is not None else Options()


def _begins(found: Sequence[Token], place: int) -> bool:
    if [token.token_type for token in found[place : place + 3]] != [TokenType.SELECT, TokenType.WITH, TokenType.VAR]:
        return False
    return found[place + 2].text.upper() == "DIFFERENTIAL_PRIVACY"


def _end(found: Sequence[Token], place: int) -> int:
    """Where OPTIONS(...) ends, if it is there."""
    if len(found) < place + 2 or found[place].text.upper() != "OPTIONS":
        return place
    if found[place].token_type != TokenType.VAR or found[place + 1].token_type != TokenType.L_PAREN:
        return place
    depth = 0
    for end in range(place + 1, len(found)):
        depth += (found[end].token_type in OPENING) - (found[end].token_type in CLOSING)
        if depth == 0:
            return end + 1
    raise NotAllowed("OPTIONS( does not end.", do="OPTIONS(epsilon = 1, delta = 1e-6).")


def _options(found: Sequence[Token]) -> Options:
    said: dict[str, list[Token]] = {}
    part: list[Token] = []
    for token in [*found, None]:
        if token is not None and token.token_type != TokenType.COMMA:
            part.append(token)
            continue
        if token is None and not part and not said:
            break
        if len(part) < 3 or part[1].token_type != TokenType.EQ:
            raise NotAllowed("OPTIONS has a part that is not name = value.", do="OPTIONS(epsilon = 1, delta = 1e-6).")
        name = part[0].text.lower()
        if name not in OPTIONS:
            raise NotAllowed(
                f"the option {_validate.shown(part[0].text)} is not known.",
                why="an option that is passed over would silently not hold.",
                do=f"options: {', '.join(OPTIONS)}.",
            )
        if name in said:
            raise NotAllowed(f"the option {name} is given twice.", do="say it once.")
        said[name], part = part[2:], []
    groups = _number(said, "max_groups_contributed")
    epsilon, delta = _number(said, "epsilon"), _number(said, "delta")
    return Options(
        None if epsilon is None else _validate.real("epsilon", float(epsilon), 1e-9, 1e4),
        None if delta is None else _validate.real("delta", float(delta), 0, 0.5),
        None if groups is None else _validate.integer("max_groups_contributed", groups, 1, 2**31),
        _name(said["privacy_unit_column"]) if "privacy_unit_column" in said else None,
    )


def _number(said: dict[str, list[Token]], name: str) -> int | float | Decimal | None:
    if name not in said:
        return None
    value = said[name]
    if len(value) != 1 or value[0].token_type != TokenType.NUMBER:
        raise NotAllowed(f"the option {name} is not a number.", do=f"{name} = 1.")
    return number(value[0].text)


def _name(value: list[Token]) -> exp.Column:
    names = [token for place, token in enumerate(value) if place % 2 == 0]
    dots = [token for place, token in enumerate(value) if place % 2]
    right = all(token.token_type == TokenType.DOT for token in dots) and len(value) in (1, 3)
    if not right or any(token.token_type in (TokenType.STRING, TokenType.NUMBER) for token in names):
        raise NotAllowed("privacy_unit_column is not the name of a column.", do="privacy_unit_column = patient_id.")
    made = [exp.Identifier(this=one.text, quoted=one.token_type == TokenType.IDENTIFIER) for one in names]
    return exp.Column(this=made[-1], table=made[0] if len(made) == 2 else None)
