"""Check that an MPI library runs the rules of an exported file.

For each rule the library is observed with the file, with the algorithm forced by the library's
variables, and by default. A rule ran if the first two are alike and differ from the default.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.domain.operations import OF_TWO, REDUCTIONS
from tuner.export.exported import Exported, stated_in
from tuner.export.mpi_library import openmpi_algorithms
from tuner.export.witness import CARDS, MESSAGES, STACKS, Seen, SizedCall, Witness, WitnessError
from tuner.machine.mpi import DYNAMIC_RULES, LaunchCommand
from tuner.machine.nodes import namespaces
from tuner.machine.nodes.namespaces import Nodes, NodesError
from tuner.stats import Floats

RAN, DID_NOT, UNKNOWN = VERDICTS = ("ran", "did not run", "undetermined")

PROCS_MOST = 64
"""The most processes that are started to check a rule."""

_ATTEMPTS = {MESSAGES: 1, CARDS: 3, STACKS: 3}
_TIMES = {MESSAGES: 2, CARDS: 3, STACKS: 2}  # in each launch, as equals may differ
_TOLERANCE = 0.05  # of the most bytes that a card sends: acknowledgements
_ROOM_BYTES = 1 << 28
_USUAL_BYTES = (1024, 65536)
_INTEGER_BYTES = 4
_UNUSABLE = ("ignore", OF_TWO)  # names of no algorithm, and of one for two processes only
_UNCOMPOSED = {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"}
_LOADING = ("OMPI_MCA_coll_", "MPIR_CVAR_")  # variables by which files are loaded
_WHOLE = ("reduce", "allreduce")  # where MPICH's file is for one element a process, or more


class CheckedRule(NamedTuple):
    """What is known of a rule: one of VERDICTS, and why."""

    rule: Exported
    verdict: str
    why: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.verdict}" + (f": {self.why}" if self.why else "")


def checked_rules(texts: dict[Path, str], family: str, witness: Witness) -> Iterator[CheckedRule]:
    """Check each rule of the files that a library loads together, by layout."""
    stated = chain.from_iterable(map(stated_in, texts.values()))
    rules = dict.fromkeys(chain.from_iterable(rule.ends() for rule in stated))
    with ExitStack() as stack:
        nodes: Nodes | NodesError | None = None
        for layout, group in groupby(sorted(rules, key=_layout), _layout):
            of_layout = list(group)
            try:
                if math.prod(layout) > PROCS_MOST:
                    raise WitnessError(f"only up to {PROCS_MOST} processes are started here")
                if layout[0] > 1 and nodes is None:
                    nodes = _nodes(stack, max(each.nodes for each in rules))
                if layout[0] > 1 and isinstance(nodes, NodesError):
                    raise nodes
                on = nodes if layout[0] > 1 and isinstance(nodes, Nodes) else None
                check = _Check(texts, family, witness, witness.start(layout, on), of_layout)
                yield from check.verdicts()
            except (WitnessError, NodesError) as error:
                yield from (CheckedRule(rule, UNKNOWN, str(error)) for rule in of_layout)


def _layout(rule: Exported) -> tuple[int, int]:
    return rule.nodes, rule.ppn


def _nodes(stack: ExitStack, count: int) -> Nodes | NodesError:
    """Return the virtual nodes that are up, or temporary ones, or why there are none."""
    try:
        there = namespaces.find(namespaces.name_meant())
        if there is not None and there.count >= count:
            return there
        count = min(count, PROCS_MOST // 2)
        name = f"check-{os.getpid()}"
        return stack.enter_context(namespaces.temporary(name, count, namespaces.UNLIMITED))
    except (NodesError, OSError) as error:
        return NodesError(str(error))


class _Check:
    """The check of the rules of one layout."""

    def __init__(
        self,
        texts: dict[Path, str],
        family: str,
        witness: Witness,
        start: LaunchCommand,
        rules: Sequence[Exported],
    ) -> None:
        nodes, ppn = _layout(rules[0])
        self._family, self._witness, self._start, self._rules = family, witness, start, rules
        self._procs = nodes * ppn
        self._ways = [STACKS if nodes == 1 else CARDS]
        if family == "openmpi":
            self._ways.insert(0, MESSAGES)
        self._loaded: dict[str, str] = {}
        for path, text in texts.items():
            self._loaded |= settings_of(path, text, family, self._procs)

    def verdicts(self) -> list[CheckedRule]:
        """Return the verdict on each rule. Raise WitnessError."""
        for how in self._ways[:-1]:
            with suppress(WitnessError):
                return self._seen_by(how)
        return self._seen_by(self._ways[-1])

    def _seen_by(self, how: str) -> list[CheckedRule]:
        cases = {rule: self._cases(rule) for rule in self._rules}
        open_cases = list(dict.fromkeys(chain.from_iterable(cases.values())))
        evidence: dict[SizedCall, _Evidence] = {case: _Evidence() for case in open_cases}
        judge = _JUDGES[how]
        found: dict[SizedCall, tuple[str, str]] = {}
        for _ in range(_ATTEMPTS[how]):
            try:
                self._gather(how, open_cases, evidence)
            except _LoadingError as error:
                return [CheckedRule(rule, DID_NOT, str(error)) for rule in self._rules]
            found |= {case: judge(evidence[case]) for case in open_cases}
            open_cases = [case for case in open_cases if found[case][0] != RAN]
            if not open_cases:
                break
        return [_of_cases(rule, cases[rule], found) for rule in self._rules]

    def _gather(
        self, how: str, cases: Sequence[SizedCall], evidence: dict[SizedCall, "_Evidence"]
    ) -> None:
        """Add what is seen in three kinds of launches."""

        def see(some: Sequence[SizedCall], settings: dict[str, str]) -> Seen:
            return self._witness.see(how, self._start, some, settings, _TIMES[how])

        if not cases:
            return
        for case, words in see(cases, {}).items():
            evidence[case].default.append(words)
        try:
            for case, words in see(cases, self._loaded).items():
                evidence[case].loaded.append(words)
        except WitnessError as error:
            raise _LoadingError(f"the library does not run with the file: {error}") from error
        for chosen, group in groupby(sorted(cases, key=self._chosen), self._chosen):
            some = list(group)
            for case, words in see(some, self._forced(dict(chosen))).items():
                evidence[case].forced.append(words)
            if how == STACKS:
                for case, words in see(some, self._others(dict(chosen))).items():
                    evidence[case].default.append(words)

    def _chosen(self, case: SizedCall) -> tuple[tuple[str, str], ...]:
        """Return the algorithms of all operations at a size: some are made of others."""
        return tuple(
            (rule.operation, rule.algorithm)
            for rule in self._rules
            if rule.low <= case[1] <= (case[1] if rule.high is None else rule.high)
        )

    def _forced(self, algorithms: dict[str, str]) -> dict[str, str]:
        """Return the settings that make operations run algorithms."""
        if self._family == "mpich":
            named = {f"MPIR_CVAR_{op.upper()}_INTRA_ALGORITHM": n for op, n in algorithms.items()}
            return _UNCOMPOSED | named
        if self._family == "intelmpi":
            return {f"I_MPI_ADJUST_{op.upper()}": name for op, name in algorithms.items()}
        named = {f"OMPI_MCA_coll_tuned_{op}_algorithm": name for op, name in algorithms.items()}
        return named | DYNAMIC_RULES | {"OMPI_MCA_coll_han_priority": "0"}

    def _others(self, algorithms: dict[str, str]) -> dict[str, str]:
        """Return the settings for other algorithms, to know what stands around all that are set.

        MPICH reads its file elsewhere than its variables, and needs none.
        """
        if self._family == "mpich":
            return _UNCOMPOSED
        known: dict[str, Iterable[str]] = dict.fromkeys(algorithms, ("1", "2"))
        if self._family == "openmpi":
            known |= openmpi_algorithms(self._witness.mpi)
        return self._forced(
            {
                operation: next(n for n in known[operation] if n not in (own, *_UNUSABLE))
                for operation, own in algorithms.items()
            }
        )

    def _cases(self, rule: Exported) -> list[SizedCall]:
        """Return the first and last sizes of a rule that can be tried, or none."""
        unit = _INTEGER_BYTES if rule.operation in REDUCTIONS else 1
        least = unit * self._procs if self._family == "mpich" and rule.operation in _WHOLE else unit
        most = _ROOM_BYTES // self._procs
        low, high = max(rule.low, least), most if rule.high is None else min(rule.high, most)
        first = low if rule.low else min(_USUAL_BYTES[0], high)
        last = high if rule.high is not None else max(4 * first, _USUAL_BYTES[1])
        sizes = {-(-first // unit) * unit, last // unit * unit}
        return [(rule.operation, size) for size in sorted(sizes) if low <= size <= high]


class _LoadingError(WitnessError):
    """Error raised when the library fails under the file, but not without it."""


def settings_of(path: Path, text: str, family: str, procs: int) -> dict[str, str]:
    """Return the variables that make the library load a file, as its second line says.

    Nothing of the file is executed, and no other variables are set: whoever wrote it may be nobody
    to trust.
    """
    if family == "intelmpi":
        job = re.search(rf"^{procs}\)$(.*?)^  ;;$", text, re.MULTILINE | re.DOTALL)
        values = (
            re.findall(r'^  export (I_MPI_ADJUST_\w+)="(.*)"$', job[1], re.MULTILINE) if job else []
        )
        return dict(values)
    use = re.search(r"Use: (.*)", text)
    pairs = [word.partition("=") for word in use.group(1).split()] if use else []
    return {
        name: value.replace("THIS_FILE", str(path.resolve()))
        for name, _, value in pairs
        if name.startswith(_LOADING)
    }


def _of_cases(
    rule: Exported, cases: Sequence[SizedCall], found: dict[SizedCall, tuple[str, str]]
) -> CheckedRule:
    """Return the verdict on a rule by those on its sizes."""
    if not cases:
        return CheckedRule(rule, UNKNOWN, "no size of it can be tried here")
    for verdict in (DID_NOT, RAN, UNKNOWN):
        for case in cases:
            if found[case][0] == verdict:
                why = found[case][1]
                return CheckedRule(rule, verdict, f"at {case[1]} B {why}" if why else "")
    raise AssertionError(found)


# ---- Judgements of one operation and size ----


@dataclass
class _Evidence:
    """The words seen in each launch under the file, with the algorithm forced, and by default."""

    loaded: list[list[frozenset[str]]] = field(default_factory=list)
    forced: list[list[frozenset[str]]] = field(default_factory=list)
    default: list[list[frozenset[str]]] = field(default_factory=list)


_NEITHER = "the library runs neither it nor its default"
_DEFAULT = "the library runs its default"


def _by_messages(evidence: _Evidence) -> tuple[str, str]:
    """Judge by the messages, and by the order of each sender's first ones where these are alike."""
    launches = evidence.loaded[-1], evidence.forced[-1], evidence.default[-1]
    for are_compared in (_is_count, lambda word: True):
        loaded, forced, default = (
            {frozenset(filter(are_compared, words)) for words in launch} for launch in launches
        )
        if not len(loaded) == len(forced) == len(default) == 1:
            return UNKNOWN, "it does not always send the same messages"
        if loaded != forced:
            return DID_NOT, _DEFAULT if loaded == default else _NEITHER
        if forced != default:
            return RAN, ""
    return UNKNOWN, "it sends the same messages as the default"


