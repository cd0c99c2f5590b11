"""Man pages: of `switchpoint` from the texts of its help, of `swpbench` from its reference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

import click
from markdown_it import MarkdownIt  # which rich needs

from docs.site.pages import CHECKOUT
from tuner import __version__
from tuner.cli import main

_SWPBENCH = CHECKOUT / "docs" / "reference" / "swpbench.md"


def write(place: Path) -> None:
    """Write swpbench.1, switchpoint.1 and a page for each subcommand to place/man1."""
    section = place / "man1"
    section.mkdir(parents=True, exist_ok=True)
    for context in _contexts(click.Context(main, info_name="switchpoint")):
        name = context.command_path.replace(" ", "-")
        (section / f"{name}.1").write_text(_page(name, context))
    (section / "swpbench.1").write_text(_reference("swpbench", _SWPBENCH.read_text("utf-8")))


def _contexts(context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _contexts(click.Context(command, context, info_name=name))


def _page(name: str, context: click.Context) -> str:
    command = context.command
    short = command.get_short_help_str(limit=200).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    text = _head(name, short)
    text += f".SH SYNOPSIS\n.B {_roff(context.command_path)}\n{_roff(usage)}\n"
    text += f".SH DESCRIPTION\n{_paragraphs(command.help or '')}"
    records = [each.get_help_record(context) for each in command.get_params(context)]
    text += ".SH OPTIONS\n" + _list(record for record in records if record)
    pages = [context.parent.command_path.replace(" ", "-")] if context.parent else []
    if isinstance(command, click.Group):
        pages += [f"{name}-{each}" for each in command.commands]
        helps = (each.get_short_help_str(200) for each in command.commands.values())
        text += ".SH COMMANDS\n" + _list(zip(command.commands, helps, strict=True))
    return text + ".SH SEE ALSO\n" + ",\n".join(f".BR {_roff(page)} (1)" for page in pages) + "\n"


def _reference(name: str, page: str) -> str:
    """Return a page of the reference, whose first sentence begins with the name."""
    body = page.partition("\n")[2].strip()
    blocks = _Blocks()
    blocks.feed(MarkdownIt().enable("table").render(body))
    blocks.flush()
    text = _head(name, body.partition(".")[0].removeprefix(f"`{name}` "))
    text += f".SH DESCRIPTION\n{blocks.text}"
    return text + ".SH SEE ALSO\n.BR switchpoint (1)\n"


class _Blocks(HTMLParser):
    """The blocks of a page by their macros; the first cell of a row is the term of the others."""

    MACROS: ClassVar = {
        "h2": ".SH {}\n",
        "h3": ".SS {}\n",
        "p": ".PP\n{}\n",
        "li": ".IP \\(bu 2\n{}\n",
        "pre": ".PP\n.nf\n{}\n.fi\n",
        "th": "",
        "tr": ".TP\n.B {}\n",
        "td": "{}\n",
    }

    def __init__(self) -> None:
        super().__init__()
        self.text = self.block = self.before = ""
        self.tag = "p"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.MACROS and not (tag == "td" and not self.block.strip()):
            self.flush()
            self.tag = tag

    def handle_data(self, data: str) -> None:
        self.block += data

    def flush(self) -> None:
        """Write the block that was read."""
        block = self.block if self.tag == "pre" else " ".join(self.block.split())
        if block:
            self.text += ".br\n" if self.tag == self.before == "td" else ""
            self.text += self.MACROS[self.tag].format(_roff(block))
            self.before = self.tag
        self.block = ""


def _head(name: str, short: str) -> str:
    title = f'.TH "{name.upper()}" "1" "" "Switchpoint {__version__}" "Switchpoint"\n'
    return f"{title}.SH NAME\n{_roff(name)} \\- {_roff(' '.join(short.split()))}\n"


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
