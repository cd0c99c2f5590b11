"""Campaigns through a real Slurm of four virtual nodes on this machine."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import synthetic
from tests.conftest import by_day
from tests.kernels.conftest import build_kernels
from tests.kill_commands import end, launches
from tests.processes import wait_for
from tests.slurm import accounting
from tests.slurm.cluster import Cluster, ClusterError, missing
from tuner.advice.running import Application
from tuner.campaign.site_file import examine_site
from tuner.cli import main
from tuner.machine import doctor
from tuner.machine.mpi import Mpi, find_mpis
from tuner.machine.sites import schedulers
from tuner.machine.sites.configuration import host_stem
from tuner.machine.sites.environments import reframe_name
from tuner.machine.sites.jobs import ending, pending
from tuner.machine.sites.schedulers import Partition, Processors
from tuner.paths import CHECKOUT
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune
from tuner.store.store import Store

pytestmark = pytest.mark.check

LAUNCHES = [0, 1]  # a screening, and a batch of one
END_S = 600.0  # far beyond what any of this takes, on a busy machine too

HELD = """\
#!/bin/sh
# A launch waits as long as there is a file `hold` with its number.
case " $* " in
  *" --launch $(cat '{place}/hold' 2>&1) "*)
    while [ -e '{place}/hold' ]; do touch '{place}/held'; sleep 0.1; done ;;
esac
exec '{swpbench}' "$@"
"""


@pytest.fixture(scope="module")
def cluster(request, require, tmp_path_factory):
    """Yield a Slurm without accounts; with them for the parameter "accounts"."""
    accounts = getattr(request, "param", "") == "accounts"
    require("slurm", not missing(), f"no {', '.join(missing())}")
    lacking = missing(accounting.PROGRAMS) if accounts else []
    require("slurmdbd", not lacking, f"no {', '.join(lacking)}")
    made = Cluster(tmp_path_factory.mktemp("slurm"), accounts=accounts)
    try:
        made.up()
    except ClusterError as error:  # as in a container that may not
        require("slurm", False, f"does not come up: {error}")
    yield made
    made.down()


@pytest.fixture
def site_init(cluster, tmp_path, monkeypatch) -> Callable[..., Path]:
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))

    def init(*options: str) -> Path:
        path = tmp_path / "box.py"
        command = ["site", "init", "--name", "box", "--output", str(path), *options]
        answer = CliRunner().invoke(main, command)
        assert answer.exit_code == 0, answer.output
        return path

    return init


def test_site_init_finds_what_slurm_has(cluster, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    found = schedulers.detect()
    assert found.name == "squeue"  # it keeps no accounts
    (partition,) = found.partitions()
    assert partition == Partition("cpu", cluster.nodes, Processors(cluster.cpus, 1, 1))


def test_the_doctor_finds_all_that_site_init_wrote(site_init):
    assert doctor.missing(examine_site(site_init())) == []


@dataclass(frozen=True)
class SlurmCampaign:
    """A race of one case on two nodes, by an installed Switchpoint without sources."""

    place: Path
    config: Path
    mpi: Mpi
    env: dict[str, str]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command of `switchpoint`."""
        return subprocess.Popen(
            [sys.executable, "-m", "tuner.cli", *words],
            cwd=self.place,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def measure(
        self,
        name: str = "^discovery%scale=2_nodes%pattern=random",
        launches: int = len(LAUNCHES),
        **other: str | Path,
    ) -> subprocess.Popen[str]:
        """Start the campaign, or one of other checks or with other variables."""
        variables = {"methods": "pex;nbx", "sizes": "8", "swpbench": self.place / "swpbench"}
        return self.start(
            *("run", f"--config={self.config}", f"--environment={self.mpi.name}", "--minutes=5"),
            *(f"--launches={launches}", "--require-soak=0", "--", f"--name={name}"),
            *("-J", "comment=m42"),
            *(f"--setvar={name}={value}" for name, value in (variables | other).items()),
        )

    def measure_held(self, launch: int) -> tuple[Path, subprocess.Popen[str]]:
        """Start the campaign, and wait for a launch that waits for the end of the file."""
        hold, held = self.place / "hold", self.place / "held"
        hold.write_text(str(launch))
        running = self.measure()
        wait_for(lambda: held.exists() or running.poll() is not None)
        return hold, running

    def raw_files(self) -> list[Path]:
        return sorted(self.place.glob("results/box-*/*/*.jsonl"))

    def stored(self) -> list[int]:
        """Return the numbers of the launches in the store."""
        with Store.open(self.place / "results" / "switchpoint.db", readonly=True) as store:
            return sorted(launch.number for launch in store.launches().values())


@pytest.fixture
def campaign(require, site_init, tmp_path, monkeypatch) -> Callable[..., SlurmCampaign]:
    def make(name: str = "mpich", *options: str) -> SlurmCampaign:
        mpi = next((mpi for mpi in find_mpis() if mpi.name == name), None)
        require(name, mpi is not None, "this MPI is not installed")
        # As modules do: mpirun is of this MPI.
        mpirun = tmp_path / "bin" / "mpirun"
        mpirun.parent.mkdir()
        mpirun.write_text(f'#!/bin/sh\nexec {mpi.mpiexec} "$@"\n')
        mpirun.chmod(0o755)
        monkeypatch.setenv("PATH", f"{mpirun.parent}:{os.environ['PATH']}")
        config = site_init(*options)
        for part in ("checks", "templates", "tuner"):
            shutil.copytree(CHECKOUT / part, tmp_path / "wheel" / part)
        opt = tmp_path / "opt"
        install = ["cmake", "--install", build_kernels(mpi), "--prefix", opt]
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)
        bench = tmp_path / "swpbench"
        bench.write_text(HELD.format(place=tmp_path, swpbench=opt / "bin" / "swpbench"))
        bench.chmod(0o755)
        env = os.environ | {
            "PATH": f"{opt / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(tmp_path / "wheel"),
            "SWITCHPOINT_RESULTS": str(tmp_path / "results"),
            "XDG_CACHE_HOME": str(tmp_path / "cache"),
            # Open MPI's mpirun asks for them where tests run as root. Its ranks are out of reach of
            # what srun gives each node.
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl": "self,tcp",
        }
        return SlurmCampaign(tmp_path, config, mpi, env)

    return make


