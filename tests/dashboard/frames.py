"""Frames with the columns of the store, for tests of pure functions, and the texts of pages."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dashboard.pages.page import FilteredPage
from tuner.store.store import Store

METHODS = {  # latency and inverse bandwidth in units of direct's, so that the best one changes
    "direct": (1.0, 1.0),
    "stfw:dims=2": (0.55, 1.6),
    "stfw:dims=3": (0.42, 2.2),
    "neighbor": (1.1, 0.97),
    "alltoallv": (1.5, 1.2),
}


def cells(methods: dict[str, tuple[float, float]] = METHODS, seed: int = 1) -> pd.DataFrame:
    """Return the cells of one case with their speed-up: every method at 8 B to 1 MiB."""
    rng = np.random.default_rng(seed)
    rows = []
    for method, (latency, inverse_bandwidth) in methods.items():
        for exponent in range(3, 21):
            time = (20e-6 * latency + 2**exponent * 4e-10 * inverse_bandwidth) * rng.normal(1, 0.01)
            width = rng.uniform(1.01, 1.06)
            rows.append(
                {
                    "method": method,
                    "size_bytes": 2**exponent,
                    "bytes": 2**exponent,
                    "median_s": time,
                    "low_s": time / width,
                    "high_s": time * width,
                    "n": 200,
                    "launches": 5,
                    "above_2_medians": 0.01,
                }
            )
    frame = pd.DataFrame(rows)
    base = frame["bytes"].map(frame[frame["method"] == "direct"].set_index("bytes")["median_s"])
    gain = base / frame["median_s"]
    width = np.where(frame["method"] == "direct", 1.0, 1.03)
    frame = frame.assign(speedup=gain, speedup_low=gain / width, speedup_high=gain * width)
    return frame.assign(level=0.9996)


def selected() -> pd.DataFrame:
    """Return a table's choice over those sizes."""
    return pd.DataFrame(
        {
            "bytes_low": [-np.inf, 724, 11585],
            "bytes_high": [723, 11584, np.inf],
            "method": ["stfw:dims=3", "stfw:dims=2", "direct"],
            "status": ["faster", "faster", "open"],
            "verdict": ["2.1× faster", "1.4× faster", "neighbor may gain up to 9 %"],
            "challenger": ["stfw:dims=3", "stfw:dims=2", "neighbor"],
        }
    )


def said(content: Any) -> str:
    """Return all texts of components and elements, one after the other."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return " ".join(map(said, content))
    if isinstance(content, dict):
        return said(content["props"]["children"] or "")
    return said(getattr(content, "children", None) or "")


def drawn(page: FilteredPage[Any], database: Path, search: str = "") -> tuple[Any, dict[str, Any]]:
    """Return the choice of a link to a page, and the parts that are drawn of it."""
    with Store.open(database, readonly=True) as store:
        choice = page.choose(store, page.query.parse(search), strict=True)
        return choice, page.draw(store, choice)
