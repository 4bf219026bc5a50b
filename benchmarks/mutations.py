"""Small changes to a source file, one at a time: what `mutants.py` makes of the code that carries the guarantee.

Positions come from the syntax tree and everything else stays as it is written, so a mutant differs from its source by
one edit. Left alone is what changes no behaviour that a test should fix: annotations, docstrings, the words of errors,
assertions that narrow a type, and decorators (a memo of another size gives the same answers).
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
    ast.MatMult: ("@", "*"),
}
TWINS = [
    ("max", "min"),
    ("any", "all"),
    ("floor", "ceil"),
    ("maximum", "minimum"),
    ("bisect_left", "bisect_right"),
    ("next_plus", "next_minus"),
    ("ROUND_FLOOR", "ROUND_CEILING"),
    ("rounded_up", "rounded_down"),
    ("exp", "expm1"),
    ("log", "log1p"),
]
SWAPPED = {one: other for pair in TWINS for one, other in (pair, pair[::-1])}
# Links of a chain of calls that may be left out: the rows, the order or the number of what is asked of a database.
LINKS = {"where", "filter", "order_by", "desc", "limit", "distinct", "prefix_with", "cast", "fill_null", "abs"}
WORDS = {"why", "do", "what", "strict"}  # keywords of errors; `strict` of zip asserts what holds
SQL_BEGINS = re.compile(r"\s*(SELECT|UPDATE|INSERT|DELETE|CREATE|PRAGMA|BEGIN|COMMIT|ROLLBACK|WITH|SET|LOCK)\b")
SQL_CHANGES = [
    (r"(?<![<>=!:-])<(?![<>=@])", "<="),
    (r"<=", "<"),
    (r"(?<![<>=!@-])>(?![>=])", ">="),
    (r"(?<!-)>=", ">"),
    (r"<>", "="),
    (r"(?<= )=(?= )", "<>"),
    (r"\bmax\(", "min("),
    (r"\bmin\(", "max("),
    (r"\bgreatest\(", "least("),
    (r"\bAND\b", "OR"),
    (r"\bOR\b(?! REPLACE)", "AND"),
    (r"\bNOT (?=NULL|FOUND|TRUE|DISTINCT|[a-z])", ""),
    (r"\bIS DISTINCT FROM\b", "IS NOT DISTINCT FROM"),
    (r"\bIS NULL\b", "IS NOT NULL"),
    (r"\bDISTINCT (?!FROM)", ""),
    (r"(?<= )\+(?= )", "-"),
    (r"\bDESC\b", "ASC"),
    (r" FOR UPDATE\b", ""),
    (r" SECURITY DEFINER\b", ""),
    (r" SET search_path = pg_catalog, pg_temp\b", ""),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bFULL\b", "OFF"),
    (r"\bON\b(?=\"| FOR|$)", "OFF"),
    (r"\bIMMEDIATE\b", "DEFERRED"),
    (r"\bCOMMIT\b", "ROLLBACK"),
]
NUMBER = re.compile(r"(?<![\w.$%-])\d+(?![\w.])")
# Comments, the words of errors, and what would be no SQL at all: the sign of an assignment, the list of a trigger.
NOT_CHANGED = re.compile(
    r"--[^\n]*|ERRCODE =|MESSAGE =(?: '[^']*')?|DETAIL =|(?:\bSET|,)\s+\w+ =|UPDATE OR DELETE OR TRUNCATE ON"
    r"|\bFROM pg_catalog\.[^\n]*"
)


class Mutation(NamedTuple):
    """One edit: the bytes from `start` to `end` become `text`."""

    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: bytes) -> bytes:
        """Return the mutant."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def line(self, source: bytes) -> int:
        """Return the line in which it begins, from 1."""
        return source.count(b"\n", 0, self.start) + 1

    def shown(self, source: bytes) -> tuple[str, str]:
        """Return the lines that change, before and after, each as one line."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = (source + b"\n").index(b"\n", self.end)
        before = source[first:last].decode()
        after = (source[first : self.start] + self.text.encode() + source[self.end : last]).decode()
        return " ".join(before.split()), " ".join(after.split())


def mutations(name: str, source: bytes) -> list[Mutation]:
    """Return all mutations of a file, in order; `changes` tells which of them are none."""
    found = _sql(source.decode(), 0) if name.endswith(".sql") else _Finder(source).found(ast.parse(source))
    return sorted(set(found))


def changes(name: str, source: bytes, mutation: Mutation) -> bool:
    """Whether a mutant can be read, and reads otherwise than its source."""
    if name.endswith(".sql"):
        return True
    try:
        return ast.dump(ast.parse(mutation.apply(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def statement_lines(name: str, source: bytes, line: int) -> set[int]:
    """Return the lines of the statement in a line, its body left out; none where it runs when the file is read."""
    if name.endswith(".sql"):
        return set()
    around = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt) and _holds(node, line)]
    functions = [node for node in around if isinstance(node, ast.FunctionDef) and node.body[0].lineno <= line]
    if not functions:
        return set()
    innermost = max(around, key=lambda node: node.lineno)
    body = getattr(innermost, "body", None)
    last = body[0].lineno - 1 if body else innermost.end_lineno or line
    return set(range(innermost.lineno, max(last, line) + 1))


class Home(NamedTuple):
    """Where a mutation is: the innermost function around it, or the statement of the module; a paragraph of SQL."""

    name: str
    start: int
    end: int


def homes(name: str, source: bytes) -> list[Home]:
    """Return the places of a file, outer ones before those inside."""
    if name.endswith(".sql"):
        found = re.finditer(rb"(?s)\S.*?(?=\n\s*\n|\Z)", source)
        return [Home("", paragraph.start(), paragraph.end()) for paragraph in found]
    finder, made = _Finder(source), []

    def look(nodes: list[ast.stmt], outer: str) -> None:
        for node in nodes:
            inner = f"{outer}{getattr(node, 'name', '')}."
            if not outer or isinstance(node, ast.FunctionDef):
                made.append(Home(inner, finder._start(node), finder._end(node)))
            for field in ("body", "orelse", "finalbody"):
                look([one for one in getattr(node, field, []) if isinstance(one, ast.stmt)], inner)

    look(ast.parse(source).body, "")
    return made


def home_of(mutation: Mutation, places: list[Home]) -> Home:
    """Return the innermost place that holds a mutation."""
    around = [home for home in places if home.start <= mutation.start and mutation.end <= home.end]
    return max(around, key=lambda home: (home.start, -home.end))


def _holds(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


class _Finder:
    """Walks a syntax tree and collects edits."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def found(self, node: ast.AST) -> Iterator[Mutation]:
        """Yield the edits of a node and of what is in it."""
        edits = getattr(self, f"_{type(node).__name__}", None)
        if edits is not None:
            yield from edits(node)
        for child in self._children(node):
            yield from self.found(child)

    def _children(self, node: ast.AST) -> Iterator[ast.AST]:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_words(child) and not _is_type(node, field, child):
                    yield child

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _start(self, node: ast.AST) -> int:
        return self._at(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def _end(self, node: ast.AST) -> int:
        return self._at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _edit(self, node: ast.AST, text: str, kind: str) -> Mutation:
        return Mutation(self._start(node), self._end(node), text, kind)

    def _between(self, left: ast.AST, right: ast.AST, sign: str, text: str, kind: str) -> Iterator[Mutation]:
        """The operator between two operands; comments there are blanked, as they may hold one too."""
        start, end = self._end(left), self._start(right)
        gap = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self._source[start:end])
        if found := re.search(sign.encode(), gap):
            yield Mutation(start + found.start(), start + found.end(), text, kind)

    def _Compare(self, node: ast.Compare) -> Iterator[Mutation]:
        for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
            pattern, text = COMPARISONS[type(sign)]
            yield from self._between(left, right, pattern, text, "comparison")

    def _BinOp(self, node: ast.BinOp) -> Iterator[Mutation]:
        if any(isinstance(side, ast.JoinedStr) or _is_text(side) for side in (node.left, node.right)):
            return
        sign, text = ARITHMETIC[type(node.op)]
        yield from self._between(node.left, node.right, re.escape(sign), text, "arithmetic")
        if isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant):
            yield self._edit(node, self._text(node.left), "term dropped")

    def _AugAssign(self, node: ast.AugAssign) -> Iterator[Mutation]:
        sign, text = ARITHMETIC[type(node.op)]
        yield from self._between(node.target, node.value, re.escape(sign + "="), text + "=", "arithmetic")
        yield self._edit(node, "pass", "statement dropped")

    def _BoolOp(self, node: ast.BoolOp) -> Iterator[Mutation]:
        sign, text = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from self._between(left, right, sign, text, "and, or")
            yield Mutation(self._start(left), self._start(right), "", "condition dropped")
        last = node.values[-2:]
        yield Mutation(self._end(last[0]), self._end(last[1]), "", "condition dropped")

    def _UnaryOp(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            yield self._edit(node, self._text(node.operand), "sign dropped")

    def _Name(self, node: ast.Name) -> Iterator[Mutation]:
        if node.id.isupper() and node.id in SWAPPED:
            yield self._edit(node, SWAPPED[node.id], "twin")

    def _Attribute(self, node: ast.Attribute) -> Iterator[Mutation]:
        end = self._end(node)
        if node.attr in SWAPPED:
            yield Mutation(end - len(node.attr), end, SWAPPED[node.attr], "twin")
        if node.attr == "inf":
            yield self._edit(node, f"(-{self._text(node)})", "sign turned")

    def _Constant(self, node: ast.Constant) -> Iterator[Mutation]:
        value = node.value
        if isinstance(value, bool):
            yield self._edit(node, str(not value), "true, false")
        elif isinstance(value, int):
            for other in {value + 1, value - 1, 0} - {value}:
                yield self._edit(node, f"({other})" if other < 0 else str(other), "constant")
        elif isinstance(value, float):
            for other in {2 * value, 0.0} - {value}:
                yield self._edit(node, repr(other), "constant")
        elif isinstance(value, str) and SQL_BEGINS.match(value):
            yield from _sql(self._text(node), self._start(node))

    def _JoinedStr(self, node: ast.JoinedStr) -> Iterator[Mutation]:
        text = self._text(node)
        if SQL_BEGINS.match(text.lstrip("rf\"'")):
            yield from _sql(text, self._start(node))

    def _Call(self, node: ast.Call) -> Iterator[Mutation]:
        parts = sorted([*node.args, *node.keywords], key=self._start)
        for part, before in zip(parts, [None, *parts], strict=False):
            if not isinstance(part, ast.keyword) or part.arg is None or part.arg in WORDS:
                continue
            after = parts[parts.index(part) + 1 :]
            if before is not None:
                yield Mutation(self._end(before), self._end(part), "", "argument dropped")
            else:
                yield Mutation(
                    self._start(part), self._start(after[0]) if after else self._end(part), "", "argument dropped"
                )
        if isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
            yield self._edit(node.func, SWAPPED[node.func.id], "twin")
        if isinstance(node.func, ast.Attribute) and node.func.attr in LINKS and self._text(node.func.value) != "np":
            yield self._edit(node, self._text(node.func.value), "call dropped")

    def _Subscript(self, node: ast.Subscript) -> Iterator[Mutation]:
        if isinstance(node.slice, ast.Slice):
            for end in (node.slice.lower, node.slice.upper):
                if end is not None and not isinstance(end, ast.Constant):
                    yield self._edit(end, f"({self._text(end)}) + 1", "slice")

    def _Expr(self, node: ast.Expr) -> Iterator[Mutation]:
        if isinstance(node.value, ast.Call):
            yield self._edit(node, "pass", "statement dropped")

    def _Raise(self, node: ast.Raise) -> Iterator[Mutation]:
        yield self._edit(node, "pass", "statement dropped")

    def _Return(self, node: ast.Return) -> Iterator[Mutation]:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield self._edit(node, "return None", "no answer")

    def _If(self, node: ast.If) -> Iterator[Mutation]:
        if not node.orelse and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break):
            yield self._edit(node.test, "False", "guard dropped")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_words(node: ast.AST) -> bool:
    """Whether a node is an assertion, or holds what people read: what an error says, and a docstring."""
    if isinstance(node, ast.Assert):
        return True
    if isinstance(node, ast.keyword):
        return node.arg in WORDS
    if isinstance(node, ast.Expr):
        return _is_text(node.value)
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        return bool(re.fullmatch(r"[A-Z]\w*|TypeVar|damaged|older|busy", name)) and _says_words(node)
    return False


