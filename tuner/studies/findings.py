"""Statements of a paper, and whether a study reproduces them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A statement of the paper, whether it is reproduced, and the figures that decide it."""

    statement: str
    reproduced: bool
    figures: str

    def __str__(self) -> str:
        return f"{'' if self.reproduced else 'not '}reproduced: {self.statement} ({self.figures})"
