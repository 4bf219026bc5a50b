"""What is not allowed in SQL, why, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from ...errors import NotAllowed

LISTED = "docs/sql.md lists what is."
REASONS: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Window: (
        "a window function",
        "it gives every row a number that depends on the rows of others.",
        "aggregate with GROUP BY; per person, in a subquery that is grouped by the unit.",
    ),
    exp.Union: (
        "UNION",
        "rows of one unit in both parts would count twice.",
        "ask each part apart, or use WHERE with OR.",
    ),
    exp.Except: ("EXCEPT", "rows would depend on the rows of others.", "write the difference as a condition in WHERE."),
    exp.Intersect: ("INTERSECT", "rows would depend on the rows of others.", "join the tables on their unit."),
    exp.Select: (
        "a subquery in an expression",
        "a row would be kept or changed for what the rows of others hold.",
        "join on the unit, or put a subquery that is grouped by the unit into FROM.",
    ),
    exp.Subquery: (
        "a subquery in an expression",
        "a row would be kept or changed for what the rows of others hold.",
        "join on the unit, or put a subquery that is grouped by the unit into FROM.",
    ),
    exp.Exists: (
        "EXISTS",
        "a row would be kept for what the rows of others hold.",
        "join on the unit, or put a subquery that is grouped by the unit into FROM.",
    ),
    exp.Star: (
        "SELECT * of people's rows",
        "rows of people never leave; numbers over groups of them do.",
        "SELECT COUNT(*), or name keys and aggregates.",
    ),
    exp.Distinct: (
        "DISTINCT here",
        "which values occur tells of the people who have them.",
        "GROUP BY the columns and ask for COUNT(*); COUNT(DISTINCT x) counts different values.",
    ),
    exp.Placeholder: ("a parameter", "", "write the value itself: it becomes a typed constant, whatever it contains."),
    exp.Parameter: ("a parameter", "", "write the value itself: it becomes a typed constant, whatever it contains."),
    exp.SessionParameter: ("a parameter", "", "write the value itself."),
    exp.Null: ("NULL as a value", "nothing equals it.", "x IS NULL, or COALESCE(x, 0)."),
    exp.Like: ("LIKE", "engines match text by different rules.", "name the values: x IN ('a', 'b')."),
    exp.ILike: ("ILIKE", "engines match text by different rules.", "name the values: x IN ('a', 'b')."),
    exp.Cast: (
        "a cast of a column",
        "a value that does not fit would stop the engine, and that tells of its row.",
        "declare the column with the type that it needs; DATE '2026-01-01' is a literal.",
    ),
    exp.TryCast: ("a cast of a column", "engines differ in what fits.", "declare the column with its type."),
    exp.Interval: ("INTERVAL", "", "write the date that is meant: d >= DATE '2026-01-01'."),
    exp.DPipe: ("|| between texts", "a text that is computed has no declared values.", "group by both columns."),
    exp.Mod: ("%", "engines differ on the sign of what is left.", "group by whole numbers, or use CASE."),
    exp.IntDiv: ("division of whole numbers", "engines differ in how they round.", "use /, which is not rounded."),
    exp.Lambda: ("a function of your own", "no proof covers what it does to a row.", "use CASE, and + - * /."),
    exp.Table: ("a table here", "", "tables stand in FROM and JOIN."),
    exp.Kwarg: ("a named argument here", "", "aggregates take contribution_bounds_per_row => (0, 100)."),
    exp.Tuple: ("a list of values here", "", "x IN (1, 2, 3)."),
}
# What a part of SELECT is called, and what to do without it.
CLAUSES: dict[str, tuple[str, str, str]] = {
    "distinct": ("SELECT DISTINCT", "which values occur tells of the people who have them.", "GROUP BY the columns."),
    "hint": ("a hint to the engine", "no text of a query reaches an engine.", "leave it out."),
    "qualify": ("QUALIFY", "it needs window functions, which depend on the rows of others.", "use WHERE or HAVING."),
    "windows": ("WINDOW", "window functions give numbers that depend on the rows of others.", "use GROUP BY."),
    "into": ("SELECT INTO", "a query writes nothing.", "keep the answer in your program."),
    "locks": ("FOR UPDATE", "a query locks nothing.", "leave it out."),
    "laterals": ("LATERAL", "rows could be made from other rows.", "use CASE in SELECT."),
    "pivots": ("PIVOT", "", "GROUP BY the column, and turn the answer round in your program."),
    "sample": ("TABLESAMPLE", "the price takes no account of it.", "leave it out."),
    "limit": ("LIMIT in a subquery", "which rows it keeps depends on the rows of others.", "put LIMIT at the end."),
    "offset": ("OFFSET in a subquery", "which rows it keeps depends on the rows of others.", "put it at the end."),
    "order": ("ORDER BY in a subquery", "it would have no effect.", "put ORDER BY at the end."),
    "kind": ("SELECT AS STRUCT or AS VALUE", "", "name the columns."),
    "fetch": ("FETCH", "", "LIMIT 10."),
    "rollup": ("ROLLUP", "it is several queries.", "ask for the finest groups; answer.total(...) adds them up."),
    "cube": ("CUBE", "it is several queries.", "ask for the finest groups; answer.total(...) adds them up."),
    "grouping_sets": ("GROUPING SETS", "it is several queries.", "ask for each of them."),
    "totals": ("WITH TOTALS", "it is a second query.", "answer.total(...) adds groups up."),
    "all": ("GROUP BY ALL", "", "name the keys, or their positions: GROUP BY 1, 2."),
    "recursive": ("WITH RECURSIVE", "how often rows repeat would depend on the data.", "leave RECURSIVE out."),
    "db": ("a name with a schema", "", "use the name under which the table is declared."),
    "catalog": ("a name with a catalog", "", "use the name under which the table is declared."),
    "version": ("a table as it was", "", "the owner declares what can be read."),
}


def refused(node: exp.Expr, place: str = "") -> NotAllowed:
    """Return the refusal of a node that is not on the list."""
    known = REASONS.get(type(node))
    where = f" in {place}" if place else ""
    if known is None:
        return NotAllowed(f"{shown(node)}{where} is not part of the SQL that is understood.", do=LISTED)
    what, why, do = known
    return NotAllowed(f"{what}{where if not what.endswith('here') else ''} is not allowed.", why=why, do=do)


def only(node: exp.Expr, *allowed: str) -> None:
    """Refuse a node that says more than these parts of it."""
    for name, value in node.args.items():
        if name not in allowed and value not in (None, False, [], ""):
            what, why, do = CLAUSES.get(name.strip("_"), (f"{name.strip('_')} of {shown(node)}", "", LISTED))
            raise NotAllowed(f"{what} is not allowed.", why=why, do=do)


def shown(node: exp.Expr) -> str:
    """Return a node as its author wrote it, or about so, in forty characters at most."""
    try:
        text = node.sql()
    except Exception:
        text = type(node).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."
