"""The parsers in Python, each as a function of any bytes and a scratch directory.

It returns whether the input is accepted, or None where a parser of the same name in C may do
otherwise, as one without zlib. An input that is refused raises what the parser promises; anything
else is a finding.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from unittest import mock

from dashboard.query import INTEGER, LAYOUT, WORD, MalformedError, Query, parameter
from tuner.advice import profile, recorded, saved
from tuner.campaign.order import FIXED, PLANS, SOAKINGS, STUDIES, OrderError
from tuner.catalogue import bundle
from tuner.domain.records import SPEC, Launch
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.matrices.partition import read_parts
from tuner.inputs.structure.patterns import pattern
from tuner.machine.simulation import networks
from tuner.machine.sites import jobs, schedulers
from tuner.rawfile import cells, pico, reading
from tuner.units import parse_sizes

ROWS, PARTS = 4, 3
"""Of the partitions, as in kernels/tests/parsers/bench.c."""

_PROCS = 4
_GZIP = b"\x1f\x8b"
_RUN = "2026_11_24___16_19_43"


@dataclass(frozen=True)
class Reader:
    """A parser. `shared` stands for one of the same grammar in C, whose result is the same."""

    read: Callable[[bytes, Path], bool | None]
    refusals: tuple[type[Exception], ...] = (SwitchpointError,)
    shared: bool = False

    def accepts(self, content: bytes, place: Path) -> bool | None:
        """Return whether an input is accepted."""
        try:
            return self.read(content, place)
        except self.refusals:
            return False


def _file(place: Path, name: str, content: bytes) -> Path:
    path = place / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _argument(content: bytes) -> str:
    """Return bytes as a command has them of its command line, up to a NUL."""
    return os.fsdecode(content.partition(b"\0")[0])


def _bundle(content: bytes, place: Path) -> bool:
    """Read a bundle, or one that is packed around what is no gzip's form, with its digest."""
    if not content.startswith(_GZIP):
        digest = hashlib.sha256(content).hexdigest()
        header = {"format": bundle.FORMAT, "version": bundle.VERSION, "sha256": digest}
        content = gzip.compress(json.dumps(header).encode() + b"\n" + content, compresslevel=1)
    found = bundle.unpack(content)
    packed = bundle.pack(Table(found.provenance, [], found.points), found.model)
    assert bundle.unpack(packed) == found
    return True


def _matrix(content: bytes, place: Path) -> bool | None:
    rows, columns = read_pattern(_file(place, "a.mtx", content)).shape
    return True if rows == columns and not content.startswith(_GZIP) else None


def _network(content: bytes, place: Path) -> bool:
    _file(place, "networks/x.json", content)
    networks.network("x")
    return True


def _orders(content: bytes, place: Path) -> bool:
    path, accepted = _file(place, "order.json", content), False
    for orders in (FIXED, PLANS, STUDIES, SOAKINGS):
        try:
            orders.load(path)
            accepted = True
        except OrderError:
            continue
    return accepted


def _partition(content: bytes, place: Path) -> bool | None:
    parts = read_parts(_file(place, "a.parts", content), ROWS, PARTS)
    assert len(parts) == ROWS and set(parts.tolist()) <= set(range(PARTS))
    return None if content.startswith(_GZIP) else True


def _pattern(content: bytes, place: Path) -> bool | None:
    text = _argument(content)
    if text.partition(":")[0] in ("matrix", "orb", "blocks"):
        return None
    pattern(text, _PROCS)
    return True


def _pico(content: bytes, place: Path) -> bool:
    """Read the metadata, a file's name and content, and a list of hosts, separated by NULs."""
    metadata, name, result, hosts = (content.split(b"\0", 3) + [b""] * 3)[:4]
    run = place / "x" / _RUN
    shutil.rmtree(run, ignore_errors=True)
    _file(place, "x_metadata.csv", metadata)
    _file(run, "alloc.csv", hosts)
    _file(run / "0", re.sub("[^!-.0-~]", "_", name.decode("latin-1"))[:200] + ".csv", result)
    return _translated(place)


def _pico_archive(content: bytes, place: Path) -> bool:
    row = f"{_RUN},0,2,1,allreduce,OMPI,4.1.4,no"
    head = "timestamp,test_id,nnodes,tasks_per_node,collective_type,mpi_lib,mpi_lib_version"
    _file(place, "x_metadata.csv", f"{head},gpu_awareness\n{row}\n".encode())
    _file(place, f"x/{_RUN}.tar.gz", gzip.compress(content, compresslevel=1))
    return _translated(place)


def _translated(place: Path) -> bool:
    shutil.rmtree(place / "pico", ignore_errors=True)
    with mock.patch.dict(os.environ, SWITCHPOINT_RESULTS=str(place / "pico")):
        made, _ = pico.translated([place / "x_metadata.csv"])
        for path in made:
            assert not reading.read(path).problems
    return bool(made)


def _profile(content: bytes, place: Path) -> bool:
    found = recorded.parse(BytesIO(content))
    profile.in_turn([found, found])
    return True


class _AnyQuery(Query):
    operation: str = parameter("o", WORD)
    layout: str = parameter("l", LAYOUT)
    size: str = parameter("s", INTEGER)


def _query(content: bytes, place: Path) -> bool:
    text = content.decode("latin-1")
    _AnyQuery.carried(text)
    query = _AnyQuery.parse(text)
    assert _AnyQuery.parse(query.search()) == query
    return True


def _raw(content: bytes, place: Path) -> bool:
    file = reading.read_lines(Path("x"), BytesIO(content))
    if (header := file.header) is None:
        return False
    launch = Launch(1, "", "", 1, "", "", "", True, file.samples, "", "", "")
    cells.summaries(cells.combine(cells.launch_key(header), [(launch, file)]))
    return file.complete and not file.problems


def _saved(content: bytes, place: Path) -> bool:
    _file(place, "profiles/x.json", content)
    return bool(saved.newest(place))


def _schedulers(content: bytes, place: Path) -> bool:
    """Take the text for the answer of every scheduler to any question."""
    text, accepted = content.decode(errors="replace"), False
    with (
        mock.patch.object(schedulers, "ask", lambda *_: text),
        mock.patch.object(jobs, "ask", lambda *_: text),
    ):
        for name, scheduler in schedulers.SCHEDULERS.items():
            jobs.pending(name, place)
            jobs.ending(name, "1", text)
            try:
                accepted |= bool(scheduler.commands and scheduler.partitions())
            except schedulers.SchedulerError:
                continue
    return accepted


def _sizes(content: bytes, place: Path) -> bool:
    found = parse_sizes(_argument(content))
    assert found == sorted(set(found))
    return True


def _spec(content: bytes, place: Path) -> bool | None:
    return None if re.fullmatch(SPEC, _argument(content)) else False


READERS = {
    "bundle": Reader(_bundle),
    "matrix": Reader(_matrix, shared=True),
    "network": Reader(_network),
    "orders": Reader(_orders),
    "partition": Reader(_partition, shared=True),
    "pattern": Reader(_pattern, shared=True),
    "pico": Reader(_pico),
    "pico-archive": Reader(_pico_archive),
    "profile": Reader(_profile),
    "query": Reader(_query, (MalformedError,)),
    "raw": Reader(_raw),
    "saved": Reader(_saved),
    "schedulers": Reader(_schedulers),
    "sizes": Reader(_sizes, (ValueError,), shared=True),
    "spec": Reader(_spec, shared=True),
}
