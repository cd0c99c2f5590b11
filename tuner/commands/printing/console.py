"""The consoles of the commands: plain lines when piped, and control characters made visible."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tuner.files import printable


class _Console(Console):
    """A console on which the control characters of texts and paths are visible."""

    def print(self, *objects: Any, **options: Any) -> None:
        texts = (str(each) if isinstance(each, Path) else each for each in objects)
        super().print(*texts, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


def console(stderr: bool = False) -> Console:
    """Return the console of standard output or error; when piped, without colour or wrapping.

    Text is printed as it is: `[x]` in the words of an MPI library is not markup.
    """
    make = partial(_Console, stderr=stderr, markup=False, emoji=False, highlight=False)
    terminal = make()
    return terminal if terminal.is_terminal else make(width=10_000, no_color=True)


@contextmanager
def activity() -> Iterator[Callable[[str], None]]:
    """Yield a function that prints on standard error what is being done.

    On a terminal one line shows it until the end.
    """
    out = console(stderr=True)
    if out.is_terminal:
        with out.status("") as status:
            yield status.update
    else:
        yield out.print
