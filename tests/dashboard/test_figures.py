"""Figures: valid Plotly, legible axes, and styles that hold on every page."""

import math
from itertools import chain

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard.figures import axes
from dashboard.figures.changes import changes, history
from dashboard.figures.curves import curves
from dashboard.figures.ecdf import ecdf, ecdf_by_launch
from dashboard.figures.methods import (
    LABEL_LENGTH,
    label_lines,
    method_style,
    short_name,
    transparent,
)
from dashboard.figures.residuals import residuals
from dashboard.figures.ribbons import ribbons
from dashboard.figures.tiles import tiles
from tests.dashboard import frames
from tuner.domain.tables import UNSOAKED

METHODS = [
    *("direct", "neighbor", "alltoallv", "nap"),
    *(f"stfw:dims={dims}" for dims in range(2, 11)),
    *("stfw:radix=2", "pex", "pcx", "rsx", "put", "nbx", "nbx:barrier=dissemination"),
    *("dense", "shared", "nap:find=dense", "nap:find=put", "nap:find=dense,node=shared"),
]
COLLECTIVES = {
    "bcast": ["vendor", "binomial", "knomial", "chain", "scatter_allgather", "bine"],
    "reduce": ["vendor", "binomial", "star", "knomial", "rabenseifner", "bine"],
    "allreduce": ["vendor", "binomial", "hypercube", "multiplying", "rabenseifner", "ring", "bine"],
    "allgather": ["vendor", "hypercube", "multiplying", "ring", "bruck", "bine"],
    "alltoall": ["vendor", "bruck", "pairwise", "bine"],
    "reduce_scatter_block": ["vendor", "hypercube", "ring", "pairwise", "bine"],
}
EVERYWHERE = [
    *("twolevel", "orthogonal:dims=2", "orthogonal:dims=3", "orthogonal:grid=4x2"),
    *(f"vendor:algorithm={name}" for name in ("binomial", "ring", "linear", "pipeline", "bruck")),
]


def drawn(selected: pd.DataFrame | None = None) -> axes.Figure:
    return curves(
        frames.cells(), "direct", frames.selected() if selected is None else selected, 1024
    )


def test_speed_ups_have_the_interval_of_the_decision_and_times_one_of_95_per_cent() -> None:
    for axis, words in (("y", "× at 99.96 %"), ("y2", " µs at 95 %")):
        lines = [line for line in drawn()["data"] if line.get("yaxis", "y") == axis]
        texts = [text for line in lines for text in line.get("text") or ()]
        assert any(words in text for text in texts)


def luminance(color: str) -> float:
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    "spec", dict.fromkeys([*METHODS, *EVERYWHERE, *chain(*COLLECTIVES.values())])
)
def test_methods_are_seen_on_light_and_dark(spec: str) -> None:
    light, dark = 1.0, luminance("#1d2126")
    color = luminance(method_style(spec).color)
    assert (light + 0.05) / (color + 0.05) >= 3
    assert (color + 0.05) / (dark + 0.05) >= 3


# Machado, Oliveira, Fernandes (2009): what readers see who lack one kind of cone, in linear light.
READERS = [
    np.eye(3),
    np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
]
OKLAB = (  # Ottosson (2020): from linear light, through cube roots, to where distances are seen
    np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]),
    np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]),
)


def tile_difference(method: str, other: str) -> float:
    """Return the difference of two methods' tiles to whom, and where, it is least; 0.02 shows."""
    alpha = 0.42

    def seen(spec: str, panel: str, reader: np.ndarray) -> np.ndarray:
        color, below = (
            np.array([int(text[start : start + 2], 16) / 255 for start in (1, 3, 5)])
            for text in (method_style(spec).color, panel)
        )
        mixed = alpha * color + (1 - alpha) * below
        light = np.where(mixed <= 0.04045, mixed / 12.92, ((mixed + 0.055) / 1.055) ** 2.4)
        return OKLAB[1] @ np.cbrt(OKLAB[0] @ np.clip(reader @ light, 0, 1))

    return min(
        float(np.linalg.norm(seen(method, panel, reader) - seen(other, panel, reader)))
        for panel in ("#ffffff", "#1d2126")
        for reader in READERS
    )


