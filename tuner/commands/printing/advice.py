"""What a table says of an application, printed."""

from rich.console import Console
from rich.table import Table as Grid

from tuner.advice import document
from tuner.advice.mix import Mix


def show_mix(mix: Mix, out: Console) -> None:
    """Print the mix of an application."""
    grid = Grid(box=None, pad_edge=False)
    for number, head in enumerate(document.COLUMNS):
        numeric = 1 < number < len(document.COLUMNS) - 1
        grid.add_column(head, justify="right" if numeric else "left", overflow="fold")
    for row in document.rows(mix):
        grid.add_row(*row)
    for line in document.summary(mix):
        out.print(line, soft_wrap=True, highlight=False, markup=False)
    out.print(grid)
    for line in document.worth_measuring(mix):
        out.print(line, soft_wrap=True, highlight=False, markup=False)
