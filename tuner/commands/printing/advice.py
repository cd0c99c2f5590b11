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
        out.print(line)
    out.print(grid)
    for line in document.worth_measuring(its):
        out.print(line, soft_wrap=True)


def show_outcome(its: Advice, out: Console) -> None:
    """Print what runs with and without the table showed, and how the table is used."""
    for line in document.outcome(its):
        out.print(line)
    if lines := document.use(its):
        out.print("to use the table:")
        for line in lines:
            out.print(line, soft_wrap=True)
