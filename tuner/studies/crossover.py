"""The number of products of a matrix with a vector after which partitioning it pays off.

The study of Figure 17 of Bienz, Gropp, Olson (2019): distributing rows in strides costs nothing,
balancing them costs a partitioner's time, but then every product is faster. Both are measured in
alternating launches; the time to move the rows to their processes is not measured.
"""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from tuner import atomic
from tuner.campaign.launches import measure
from tuner.domain.records import Header
from tuner.errors import SwitchpointError
from tuner.inputs.matrices.market import read_pattern, stem
from tuner.inputs.matrices.partition import kept_partition
from tuner.machine.mpi import LaunchCommand
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.nodes.namespaces import meant
from tuner.machine.systems import LOCAL, kernels, launch_on
from tuner.paths import results_directory
from tuner.stats import Floats, mean_interval


class CrossoverError(SwitchpointError):
    """Error raised when the study cannot be made; the message says why."""


@dataclass(frozen=True)
class CrossoverRequest:
    """A measurement. `environment` is the MPI's name, the first found when empty.

    `ppn` are the processes on each of the virtual nodes that are up, `on_nodes`, else of imagined
    ones.
    """

    matrix: Path
    procs: int
    by: str
    methods: str
    ppn: int | None
    launches: int
    budget_s: float
    environment: str
    on_nodes: bool = False


@dataclass(frozen=True)
class Crossover:
    """The times of a product by one method, medians over launches, and the products to pay off.

    `ratio` is the balanced over the strided time, with its 95 % interval. `products` is the number
    that recovers the partitioner's time; None unless balanced is shown to be faster.
    """

    method: str
    strided_s: float
    balanced_s: float
    ratio: tuple[float, float, float]
    products: int | None


@dataclass(frozen=True)
class Study:
    """The result of a study, as it is stored."""

    matrix: str
    system: str
    procs: int
    nodes: int
    mpi: str
    oversubscribed: bool
    commit: str
    partitioner: str
    partition_s: float
    launches: int
    date: str
    methods: list[Crossover]


def study(request: CrossoverRequest) -> tuple[Study, Path]:
    """Partition, measure, and store the result below the results' directory `studies`.

    Raises:
        MatrixError, PartitionerError: the matrix cannot be read or partitioned.
        KernelsError: there is no built swpbench.
        CrossoverError, LaunchError: it fails.
        NodesError: the virtual nodes are not up, or too few.
    """
    nodes = meant() if request.on_nodes else None
    system = f"{VIRTUAL_NODES}:{nodes.partition}" if nodes else LOCAL
    built = kernels((system, request.environment))
    ppn = request.ppn or -(-request.procs // (nodes.count if nodes else 1))
    start = launch_on(system, built.mpi, request.procs, ppn, built.root)
    kept = kept_partition(request.matrix, read_pattern(request.matrix), request.by, request.procs)
    times: dict[str, list[dict[str, float]]] = {"strided": [], str(kept.path): []}
    for number in range(request.launches):
        for part, launches in times.items():
            options = ["--pattern", f"matrix:{request.matrix},part={part}", "--system", system]
            options += ["--launch", str(number)]
            header, medians = _measure(request, start, built.swpbench, options)
            launches.append(medians)
    strided, balanced = (
        {method: np.array([each[method] for each in launches]) for method in launches[0]}
        for launches in times.values()
    )
    result = Study(
        matrix=request.matrix.name,
        system=header.system,
        procs=request.procs,
        nodes=header.nodes,
        mpi=header.mpi_library,
        oversubscribed=header.oversubscribed,
        commit=header.commit,
        partitioner=request.by,
        partition_s=kept.partition_s,
        launches=request.launches,
        date=header.date,
        methods=[
            crossover(method, strided[method], balanced[method], kept.partition_s)
            for method in strided
            if method in balanced
        ],
    )
    if not result.methods:
        raise CrossoverError("no method could do both the strided and the balanced product")
    return result, _store(result)


def _measure(
    request: CrossoverRequest, start: LaunchCommand, swpbench: Path, own: list[str]
) -> tuple[Header, dict[str, float]]:
    """Measure one launch with options of its own.

    The result has the median time of each method's products, in seconds.
    """
    options = ["--op", "spmv", "--sizes", "8", "--methods", request.methods]
    options += own
    if request.ppn and not request.on_nodes:
        options += ["--ppn", str(request.ppn)]
    file = measure(start, swpbench, options, request.budget_s)
    if file.header is None or not file.cases:
        raise CrossoverError(f"no method could be measured: {request.methods}")
    return file.header, {method: median_s for (method, _), median_s in file.medians_s().items()}


def crossover(method: str, strided_s: Floats, balanced_s: Floats, partition_s: float) -> Crossover:
    """Return the crossover from the medians of launches.

    Launches of the same number ran one after the other.
    """
    logs = np.log(balanced_s / strided_s)
    low, high = (float(end) for end in mean_interval(logs))
    strided, balanced = float(np.median(strided_s)), float(np.median(balanced_s))
    saved_s = strided * -math.expm1(float(logs.mean()))
    products = math.ceil(partition_s / saved_s) if high < 0 else None
    ratio = (math.exp(logs.mean()), math.exp(low), math.exp(high))
    return Crossover(method, strided, balanced, ratio, products)


def _store(result: Study) -> Path:
    date = result.date.replace("-", "").replace(":", "")
    name = f"crossover-{stem(Path(result.matrix))}-{result.partitioner}-{result.procs}-{date}.json"
    path = results_directory() / "studies" / name
    atomic.write(path, json.dumps(asdict(result), indent=1) + "\n")
    return path
