"""Ids of components."""

URL = "url"
PAGES = "pages"
TITLE = "title"
ALERT = "alert"
CONTENT = "content"


def nav(path: str) -> dict[str, str]:
    """The link to a page in the header."""
    return {"nav": path}


def of(path: str, part: str) -> str:
    """A part of a page: a filter, a figure, or what keeps the page's state."""
    return f"{path.strip('/') or 'overview'}-{part}"
