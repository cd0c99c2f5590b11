"""Build the site and the man pages: `python -m docs.site [PLACE]`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from docs.site import man
from docs.site.links import faults
from docs.site.pages import CHECKOUT, navigation, stage

HERE = Path(__file__).resolve().parent


def build(place: Path) -> None:
    """Write the site to place/html and the man pages to place/man."""
    place = place.resolve()
    for old in ("pages", "html", "man"):
        shutil.rmtree(place / old, ignore_errors=True)
    (place / "sample.db").unlink(missing_ok=True)
    pages = place / "pages"
    stage(pages)
    man.write(place / "man")
    tour(pages / "tour.html", place)
    (pages / "assets").mkdir()
    shutil.copy(HERE / "iframe-worker.min.js", pages / "assets")
    settings = {
        "INHERIT": str(HERE / "mkdocs.yml"),
        "docs_dir": str(pages),
        "site_dir": str(place / "html"),
        "nav": [*navigation(), {"Tour of the pages": "tour.html"}],
    }
    config = place / "mkdocs.yml"
    config.write_text(json.dumps(settings))  # which YAML contains
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    _run("mkdocs", "build", "--quiet", "--config-file", str(config))
    (place / "html" / "404.html").unlink()  # for servers: its links begin at a host's root
    if found := faults(place / "html"):
        sys.exit("\n".join(found))


def tour(target: Path, place: Path) -> None:
    """Write the pages of the sample campaign as one file."""
    store = ["--database", str(place / "sample.db")]
    _run("switchpoint", "ingest", str(CHECKOUT / "results" / "sample"), *store)
    _run("switchpoint", "tune", *store)
    _run("switchpoint", "report", "--output", str(target), *store)


def _run(module: str, *arguments: str) -> None:
    name = {"switchpoint": "tuner.cli"}.get(module, module)
    subprocess.run([sys.executable, "-m", name, *arguments], stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else CHECKOUT / "build" / "site")
