"""Pages of the site: those of the checkout, and one for each file that they link to."""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path

from pygments.lexers import find_lexer_class_for_filename

from docs.site.header import reference

CHECKOUT = Path(__file__).resolve().parent.parent.parent
HEADER = "kernels/include/switchpoint.h"
COPIED = {".png", ".svg"}
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(?=[)#])")


def stage(place: Path) -> None:
    """Write all pages below `place`."""
    linked: set[str] = set()
    for page in (*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md")):
        linked |= _copy(page, place)
    for path in sorted(linked):
        source = CHECKOUT / path
        target = place / _published(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix in COPIED:
            shutil.copy(source, target)
        elif path == HEADER:
            target.write_text(reference(source.read_text()))
        else:
            target.write_text(_listing(source, path) if source.is_dir() else _code(source, path))


def navigation() -> list[dict[str, str | list[str]]]:
    """Return the rows of the front page's table as sections; pages have their own titles."""
    front = (CHECKOUT / "README.md").read_text("utf-8")
    table = front.split("\n## Documentation\n")[1].split("\n## ")[0]
    sections: list[dict[str, str | list[str]]] = [{"Home": "README.md"}]
    for row in re.findall(r"^\| (.*[a-z].*) \|$", table, re.MULTILINE):
        title = re.sub(r"[\[\]]|\(.*", "", row.split(" | ")[0])
        pages = [_published(path) for path in _LINK.findall(row)]
        for index in (page for page in pages if page.endswith("/README.md")):
            folder = (CHECKOUT / index).parent.relative_to(CHECKOUT).as_posix()
            linked = _LINK.findall((CHECKOUT / index).read_text("utf-8"))
            pages += [f"{folder}/{path}" for path in linked]
        sections.append({title: pages})
    return sections


def _copy(page: Path, place: Path) -> set[str]:
    """Write a page with links to pages of the site; return the other files that it links to."""
    linked: set[str] = set()
    here = page.parent.relative_to(CHECKOUT).as_posix()

    def published(match: re.Match[str]) -> str:
        if "://" in match[1]:
            return match[1]
        path = posixpath.normpath(posixpath.join(here, match[1]))
        if not path.endswith(".md"):
            linked.add(path)
        return posixpath.relpath(_published(path), here)

    target = place / page.relative_to(CHECKOUT)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_LINK.sub(published, page.read_text("utf-8")))
    return linked


def _published(path: str) -> str:
    """Return the path of the page of a file or directory."""
    if Path(path).suffix in {".md", *COPIED}:
        return path
    # MkDocs leaves out names that begin with a dot.
    plain = re.sub(r"(^|/)\.", r"\1dot-", path)
    return f"{plain}/index.md" if (CHECKOUT / path).is_dir() else f"{plain}.md"


def _head(title: str) -> str:
    return f"---\ntitle: {title}\nsearch:\n  exclude: true\n---\n# {title}\n\n"


def _code(source: Path, path: str) -> str:
    lexer = find_lexer_class_for_filename(source.name)
    language = lexer.aliases[0] if lexer else "text"
    return f"{_head(path)}~~~~~~{language}\n{source.read_text('utf-8').rstrip()}\n~~~~~~\n"


def _listing(source: Path, path: str) -> str:
    names = sorted(each.name + "/" * each.is_dir() for each in source.iterdir())
    return _head(path) + "".join(f"- `{name}`\n" for name in names if name != "__pycache__/")
