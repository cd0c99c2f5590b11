"""The pages. A new page is a module with a `PAGE` and one line here."""

from dashboard.pages import (
    advice,
    choose,
    compare,
    explore,
    history,
    map,
    metrics,
    models,
    overlap,
    overview,
    table,
)
from dashboard.pages.page import Page

PAGES: tuple[Page, ...] = (
    overview.PAGE,
    choose.PAGE,
    explore.PAGE,
    map.PAGE,
    metrics.PAGE,
    models.PAGE,
    overlap.PAGE,
    table.PAGE,
    history.PAGE,
    compare.PAGE,
    advice.PAGE,
)
