"""Where a ledger is: from an address to its store."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InvalidArgument
from .lookalikes import check_is_no_other
from .store import Store

ADDRESSES = "sqlite:///book.db, postgresql://user@host/database, or memory://."


def store_at(url: str | Path, wait: float) -> tuple[Store, Path | None]:
    """Return the store that an address names, and the folder for large answers beside it.

    Raises:
        InvalidArgument: It is no address of a ledger; it is not shown, since it may have a password in it.

    Example:
        >>> store, folder = store_at("memory://", wait=10)
        >>> store.place
        'memory'
    """
    if isinstance(url, Path):
        url = f"sqlite:///{url}"
    if not isinstance(url, str):
        raise InvalidArgument(f"{type(url).__name__} is not the address of a ledger.", do=ADDRESSES)
    if "://" not in url and url and not set(url) & set("@:"):  # a plain path; what has these signs may be an address
        url = f"sqlite:///{url}"
    scheme, _, rest = url.partition("://")
    if scheme == "memory" and not rest:
        from .sqlite import SQLite

        return SQLite(None, wait), None
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from .sqlite import SQLite

        path = Path(rest[1:]).resolve()  # one name for one book: logs and answers are beside it
        if os.path.isdir(path):  # False, too, where it cannot be reached
            raise InvalidArgument(f"{path} is a folder, and a ledger is a file in one.", do=ADDRESSES)
        check_is_no_other(path)
        return SQLite(path, wait), path.with_name(f"{path.name}.answers")
    if scheme in ("postgresql", "postgres"):
        from .postgres import PostgreSQL

        return PostgreSQL(url, wait), None
    raise InvalidArgument("this is not the address of a ledger.", do=ADDRESSES)  # not shown: it may have a password