def _says_words(node: ast.Call) -> bool:
    return bool(node.args) and (_is_text(node.args[0]) or isinstance(node.args[0], ast.JoinedStr))


def _is_type(node: ast.AST, field: str, child: ast.AST) -> bool:
    """Whether a node is a type written as a value: an alias, or what a subscript of one holds."""
    if isinstance(node, ast.Subscript) and field == "slice":
        name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
        return name[:1].isupper() or name in ("tuple", "list", "dict", "set")
    return False


def _sql(text: str, offset: int) -> Iterator[Mutation]:
    """Yield the edits of a text of SQL that begins at an offset of the file."""
    kept = [found.span() for found in NOT_CHANGED.finditer(text)]
    changes = [(found.span(), change) for sign, change in SQL_CHANGES for found in re.finditer(sign, text)]
    for found in NUMBER.finditer(text):
        changes += [(found.span(), str(other)) for other in {int(found[0]) + 1, int(found[0]) - 1, 0} - {int(found[0])}]
    for found in re.finditer(r"(?<=[\n ])(RAISE EXCEPTION|PERFORM)\b[^;]*", text):
        changes.append((found.span(), "NULL"))
    for (start, end), change in changes:
        if not any(first < end and start < last for first, last in kept) or change == "NULL":
            before, after = len(text[:start].encode()), len(text[:end].encode())
            yield Mutation(offset + before, offset + after, change, "SQL")
