"""The documentation is complete, and what it points to exists."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli import commands as every_command
from tuner.cli import main
from tuner.export.forms import FORMS
from tuner.models.singles import singles
from tuner.models.system import QUANTITIES, PairModel, SystemModel
from tuner.rawfile.kinds import KINDS

CHECKOUT = Path(__file__).resolve().parent.parent
FRONT = CHECKOUT / "README.md"
CONTRIBUTING = CHECKOUT / "CONTRIBUTING.md"
DOCS = CHECKOUT / "docs"
DECISIONS = DOCS / "decisions"
REFERENCE = DOCS / "reference"
PAGES = [*sorted(DOCS.rglob("*.md")), *sorted(CHECKOUT.glob("*.md"))]
DECISION_PAGES = [page for page in PAGES if page.parent == DECISIONS and page.name != "README.md"]
CODE = ("bootstrap.sh", "spack.yaml", ".ci", "checks", "dashboard", "kernels", "spack", "templates")

MOST_LINES = 110  # two pages
MOST_COLUMNS = 120
MOST_BYTES = 9000
MOST_WORDS = 45  # of the glossary


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def text_of(*pages: Path) -> str:
    return "\n".join(page.read_text("utf-8") for page in pages)


def sources(*places: str) -> str:
    """Return the text of all files of the checkout below these places."""
    command = ["git", "-C", str(CHECKOUT), "grep", "-hI", "", "--", *places]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# ---- Links ----


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Yield the file and the heading of every link to one of ours."""
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" not in link:
            path, _, heading = link.partition("#")
            yield (page.parent / path).resolve() if path else page, heading


