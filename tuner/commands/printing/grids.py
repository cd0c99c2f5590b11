"""Tables without frames whose names stay whole on narrow terminals."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderResult
from rich.table import Table
from rich.text import Text

from tuner.files import printable

_GAP = 2  # spaces between columns


class Columns(Table):
    """A table whose cells fold between words; where these do not fit, each row is a list."""

    def __init__(self, *columns: str, right: Collection[str] = ()) -> None:
        """Make an empty table; the columns with headings in `right` are aligned to the right."""
        super().__init__(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        self.collapse_padding = True
        for column in columns:
            justify: JustifyMethod = "right" if column in right else "left"
            self.add_column(printable(column), justify=justify, overflow="fold")

    def add_row(self, *cells: str) -> None:  # type: ignore[override]  # texts alone
        """Add a row. Control characters become visible before widths are counted."""
        super().add_row(*map(printable, cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = _widths([list(self._texts(index)) for index in range(len(self.columns))], options)
        if widths is None:
            yield from self._lists()
            return
        for column, width in zip(self.columns, widths, strict=True):
            column.width = width
        yield from super().__rich_console__(console, options)

    def _texts(self, index: int) -> Iterator[str]:
        """Return the texts of a column, with its heading."""
        yield str(self.columns[index].header)
        yield from map(str, self.columns[index].cells)

    def _lists(self) -> Iterator[Text]:
        """Return each row as lines of a heading and a value; the first value is the title."""
        headings = [str(column.header) for column in self.columns]
        longest = max(map(len, headings))
        for first, *cells in zip(*(column.cells for column in self.columns), strict=True):
            yield Text(str(first), style="bold", overflow="fold")
            for heading, cell in zip(headings[1:], cells, strict=True):
                if str(cell):
                    yield Text(f"  {heading:<{longest}}  {cell}", overflow="fold")


def _widths(columns: Sequence[Sequence[str]], options: ConsoleOptions) -> list[int] | None:
    """Return the width of each column, at least its longest word; None if they do not fit."""
    least = [
        max((cell_len(word) for text in its for word in text.split()), default=0) for its in columns
    ]
    whole = [
        max(cell_len(line) for text in its for line in (text.splitlines() or [""]))
        for its in columns
    ]
    room = options.max_width - _GAP * (len(columns) - 1) - sum(least)
    if room < 0:
        return None
    widths = list(least)
    wanting = sorted(range(len(columns)), key=lambda index: whole[index] - least[index])
    for number, index in enumerate(wanting):
        more = min(whole[index] - least[index], room // (len(wanting) - number))
        widths[index] += more
        room -= more
    return widths
