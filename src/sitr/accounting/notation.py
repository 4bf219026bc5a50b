"""Events as short text, such as `poisson_sampled(gaussian(1.1), 256/60000) * 14062 + laplace(20) * 30`.

The text is read by the small grammar below and never evaluated as code. Names are the `type` of an event, arguments are
those of its class, by place or by name. Numbers are exact fractions until they become an argument: 256/60000 is rounded
once, 1e6 is whole, and 0.1 * 3 is 0.3.

    sum     = product { "+" product }
    product = factor { ("*" | "/") factor }
    factor  = name "(" [ argument { "," argument } ] ")" | "(" sum ")" | [ "-" ] number | "inf" | quoted text
            | "[" [ sum { "," sum } ] "]" | "(" sum "," [ sum { "," sum } ] ")"
    argument = [ name "=" ] sum
"""

from __future__ import annotations

import difflib
import inspect
import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from ..errors import InvalidArgument, InvalidNotation, SitrError
from .events import Composed, Event, compose
from .schema import TYPES

MOST_CHARACTERS = 10_000
MOST_DEPTH = 50
MOST_EXPONENT = 400
MOST_BITS = 4096  # of a numerator or denominator: products of numbers stay small

TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<quoted>'[^']*'|\"[^\"]*\")"
    r"|(?P<sign>[-+*/=,()\[\]])"
)


def parse_event(text: str) -> Event:
    """Read an event from text.

    Args:
        text: At most 10,000 characters, nested at most 50 deep.

    Raises:
        InvalidNotation: The text is not an event; the message has the position, counted from 1.
        InvalidArgument: A parameter is outside its range.

    Example:
        >>> parse_event("poisson_sampled(gaussian(1.1), 256/60000) * 14062 + laplace(20) * 30")
        ... # doctest: +NORMALIZE_WHITESPACE
        PoissonSampled(event=Gaussian(noise_multiplier=1.1), sampling_prob=0.004266666666666667,
        adjacency='add_remove') * 14062 + Laplace(noise_multiplier=20.0) * 30
        >>> round(float(parse_event("randomized_response(p=0.75)").epsilon(delta=0)), 6)
        1.098612
    """
    if not isinstance(text, str):
        raise InvalidArgument(f"text={text!r:.40} is not text.", do="Pass a string such as 'gaussian(1.1) * 10'.")
    if len(text) > MOST_CHARACTERS:
        raise InvalidNotation(
            f"the text has {len(text)} characters; {MOST_CHARACTERS} is the most.",
            do="write the event as JSON, which has no limit.",
        )
    return _Reader(text).event()


def event_text(event: Event) -> str:
    """Return the text of an event, which `parse_event` reads back to the same event.

    Required parameters come by place, the others by name and only where they are not at their default.

    Example:
        >>> from sitr.accounting import Laplace, RandomizedResponse
        >>> event_text(Laplace(noise_multiplier=20) * 30 + RandomizedResponse(p=0.6, k=5))
        'laplace(20) * 30 + randomized_response(0.6, k=5)'
    """
    if isinstance(event, Composed):
        return _composed_text(event)
    values = event.parameters()
    known = inspect.signature(type(event)).parameters
    shown = {name: values[name] for name, parameter in known.items() if values[name] != parameter.default}
    bare = {name: value for name, value in shown.items() if name != "adjacency"}
    if type(event)(**bare) == event:  # sampling fixes the adjacency by itself
        shown = bare
    arguments = (
        _value_text(value) if known[name].default is inspect.Parameter.empty else f"{name}={_value_text(value)}"
        for name, value in shown.items()
    )
    return f"{event.type}({', '.join(arguments)})"


def _composed_text(event: Composed) -> str:
    if compose(*(inner * count for inner, count in event.events)) == event:
        texts = ((event_text(inner), count) for inner, count in event.events)
        return " + ".join(text if count == 1 else f"{text} * {count}" for text, count in texts)
    adjacency = "" if event.adjacency is None else f", adjacency={_value_text(event.adjacency)}"
    return f"{event.type}({_value_text(event.events)}{adjacency})"