@pytest.mark.parametrize(
    ("launcher", "mpi"),
    by_day([("srun", "mpich")], itertools.product(["srun", "mpirun"], ["mpich", "openmpi"])),
)
def test_ranks_are_started_by_either_launcher(campaign, mpi, launcher):
    made = campaign(mpi, "--launcher", launcher)
    said, _ = made.measure().communicate(timeout=END_S)
    assert made.stored() == LAUNCHES, said
    for path in made.raw_files():
        header = json.loads(path.read_text().splitlines()[0])
        assert (header["system"], header["procs"], header["nodes"]) == ("box:cpu", 4, 2)
        assert header["allocation"].isdigit()


@pytest.mark.parametrize(("launches", "least"), by_day([(2, 2)], [(4, 3)]))
def test_cases_meet_the_same_allocations_and_their_methods_several(campaign, launches, least):
    made = campaign()
    name = "^exchange%scale=2_nodes%pattern=(random|hub)"
    said, _ = made.measure(name, launches=launches, methods="direct;neighbor").communicate(
        timeout=END_S
    )
    met: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path in made.raw_files():
        raw = reading.read(path)
        for cell in raw.cases:
            met[raw.header.pattern, cell.method].append(raw.header.allocation)
    assert {method for _, method in met} == {"direct", "neighbor"}, said
    assert len({pattern for pattern, _ in met}) == 2
    (allocations,) = {tuple(sorted(of)) for of in met.values()}
    assert len({*allocations}) == len(allocations) >= least


