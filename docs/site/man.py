"""Man pages of the command `switchpoint`, from the texts of its help."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tuner import __version__
from tuner.cli import main


def write(place: Path) -> None:
    """Write switchpoint.1 and a page for each subcommand to place/man1."""
    section = place / "man1"
    section.mkdir(parents=True, exist_ok=True)
    for context in _contexts(click.Context(main, info_name="switchpoint")):
        name = context.command_path.replace(" ", "-")
        (section / f"{name}.1").write_text(_page(name, context))


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _contexts(click.Context(command, context, info_name=name))


def _page(name: str, context: click.Context) -> str:
    command = context.command
    short = command.get_short_help_str(limit=200).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    text = f'.TH "{name.upper()}" "1" "" "Switchpoint {__version__}" "Switchpoint"\n'
    text += f".SH NAME\n{_roff(name)} \\- {_roff(short)}\n"
    text += f".SH SYNOPSIS\n.B {_roff(context.command_path)}\n{_roff(usage)}\n"
    text += f".SH DESCRIPTION\n{_paragraphs(command.help or '')}"
    records = [each.get_help_record(context) for each in command.get_params(context)]
    text += ".SH OPTIONS\n" + _list(record for record in records if record)
    if isinstance(command, click.Group):
        pages = [f"{name}-{each}" for each in command.commands]
        helps = (each.get_short_help_str(200) for each in command.commands.values())
        text += ".SH COMMANDS\n" + _list(zip(command.commands, helps, strict=True))
    else:
        pages = [context.parent.command_path.replace(" ", "-")] if context.parent else []
    return text + ".SH SEE ALSO\n" + ",\n".join(f".BR {_roff(page)} (1)" for page in pages) + "\n"


def _paragraphs(text: str) -> str:
    """Return the paragraphs of a help text; those marked by click keep their lines."""
    found = ""
    for paragraph in re.split(r"\n\s*\n", text.split("\f")[0].strip()):
        kept = paragraph.startswith("\b")
        lines = "\n".join(map(_roff, paragraph.removeprefix("\b\n").splitlines()))
        found += f".PP\n.nf\n{lines}\n.fi\n" if kept else f".PP\n{lines}\n"
    return found


def _list(rows: Iterator[tuple[str, str]]) -> str:
    return "".join(f".TP\n.B {_roff(term)}\n{_roff(help)}\n" for term, help in rows)


def _roff(text: str) -> str:
    """Return text in which no character is a command of roff."""
    escaped = text.strip().replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)
