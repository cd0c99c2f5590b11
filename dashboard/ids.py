"""Ids of components."""

URL = "url"
PAGES = "pages"
TITLE = "title"
ALERT = "alert"
CONTENT = "content"


def nav(path: str) -> dict[str, str]:
    """The link to a page in the header."""
    return {"nav": path}


def page_path(pathname: str) -> str:
    """The path of a page from a browser's, which may begin with the prefix of a proxy."""
    return f"/{pathname.rpartition('/')[2]}"


def of(path: str, part: str) -> str:
    """A part of a page: a filter, a figure, or what keeps the page's state."""
    return f"{path.strip('/') or 'overview'}-{part}"
