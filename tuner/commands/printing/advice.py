"""Print the advice on an application."""

from rich.console import Console

from tuner.advice import document
from tuner.advice.document import Advice
from tuner.commands.printing.grids import Columns


def show_calls(its: Advice, out: Console) -> None:
    """Print the calls of an application, and what follows from them."""
    numbers = {*document.COLUMNS}.difference(("call", "processes", "types", "table"))
    grid = Columns(*document.COLUMNS, right=numbers)
    for row in document.rows(its):
        grid.add_row(*row)
    for line in document.summary(its):
        _show_sentence(line, out)
    out.print(grid)
    for line in document.worth_measuring(its):
        show_line(line, out)


def show_outcome(its: Advice, out: Console) -> None:
    """Print what runs with and without the table showed, and how the table is used."""
    for line in document.outcome(its):
        _show_sentence(line, out)
    if lines := document.use(its):
        show_line("to use the table:", out)
        for line in lines:
            show_line(line, out)


def _show_sentence(line: str, out: Console) -> None:
    """Print a line, broken between its words where a terminal is narrow."""
    out.print(line, highlight=False, markup=False)


def show_line(line: str, out: Console) -> None:
    """Print a line as it is: a command, or a path."""
    out.print(line, soft_wrap=True, highlight=False, markup=False)
