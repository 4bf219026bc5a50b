"""What several of the tests here do: ask once, and act in a fork."""

import os

from tests.faults.worker import ANALYST, DATASET, EVENT


def in_fork(act):
    """Run something in a fork of this process, and return what it returned, or the name of what it raised."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = str(act())
        except BaseException as error:
            said = type(error).__name__
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    os.waitpid(child, 0)
    return said


def ask(ledger, operation, answer="a"):
    with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=operation) as grant:
        grant.commit(answer)
    return grant.entry