def _value_text(value: Any) -> str:
    if isinstance(value, Event):
        return event_text(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_item_text, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(value).removesuffix(".0")


def _item_text(value: Any) -> str:
    return f"({', '.join(map(_value_text, value))})" if isinstance(value, tuple) else _value_text(value)


class _Token(NamedTuple):
    kind: str  # "number", "name", "quoted", "sign" or "end"
    text: str
    place: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


def _tokens(text: str) -> list[_Token]:
    """Cut the text into tokens, the last of them the end."""
    found, place = [], 0
    while place < len(text):
        if text[place].isspace():
            place += 1
            continue
        match = TOKEN.match(text, place)
        if match is None:
            raise InvalidNotation(
                f"{text[place]!r} at position {place + 1} has no meaning here.",
                do="use names, numbers, quoted words and + * / = , ( ) [ ] only.",
            )
        found.append(_Token(str(match.lastgroup), match.group(), place + 1))
        place = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


class _Reader:
    """Reads one text by recursive descent; a method for each line of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.index = 0
        self.depth = 0

    def event(self) -> Event:
        start = self.next
        value = self.sum()
        if self.next.kind != "end":
            self.refuse("'+', '*' or the end")
        return _as_event(value, start)

    @property
    def next(self) -> _Token:
        return self.tokens[self.index]

    def take(self) -> _Token:
        token = self.next
        self.index += token.kind != "end"
        return token

    def sees(self, *signs: str) -> bool:
        return self.next.kind == "sign" and self.next.text in signs

    def takes(self, sign: str) -> bool:
        """Step over `sign` if it comes next."""
        found = self.sees(sign)
        self.index += found
        return found

    def expect(self, sign: str) -> None:
        if not self.takes(sign):
            self.refuse(repr(sign))

    def refuse(self, expected: str) -> NoReturn:
        raise InvalidNotation(
            f"expected {expected} at position {self.next.place}, found {self.next.shown}.",
            do="write an event such as gaussian(1.1) * 10 + laplace(20).",
        )

    def sum(self) -> Any:
        start = self.next
        value = self.product()
        if not self.sees("+"):
            return value
        terms = [_as_event(value, start)]
        while self.takes("+"):
            start = self.next
            terms.append(_as_event(self.product(), start))
        return compose(*terms)

    def product(self) -> Any:
        value = self.factor()
        while self.sees("*", "/"):
            sign = self.take()
            value = _multiplied(value, self.factor(), sign)
        return value

    def factor(self) -> Any:
        token = self.next
        if token.kind == "name":
            return self.named()
        if token.kind in ("number", "quoted"):
            self.take()
            return _number(token) if token.kind == "number" else token.text[1:-1]
        if self.takes("-"):
            if self.next.kind != "number":
                self.refuse("a number after '-'")
            return -_number(self.take())
        if self.takes("("):
            return self.grouped()
        if self.takes("["):
            return self.items("]")
        self.refuse("an event or a number")

    def named(self) -> Any:
        token = self.take()
        if token.text == "inf":
            return math.inf
        if token.text not in TYPES:
            raise InvalidNotation(
                f"{token.text!r} at position {token.place} is no known event.{_suggestion(token.text, TYPES)}",
                do=f"Known: {', '.join(sorted(TYPES))}.",
            )
        self.expect("(")
        return _built(token, *self.arguments(token))

    def arguments(self, owner: _Token) -> tuple[list[Any], dict[str, Any]]:
        """The arguments by place and those by name, up to the closing parenthesis."""
        places: list[Any] = []
        names: dict[str, Any] = {}
        self.descend()
        while not self.takes(")"):
            if (places or names) and not self.takes(","):
                self.refuse("',' or ')'")
            name = self.argument_name()
            if name is None and names:
                self.refuse(f"a named argument of {owner.text}, such as delta=0,")
            if name is not None and name.text in names:
                raise InvalidNotation(f"{name.text!r} at position {name.place} was given before.", do="Give it once.")
            if name is None:
                places.append(_argument(self.sum()))
            else:
                names[name.text] = _argument(self.sum())
        self.depth -= 1
        return places, names

    def argument_name(self) -> _Token | None:
        following = self.tokens[min(self.index + 1, len(self.tokens) - 1)]
        if self.next.kind != "name" or following.text != "=" or following.kind != "sign":
            return None
        name = self.take()
        self.take()
        return name

    def grouped(self) -> Any:
        """What stands in parentheses: a sum, or with a comma a row of a table."""
        self.descend()
        first = self.sum()
        self.depth -= 1
        if self.takes(","):
            return [first, *self.items(")")]
        self.expect(")")
        return first

    def items(self, end: str) -> list[Any]:
        self.descend()
        values: list[Any] = []
        while not self.takes(end):
            if values:
                self.expect(",")
            values.append(self.sum())
        self.depth -= 1
        return values

    def descend(self) -> None:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise InvalidNotation(
                f"the text is nested more than {MOST_DEPTH} deep at position {self.next.place}.",
                do="compose events with + and * instead.",
            )


def _number(token: _Token) -> Fraction:
    exponent = re.split("[eE]", token.text)[1:]
    if len(token.text) > MOST_EXPONENT or (exponent and abs(int(exponent[0])) > MOST_EXPONENT):
        raise _out_of_reach(token)
    return _within_reach(Fraction(token.text), token)


def _within_reach(value: Fraction, token: _Token) -> Fraction:
    """Refuse a number that no float can hold: reading 1e-400 as 0 would be a better guarantee than was meant."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
        raise _out_of_reach(token)
    if value and not 5e-324 <= abs(value) <= 1e308:
        raise _out_of_reach(token)
    return value


def _out_of_reach(token: _Token) -> InvalidNotation:
    return InvalidNotation(
        f"the number at position {token.place} is out of reach.", do="stay between 5e-324 and 1e308."
    )


def _multiplied(left: Any, right: Any, sign: _Token) -> Any:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        if sign.text == "/" and right == 0:
            raise InvalidNotation(f"division by zero at position {sign.place}.", do="Divide by another number.")
        return _within_reach(left * right if sign.text == "*" else left / right, sign)
    if sign.text == "*" and isinstance(left, Event) and isinstance(right, Fraction):
        return left * _argument(right)
    if sign.text == "*" and isinstance(left, Fraction) and isinstance(right, Event):
        return right * _argument(left)
    raise InvalidNotation(
        f"{sign.text!r} at position {sign.place} joins {_noun(left)} and {_noun(right)}.",
        do="multiply an event by a count, or numbers by numbers; add events with +.",
    )


def _argument(value: Any) -> Any:
    """A number as the plain number that is nearest: whole ones as int."""
    if isinstance(value, list):
        return [_argument(v) for v in value]
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def _as_event(value: Any, start: _Token) -> Event:
    if isinstance(value, Event):
        return value
    raise InvalidNotation(
        f"expected an event at position {start.place}, found {_noun(value)}.",
        do="write an event such as gaussian(1.1) * 10 + laplace(20).",
    )


def _noun(value: Any) -> str:
    if isinstance(value, Event):
        return "an event"
    if value == math.inf:
        return "infinity"
    return "a list" if isinstance(value, list) else "a word" if isinstance(value, str) else "a number"


def _built(token: _Token, places: list[Any], names: dict[str, Any]) -> Event:
    """Make the event; what its own checks say of a bad number stays as it is."""
    kind = TYPES[token.text]
    signature = inspect.signature(kind)
    unknown = [name for name in names if name not in signature.parameters]
    if unknown:
        raise _misfit(token, f"no parameter {unknown[0]!r}.{_suggestion(unknown[0], signature.parameters)}")
    try:
        signature.bind(*places, **names)
    except TypeError as error:
        raise _misfit(token, f"{error}.") from None
    try:
        return kind(*places, **names)
    except SitrError:
        raise
    except (TypeError, ValueError):
        raise _misfit(token, "an argument has the wrong shape.") from None


def _misfit(token: _Token, reason: str) -> InvalidNotation:
    spelled = ", ".join(_spelling(p) for p in inspect.signature(TYPES[token.text]).parameters.values())
    return InvalidNotation(f"{token.text} at position {token.place}: {reason}", do=f"write {token.text}({spelled}).")


def _spelling(parameter: inspect.Parameter) -> str:
    needed = parameter.default is inspect.Parameter.empty
    return parameter.name if needed else f"{parameter.name}={parameter.default}"


def _suggestion(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f" Did you mean {close[0]}?" if close else ""
