"""What the documentation points to is there: pages, headings, commands, options."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tuner.cli import main

CHECKOUT = Path(__file__).resolve().parent.parent
FRONT = CHECKOUT / "README.md"
PAGES = [
    *sorted((CHECKOUT / "docs").rglob("*.md")),
    *(CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The file and the heading of every link to one of ours."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" not in link:
            path, _, heading = link.partition("#")
            yield (page.parent / path).resolve() if path else page, heading


def anchors(page: Path) -> set[str]:
    """What GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in links(page):
        assert path.exists(), path
        assert not heading or heading in anchors(path), f"{path}#{heading}"


def test_the_front_page_leads_to_every_page() -> None:
    linked = {path for path, _ in links(FRONT)}
    assert {page for page in PAGES if CHECKOUT / "docs" in page.parents} <= linked


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every call of `switchpoint` in the page's shell examples."""
    for block in re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for start, word in enumerate(words):
                if word in ("switchpoint", ".venv/bin/switchpoint"):
                    yield words[start + 1 :]


def test_examples_use_options_that_there_are() -> None:
    seen = 0
    for words in (words for page in PAGES for words in commands(page)):
        command: click.Command = main
        rest = iter(words)
        for word in rest:
            if word in ("--", "&&", "|", ";"):
                break
            if isinstance(command, click.Group) and not word.startswith("-"):
                assert word in command.commands, words
                command = command.commands[word]
            elif word.startswith("-"):
                known = {name for each in command.params for name in (*each.opts, "--help")}
                assert word.partition("=")[0] in known, words
        seen += 1
    assert seen > 50
