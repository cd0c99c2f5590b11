"""The pages in headless Chromium."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from dash import Dash
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from dashboard import pages
from dashboard.app import create_app
from dashboard.report import write_report
from tests.conftest import Require, by_day
from tests.dashboard import large
from tests.dashboard.chromium import ARGUMENTS, BUSY_MS, NAMES, Visit, find_chromium, served
from tests.synthetic import Campaign, tuned_store, write, write_upgrade
from tuner.export import forms
from tuner.store.store import Store

expect.set_options(timeout=BUSY_MS)
PAGES = tuple(page.path for page in pages.PAGES)


@pytest.fixture(scope="module")
def browser(require: Require) -> Iterator[Browser]:
    path = find_chromium()
    require("chromium", path is not None, f"none of {', '.join(NAMES)} on the path")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address(app: Dash) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture(scope="module")
def window(browser: Browser) -> Callable[[int, str], BrowserContext]:
    """Open one window of each size and scheme: its cache saves every later tab seconds."""
    return cache(
        lambda width, scheme: browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        )
    )


@pytest.fixture
def visit(
    window: Callable[[int, str], BrowserContext], address: str, request: pytest.FixtureRequest
) -> Iterator[Visit]:
    page = window(*getattr(request, "param", (1440, "light"))).new_page()
    visit = Visit(page, address)
    yield visit
    page.close()
    assert visit.troubles == []


def expect_fitting(page: Page) -> None:
    width = page.viewport_size["width"]
    expect(page.locator("html")).to_have_js_property("scrollWidth", width)


def expect_accessible(page: Page) -> None:
    results = Axe().run(page, options={"rules": {"target-size": {"enabled": True}}})
    assert results.violations_count == 0, results.generate_report()


# What scrolls on the screen is cut on paper.
CUT = """() => [...document.querySelectorAll("main *")].filter(each =>
  each.querySelector("table, pre, code") && each.scrollWidth > each.clientWidth + 1 &&
  getComputedStyle(each).overflowX !== "visible" && each.clientWidth > 1
).map(each => `${each.tagName}.${each.className}`)"""


def expect_whole_on_paper(page: Page) -> None:
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    expect_fitting(page)
    assert page.evaluate(CUT) == []


@pytest.mark.check
@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_and_fit_a_telephone_and_paper_too(visit: Visit, path: str) -> None:
    page = visit.open(path)
    name = path[1:].partition("?")[0]
    expect(page).to_have_title(f"{(name or 'overview').capitalize()} · Switchpoint")
    expect(page.locator("header .active")).to_have_attribute(
        "href", re.compile(f"^{name or './'}($|[?])")
    )
    for width, scheme in ((1280, "light"), (420, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        expect_fitting(page)
        expect_accessible(page)
    expect_whole_on_paper(page)


@pytest.mark.parametrize(
    ("path", "visit"),
    by_day(
        [("/explore?o=bcast", (420, "dark"))],
        product([*PAGES, "/explore?o=bcast"], product((1280, 1024, 420), ("light", "dark"))),
    ),
    indirect=["visit"],
    ids=str,
)
def test_pages_fit_every_window_and_are_accessible(visit: Visit, path: str) -> None:
    page = visit.open(path)
    expect_fitting(page)
    expect_accessible(page)


@pytest.mark.check
@pytest.mark.parametrize(
    ("size", "paths"),
    by_day(
        [(large.Size(campaigns=3, samples=10_000), ("/explore", "/map", "/history"))],
        [(large.Size(), PAGES)],
    ),
    ids=str,
)
def test_pages_are_drawn_over_many_samples(
    browser: Browser, tmp_path: Path, size: large.Size, paths: tuple[str, ...]
) -> None:
    path = tmp_path / "switchpoint.db"
    large.write(path, size)
    with served(create_app(path)) as address:
        visit = Visit(browser.new_page(), address)
        for page in paths:
            visit.open(page)
            expect_fitting(visit.page)
        visit.page.close()
    assert visit.troubles == []


@pytest.mark.check
def test_what_an_upgrade_changed_is_accessible(browser: Browser, tmp_path: Path) -> None:
    """Also on the page for browsers without scripts."""
    write_upgrade(tmp_path, 1.45)
    path = tuned_store(tmp_path)
    with served(create_app(path)) as address:
        visit = Visit(browser.new_page(), address)
        for page in ("/", "/history", "/compare"):
            visit.open(page)
            expect_accessible(visit.page)
        visit.page.goto(f"{address}/plain")
        expect_accessible(visit.page)
        visit.page.close()
    assert visit.troubles == []


def test_figures_fit_the_paper_and_filters_are_on_it(visit: Visit) -> None:
    page = visit.open("/explore")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 720, "height": 1000})
    figures = page.locator(".js-plotly-plot .main-svg").all()
    widths = [figure.bounding_box()["width"] for figure in figures]
    assert figures and max(widths) <= 720
    expect(page.get_by_label("Operation")).to_be_visible()
    expect(page.get_by_text("Grey: no significant difference")).to_be_visible()
    expect(page.locator("header")).to_be_hidden()
    expect(page.get_by_text("Click a point")).to_be_hidden()


def test_the_rules_fit_the_paper(visit: Visit) -> None:
    expect_whole_on_paper(visit.open("/table?o=all"))


@pytest.mark.parametrize("visit", [(1024, "dark")], indirect=True)
def test_dark_is_dark(visit: Visit) -> None:
    page = visit.open("/explore")
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill")
    red = [int(text.split("(")[1].split(",")[0]) for text in (color, ink)]
    assert red[0] < 60 and red[1] > 180


def expect_curves(page: Page, name: str) -> None:
    label = page.locator("#explore-curves .annotation-text", has_text=name)
    expect(label.first).to_be_visible()


def test_a_filter_changes_plot_and_link_and_back_undoes_it(visit: Visit) -> None:
    page = visit.open("/explore")
    expect_curves(page, "direct")
    page.get_by_label("Operation").select_option("discovery")
    expect(page).to_have_url(re.compile("o=discovery"))
    expect_curves(page, "nbx")
    page.go_back()
    expect(page.get_by_label("Operation")).to_have_value("exchange")
    expect_curves(page, "direct")


def test_without_scripts_the_tables_are_shown(browser: Browser, address: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}/explore")
    page.wait_for_url("**/plain")
    expect(page.locator("main")).to_contain_text("Without JavaScript")
    expect(page.locator("main table").last).to_contain_text("open")
    context.close()


def test_a_deep_link_shows_its_view(visit: Visit) -> None:
    link = "/explore?o=exchange&p=random:degree=6,seed=1&r=8@1x8-window-over&b=512"
    page = visit.open(link)
    expect(page.get_by_label("Pattern")).to_have_value("random:degree=6,seed=1")
    expect(page.get_by_label("Processes")).to_have_value("8@1x8-window-over")
    expect(page.get_by_label("Message size", exact=True)).to_have_value("512")
    expect(page.get_by_text("oversubscribed: 8 ranks on 2 cores")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Message size", exact=True)).to_have_value("512")


def test_a_click_on_a_point_takes_its_size_again_after_back(visit: Visit) -> None:
    page = visit.open("/explore")
    size = page.get_by_label("Message size", exact=True)
    # The points of the first line are its sizes in order.
    point = page.locator("#explore-curves .scatterlayer .trace .points path").nth(3)
    for _ in range(2):
        for _ in range(10):  # on a busy machine parts that come late move the figure
            box = point.bounding_box()
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
            page.wait_for_timeout(500)
            if size.input_value() == "512":
                break
        expect(size).to_have_value("512")
        expect(page).to_have_url(re.compile("b=512"))
        page.go_back()
        expect(size).not_to_have_value("512")


def test_every_rule_links_to_the_samples_of_its_cell(visit: Visit) -> None:
    page = visit.open("/table?o=all")
    expect(page.get_by_role("link", name="samples").first).to_be_visible()
    links = page.get_by_role("link", name="samples")
    assert links.count() > 3
    for index in range(links.count()):
        link = f"{visit.address}/" + str(links.nth(index).get_attribute("href"))
        assert page.request.get(link).status == 200
    links.first.click()
    expect(page.locator("h1")).to_have_text("Explore")
    expect(page.locator("#explore-ecdf .scatterlayer .trace").first).to_be_visible()


def test_the_downloaded_table_is_the_exported_one(visit: Visit, database: Path) -> None:
    page = visit.open("/table")
    page.get_by_label("Form", exact=True).select_option("json")
    link = page.get_by_role("link", name="Download switchpoint.json")
    expect(link).to_be_visible()
    with page.expect_download() as download:
        link.click()
    system = page.get_by_label("System").input_value()
    with Store.open(database, readonly=True) as store:
        expected = forms.export(store.table(system), "json")
    assert Path(download.value.path()).read_text() == expected
    assert page.locator(".preview").inner_text().strip() == expected.strip()


def test_a_file_is_held_against_the_table_here(visit: Visit, tmp_path: Path) -> None:
    page = visit.open("/table")
    text = page.locator(".preview").inner_text().strip()
    file = tmp_path / "mine.table"
    for mine, said in ((text, "No differences."), (f"{text}\nrule mine", "-rule mine")):
        file.write_text(mine)
        with page.expect_file_chooser() as chooser:
            page.get_by_role("button", name="choose a file").click()
        chooser.value.set_files(file)
        expect(page.locator("#table-difference")).to_contain_text(said)
    expect_accessible(page)


DROP = """field => {
  const dropped = new DataTransfer();
  dropped.items.add(new File([TEXT], "app.profile"));
  for (const kind of ["dragover", "drop"])
    field.dispatchEvent(new DragEvent(kind, {dataTransfer: dropped, bubbles: true}));
}"""


PASTE = """field => {
  const pasted = new DataTransfer();
  pasted.setData("text", TEXT);
  const event = {clipboardData: pasted, bubbles: true, cancelable: true};
  return field.dispatchEvent(new ClipboardEvent("paste", event));
}"""


def test_a_large_profile_is_dropped_on_the_page_and_a_larger_one_refused(visit: Visit) -> None:
    page = visit.open("/advice")
    field = page.locator("#advice-pasted")
    field.evaluate(DROP.replace("TEXT", "'no profile '.repeat(2 ** 16)"))
    expect(page.locator("#advice-given")).to_contain_text("This is not a profile")
    with page.expect_event("dialog") as dialog:
        page.on("dialog", lambda shown: shown.dismiss())
        field.evaluate(DROP.replace("TEXT", "'x'.repeat(2 ** 22 + 1)"))
    assert "app.profile is larger than 4 MiB" in dialog.value.message
    assert field.evaluate(PASTE.replace("TEXT", "'x'.repeat(2 ** 22)"))
    with page.expect_event("dialog") as dialog:
        assert not field.evaluate(PASTE.replace("TEXT", "'é'.repeat(2 ** 22 - 9)"))
    assert "This text is larger than 4 MiB" in dialog.value.message


def test_pages_link_to_each_other_and_keep_the_case(visit: Visit) -> None:
    page = visit.open("/explore")
    page.get_by_label("Operation").select_option(label="bcast")
    expect(page).to_have_url(re.compile("o=bcast"))
    page.get_by_role("link", name="Map").click()
    expect(page.locator("h1")).to_have_text("Map")
    expect(page.get_by_label("Operation")).to_have_value("bcast")
    page.get_by_role("link", name="Choose").click()
    expect(page.locator("h1")).to_have_text("Choose")
    expect(page.get_by_label("Operation")).to_have_value("bcast")
    page.get_by_label("Operation").select_option("exchange")
    page.get_by_label("Processes").select_option("1x8")
    expect(page).to_have_url(re.compile("r=1x8"))
    page.get_by_role("link", name="Explore").click()
    expect(page.locator("h1")).to_have_text("Explore")
    expect(page.get_by_label("Processes")).to_have_value("8@1x8-window-over")
    page.get_by_role("link", name="Table").click()
    expect(page.get_by_label("Rules for")).to_have_value("exchange")
    page.get_by_label("System").select_option(label="local:cpu, openmpi")
    expect(page).to_have_url(re.compile("s=local-cpu-openmpi"))
    page.get_by_role("link", name="Explore").click()
    expect(page.locator("h1")).to_have_text("Explore")
    expect(page.get_by_label("System")).to_have_value(re.compile("openmpi"))


def test_a_full_load_keeps_the_case(visit: Visit) -> None:
    link = "/explore?o=exchange&p=random:degree=6,seed=1&r=8@1x8-window-over"
    page = visit.open(link)
    page.get_by_role("link", name="Table").click()
    page.get_by_label("Form", exact=True).select_option("json")
    expect(page).to_have_url(re.compile("f=json.*#p=random.*&r=8"))
    page.reload()
    page.get_by_role("link", name="Explore").click()
    expect(page.locator("h1")).to_have_text("Explore")
    expect(page.get_by_label("Pattern")).to_have_value("random:degree=6,seed=1")
    expect(page.get_by_label("Processes")).to_have_value("8@1x8-window-over")
    page.get_by_role("link", name="Choose").click()
    page.get_by_role("link", name="The whole table").click()
    expect(page).to_have_url(re.compile("/table[?].*#p=random.*&r=8"))


def test_a_pinned_baseline_is_kept(visit: Visit) -> None:
    page = visit.open("/compare")
    first, last = "20261019T120000Z", "20261121T034500Z"
    expect(page.get_by_label("A: campaign")).to_have_value(first)
    page.get_by_label("B: campaign").select_option(first)
    expect(page).to_have_url(re.compile(f"c={first}"))
    page.get_by_label("A: campaign").select_option(last)
    page.get_by_role("button", name="Pin A as baseline").click()
    expect(page.get_by_role("button", name="A is pinned")).to_have_attribute("aria-pressed", "true")
    visit.open("/")
    compare = page.get_by_role("link", name="Compare", exact=True)
    expect(compare).to_have_attribute("href", re.compile(f"u={last}"))
    compare.click()
    expect(page.get_by_label("A: campaign")).to_have_value(last)
    page.get_by_label("B: campaign").select_option(first)
    page.get_by_role("button", name="A is pinned").click()
    expect(compare).not_to_have_attribute("href", re.compile("u="))


def test_a_store_that_vanishes_is_reported_until_it_is_back(
    browser: Browser, tmp_path: Path, database: Path
) -> None:
    path = tmp_path / "switchpoint.db"
    path.write_bytes(database.read_bytes())
    with served(create_app(path)) as address:
        page = Visit(browser.new_page(), address).open("/explore")
        path.unlink()
        page.get_by_label("Operation").select_option("discovery")
        expect(page.get_by_text("no store there")).to_be_visible()
        path.write_bytes(database.read_bytes())
        page.get_by_label("Operation").select_option("exchange")
        expect(page.get_by_text("no store there")).to_have_count(0)
        for name, label in (("Map", "Layouts"), ("Overview", "System")):
            path.unlink()
            page.get_by_role("link", name=name).click()
            expect(page.locator("h1")).to_have_text(name)
            expect(page.get_by_text("no store there")).to_be_visible()
            path.write_bytes(database.read_bytes())
            page.get_by_role("link", name="Reload").click()
            expect(page.get_by_text("no store there")).to_have_count(0)
            expect(page.get_by_text(label).first).to_be_visible()
        page.close()


def test_the_link_to_the_open_page_shows_what_came_since(browser: Browser, tmp_path: Path) -> None:
    write(tmp_path, Campaign(launches=1))
    with served(create_app(tuned_store(tmp_path))) as address:
        page = Visit(browser.new_page(), address).open("/#o=exchange")
        write(tmp_path, Campaign(name="20270101T000000Z", launches=1))
        tuned_store(tmp_path)
        page.get_by_role("link", name="Overview").click()
        expect(page.locator("main")).to_contain_text("20270101T000000Z")
        expect(page).to_have_url(re.compile("/#o=exchange$"))
        page.close()


def test_a_figure_is_saved_as_picture_and_numbers(visit: Visit) -> None:
    page = visit.open("/explore?o=discovery")
    figure = page.locator("figure").first
    for form, begin in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"system,campaign")):
        with page.expect_download() as download:
            figure.get_by_text(form, exact=True).click()
        assert download.value.suggested_filename.endswith(f".{form.lower()}")
        assert Path(download.value.path()).read_bytes().startswith(begin)


def test_a_tile_of_the_map_opens_its_samples(visit: Visit) -> None:
    page = visit.open("/map")
    page.locator("#map-tiles .nsewdrag").click()
    expect(page.locator("h1")).to_have_text("Explore")


def test_figures_grow_with_what_a_filter_shows(visit: Visit) -> None:
    page = visit.open("/map?l=fits")
    drawing = page.locator("#map-tiles .main-svg").first
    one_row = int(drawing.get_attribute("height"))
    page.get_by_label("Layouts").select_option("all")
    expect(drawing).not_to_have_attribute("height", str(one_row))
    assert int(drawing.get_attribute("height")) > one_row


@pytest.mark.parametrize("visit", [(420, "light")], indirect=True)
def test_a_legend_stays_below_its_axis_in_a_wider_window(visit: Visit) -> None:
    page = visit.open("/metrics")
    more = [{"x": [4], "y": [1e-5], "name": f"nap:find=dense{number}"} for number in range(4)]
    for plot in page.locator(".js-plotly-plot").all():
        plot.evaluate("(plot, more) => Plotly.addTraces(plot, more)", more)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.wait_for_function("""() => [...document.querySelectorAll(".js-plotly-plot")].every(plot =>
      plot.clientWidth < 500 && plot.querySelector(".main-svg").clientWidth === plot.clientWidth)
      """)
    for plot in page.locator(".js-plotly-plot").all():
        legend, title = (plot.locator(part).bounding_box() for part in (".legend", ".xtitle"))
        assert legend["y"] >= title["y"] + title["height"]


def test_a_tile_is_reached_by_keyboard(visit: Visit) -> None:
    page = visit.open("/map")
    page.locator("summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")  # the table, which scrolls
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Explore")
    expect(page.get_by_label("Message size", exact=True)).to_have_value("8")


def test_pages_are_used_by_keyboard(visit: Visit) -> None:
    page = visit.open("/choose")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.get_by_label("Operation").focus()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("o="))


def test_below_a_prefix_pages_find_each_other(browser: Browser, database: Path) -> None:
    with served(create_app(database, prefix="/swp"), prefix="/swp") as address:
        visit = Visit(browser.new_page(), address)
        page = visit.open("/swp/explore?o=discovery")
        expect_curves(page, "nbx")
        page.get_by_label("Operation").select_option("exchange")
        expect_curves(page, "direct")
        page.get_by_role("link", name="Table").click()
        expect(page.locator("h1")).to_have_text("Table")
        expect(page).to_have_url(re.compile("/swp/table"))
        page.get_by_role("link", name="Overview").click()
        expect(page.locator("h1")).to_have_text("Measured systems")
        page.close()
        assert visit.troubles == []


def test_a_report_is_drawn_and_fits_a_telephone(
    browser: Browser, tmp_path: Path, database: Path
) -> None:
    path = tmp_path / "report.html"
    with Store.open(database, readonly=True) as store:
        write_report(store, path)
    visit = Visit(browser.new_page(viewport={"width": 420, "height": 900}), "file:")
    page = visit.open(str(path))
    expect(page.locator("script:visible")).to_have_count(0)
    expect_fitting(page)
    page.close()
    assert visit.troubles == []
