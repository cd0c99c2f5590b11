"""Links of the built site: every one leads to a file and an anchor that exist, offline."""

from __future__ import annotations

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src"}


class _Page(HTMLParser):
    """The links, loaded files and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.anchors |= {named[name] for name in ("id", "name") if name in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif _LOADED.get(tag) in named:
            self.loaded.append(named[_LOADED[tag]])


@cache
def _page(path: Path) -> _Page:
    return _Page(path.read_text("utf-8"))


def faults(site: Path) -> list[str]:
    """Return what is wrong on the pages of a site, a line each."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = _page(path)
        outside = [each for each in page.loaded if urlsplit(each).netloc]
        found += [f"{path}: loads {each} from another host" for each in outside]
        for link in {*page.links, *page.loaded} - {*outside}:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.is_file():
                found.append(f"{path}: nothing at {link}")
            elif target.suffix == ".html" and unquote(parts.fragment) not in _page(target).anchors:
                found.append(f"{path}: no anchor {link}")
    return found
