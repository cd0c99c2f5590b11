"""Figures: valid Plotly, legible axes, and styles that hold on every page."""

import math
from itertools import chain

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.figures import axes
from dashboard.figures.curves import curves
from dashboard.figures.ecdf import ecdf
from dashboard.figures.methods import LABEL_LENGTH, method_style
from dashboard.figures.ribbons import ribbons
from tests.dashboard import frames

METHODS = [
    *("direct", "neighbor", "alltoallv", "nap"),
    *(f"stfw:dims={dims}" for dims in range(2, 11)),
    *("pex", "pcx", "rsx", "nbx", "nbx:barrier=dissemination", "dense", "shared"),
]
COLLECTIVES = {
    "bcast": ["vendor", "binomial", "knomial", "chain", "scatter_allgather"],
    "reduce": ["vendor", "binomial", "star", "rabenseifner"],
    "allreduce": ["vendor", "binomial", "hypercube", "rabenseifner", "ring"],
    "allgather": ["vendor", "hypercube", "ring", "bruck"],
    "alltoall": ["vendor", "bruck", "pairwise"],
    "reduce_scatter_block": ["vendor", "hypercube", "ring", "pairwise"],
}
EVERYWHERE = [
    *("twolevel", "orthogonal:grid=2x4", "orthogonal:grid=4x2", "orthogonal:grid=2x2x2"),
    *(f"vendor:algorithm={name}" for name in ("binomial", "ring", "linear", "pipeline", "bruck")),
]


def drawn(selected: pd.DataFrame | None = None) -> axes.Figure:
    return curves(
        frames.cells(), "direct", frames.selected() if selected is None else selected, 1024
    )


def luminance(color: str) -> float:
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("spec", {*METHODS, *EVERYWHERE, *chain(*COLLECTIVES.values())})
def test_methods_are_seen_on_light_and_dark(spec: str) -> None:
    light, dark = 1.0, luminance("#1d2126")
    color = luminance(method_style(spec).color)
    assert (light + 0.05) / (color + 0.05) >= 3
    assert (color + 0.05) / (dark + 0.05) >= 3


def test_no_two_methods_of_an_operation_look_alike() -> None:
    collectives = [[*methods, *EVERYWHERE] for methods in COLLECTIVES.values()]
    for methods in (METHODS[:13], METHODS[13:], *collectives):
        styles = [method_style(spec) for spec in methods]
        assert len(set(styles)) == len(methods)


def test_figures_are_valid() -> None:
    samples = {"direct": np.full(5, 2e-5, np.float32), "stfw:dims=2": np.arange(1, 9, 1, "f4")}
    rules = frames.selected().assign(row="exchange, 1 node × 8")
    for figure in (
        drawn(),
        drawn(frames.selected().iloc[:0]),
        ecdf(samples),
        ecdf({}),
        ribbons(rules, (8, 2**20)),
        ribbons(rules.iloc[:0], (8, 2**20)),
    ):
        go.Figure(figure)  # raises on any name or value that Plotly does not know


def test_a_default_that_was_not_measured_gives_no_speedup() -> None:
    cells = frames.cells()
    cells = cells[cells["method"] != "direct"]
    cells = cells.assign(speedup=np.nan, speedup_low=np.nan, speedup_high=np.nan)
    go.Figure(curves(cells, "direct", frames.selected(), 8))


def test_launches_that_disagree_do_not_flatten_the_lines() -> None:
    cells = frames.cells()
    wild = cells["method"] == "neighbor"
    cells.loc[wild, ["high_s", "speedup_high"]] *= 1e60
    figure = curves(cells, "direct", frames.selected(), 8)
    assert figure["layout"]["yaxis"]["range"][1] < 1
    assert figure["layout"]["yaxis2"]["range"][1] < -2


def test_switch_points_are_marked_where_the_method_changes() -> None:
    texts = [note["text"] for note in drawn()["layout"]["annotations"]]
    assert [text for text in texts if text.startswith("▾")] == ["▾ 723 B", "▾ 11.3 KiB"]