def test_choices_are_judged_by_jobs(campaign):
    made = campaign()
    said, _ = made.measure().communicate(timeout=END_S)
    assert made.stored() == LAUNCHES, said
    judge = ("check", "choices", "--problems=1", "--launches=5", "--budget=5")
    said, _ = made.start(*judge).communicate(timeout=END_S)
    assert "not a system of this machine; give its configuration with --config" in said
    judging = made.start(*judge, f"--config={made.config}")
    said, _ = judging.communicate(timeout=END_S)
    assert "Error: " not in said, said
    (study,) = (made.place / "results" / "studies").iterdir()
    outcomes = json.loads(study.read_text())["outcomes"]
    assert outcomes, said
    assert {each["launches"] for each in outcomes} <= {4, 5}
    assert {(each["problem"]["nodes"], each["problem"]["ppn"]) for each in outcomes} == {(2, 2)}
    assert len(made.raw_files()) == len(LAUNCHES)  # it keeps none


def test_advice_says_how_srun_starts_a_program_with_a_table(
    cluster, require, tmp_path, monkeypatch
):
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    mpi = next((mpi for mpi in find_mpis() if mpi.name == "mpich"), None)
    require("mpich", mpi is not None, "this MPI is not installed")
    build = build_kernels(mpi)
    table = tmp_path / "a.table"
    table.write_text("switchpoint-table 1\nrule op=alltoall method=bruck\n")
    program = [str(build / "tests" / "swp_mix"), "10", "64", "0"]
    app = Application(mpi, build, 2, program)
    switch, _ = app.lines(table)
    lines = ["export SWITCHPOINT_REPORT=1", switch, app.by_srun()]
    done = subprocess.run(["sh", "-c", "\n".join(lines)], capture_output=True, text=True)
    assert "alltoall by bruck: 10 calls of 64 to 64 bytes" in done.stderr, done.stderr


@pytest.fixture
def mpich_build(cluster, require, tmp_path, monkeypatch) -> Path:
    """Return a build of the kernels for MPICH, which commands in this Slurm are to use."""
    mpi = next((mpi for mpi in find_mpis() if mpi.name == "mpich"), None)
    require("mpich", mpi is not None, "this MPI is not installed")
    build = build_kernels(mpi)
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    return build


def test_advice_by_srun_leaves_nothing_running(mpich_build, tmp_path):
    words = [sys.executable, "-m", "tuner.cli", "advise", "-n", "2", "--launcher"]
    words += ["srun --mpi=pmi2", "--budget=90s", "--", str(mpich_build / "tests" / "swp_mix")]
    whole, said, _ = end([*words, "200", "64", "0"], tmp_path, signal.SIGTERM, lambda: False)
    assert whole == 0, said
    assert "no gain" in said or any(
        b'"launcher": "srun"' in raw for raw in launches(tmp_path).values()
    )
    code, said, _ = end([*words, "100000000", "64", "0"], tmp_path, signal.SIGKILL, steps_run)
    assert code == -signal.SIGKILL, said
    wait_for(lambda: not steps_run())


def in_job(procs: int, *command: str) -> list[str]:
    """Return the words that start a command in a job with two processes on a node."""
    return ["salloc", "--quiet", f"--ntasks={procs}", "--ntasks-per-node=2", *command]