@pytest.mark.parametrize("dims", range(2, 11))
def test_neighbouring_dimensions_differ_for_every_reader_on_light_and_dark(dims: int) -> None:
    assert tile_difference(f"stfw:dims={dims}", f"stfw:dims={dims + 1}") > 0.06


def test_no_two_methods_of_an_operation_look_alike() -> None:
    collectives = [[*methods, *EVERYWHERE] for methods in COLLECTIVES.values()]
    for methods in (METHODS[:13], METHODS[13:], *collectives):
        styles = [method_style(spec) for spec in methods]
        assert len(set(styles)) == len(methods)


def test_a_spec_of_a_file_that_no_method_has_is_drawn_too() -> None:
    assert method_style("stfw:dims=x") != method_style("direct")


def test_figures_are_valid() -> None:
    samples = {"direct": np.full(5, 2e-5, np.float32), "stfw:dims=2": np.arange(1, 9, 1, "f4")}
    rules = frames.selected().assign(row="exchange, 1 node × 8")
    for figure in (
        drawn(),
        drawn(frames.selected().iloc[:0]),
        ecdf(samples),
        ecdf({}),
        ecdf_by_launch({}),
        ecdf_by_launch({1: samples, 2: {"direct": np.array([], np.float32)}}),
        ribbons(rules, (8, 2**20)),
        ribbons(rules.iloc[:0], (8, 2**20)),
    ):
        go.Figure(figure)  # raises on any name or value that Plotly does not know


def tile_frame(**of_all: object) -> pd.DataFrame:
    """Return the best of two layouts at three sizes, one of them missing."""
    rows = [("8: 1 node × 8", "8@1x8-window", size) for size in (8, 512, 4096)]
    rows += [("2: 1 node × 2", "2@1x2-window", size) for size in (8, 4096)]
    frame = pd.DataFrame(rows, columns=["row", "layout", "size_bytes"])
    frame = frame.assign(bytes=frame["size_bytes"], method="stfw:dims=2", default="direct")
    frame = frame.assign(median_s=1e-5, speedup=1.5, speedup_low=1.4, speedup_high=1.6)
    frame = frame.assign(
        settled=[True, False, True, True, True], verdict_lines="1.4 to 1.6 × faster"
    )
    return frame.assign(**of_all)


def test_tiles_show_method_certainty_and_where_a_click_leads() -> None:
    figure = tiles(tile_frame(method=["direct", *["stfw:dims=2"] * 4]))
    go.Figure(figure)
    heat = figure["data"][0]
    assert heat["z"] == [[1, 2, 3], [3, None, 3]]
    direct, stfw = figure["data"][1:]
    assert (direct["x"], direct["y"], direct["text"]) == ([0], ["8: 1 node × 8"], [""])
    assert stfw["text"] == ["1.50"] * 4
    assert heat["hovertext"][0][1].endswith("median 10.0 µs<br>1.4 to 1.6 × faster")
    assert direct["marker"]["symbol"] != stfw["marker"]["symbol"]
    assert heat["customdata"][1] == ["2@1x2-window 8", "", "2@1x2-window 4096"]
    colors = [color for _, color in heat["colorscale"]]
    assert len(colors) == 2 * 2 * 2
    assert colors[0] == transparent(method_style("direct").color, 0.1)
    assert colors[-1] == transparent(method_style("stfw:dims=2").color, 0.42)
    go.Figure(tiles(tile_frame().iloc[:0]))


def test_sizes_with_one_text_have_columns_of_their_own() -> None:
    figure = tiles(tile_frame(size_bytes=[8, 1024, 1025, 8, 1025]))
    heat, marks = figure["data"]
    assert (heat["x"], marks["x"]) == ([0, 1, 2], [0, 1, 2, 0, 2])
    assert figure["layout"]["xaxis"]["ticktext"] == ["8 B", "1 KiB", "1 KiB"]


def test_residuals_show_measured_predicted_and_what_lies_between() -> None:
    cells = frames.cells()
    errors = cells.assign(predicted_s=1.2 * cells["median_s"], residual=0.2)
    figure = residuals(errors, 0.15, "bytes per message")
    go.Figure(figure)
    predicted, measured, off = figure["data"][:3]
    assert predicted["mode"] == "lines" and measured["mode"] == "markers"
    assert np.allclose(np.array(predicted["y"]) / np.array(measured["y"]), 1.2)
    assert set(off["y"]) == {0.2}
    go.Figure(residuals(errors.iloc[:0], 0.15, "bytes"))
    go.Figure(residuals(errors.assign(predicted_s=0.0), 0.15, "bytes"))  # of one rank


