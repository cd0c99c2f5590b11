"""Ids of components."""

URL = "url"
PAGES = "pages"
BASELINE = "baseline"
TITLE = "title"
ALERT = "alert"
CONTENT = "content"


def nav(path: str) -> dict[str, str]:
    """Return the id of a page's link in the header."""
    return {"nav": path}


def page_path(pathname: str) -> str:
    """Return the page's path from the browser's, which may begin with the prefix of a proxy."""
    return f"/{pathname.rpartition('/')[2]}"


def of(path: str, part: str) -> str:
    """Return the id of a part of a page: a filter, a figure, or the page's state."""
    return f"{path.strip('/') or 'overview'}-{part}"
