"""Program that draws docs/images/senders-OPERATION.svg: who sends to whom, as really sent.

`python -m tests.kernels.senders [OPERATION...]` builds the kernels and runs `swp_senders`.
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.kernels.conftest import Kernels, build_kernels
from tuner.domain.operations import RULED_OPERATIONS
from tuner.machine.mpi import find_mpis
from tuner.paths import CHECKOUT

IMAGES = CHECKOUT / "docs" / "images"
COMMAND = "python -m tests.kernels.senders"
PROCS = 8
PPN = 2
NODE_AWARE = ("nap", "shared", "twolevel", "global=", "levels=")
WITHOUT_STEPS = frozenset({"nbx:barrier=dissemination"})
"""Chance decides which messages a rank has when it enters its barrier."""

FROM_ROOT = {"Bcast", "Scatter", "Scatterv"}
TO_ROOT = {"Gather", "Gatherv", "Reduce"}


@dataclass(frozen=True)
class Event:
    """What a rank does: a line of swp_senders."""

    what: str
    peer: int
    tag: int
    members: tuple[int, ...]


@dataclass(frozen=True, order=True)
class Message:
    """A message, or its share of a collective of the MPI library's.

    Its step is 1 more than the greatest of those that its sender had received before.
    """

    source: int
    destination: int
    step: int
    by_library: bool


Picture = frozenset[Message]


def image(operation: str) -> Path:
    """Return the committed picture of an operation."""
    return IMAGES / f"senders-{operation}.svg"


def pictures(kernels: Kernels, operation: str) -> dict[str, Picture]:
    """Return what each method of an operation sends, by its spec, if it sends anything."""
    done = kernels.run("tests/swp_senders", [operation, str(PPN)], PROCS)
    assert done.returncode == 0, done.stdout + done.stderr
    events: dict[str, list[list[Event]]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("swp_senders: "):
            continue
        method, rank, what, peer, tag, members = line.split()
        ranks = tuple(each for each in range(PROCS) if int(members) >> each & 1)
        event = Event(what, int(peer), int(tag), ranks)
        events.setdefault(method, [[] for _ in range(PROCS)])[int(rank)].append(event)
    assert events, f"no method of {operation} sends anything"
    return {method: messages(each, method not in WITHOUT_STEPS) for method, each in events.items()}


def messages(events: list[list[Event]], with_steps: bool = True) -> Picture:
    """Return the messages in what each rank does in order; without steps, all have step 0."""
    found: set[Message] = set()
    rest = [deque(each) for each in events]
    done = [0] * len(rest)  # the last step of which a rank has received
    under_way: dict[tuple[int, int, int], deque[int]] = defaultdict(deque)

    def add(source: int, destination: int, step: int, by_library: bool = False) -> None:
        if source != destination:
            found.add(Message(source, destination, step if with_steps else 0, by_library))

    while any(rest):
        before = sum(map(len, rest))
        for rank, mine in enumerate(rest):
            while mine and _ready(mine[0], rank, rest, under_way):
                event = mine[0]
                if event.what in ("send", "put"):
                    add(rank, event.peer, done[rank] + 1)
                    if event.what == "send":
                        under_way[rank, event.peer, event.tag].append(done[rank] + 1)
                elif event.what == "receive":
                    done[rank] = max(done[rank], under_way[event.peer, rank, event.tag].popleft())
                else:
                    step = 1 + max(done[each] for each in event.members)
                    for source, destination in _moves(event):
                        add(source, destination, step, by_library=True)
                    for each in event.members:
                        if each != rank:
                            rest[each].popleft()
                        if event.what not in TO_ROOT or each == event.peer:
                            done[each] = step
                mine.popleft()
        assert sum(map(len, rest)) < before, f"nobody sends what these wait for: {rest}"
    return frozenset(found)


def _ready(
    event: Event,
    rank: int,
    rest: list[deque[Event]],
    under_way: dict[tuple[int, int, int], deque[int]],
) -> bool:
    if event.what in ("send", "put"):
        return True
    if event.what == "receive":
        return bool(under_way[event.peer, rank, event.tag])
    return all(rest[each] and rest[each][0] == event for each in event.members)


def _moves(event: Event) -> Iterable[tuple[int, int]]:
    for source in event.members:
        for destination in event.members:
            if event.what in FROM_ROOT and source != event.peer:
                continue
            if event.what in TO_ROOT and destination != event.peer:
                continue
            yield source, destination


# ---- Drawing ----

CELL = 20
SIDE = PROCS * CELL
MARGIN = 16
PITCH = 200
IN_A_ROW = 4
LINE = 13
TITLE_LETTERS = 32
COLOURS = ("#d6e6f4", "#abd0e6", "#6aaed6", "#3787c0", "#105ba4", "#08306b")
DARK_FROM = 3  # colours that need white letters
FRAME_FROM = 2  # colours that are seen as a frame


def drawing(operation: str, of: dict[str, Picture]) -> str:
    """Return the SVG of an operation; methods that send the same share a panel."""
    panels: dict[Picture, list[str]] = {}
    for method, picture in of.items():
        panels.setdefault(picture, []).append(method)
    drawn = list(panels.items())
    found = {message for picture in panels for message in picture}
    caption = [f"{operation}: the rank of the row sends to that of the column, at the step shown"]
    if any(message.by_library for message in found):
        caption.append("Framed: delivered by a collective of the MPI library on some of the ranks")
    if any(message.step == 0 for message in found):
        caption.append("Without a number: chance decides the step")
    parts = [
        f'<text x="2" y="{LINE * (number + 1)}" class="caption">{line}</text>'
        for number, line in enumerate(caption)
    ]
    top = LINE * (len(caption) + 2)
    for start in range(0, len(drawn), IN_A_ROW):
        row = [(*each, _titles(each[1])) for each in drawn[start : start + IN_A_ROW]]
        lines = max(len(titles) for _, _, titles in row)
        for place, (picture, methods, titles) in enumerate(row):
            left = place * PITCH + MARGIN
            for number, title in enumerate(titles):
                y = top + LINE * (number + lines - len(titles))
                parts.append(f'<text x="{left}" y="{y}" class="title">{title}</text>')
            nodes = any(word in method for word in NODE_AWARE for method in methods)
            parts.append(f'<g transform="translate({left} {top + LINE * lines + 4})">')
            parts += _cells(picture)
            parts += [f'<use href="#{"nodes" if nodes else "ranks"}"/>', "</g>"]
        top += LINE * lines + SIDE + 2 * LINE
    size = f'width="{IN_A_ROW * PITCH}" height="{top}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {IN_A_ROW * PITCH} {top}" '
            f'{size} font-family="sans-serif" font-size="9">',
            *_definitions(),
            f'<rect {size} fill="#fff"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _definitions() -> Iterable[str]:
    yield "<style>text { text-anchor: middle }"
    yield ".caption, .title { text-anchor: start; font-size: 11px }"
    for shade, colour in enumerate(COLOURS, 1):
        ink = "#fff" if shade > DARK_FROM else "#000"
        edge = COLOURS[max(shade - 1, FRAME_FROM)]
        yield f".s{shade} {{ fill: {colour} }} .t{shade} {{ fill: {ink} }}"
        yield f".f{shade} {{ fill: none; stroke: {edge}; stroke-width: 2 }}"
    yield "</style><defs>"
    for name, ranks_a_node in (("ranks", PROCS), ("nodes", PPN)):
        yield f'<g id="{name}">'
        for rank in range(PROCS):
            middle = rank * CELL + CELL // 2
            yield f'<text x="{middle}" y="-3" fill="#666">{rank}</text>'
            yield f'<text x="-6" y="{middle + 3}" fill="#666">{rank}</text>'
        for colour, ranks in (("#ddd", 1), ("#888", ranks_a_node)):
            lines = "".join(
                f"M0 {at}h{SIDE}M{at} 0v{SIDE}" for at in range(0, SIDE + 1, ranks * CELL)
            )
            yield f'<path d="{lines}" stroke="{colour}"/>'
        yield "</g>"
    yield "</defs>"


def _titles(methods: Iterable[str]) -> list[str]:
    titles: list[str] = []
    for method in methods:
        name, colon, parameters = method.partition(":")
        titles += [method] if len(method) <= TITLE_LETTERS else [name + colon, parameters]
    return titles


def _cells(picture: Picture) -> Iterable[str]:
    cells: dict[tuple[int, int], list[Message]] = {}
    for message in sorted(picture):
        cells.setdefault((message.source, message.destination), []).append(message)
    for (source, destination), cell in cells.items():
        x, y = destination * CELL, source * CELL
        first = cell[0].step
        shade = min(max(first, 1), len(COLOURS))
        if cell[0].by_library:
            yield f'<rect x="{x + 3}" y="{y + 3}" width="14" height="14" class="f{shade}"/>'
        else:
            yield f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" class="s{shade}"/>'
        if first:
            text = _numbers([message.step for message in cell])
            size = {1: "", 2: "", 3: ' font-size="8"'}.get(len(text), ' font-size="7"')
            ink = "" if cell[0].by_library else f' class="t{shade}"'
            yield f'<text x="{x + CELL // 2}" y="{y + CELL // 2 + 3}"{ink}{size}>{text}</text>'


def _numbers(steps: Iterable[int]) -> str:
    """Return 3, 1,4 or 2–5; and 2…9 where some between are missing."""
    each = sorted(set(steps))
    if len(each) == 1 or (len(each) == 2 and each[1] > each[0] + 1):
        return ",".join(map(str, each))
    between = "–" if each[-1] - each[0] == len(each) - 1 else "…"
    return f"{each[0]}{between}{each[-1]}"


def main(operations: Iterable[str]) -> None:
    """Draw the operations, all if none is named."""
    if not (mpis := find_mpis()):
        sys.exit("senders: no MPI is installed")
    kernels = Kernels(mpis[0], build_kernels(mpis[0]))
    IMAGES.mkdir(exist_ok=True)
    for operation in operations or RULED_OPERATIONS:
        image(operation).write_text(drawing(operation, pictures(kernels, operation)), "utf-8")
        print(image(operation))


if __name__ == "__main__":
    main(sys.argv[1:])