def test_changes_lie_around_one() -> None:
    changed = pd.DataFrame(
        {"where": "a", "bytes": [8, 512], "method": "nap", "ratio": [1.2, 0.8]}
    ).assign(low=lambda rows: rows["ratio"] / 1.1, high=lambda rows: rows["ratio"] * 1.1)
    changed = changed.assign(changed=True)
    figure = changes(changed)
    go.Figure(figure)
    low, high = figure["layout"]["yaxis"]["range"]
    assert low < math.log10(0.8) and high > math.log10(1.2)
    go.Figure(changes(changed.iloc[:0]))


def test_history_marks_each_upgrade() -> None:
    rows = [
        (campaign, library, method, 1e-5, 0.9e-5, 1.1e-5)
        for campaign, library in (
            ("20260101T120000Z", "A 1, built by B"),
            ("20260102T120000Z", "A 1, built by B"),
            ("20260103T120000Z", "A 2"),
        )
        for method in ("direct", "nap")
    ]
    names = ["campaign", "mpi_library", "method", "median_s", "low_s", "high_s"]
    figure = history(pd.DataFrame(rows, columns=names), "512 B")
    go.Figure(figure)
    assert [shape["x0"] for shape in figure["layout"]["shapes"]] == [1.5]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["A 1", "A 2"]
    assert figure["layout"]["xaxis"]["ticktext"][0] == "2026-01-01"


def test_libraries_that_one_campaign_measured_are_apart_in_history() -> None:
    names = ["campaign", "mpi_library", "method", "median_s", "low_s", "high_s"]
    rows = [
        ("20260101T120000Z", library, "nap", 1e-5, 0.9e-5, 1.1e-5) for library in ("A 1", "A 2")
    ]
    figure = history(pd.DataFrame(rows, columns=names), "512 B")
    assert figure["data"][0]["x"] == [0, 1]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["A 1", "A 2"]


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


def test_marks_of_close_switch_points_do_not_touch() -> None:
    ends = [0.0, 4096.0, 16384.0, 65536.0, math.inf]
    selected = pd.concat([frames.selected().iloc[:1]] * 4, ignore_index=True).assign(
        bytes_low=ends[:-1],
        bytes_high=[end - 1 for end in ends[1:]],
        method=["direct", "nap", "direct", "nap"],
    )
    cells = frames.cells()
    notes = curves(cells, "direct", selected, 8)["layout"]["annotations"]
    marks = [note for note in notes if note["text"].startswith("▾")]
    lifts = [mark["yshift"] for mark in marks]
    assert len(lifts) > 1 and len({*lifts}) == len(lifts)


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
    lines = [line for note in labels for line in note["text"].split("</span> ")[1].split("<br>")]
    assert max(map(len, lines)) <= LABEL_LENGTH
    assert layout["margin"]["r"] < 200
    assert layout["height"] > 1000


def test_intervals_are_drawn_as_bands() -> None:
    bands = [trace for trace in drawn()["data"] if trace.get("fill") == "toself"]
    assert len(bands) == 2 * len(frames.METHODS)


def test_rules_that_show_no_difference_are_hollow() -> None:
    figure = ribbons(frames.selected().assign(row="case"), (8, 2**20))
    alphas = [color.rpartition(",")[2] for color in figure["data"][0]["marker"]["color"]]
    assert alphas == ["0.36)", "0.36)", "0.08)"]


def test_a_ribbon_names_what_waits_for_a_soak() -> None:
    waiting = frames.selected().assign(row="case", method="direct", status=UNSOAKED)
    texts = ribbons(waiting, (8, 2**20))["data"][0]["text"]
    assert texts[0] == "direct (stfw:dims=3 pending)"


