"""Names of the commands: the sections of the help, and names of earlier versions."""

from collections.abc import Iterable, Mapping

import click

from tuner.commands.printing.lines import say

SECTIONS = {
    "Measure": ("run", "soak", "ingest", "matrix", "study"),
    "Decide": ("tune", "fit", "predict", "check"),
    "Use": ("advise", "export", "bundle", "catalogue"),
    "Look": ("show", "serve", "report", "compare"),
    "Machine": ("doctor", "site", "nodes", "network"),
}

RENAMED = {
    "guidelines": "check library",
    "network fit": "network create",
    "plan": "show plan",
    "regret": "check choices",
    "report html": "report",
    "report structure": "matrix messages",
    "validate": "check model",
    "verify-table": "check table",
}
"""Names that version 0.2 will no longer accept."""


_WHOLE = 200  # letters: longer than the first sentence of any command


class Commands(click.Group):
    """A group that lists its commands with whole first sentences."""

    def sections(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands below the headings of the help."""
        return {"Commands": sorted(self.commands)}

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section."""
        for section, names in self.sections().items():
            with formatter.section(section):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(_WHOLE)) for name in names]
                )


class NamedCommands(Commands):
    """A group that lists its commands by section, and warns of earlier names."""

    def sections(self) -> Mapping[str, Iterable[str]]:
        """Return the names of the commands below the headings of the help."""
        return SECTIONS

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first words; earlier names mean their new ones."""
        for count in (1, 2):
            old = " ".join(args[:count])
            if new := RENAMED.get(old):
                program = context.info_name
                said = f"`{program} {old}` is now `{program} {new}`; 0.2 drops the old name"
                say(f"warning: {said}", err=True)
                args = [*new.split(), *args[count:]]
                break
        return super().resolve_command(context, args)
