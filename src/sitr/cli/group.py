"""The group of all commands, and what their errors look like."""

from __future__ import annotations

from typing import Any

import click

from .. import errors
from .._version import __version__
from .account import account
from .audit import audit
from .audit_run import audit_run
from .budget import budget
from .calibrate import calibrate
from .check import check
from .demo import demo
from .doctor import doctor
from .explain import explain
from .figures import figures
from .init import init
from .ledger import ledger
from .query import query
from .synthesize import synthesize
from .tables import tables

# The first that fits; every other error of sitr is a request that cannot be read.
EXIT_CODES: tuple[tuple[type[errors.SitrError], int], ...] = (
    (errors.BudgetExceeded, 3),
    (errors.NoSuchGuarantee, 4),
    (errors.IncompatibleAdjacency, 4),
    (errors.CannotCalibrate, 4),
    (errors.NotAllowed, 4),
    (errors.MissingExtra, 5),
    (errors.EngineFailed, 5),
    (errors.LedgerDamaged, 1),
    (errors.LedgerUnavailable, 6),
    (errors.Cancelled, 130),
)


class SitrGroup(click.Group):
    """A group whose commands refuse in the words of the library, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except errors.SitrError as error:
            click.echo(error, err=True)
            ctx.exit(next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 2))


@click.group(cls=SitrGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sitr", message="%(prog)s %(version)s")
def main() -> None:
    """Differential privacy with one account behind every release."""


COMMANDS = (
    account,
    audit,
    audit_run,
    budget,
    calibrate,
    check,
    demo,
    doctor,
    explain,
    figures,
    init,
    ledger,
    query,
    synthesize,
    tables,
)
for command in COMMANDS:
    main.add_command(command)