def anchors(page: Path) -> set[str]:
    """Return what GitHub makes of the headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in links(page):
        assert path.exists(), path
        assert not heading or heading in anchors(path), f"{path}#{heading}"


def test_the_front_page_leads_to_every_page() -> None:
    indexes = (FRONT, DECISIONS / "README.md")
    linked = {path for index in indexes for path, _ in links(index)}
    assert {page for page in PAGES if DOCS in page.parents} <= linked


def test_contributing_and_the_front_page_lead_to_the_glossary() -> None:
    for page in (FRONT, CONTRIBUTING):
        assert REFERENCE / "glossary.md" in {path for path, _ in links(page)}


# ---- Form ----


def test_contributing_has_two_pages() -> None:
    lines = text_of(CONTRIBUTING).splitlines()
    assert len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert CONTRIBUTING.stat().st_size < MOST_BYTES


def test_contributing_names_files_that_exist() -> None:
    """Those in capitals stand for names that a contributor chooses."""
    quoted = re.findall(r"`([\w.]+/[\w./]+)`", text_of(CONTRIBUTING))
    real = [path for path in quoted if not re.search(r"\b[A-Z]{3,}\b", path)]
    assert len(real) > 40
    bases = (CHECKOUT, CHECKOUT / "kernels")
    assert [path for path in real if not any((base / path).exists() for base in bases)] == []


def test_the_glossary_is_short_and_in_order() -> None:
    rows = re.findall(r"^\| ([^|]+) \|.*\|$", text_of(REFERENCE / "glossary.md"), re.MULTILINE)
    words = rows[1:]
    assert 30 <= len(words) <= MOST_WORDS
    assert words == sorted(set(words))


@pytest.mark.parametrize("page", DECISION_PAGES, ids=name_of)
def test_a_decision_has_a_date_its_code_and_what_was_rejected(page: Path) -> None:
    entries = re.split(r"^## ", text_of(page), flags=re.MULTILINE)[1:]
    assert entries
    for entry in entries:
        title, _, source, _, *said = entry.rstrip().splitlines()
        assert re.fullmatch(r"\d{4}-\d\d-\d\d( · \[[^\]]+\]\(\.\./\.\./[^)]+\))+", source), title
        assert said[0] and not said[0].startswith("Rejected"), title
        assert [line[:10] for line in said].count("Rejected: ") == 1, title


# ---- What there is, and what the documents say there is ----


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of every call of `switchpoint` in the page's shell examples."""
    for block in re.findall(r"(?ms)^```sh\n(.*?)^```", page.read_text("utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            for start, word in enumerate(words):
                if word in ("switchpoint", ".venv/bin/switchpoint"):
                    yield words[start + 1 :]


def options_of(command: click.Command) -> set[str]:
    named = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return named | {"--help"}


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
                assert word.partition("=")[0] in options_of(command), words
        seen += 1
    assert seen > 50


def test_commands_in_sentences_exist() -> None:
    """`switchpoint tune --system ID`: test_cli.py looks at headings of the reference."""
    seen = 0
    for said in re.findall(r"`switchpoint ([^`]*)`", text_of(*PAGES)):
        ours = said.split(" -- ")[0]
        command: click.Command = main
        for word in ours.split():
            if not isinstance(command, click.Group) or not word[0].islower():
                break
            assert word in command.commands, said
            command = command.commands[word]
        assert set(re.findall(r"--[a-z-]+", ours)) <= options_of(command), said
        seen += 1
    assert seen > 100


@pytest.mark.parametrize(("name", "command"), every_command(main).items())
def test_the_reference_has_no_other_option(name: str, command: click.Command) -> None:
    """That it has all, test_cli.py tests. Options in tables stand in the first column."""
    section = text_of(REFERENCE / "cli.md").split(f"\n## `switchpoint {name}")[1].split("\n## ")[0]
    for row in re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE):
        for option in re.findall(r"--[a-z][a-z-]*", row):
            assert option in options_of(command), option


def test_every_form_of_a_table_is_documented() -> None:
    rows = re.findall(r"^\| `--format (.*?) \|", text_of(REFERENCE / "cli.md"), re.MULTILINE)
    documented = re.findall(r"\w+", " ".join(rows))
    assert sorted(documented) == sorted(FORMS)


def test_every_quantity_of_probes_is_documented_with_its_parameters() -> None:
    section = text_of(REFERENCE / "benchfile.md").split("\n| `quantity` | seconds of |")[1]
    rows = re.findall(r"^\| `(\w+)` \| .* \| ?(.*) ?\|$", section.split("\n\n")[0], re.MULTILINE)
    documented = {quantity: re.findall(r"\w+", names) for quantity, names in rows}
    existing: dict[str, list[str]] = {quantity: [] for quantity in QUANTITIES}
    for model in (PairModel, SystemModel):
        for name, single in singles(model).items():
            existing[single.quantity].append(name)
    assert documented == existing


def test_every_option_of_swpbench_is_documented_and_no_other() -> None:
    source = text_of(CHECKOUT / "kernels" / "swpbench" / "command_line.c")
    options = set(re.findall(r'^    \{"(--[a-z-]+)"', source, re.MULTILINE))
    assert len(options) > 15
    said = re.findall(r"^\| `(--[a-z-]+)", text_of(REFERENCE / "swpbench.md"), re.MULTILINE)
    mentioned = re.findall(r"--[a-z][a-z-]+", text_of(REFERENCE / "swpbench.md"))
    assert set(said) <= options <= set(mentioned)


def test_every_method_is_documented() -> None:
    methods = re.findall(r"METHOD\(swp_[a-z]+?_(\w+)\)", sources("kernels/methods/methods.def"))
    said = re.findall(
        r"`([a-z_0-9]+)|\*\*([a-z_0-9]+)", text_of(DOCS / "explanation" / "methods.md")
    )
    assert len(methods) > 20
    assert set(methods) <= {name for names in said for name in names}


def test_every_kind_of_raw_record_is_documented() -> None:
    lines, tables = (text_of(REFERENCE / f"{page}.md") for page in ("benchfile", "database"))
    for kind in KINDS.values():
        assert f"## `{kind.name}`" in lines
        assert f"| `{kind.name}` |" in tables


WORD = r"(?:\b|(?<=-D))SWITCHPOINT_[A-Z_]*[A-Z]\b(?!_)"


def build_options() -> set[str]:
    """Return the options of CMake."""
    cmake = sources("kernels/CMakeLists.txt")
    return {
        *re.findall(r"^option\((\w+)", cmake, re.MULTILINE),
        *re.findall(r"^set\((SWITCHPOINT_\w+) \S+ CACHE", cmake, re.MULTILINE),
    }


def variables() -> set[str]:
    """Return the environment variables that programs, checks and tests read or set.

    Include guards end in _H; other names that CMake sets are its own.
    """
    cmake = re.findall(WORD, sources("*CMakeLists.txt", "*.cmake", "*.in"))
    code = re.findall(WORD, sources(*CODE, "tuner", "tests", ":!*CMakeLists.txt", ":!*.in"))
    return {name for name in set(code) - set(cmake) if not name.endswith("_H")}


def test_every_variable_is_documented_and_no_other() -> None:
    existing = variables() | build_options()
    assert len(existing) > 20
    assert set(re.findall(WORD, text_of(REFERENCE / "environment.md"))) == existing
    assert set(re.findall(WORD, text_of(*PAGES))) <= existing


def header() -> str:
    return text_of(CHECKOUT / "kernels" / "include" / "switchpoint.h")


def functions() -> set[str]:
    """Return the public functions of the library."""
    code = re.sub(r"/\*.*?\*/", "", header(), flags=re.DOTALL)
    return set(re.findall(r"\b(swp_\w+)\(", code))


def test_every_function_is_documented_and_no_other() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", text_of(REFERENCE / "library.md"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == functions()


def test_names_of_the_library_in_documents_exist() -> None:
    """In the header, as programs of the build, or as the key of an info object."""
    cmake = sources("kernels/*CMakeLists.txt")
    programs = re.findall(r"\b(?:switchpoint_test|add_executable|_add)\w*\((swp_\w+)", cmake)
    known = set(re.findall(r"\bswp_\w+", header())) | set(programs)
    known |= set(re.findall(r'"(swp_\w+)"', sources("kernels/pmpi")))
    assert set(re.findall(r"\bswp_[a-z_]+[a-z]\b", text_of(*PAGES))) <= known
