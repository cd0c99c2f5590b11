"""The pages. A new page is a module with a `PAGE` and one line here."""

from dashboard.pages import explore, overview, table
from dashboard.pages.page import Page

PAGES: tuple[Page, ...] = (overview.PAGE, explore.PAGE, table.PAGE)
