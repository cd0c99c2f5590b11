"""What a table says of an application, printed."""

from rich.console import Console
from rich.table import Table as Grid

from tuner.advice import document
from tuner.advice.document import Advice


def show_calls(its: Advice, out: Console) -> None:
    """Print the calls of an application, and what follows from them."""
    grid = Grid(box=None, pad_edge=False)
    for head in document.COLUMNS:
        numeric = head not in ("call", "processes", "types", "table")
        grid.add_column(head, justify="right" if numeric else "left", overflow="fold")
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
