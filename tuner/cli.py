"""The command `switchpoint`."""

import click

from tuner import __version__


@click.group()
@click.version_option(__version__, prog_name="switchpoint")
def main() -> None:
    """Measure MPI exchange methods, choose the fastest, and export the choice."""