def test_advice_in_a_job_compares_runs_by_srun(mpich_build, tmp_path):
    spec = synthetic.Campaign(
        system=f"{reframe_name(host_stem())}:cpu",
        operation="alltoall",
        patterns=[synthetic.BLOCKS],
        sizes=(64,),
        methods=("vendor", "bruck"),
        times=lambda method, size: 2e-6 if method == "bruck" else 4e-6,
    )
    ingest(tmp_path / "switchpoint.db", synthetic.write(tmp_path, spec))
    with Store.open(tmp_path / "switchpoint.db") as store:
        tune(store, str(store.systems()["system"].iloc[0]), required_executions=0)
    steps, program = tmp_path / "steps", tmp_path / "program"
    counted = f'echo "$SLURM_JOB_ID $SLURM_STEP_ID" >> {steps}'
    program.write_text(f"#!/bin/sh\n{counted}\nexec {mpich_build}/tests/swp_mix 200 64 0\n")
    program.chmod(0o755)
    options = ["-n", "2", "--json", "--environment", "mpich", "--launcher", "srun --mpi=pmi2"]
    options += ["--budget", "35s", "--", str(program)]  # too little to measure
    advise = in_job(2, sys.executable, "-m", "tuner.cli", "advise", *options)
    done = subprocess.run(advise, capture_output=True, text=True, timeout=END_S)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    dispatched = "alltoall by bruck: 200 calls of 64 to 64 bytes"
    assert said["pairs"] and dispatched in said["dispatched"], done.stderr
    started = {*steps.read_text().splitlines()}
    assert len({line.split()[0] for line in started}) == 1
    assert len(started) >= 1 + 2 * len(said["pairs"])
    lines = "\n".join(["export SWITCHPOINT_REPORT=1", *said["lines"]])
    done = subprocess.run(in_job(2, "sh", "-c", lines), capture_output=True, text=True)
    assert dispatched in done.stderr, done.stderr


MEASURE = """
import sys
from pathlib import Path
from tuner.advice import measuring
from tuner.advice.running import Application
from tuner.advice.site import Site
from tuner.campaign.plans import PlannedCase
from tuner.machine.mpi import find_mpis
from tuner.machine.systems import BuiltKernels

mpi = next(mpi for mpi in find_mpis() if mpi.name == "mpich")
build = Path(sys.argv[1])
app = Application(mpi, build, 4, ["app"], ["srun", "--mpi=pmi2"])
site = Site.of(app, BuiltKernels(mpi, build, build / "bench/swpbench"))
for ppn in (2, 1):
    case = PlannedCase(site.system, mpi.name, "bcast", "blocks", f"2_by_{ppn}", 2, ppn, [8])
    print(measuring.measure([case], site, 2.0))
"""


def test_advice_in_a_job_measures_layouts_of_communicators_by_srun(mpich_build, tmp_path):
    measure = in_job(4, sys.executable, "-c", MEASURE, str(mpich_build))
    done = subprocess.run(measure, capture_output=True, text=True, timeout=END_S)
    headers = [json.loads(raw.splitlines()[0]) for raw in launches(tmp_path).values()]
    assert {its["launcher"] for its in headers} == {"srun"}, done.stdout + done.stderr
    assert {its["system"] for its in headers} == {f"{reframe_name(host_stem())}:cpu"}
    assert {(its["nodes"], its["ppn"]) for its in headers} == {(1, 2), (2, 1)}, done.stdout


def steps_run() -> str:
    command = ["squeue", "--steps", "--noheader", "--format=%i"]
    return subprocess.run(command, capture_output=True, text=True).stdout


def cancel(cluster: Cluster, job: str) -> None:
    subprocess.run(["scancel", job], check=True)


def take_node_down(cluster: Cluster, job: str) -> None:
    update = ["scontrol", "update", "nodename=n2", "state=down", "reason=test"]
    subprocess.run(update, check=True)


def kill_node(cluster: Cluster, job: str) -> None:
    cluster.kill_node("n2")


def end_its_time(cluster: Cluster, job: str) -> None:
    subprocess.run(["scontrol", "update", f"jobid={job}", "timelimit=1"], check=True)


def preempt(cluster: Cluster, job: str) -> None:
    partition = ["partitionname=urgent", "nodes=ALL", "prioritytier=2"]
    subprocess.run(["scontrol", "create", *partition], check=True)
    urgent = ["sbatch", "--wait", "--partition=urgent", "--wrap=true", "--output=/dev/null"]
    subprocess.run([*urgent, f"--nodes={cluster.nodes}"], check=True)
    subprocess.run(["scontrol", "delete", "partitionname=urgent"], check=True)


