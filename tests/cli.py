"""Calls of the command `switchpoint` within the process, and what it consists of."""

from pathlib import Path

import click
from click.testing import CliRunner, Result

from tuner.cli import main


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def succeed(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def fail(*arguments: str | Path) -> str:
    """Return the one line of an error."""
    result = call(*arguments)
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: "), line
    return line


def commands(group: click.Group, before: str = "") -> dict[str, click.Command]:
    """Return all commands by their whole name, those of subgroups included."""
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        whole = f"{before}{name}"
        if not isinstance(command, click.Group) or command.invoke_without_command:
            found[whole] = command
        if isinstance(command, click.Group):
            found |= commands(command, f"{whole} ")
    return found
