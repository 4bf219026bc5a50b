"""How objects draw themselves in a notebook: HTML of a few plain pieces, in which every text is escaped.

A piece takes plain texts only, so that a name, a note or a question can hold anything and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

SIDES = {"left": "text-align: left", "right": "text-align: right"}


def page(*pieces: str) -> str:
    """Return pieces, one below the other.

    Example:
        >>> page(lines("ε = 1"), code("a < b"))
        '<div class="sitr"><p>ε = 1</p><pre>a &lt; b</pre></div>'
    """
    return f'<div class="sitr">{"".join(pieces)}</div>'


def lines(*texts: str) -> str:
    """Return a paragraph for each text.

    Example:
        >>> lines("1 < 2", "2 < 3")
        '<p>1 &lt; 2</p><p>2 &lt; 3</p>'
    """
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def title(name: str, said: str = "") -> str:
    """Return a line that begins with a name in bold type.

    Example:
        >>> title("visits", "about patients")
        '<p><b>visits</b> about patients</p>'
    """
    return f"<p><b>{escape(name)}</b>{f' {escape(said)}' if said else ''}</p>"


def code(text: str) -> str:
    """Return a text as it was written, with its lines and spaces.

    Example:
        >>> code("SELECT 1")
        '<pre>SELECT 1</pre>'
    """
    return f"<pre>{escape(text)}</pre>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> str:
    """Return a table.

    Args:
        head: The names of the columns; none, for a table without a head.
        rows: The cells.
        numbers: How many of the last columns stand on the right.

    Example:
        >>> table(("key", "n"), [("<a>", "3")], numbers=1).count("&lt;a&gt;")
        1
    """
    body = "".join(_row("td", row, numbers) for row in rows)
    above = f"<thead>{_row('th', head, numbers)}</thead>" if head else ""
    return f"<table>{above}<tbody>{body}</tbody></table>"


def _row(kind: str, cells: Sequence[str], numbers: int) -> str:
    sides = ["left"] * (len(cells) - numbers) + ["right"] * numbers
    inside = (f'<{kind} style="{SIDES[side]}">{escape(cell)}</{kind}>' for side, cell in zip(sides, cells, strict=True))
    return f"<tr>{''.join(inside)}</tr>"
