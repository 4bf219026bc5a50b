"""The command `sitr`: data goes to standard output, talk to standard error.

Exit codes: 0 done; 1 the doctor, an audit or a verification found something wrong, a ledger is damaged, or a file could
not be written; 2 the request cannot be read, or a ledger does not allow it; 3 a budget refused; 4 the guarantee does
not exist; 5 something needed is not installed; 6 a ledger cannot be reached or written now.
"""

from .group import main

__all__ = ["main"]