def test_every_method_is_labelled_beside_its_lines() -> None:
    labels = [n["text"] for n in drawn()["layout"]["annotations"] if n["text"].startswith("<span")]
    assert sorted(label.split("</span> ")[1] for label in labels) == sorted(2 * [*frames.METHODS])


def test_labels_of_many_methods_find_room() -> None:
    cells = frames.cells()
    one = cells[cells["method"] == "direct"]
    names = [
        "direct",
        *(f"vendor:algorithm=scatter_ring_{number}_allgather" for number in range(30)),
    ]
    cells = pd.concat([one.assign(method=name) for name in names])
    layout = curves(cells, "direct", frames.selected(), 1024)["layout"]
    labels = [note for note in layout["annotations"] if note["text"].startswith("<span")]
    assert len(labels) == 2 * len(names)
    assert all(-0.01 <= note["y"] <= 1.01 for note in labels)
    assert max(len(note["text"].split("</span> ")[1]) for note in labels) <= LABEL_LENGTH
    assert layout["margin"]["r"] < 200
    assert layout["height"] > 1000


def test_intervals_are_drawn_as_bands() -> None:
    bands = [trace for trace in drawn()["data"] if trace.get("fill") == "toself"]
    assert len(bands) == 2 * len(frames.METHODS)


def test_rules_that_show_no_difference_are_hollow() -> None:
    figure = ribbons(frames.selected().assign(row="case"), (8, 2**20))
    alphas = [color.rpartition(",")[2] for color in figure["data"][0]["marker"]["color"]]
    assert alphas == ["0.36)", "0.36)", "0.08)"]


def test_ribbons_join_and_end_at_the_axis() -> None:
    trace = ribbons(frames.selected().assign(row="case"), (8, 2**20))["data"][0]
    ends = [base + length for base, length in zip(trace["base"], trace["x"], strict=True)]
    assert trace["base"] == [8, ends[0], ends[1]]
    assert ends == [724, 11585, 2**20]


def test_ecdf_keeps_the_extremes_and_tells_what_lies_beyond() -> None:
    rng = np.random.default_rng(0)
    values = rng.lognormal(-11, 0.1, 2000).astype(np.float32)
    values[-1] = 1.0
    figure = ecdf({"direct": values})
    line = figure["data"][0]
    assert len(line["x"]) <= 400
    assert line["x"][0] == pytest.approx(values.min(), rel=1e-3)
    assert line["y"][-1] == 1
    assert figure["layout"]["annotations"][0]["text"] == "1 samples further right"


def test_byte_ticks_are_powers_of_two_with_the_kibibyte_among_them() -> None:
    ticks = axes.byte_ticks(8, 2**20)
    assert 1024.0 in ticks and len(ticks) <= 9
    assert all(math.log2(tick) == round(math.log2(tick)) for tick in ticks)
    assert axes.byte_ticks(8, 8) == [8.0]


def test_time_ticks_are_one_two_five() -> None:
    assert axes.time_ticks(1e-5, 1e-3) == [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3]
    assert len(axes.time_ticks(1e-9, 10)) <= 11
    assert len(axes.time_ticks(1.03e-5, 1.27e-5)) >= 2


def test_one_is_always_on_a_ratio_axis() -> None:
    for low, high in ((0.99, 1.01), (2.0, 3.0), (0.1, 0.4), (0.01, 400.0)):
        assert 1.0 in axes.ratio_axis(low, high, "")["tickvals"]


def test_labels_move_apart_no_more_than_they_must() -> None:
    assert axes.spread([0.2, 0.8], 0.1, 0, 1) == [0.2, 0.8]
    moved = axes.spread([0.5, 0.5, 0.99], 0.1, 0, 1)
    assert moved == pytest.approx([0.45, 0.55, 0.99])
    crowded = axes.spread([1.0] * 5, 0.2, 0, 1)
    assert sorted(crowded) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
