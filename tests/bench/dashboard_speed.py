"""How fast the dashboard answers over a store of ten million samples in 24 campaigns.

Interactions are random changes of one filter, of which those count that lead to a view for the
first time: nothing can be kept of it. Their times are those that the server takes, beside them the
processor's share (other work on the machine adds to the first alone); then eight users at once, and
the time until a browser with an empty cache has drawn the first page.
Prints the figures beside their targets and exits with 1 when one is missed.
Run from the checkout: python -m tests.bench.dashboard_speed
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from dash import Dash
from playwright.sync_api import expect, sync_playwright

from dashboard import ids
from dashboard.app import create_app
from dashboard.pages import PAGES
from dashboard.pages.page import FilteredPage
from tests.dashboard import large
from tests.dashboard.chromium import ARGUMENTS, NOT_DRAWN, find_chromium, served
from tuner.store import Store

P95_S = 0.1
FIRST_DATA_S = 2.0
USERS = 8

Post = Callable[[dict[str, Any]], dict[str, Any]]
Request = dict[str, Any]
Seconds = tuple[float, float]


def request_of(
    declared: dict[str, Any], page: FilteredPage[Any], values: dict[str, str]
) -> Request:
    """What the page's filters send."""
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
    page: FilteredPage[Any], declared: dict[str, Any], post: Post, count: int, chance: random.Random
) -> list[Seconds]:
    """Seconds, and of this thread's processor, of changes of one filter from where the last led.

    Without those of views that were shown before.
    """
    values: dict[str, str] = {}
    seconds = []
    shown = set()
    for _ in range(count):
        started = time.perf_counter(), time.thread_time()
        response = post(request_of(declared, page, values))["response"]
        took = time.perf_counter() - started[0], time.thread_time() - started[1]
        parts = {name: response[ids.of(page.path, name)] for name in page.filters}
        values = {name: part["value"] for name, part in parts.items()}
        if tuple(values.values()) not in shown:
            shown.add(tuple(values.values()))
            seconds.append(took)
        name = chance.choice([name for name in parts if len(parts[name]["options"]) > 1])
        values[name] = chance.choice(parts[name]["options"])["value"]
    return seconds


def callbacks(app: Dash) -> dict[str, tuple[FilteredPage[Any], dict[str, Any]]]:
    """The pages with filters, each with its callback."""
    dependencies = app.server.test_client().get("/_dash-dependencies").json
    pages = {page.path: page for page in PAGES if isinstance(page, FilteredPage)}
    urls = {path: f"..{ids.of(path, 'url')}" for path in pages}
    return {
        path: (page, next(one for one in dependencies if one["output"].startswith(urls[path])))
        for path, page in pages.items()
    }


def alone(app: Dash, count: int) -> dict[str, list[Seconds]]:
    """Seconds of interactions with each page, of one user, inside the server."""
    client = app.server.test_client()

    def post(request: Request) -> dict[str, Any]:
        return dict(client.post("/_dash-update-component", json=request).json)

    chance = random.Random(1)
    return {
        path: wander(page, declared, post, count, chance)
        for path, (page, declared) in callbacks(app).items()
    }


def together(app: Dash, count: int) -> list[Seconds]:
    """Seconds of interactions of several users over the network; raises for an error."""
    pages = list(callbacks(app).values())
    with served(app) as address, ThreadPoolExecutor(USERS) as pool:

        def post(request: Request) -> dict[str, Any]:
            call = urllib.request.Request(
                f"{address}/_dash-update-component",
                json.dumps(request).encode(),
                {"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(call) as answer:
                return dict(json.load(answer))

        def visit(user: int) -> list[Seconds]:
            page, declared = pages[user % len(pages)]
            return wander(page, declared, post, count, random.Random(user))

        return [second for seconds in pool.map(visit, range(USERS)) for second in seconds]


def first_data_s(app: Dash) -> float | None:
    """Seconds until a browser with an empty cache has drawn a page; None without a browser."""
    chromium = find_chromium()
    if chromium is None:
        return None
    with served(app) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        seconds = []
        for _ in range(3):
            page = browser.new_context().new_page()
            started = time.perf_counter()
            page.goto(f"{address}/explore")
            page.locator("h1").wait_for()
            expect(page.locator(NOT_DRAWN)).to_have_count(0, timeout=60_000)
            seconds.append(time.perf_counter() - started)
            page.context.close()
        browser.close()
    return min(seconds)


def show(name: str, seconds: list[Seconds]) -> None:
    """Prints median and 95th percentile."""
    (middle, _), (high, busy) = 1e3 * np.quantile(seconds, [0.5, 0.95], axis=0)
    figures = f"median {middle:4.0f} ms, p95 {high:4.0f} ms, of it processor {busy:4.0f} ms"
    print(f"{name:12} {len(seconds):4} views: {figures}")


def main() -> int:
    """Measures; the exit code tells whether a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=1e7)
    parser.add_argument("--campaigns", type=int, default=24)
    parser.add_argument("--count", type=int, default=40, help="interactions with each page")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="switchpoint-dashboard-") as name:
        database = Path(name, "switchpoint.db")
        large.write(database, large.Size(options.campaigns, int(options.samples)))
        with Store.open(database, readonly=True) as store:
            samples = int(store.systems()["samples"].sum())
        app = create_app(database)
        print(f"{samples} samples, {database.stat().st_size / 2**20:.0f} MiB")
        by_page = alone(app, options.count)
        for path, seconds in by_page.items():
            show(path, seconds)
        every = [pair for seconds in by_page.values() for pair in seconds]
        show("all pages", every)
        crowded = together(app, options.count // 2)
        print(f"{USERS} users: {len(crowded)} answers, no error, ", end="")
        print(f"p95 {1e3 * float(np.quantile(crowded, 0.95, axis=0)[0]):.0f} ms")
        figures = [("p95", float(np.quantile(every, 0.95, axis=0)[0]), P95_S)]
        first = first_data_s(app)
        if first is not None:
            figures.append(("first data", first, FIRST_DATA_S))
    missed = 0
    for name, value, target in figures:
        missed += value > target
        verdict = "ok" if value <= target else "MISSED"
        print(f"{name:12} {value:6.3f} s, target <= {target:g}: {verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
