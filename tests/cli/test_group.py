"""The command line as a whole: its commands, their help and manners, and what it costs to import."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

import sitr
from sitr import errors
from sitr.cli import main
from sitr.cli.group import EXIT_CODES
from tests.cli.helpers import run

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def leaves(group, *names):
    """All commands that do something, by what is typed: those of a nested group by two words."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaves(command, *names, name)
        else:
            yield " ".join((*names, name)), command


LEAVES = dict(leaves(main))
COMMANDS = list(LEAVES)
GROUPS = sorted(name for name, command in main.commands.items() if isinstance(command, click.Group))


def test_the_commands_are_these():
    alone = ["account", "audit", "audit-run", "calibrate", "check", "demo", "doctor", "explain", "figures", "init"]
    alone += ["query", "synthesize", "tables"]
    nested = {
        "budget": ["begin", "create", "list", "raise", "redeclare", "replace", "show"],
        "ledger": ["allow", "anchor", "backup", "export", "note", "refund", "restore", "show", "verify"],
    }
    assert sorted(COMMANDS) == sorted(alone + [f"{group} {name}" for group in nested for name in nested[group]])
    assert sorted(nested) == GROUPS


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_a_command_is_documented(name):
    assert f"## sitr {name}\n" in DOCS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_documented_and_has_help(name):
    section = DOCS.partition(f"## sitr {name}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    for option in (p for p in LEAVES[name].params if isinstance(p, click.Option)):
        assert option.help
        assert f"`{option.opts[0]}" in section


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_a_command_has_help(name):
    for flag in ("--help", "-h"):
        result = run(*name.split(), flag)
        assert result.exit_code == 0
        assert f"Usage: main {name}" in result.stdout
    assert (LEAVES | main.commands)[name].help


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_summaries_of_commands_are_not_cut(group):
    told = run(*group.split(), "--help", env={"COLUMNS": "80"}).stdout.partition("Commands:\n")[2]
    assert told.count("\n") == len((main.commands[group] if group else main).commands)
    assert "..." not in told


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_json(name):
    assert any("--json" in parameter.opts for parameter in LEAVES[name].params)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_tested(name):
    words = name.split()
    tests = (Path(__file__).parent / f"test_{words[0].replace('-', '_')}.py").read_text(encoding="utf-8")
    assert ", ".join(f'"{word}"' for word in words) in tests


def test_the_documented_exit_codes_are_those_of_the_code():
    for code in {code for _, code in EXIT_CODES} | {0, 1, 2}:
        assert f"| {code} |" in DOCS


def test_version():
    result = run("--version")
    assert result.stdout == f"sitr {sitr.__version__}\n"


def test_an_unknown_command_is_a_usage_error():
    result = run("acount")
    assert result.exit_code == 2
    assert "No such command 'acount'" in result.stderr


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidArgument, 2),
        (errors.InvalidNotation, 2),
        (errors.InvalidRecord, 2),
        (errors.BudgetExceeded, 3),
        (errors.NoSuchGuarantee, 4),
        (errors.IncompatibleAdjacency, 4),
        (errors.CannotCalibrate, 4),
        (errors.NotAllowed, 4),
        (errors.MissingExtra, 5),
        (errors.EngineFailed, 5),
        (errors.LedgerDamaged, 1),
        (errors.LedgerUnavailable, 6),
        (errors.WrongLedger, 2),
        (errors.NotPermitted, 2),
        (errors.InvalidDeclaration, 2),
        (errors.Cancelled, 130),
    ],
)
def test_every_error_has_its_exit_code_and_three_lines(monkeypatch, error, code):
    def refuse(*_, **__):
        raise error("what.", why="why.", do="do.")

    monkeypatch.setattr(main.commands["doctor"], "callback", refuse)
    result = run("doctor")
    assert result.exit_code == code
    assert result.stderr == f"{error.__name__} [{error.code}]: what.\nWhy: why.\nDo: do.\n"
    assert result.stdout == ""


@pytest.mark.parametrize("secret", ["name,age\nAisha,47\n", '["Aisha", 47]', '{"Aisha": 47, "Aisha": 48'])
def test_a_file_of_data_given_by_mistake_is_not_shown(tmp_path, secret):
    path = tmp_path / "people.csv"
    path.write_text(secret, encoding="utf-8")
    result = run("account", "--file", str(path), "--delta", "1e-5")
    assert result.exit_code == 2
    assert "Aisha" not in result.output
    assert "47" not in result.output


def test_importing_the_command_line_is_light():
    code = "import sys, sitr.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "scipy", "rich", "matplotlib", "sqlalchemy", "ibis", "duckdb"}
    rooms = {"sitr.accounting", "sitr.audit", "sitr.ledger", "sitr.report"}
    assert (heavy | rooms).isdisjoint(loaded)


@pytest.mark.parametrize("module", ["sitr", "sitr.cli"])
def test_python_m_runs_it(module):
    command = [sys.executable, "-m", module, "account", "laplace(2)", "--delta", "0", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["answers"][0]["epsilon"]["upper"] == 0.5
    assert result.stderr == ""
    told = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("Usage: sitr ")
