"""Lines and documents on standard output: all that commands print without a console."""

import json
from pathlib import Path
from typing import Any

import click

from tuner.atomic import is_stdout
from tuner.files import printable


def say(text: object, *, err: bool = False, nl: bool = True) -> None:
    """Print a text. Its control characters become visible: they come from files."""
    click.echo(printable(str(text)), err=err, nl=nl)


def say_written(output: Path, what: str) -> None:
    """Print what a written file has: on standard error where the file is the standard output."""
    say(f"{output}: {what}", err=is_stdout(output))


def say_json(document: Any) -> None:
    """Print a document as JSON, without a control character but line ends."""
    click.echo(json.dumps(document, indent=1).replace("\x7f", "\\u007f"))
