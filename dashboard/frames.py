"""Frames as rows."""

from typing import Any, cast

import pandas as pd


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame, whose columns have names."""
    return cast(list[dict[str, Any]], frame.to_dict("records"))


def described(systems: pd.DataFrame, system: str) -> dict[str, Any]:
    """Return a system's row of `Store.systems`."""
    (row,) = rows_of(systems[systems["system"] == system])
    return row
