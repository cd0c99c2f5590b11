"""The description of a form of exported tables."""

from collections.abc import Callable
from typing import NamedTuple

from tuner.domain.tables import Table
from tuner.models.system import SystemModel


class Form(NamedTuple):
    """A form of exported tables.

    `render` gets a table that has rules, and the fitted model, if any. `file` is the usual name,
    `use` the shell commands that make an application use it.
    """

    title: str
    file: str
    render: Callable[[Table, SystemModel | None], str]
    mimetype: str = "text/plain"
    use: tuple[str, ...] = ()
    is_of_mpi: bool = False  # for an MPI library, whose algorithms are looked up in it
    knows_off: bool = False  # its readers heed SWITCHPOINT_OFF themselves
