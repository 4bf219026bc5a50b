"""How tests talk to the command line."""

import json
from typing import Any

from click.testing import CliRunner, Result

from sitr.cli import main


def run(*arguments: str, **options: Any) -> Result:
    """Run a command without a terminal; a traceback fails the test at once."""
    result = CliRunner().invoke(main, list(arguments), **options)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run_json(*arguments: str, **options: Any) -> Any:
    """Run a command that succeeds with --json, and read what it printed."""
    result = run(*arguments, "--json", **options)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)
