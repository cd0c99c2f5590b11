"""Program that draws docs/images/explore.png from the committed campaigns: `make screenshots`."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from dashboard.app import create_app
from tests.dashboard.chromium import ARGUMENTS, NAMES, find_chromium, served
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune_missing
from tuner.store.store import Store

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLE = CHECKOUT / "results" / "sample"
IMAGE = CHECKOUT / "docs" / "images" / "explore.png"
LINK = "/explore?o=allreduce"
WIDTH = 1280


def main() -> None:
    """Serve the sample from a store of its own, and photograph the page."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit(f"screenshots: none of {', '.join(NAMES)} on the path; install chromium")
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "switchpoint.db"
        ingest(database, [SAMPLE])
        with Store.open(database) as store:
            tune_missing(store)
        with served(create_app(database)) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 900}, device_scale_factor=1.5
            )
            page.goto(address + LINK)
            page.locator(".js-plotly-plot .main-svg").last.wait_for(state="attached")
            page.wait_for_load_state("networkidle")
            IMAGE.parent.mkdir(exist_ok=True)
            below = page.locator(".explore-panels").bounding_box()
            assert below is not None  # it is shown
            height = below["y"] + below["height"]
            page.screenshot(
                path=IMAGE, full_page=True, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}
            )
            browser.close()
    print(IMAGE)


if __name__ == "__main__":
    main()