def _is_count(word: str) -> bool:
    return ">:" not in word


def _by_cards(evidence: _Evidence) -> tuple[str, str]:
    """Judge by bytes of the cards; launches of equals show how much these vary."""
    bytes_of = [
        np.array([_card_bytes(words) for launch in launches for words in launch])
        for launches in (evidence.loaded, evidence.forced, evidence.default)
    ]
    loaded, forced, default = (each.mean(axis=0) for each in bytes_of)
    spread = max(float(np.ptp(each, axis=0).max()) for each in bytes_of)
    noise = max(spread, _TOLERANCE * max(float(each.max()) for each in bytes_of))

    def alike(a: Floats, b: Floats) -> bool:
        return bool(np.abs(a - b).max() <= noise)

    if not alike(loaded, forced):
        return DID_NOT, _DEFAULT if alike(loaded, default) else _NEITHER
    if alike(forced, default):
        return UNKNOWN, "it sends as many bytes as the default"
    return RAN, ""


def _card_bytes(words: frozenset[str]) -> list[int]:
    """Return the bytes of each rank's card."""
    pairs = sorted((int(rank), int(sent)) for rank, sent in (word.split(":") for word in words))
    return [sent for _, sent in pairs]


def _by_stacks(evidence: _Evidence) -> tuple[str, str]:
    """Judge by functions that ranks wait in in most stacks if forced, and never by default."""
    marks = set().union(*map(_mostly, evidence.forced)) - _ever(evidence.default)
    if not all(map(_ever, ([each] for each in evidence.loaded + evidence.forced))):
        return UNKNOWN, "no rank was seen waiting for another"
    if not marks:
        return UNKNOWN, "it runs the same functions as the default"
    if any(_mostly(launch) & marks for launch in evidence.loaded):
        return RAN, ""
    return DID_NOT, "no function that only this algorithm has was seen"


def _mostly(launch: Sequence[frozenset[str]]) -> set[str]:
    """Return the functions that every line of a launch has in most stacks."""
    return set.intersection(*({word for word in words if "!" in word} for words in launch))


def _ever(launches: Iterable[Sequence[frozenset[str]]]) -> set[str]:
    """Return all functions, as those that are in most stacks are written."""
    words = (word for launch in launches for words in launch for word in words)
    return {word if "!" in word else word.replace(":", ":!", 1) for word in words}


_JUDGES = {MESSAGES: _by_messages, CARDS: _by_cards, STACKS: _by_stacks}
