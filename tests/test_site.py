"""The documentation as a site, and man pages: complete, and without a link that leads nowhere."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import man
from docs.site.header import reference
from docs.site.links import faults
from tests.cli import commands
from tests.test_docs import CHECKOUT, functions, header, options_of
from tuner.cli import main


def test_every_command_has_a_man_page_with_its_options(tmp_path: Path) -> None:
    man.write(tmp_path)
    pages = {path.stem: path.read_text() for path in (tmp_path / "man1").iterdir()}
    for path, command in commands(main).items():
        name = f"switchpoint-{path.replace(' ', '-')}"
        text = pages[name].replace("\\-", "-")
        options = {option for option in options_of(command) if option.startswith("-")}
        assert [option for option in options if option not in text] == [], name
        parent = "-".join(["switchpoint", *path.split()[:-1]])
        assert f".BR {parent} (1)" in text
    swpbench = pages["swpbench"].replace("\\-", "-")
    assert "swpbench - measures the methods" in swpbench
    assert "\n.SH Options of run\n" in swpbench
    assert (
        "\n.TP\n.B --max-samples\n200\n.br\nmaximum number of samples of a case, at most 65535\n"
        in swpbench
    )
    assert "](" not in swpbench


def test_no_line_of_a_help_text_is_a_command_of_roff() -> None:
    assert man._roff(".so file\n'x \\fB -v") == "\\&.so file\n\\&'x \\efB \\-v"


def test_the_reference_of_the_header_has_every_function_and_comment() -> None:
    page = reference(header())
    for function in functions():
        assert re.search(rf"^### .*\b{function}\b", page, re.MULTILINE), function
    assert "\n/*" not in page
    assert "MPI must be initialised before any call" in page


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ('<a href="other.html#there">', ""),
        ('<a href="https://example.org/">', ""),
        ('<a href="missing.html">', "nothing at missing.html"),
        ('<a href="other.html#nowhere">', "no anchor other.html#nowhere"),
        ('<img src="missing.png">', "nothing at missing.png"),
        ('<script src="//example.org/x.js">', "loads //example.org/x.js from another host"),
    ],
)
def test_links_that_lead_nowhere_are_found(body: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<h1 id="there">')
    page = tmp_path / "404.html"  # as any other
    page.write_text(body)
    assert faults(tmp_path) == ([f"{page}: {fault}"] if fault else [])


@pytest.mark.check
def test_the_site_builds_with_every_page_and_its_search(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "docs.site", tmp_path], cwd=CHECKOUT, check=True)
    built = tmp_path / "html"
    for page in (CHECKOUT / "docs").rglob("*.md"):
        name = page.relative_to(CHECKOUT).as_posix().replace("README.md", "index.md")
        assert (built / name).with_suffix(".html").is_file(), name
    found = json.loads((built / "search" / "search_index.json").read_text())["docs"]
    assert any(each["location"].endswith("switchpoint.h.html#swp_wait") for each in found)
    assert "sample-openmpi" in (built / "tour.html").read_text()
