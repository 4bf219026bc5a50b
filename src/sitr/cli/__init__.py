"""The command `sitr`: data goes to standard output, talk to standard error.

Exit codes: 0 done; 1 the doctor, an audit or a verification found something wrong, a ledger is damaged, a file could
not be written, or the user said no; 2 the request or a declaration cannot be read, or a ledger does not allow it; 3 a
budget refused; 4 the guarantee does not exist, or a query is not allowed; 5 something needed is not installed, or an
engine did not answer; 6 a ledger cannot be reached or written now; 130 a query was stopped.
"""

from .group import main

__all__ = ["main"]
