"""The speed of the dashboard over a store of ten million samples in 24 campaigns.

Interactions are random changes of one filter; only those that lead to a view for the first time
count, as nothing of it can be cached. Their times are those that the server takes; the processor
time is given too (other work on the machine adds to the first alone). Right after each view its
floor is measured: SQLite alone reading the same cells, by the same statements. Then come eight
users at once, and the times until a browser with an empty cache has drawn Explore, and Overview
with its maps, beside the time in which it draws Explore's figures from a page without a server.
The bars are ratios to the floors, from several runs on two cores that other work kept busy: p95 of
views was 5.4 and 6.8 times that of reading, the first page 1.09 and 1.22 times drawing alone. They
leave half as much as room for other machines.
The bench prints the figures beside their bars and exits with 1 when one is missed.
Run from the checkout: python -m tests.bench.dashboard_speed
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sqlite3
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from dash import Dash
from playwright.sync_api import Browser, expect, sync_playwright

from dashboard import ids
from dashboard.app import compare_campaigns, create_app
from dashboard.pages import PAGES, explore
from dashboard.pages.page import FilteredPage
from tests.bench.report import Figure, conclude, options_of
from tests.dashboard import large
from tests.dashboard.chromium import ARGUMENTS, NOT_DRAWN, find_chromium, served
from tuner.store.database import Database
from tuner.store.store import Store

VIEWS = 10.0  # times their floor, at the 95th percentiles
FIRST_DATA = 1.8  # times drawing the same figures without a server
MAPS = 2.0  # times the same floor: Overview, with all maps of decisions
USERS = 8
OVERVIEW = "/"
DRAWN_MS = 180_000  # far beyond the time of a browser, on a busy machine too

STATIC = """<!DOCTYPE html>
<html><body><h1>Explore</h1>{figures}
<script>{plotly}</script>
<script>
document.querySelectorAll("figure").forEach((element, number) => {{
  const {{ data, layout }} = {plots}[number];
  Plotly.newPlot(element, data, layout);
}});
</script></body></html>
"""

Post = Callable[[dict[str, Any]], dict[str, Any]]
Request = dict[str, Any]


@dataclass(frozen=True)
class View:
    """The seconds of one view, its processor seconds, and the seconds of its floor."""

    time_s: float
    processor_s: float
    reading_s: float


@dataclass(frozen=True)
class Reading:
    """The statements that a view executed, to be executed again by SQLite alone."""

    database: Path
    statements: list[tuple[str, Sequence[Any]]] = field(default_factory=list)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep the statements that are executed inside."""
        execute = Database._execute

        def record(store: Database, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
            self.statements.append((sql, values))
            return execute(store, sql, values)

        with patch.object(Database, "_execute", record):
            yield

    def again_s(self) -> float:
        """Return how long SQLite alone takes for the statements kept so far, and forget them."""
        started = time.perf_counter()
        connection = sqlite3.connect(self.database)
        for sql, values in self.statements:
            connection.execute(sql, values).fetchall()
        connection.close()
        took_s = time.perf_counter() - started
        self.statements.clear()
        return took_s


def request_of(
    declared: dict[str, Any], page: FilteredPage[Any], values: dict[str, str]
) -> Request:
    """Return the request that the page's filters send."""
    names = [name.rpartition(".") for name in declared["output"][2:-2].split("...")]
    given = {ids.of(page.path, name): value for name, value in values.items()}
    changed = declared["inputs"][-1]
    return {
        "output": declared["output"],
        "outputs": [{"id": element, "property": value} for element, _, value in names],
        "inputs": [item | {"value": given.get(item["id"], "")} for item in declared["inputs"]],
        "state": [item | {"value": page.path} for item in declared["state"]],
        "changedPropIds": [f"{changed['id']}.{changed['property']}"],
    }


def wander(
    page: FilteredPage[Any],
    declared: dict[str, Any],
    post: Post,
    count: int,
    chance: random.Random,
    reading: Reading | None = None,
) -> list[View]:
    """Change one filter after the other, each from the last view; return the views.

    Views that were shown before are left out.
    """
    values: dict[str, str] = {}
    views = []
    shown = set()
    for _ in range(count):
        started = time.perf_counter(), time.thread_time()
        response = post(request_of(declared, page, values))["response"]
        took = time.perf_counter() - started[0], time.thread_time() - started[1]
        floor_s = reading.again_s() if reading else 0.0
        parts = {name: response[ids.of(page.path, name)] for name in page.filters}
        values = {name: part["value"] for name, part in parts.items()}
        if tuple(values.values()) not in shown:
            shown.add(tuple(values.values()))
            views.append(View(*took, floor_s))
        name = chance.choice([name for name in parts if len(parts[name]["options"]) > 1])
        values[name] = chance.choice(parts[name]["options"])["value"]
    return views


def overview(post: Post, count: int, reading: Reading) -> list[View]:
    """Return views of Overview, which has no filters: what it says is kept after the first."""
    request = {
        "output": f"{ids.CONTENT}.children",
        "outputs": {"id": ids.CONTENT, "property": "children"},
        "inputs": [{"id": ids.URL, "property": "pathname", "value": OVERVIEW}],
        "state": [{"id": ids.URL, "property": "search", "value": ""}],
        "changedPropIds": [f"{ids.URL}.pathname"],
    }
    views = []
    for _ in range(count):
        started = time.perf_counter(), time.thread_time()
        post(request)
        took = time.perf_counter() - started[0], time.thread_time() - started[1]
        views.append(View(*took, reading.again_s()))
    return views


def callbacks(app: Dash) -> dict[str, tuple[FilteredPage[Any], dict[str, Any]]]:
    """Return the pages with filters, each with its callback."""
    dependencies = app.server.test_client().get("/_dash-dependencies").json
    pages = {page.path: page for page in PAGES if isinstance(page, FilteredPage)}
    urls = {path: f"..{ids.of(path, 'url')}" for path in pages}
    return {
        path: (page, next(one for one in dependencies if one["output"].startswith(urls[path])))
        for path, page in pages.items()
    }


def alone(app: Dash, count: int, database: Path) -> dict[str, list[View]]:
    """Return the views of each page, of one user, inside the server."""
    client = app.server.test_client()

    def post(request: Request) -> dict[str, Any]:
        return dict(client.post("/_dash-update-component", json=request).json)

    chance = random.Random(1)
    reading = Reading(database)
    with reading.recording():
        return {OVERVIEW: overview(post, count, reading)} | {
            path: wander(page, declared, post, count, chance, reading)
            for path, (page, declared) in callbacks(app).items()
        }


def together(app: Dash, count: int) -> list[View]:
    """Return the views of several users over the network; raise for an error.

    They are in a process of their own, as users do not work inside the server.
    """
    declared = [its for _, its in callbacks(app).values()]
    context = multiprocessing.get_context("spawn")
    with served(app) as address, ProcessPoolExecutor(1, context) as other:
        return other.submit(visit, address, declared, count).result()


def visit(address: str, declared: Sequence[dict[str, Any]], count: int) -> list[View]:
    """Return the views of several users of a server, each of whom looks at one page."""
    pages = [page for page in PAGES if isinstance(page, FilteredPage)]

    def post(request: Request) -> dict[str, Any]:
        call = urllib.request.Request(
            f"{address}/_dash-update-component",
            json.dumps(request).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(call) as answer:
            return dict(json.load(answer))

    def of(user: int) -> list[View]:
        which = user % len(pages)
        return wander(pages[which], declared[which], post, count, random.Random(user))

    with ThreadPoolExecutor(USERS) as pool:
        return [view for views in pool.map(of, range(USERS)) for view in views]


def drawn_s(browser: Browser, url: str) -> float:
    """Return the seconds until a tab with an empty cache has drawn all figures of a page."""
    page = browser.new_context().new_page()
    started = time.perf_counter()
    page.goto(url)
    page.locator("h1").wait_for(timeout=DRAWN_MS)
    expect(page.locator(NOT_DRAWN)).to_have_count(0, timeout=DRAWN_MS)
    took_s = time.perf_counter() - started
    page.context.close()
    return took_s


def write_static(database: Path, path: Path) -> None:
    """Write the figures of the first page as a page that needs no server."""
    page = explore.PAGE
    with Store.open(database, readonly=True) as store:
        drawn = page.drawn(store, page.choose(store, page.query(), strict=False))
    plots = [each for each in drawn.values() if isinstance(each, dict) and "layout" in each]
    plotly = resources.files("dashboard").joinpath("assets/plotly-cartesian.min.js")
    figures = "".join(
        f'<figure style="height:{plot["layout"]["height"]}px"></figure>' for plot in plots
    )
    texts = {"figures": figures, "plotly": plotly.read_text("utf-8"), "plots": json.dumps(plots)}
    path.write_text(STATIC.format(**texts), "utf-8")


def first_data(app: Dash, database: Path, repeats: int) -> list[Figure]:
    """Return how long a browser needs to draw Explore and Overview; nothing without a browser."""
    chromium = find_chromium()
    if chromium is None:
        print("first data: not measured, no chromium on the path")
        return []
    static = database.with_name("static.html")
    write_static(database, static)
    with served(app) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        urls = (f"{address}/explore", f"{address}{OVERVIEW}", static.as_uri())
        times_s = np.array([[drawn_s(browser, url) for url in urls] for _ in range(repeats)])
        browser.close()
    explored, maps = np.median(times_s[:, :2] / times_s[:, 2:], axis=0)
    return [
        Figure("first data", float(explored), "times drawing alone", most=FIRST_DATA),
        Figure("first data, absolute", float(times_s[:, 0].min()), "s"),
        Figure("overview drawn", float(maps), "times drawing alone", most=MAPS),
        Figure("overview drawn, absolute", float(times_s[:, 1].min()), "s"),
    ]


def show(name: str, views: list[View]) -> None:
    """Print median and 95th percentile."""
    times = [(view.time_s, view.processor_s, view.reading_s) for view in views]
    (middle, *_), (high, busy, reading) = 1e3 * np.quantile(times, [0.5, 0.95], axis=0)
    figures = f"median {middle:4.0f} ms, p95 {high:4.0f} ms, of it processor {busy:4.0f} ms"
    print(f"{name:12} {len(views):4} views: {figures}; reading {reading:5.1f} ms", flush=True)


def p95(values: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return float(np.quantile(values, 0.95))


def main() -> int:
    """Measure all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=float, default=1e7)
    parser.add_argument("--campaigns", type=int, default=24)
    parser.add_argument("--count", type=int, default=40, help="interactions with each page")
    parser.add_argument("--repeats", type=int, default=5, help="of the first page")
    least = {"samples": 1e4, "campaigns": 3, "count": 2, "repeats": 1}
    options = options_of(parser, "dashboard_speed", least)
    with tempfile.TemporaryDirectory(prefix="switchpoint-dashboard-") as name:
        database = Path(name, "switchpoint.db")
        large.write(database, large.Size(options.campaigns, int(options.samples)))
        with Store.open(database, readonly=True) as store:
            samples = int(store.systems()["samples"].sum())
        app = create_app(database)
        started = time.perf_counter()
        compare_campaigns(database)  # as the server does when it starts
        print(f"campaigns compared in {time.perf_counter() - started:.1f} s")
        print(f"{samples} samples, {database.stat().st_size / 2**20:.0f} MiB")
        by_page = alone(app, options.count, database)
        for path, views in by_page.items():
            show(path, views)
        every = [view for path, views in by_page.items() if path != OVERVIEW for view in views]
        busiest = max(by_page, key=lambda path: p95([each.processor_s for each in by_page[path]]))
        busiest_s = p95([view.processor_s for view in by_page[busiest]])
        show("all pages", every)
        crowded = together(app, options.count // 2)
        print(f"{USERS} users: {len(crowded)} answers, no error")
        first = first_data(app, database, options.repeats)
    high_s = p95([view.time_s for view in every])
    reading_s = p95([view.reading_s for view in every])
    figures = [
        Figure("views, p95", high_s / reading_s, "times reading the same cells", most=VIEWS),
        Figure("views, p95, absolute", 1e3 * high_s, "ms"),
        Figure(f"views, p95, processor, slowest page ({busiest})", 1e3 * busiest_s, "ms"),
        Figure(f"views, p95, {USERS} users", 1e3 * p95([view.time_s for view in crowded]), "ms"),
        *first,
    ]
    return conclude("dashboard_speed", figures, options, "" if first else "no chromium")


if __name__ == "__main__":
    sys.exit(main())
