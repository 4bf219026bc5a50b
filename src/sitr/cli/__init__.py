"""The command `sitr`: data goes to standard output, talk to standard error.

Exit codes: 0 done; 1 the doctor or an audit found something wrong, or a file could not be written; 2 the request
cannot be read; 3 a budget refused; 4 the guarantee does not exist; 5 something needed is not installed.
"""

from .group import main

__all__ = ["main"]