def test_ribbons_join_and_end_at_the_axis() -> None:
    trace = ribbons(frames.selected().assign(row="case"), (8, 2**20))["data"][0]
    ends = [base + length for base, length in zip(trace["base"], trace["x"], strict=True)]
    assert trace["base"] == [8, ends[0], ends[1]]
    assert ends == [724, 11585, 2**20]


def test_ecdf_keeps_the_extremes_and_reports_what_lies_beyond() -> None:
    rng = np.random.default_rng(0)
    values = rng.lognormal(-11, 0.1, 2000).astype(np.float32)
    values[-1] = 1.0
    figure = ecdf({"direct": values})
    line = figure["data"][0]
    assert len(line["x"]) <= 1 + 400  # it rises from nothing
    assert line["x"][0] == pytest.approx(values.min(), rel=1e-3)
    assert line["y"][-1] == 100
    assert figure["layout"]["annotations"][0]["text"] == "1 sample beyond the axis"


def test_facets_of_many_launches_keep_their_distributions() -> None:
    samples_s = {"direct": np.arange(1, 51, dtype=np.float32)}
    for line in ecdf_by_launch(dict.fromkeys(range(401), samples_s))["data"]:
        assert (line["x"][0], line["x"][-1]) == (1, 50)
        assert np.interp(50, line["y"], line["x"]) == pytest.approx(25, abs=2)


def test_a_single_sample_is_a_step() -> None:
    line = ecdf({"direct": np.array([1e-6], np.float32)})["data"][0]
    assert (line["x"], line["y"]) == ([1e-6, 1e-6], [0, 100])


def test_byte_ticks_are_powers_of_two_with_the_kibibyte_among_them() -> None:
    ticks = axes.byte_ticks(8, 2**20)
    assert 1024.0 in ticks and len(ticks) <= 9
    assert all(math.log2(tick) == round(math.log2(tick)) for tick in ticks)
    assert axes.byte_ticks(8, 8) == [8.0]
    assert axes.byte_axis(2176, 2816, "")["ticktext"] == ["2 KiB", "4 KiB"]


def test_time_ticks_are_one_two_five() -> None:
    assert axes.time_ticks(1e-5, 1e-3) == [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3]
    assert len(axes.time_ticks(1e-9, 10)) <= 11
    assert len(axes.time_ticks(1.03e-5, 1.27e-5)) >= 2


def test_one_is_always_on_a_ratio_axis() -> None:
    for low, high in ((0.99, 1.01), (2.0, 3.0), (0.1, 0.4), (0.01, 400.0)):
        assert 1.0 in axes.ratio_axis(low, high, "")["tickvals"]


def test_counts_are_marked_by_whole_numbers() -> None:
    assert axes.count_axis(1, 1, "")["tickvals"] == [1]
    assert axes.count_axis(2.25, 7, "")["tickvals"] == [3, 4, 5, 6, 7]
    assert axes.count_axis(2.25, 2.75, "")["tickvals"]
    assert len(axes.count_axis(1, 300, "")["tickvals"]) <= 9
    assert len(axes.count_axis(1e-300, 1e30, "")["tickvals"]) < 400


def test_marks_of_a_span_begin_at_zero_and_are_round() -> None:
    assert axes.span_ticks(0.0139) == [0, 0.002, 0.004, 0.006, 0.008, 0.01, 0.012]
    assert axes.span_ticks(1e-6, most=4) == [0, 5e-7, 1e-6]


def test_a_label_keeps_what_distinguishes_a_method() -> None:
    for algorithm in ("rabenseifner", "modified_bruck", "recursive_doubling"):
        assert short_name(f"vendor:algorithm={algorithm}") == f"vendor:{algorithm}"
    assert short_name("stfw:dims=3") == "stfw:dims=3"
    assert label_lines("vendor:algorithm=recursive_doubling") == ["vendor:", "recursive_doubling"]
    assert len(short_name("x" * 10_000)) < 2 * LABEL_LENGTH


def test_labels_move_apart_no_more_than_they_must() -> None:
    assert axes.spread([0.2, 0.8], 0.1, 0, 1) == [0.2, 0.8]
    moved = axes.spread([0.5, 0.5, 0.99], 0.1, 0, 1)
    assert moved == pytest.approx([0.45, 0.55, 0.99])
    crowded = axes.spread([1.0] * 5, 0.2, 0, 1)
    assert sorted(crowded) == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