@pytest.mark.parametrize(
    ("cluster", "interrupt", "how"),
    by_day(
        [("", cancel, "was cancelled (CANCELLED AT ")],
        [
            ("", take_node_down, "lost a node (NodeDown"),
            ("", kill_node, "lost a node (NodeDown"),
            ("", end_its_time, "exceeded its time limit (TimeLimit; CANCELLED AT "),
            ("accounts", cancel, "was cancelled (CANCELLED AT "),
            ("accounts", take_node_down, "lost a node (NodeDown"),
            ("accounts", preempt, "was preempted"),
        ],
    ),
    indirect=["cluster"],
)
def test_an_interrupted_campaign_is_partial_and_resumed(cluster, campaign, interrupt, how):
    made = campaign()
    scheduler = "slurm" if cluster.accounts else "squeue"
    assert f'"scheduler": "{scheduler}"' in made.config.read_text()
    hold, running = made.measure_held(launch=1)
    job = job_running()
    assert queued(job, "%k") == "m42"  # what `run -- -J` gave
    interrupt(cluster, job)
    said, _ = running.communicate(timeout=END_S)
    assert running.returncode == 1, said
    (error,) = [line for line in said.splitlines() if line.startswith("Error: ")]
    assert error.startswith(f"Error: job {job} {how}")
    (partial,) = re.findall(r"campaign (\w+) is partial: 0 of 1 launch;", said)
    assert made.stored() == [0]

    recover(cluster)
    hold.unlink()
    (first,) = made.raw_files()
    before = first.read_bytes()
    running = made.start("run", "--resume", partial)
    said, _ = running.communicate(timeout=END_S)
    assert running.returncode == 0, said
    assert made.stored() == LAUNCHES
    assert len(made.raw_files()) == len(LAUNCHES)
    assert first.read_bytes() == before


def test_a_pending_job_says_why_it_waits(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    submit = ["sbatch", "--parsable", f"--nodes={cluster.nodes}", "--exclusive", "--wrap=sleep 600"]
    running, waiting = (
        subprocess.run(submit, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        for _ in range(2)
    )
    said = f"job {waiting.strip()} is pending: "
    wait_for(lambda: pending("squeue", tmp_path) == f"{said}Resources")
    assert pending("squeue", tmp_path / "elsewhere") == ""
    assert ending("squeue", running.strip(), "") == ""
    for job in (waiting, running):
        cancel(cluster, job.strip())
        how = f"job {job.strip()} was cancelled"
        wait_for(lambda job=job, how=how: ending("squeue", job.strip(), "") == how)
    cluster.wait_for_nodes()


def test_a_campaign_waits_for_drained_nodes_and_says_so(cluster, campaign):
    made = campaign()
    hold, running = made.measure_held(launch=0)
    update = ["scontrol", "update", "nodename=n[2-4]"]
    subprocess.run([*update, "state=drain", "reason=cables"], check=True)
    try:
        hold.unlink()  # the first job ends, on a node that takes no other
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(running.stdout))
        reader.start()
        waits = r"job \d+ is pending: Nodes required for job are DOWN, DRAINED"
        wait_for(lambda: re.search(waits, "".join(said)) or running.poll() is not None)
    finally:
        subprocess.run([*update, "state=resume"], check=True)
    assert running.wait(END_S) == 0, said
    reader.join()
    assert re.search(waits, "".join(said)), said
    assert made.stored() == LAUNCHES
    cluster.wait_for_nodes()


def recover(cluster: Cluster) -> None:
    """Bring the second node back, whatever was done to it."""
    if not cluster.runs_node("n2"):
        cluster.start_node("n2")
    command = ["scontrol", "update", "nodename=n2", "state=resume"]
    subprocess.run(command, capture_output=True)  # an error when it is not down
    cluster.wait_for_nodes()


def job_running() -> str:
    command = ["squeue", "--noheader", "--states=running", "--format=%i"]
    (job,) = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return job


def queued(job: str, form: str) -> str:
    command = ["squeue", "--noheader", f"--jobs={job}", f"--format={form}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
