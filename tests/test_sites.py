"""Configurations of sites: made from what schedulers and modules answer, and read by ReFrame.

A scheduler that cannot run here is a script that gives the answers of tests/data; what counts is
the job script that ReFrame's own backend then writes.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.conftest import TIMEOUT_S, by_day
from tuner.campaign.examine import ConfigurationError, examine
from tuner.cli import main
from tuner.machine.mpi import available_cores, find_mpis
from tuner.machine.sites import environments, jobs, schedulers
from tuner.machine.sites.configuration import reframe_name
from tuner.machine.sites.jobs import ending, pending
from tuner.machine.sites.schedulers import Partition, Processors, SchedulerError
from tuner.store.store import Store

CHECKOUT = Path(__file__).resolve().parent.parent


def answers_of(scheduler: str) -> dict[str, str]:
    """The programs that answer as in the sessions of tests/data, and to nothing else."""
    programs: dict[str, str] = {}
    for path in sorted((CHECKOUT / "tests" / "data" / scheduler).glob("*.txt")):
        for said in path.read_text().split("\n$ ")[1:]:
            line, _, answer = said.partition("\n")
            name, *words = shlex.split(line)
            case = f"{shlex.quote(' '.join(words))}) cat <<'END'\n{answer}\nEND\n;;\n"
            programs[name] = programs.get(name, "") + case
    unknown = '*) echo "not asked so before: $*" >&2; exit 255 ;;'
    return {name: f'case "$*" in\n{cases}{unknown}\nesac' for name, cases in programs.items()}


PBS_NODE = {"resources_available": {"ncpus": 64, "mem": "250gb"}, "state": "free"}
PBS_QUEUE = {"queue_type": "Execution", "enabled": "True", "started": "True"}
ANSWERS = {
    "slurm": {
        # %R|%a|%D|%c|%X|%Z, a line for each kind of node
        "sinfo": "cpu|up|60|128|2|1\ncpu|up|4|96|2|1\nold|down|64|32|2|1\nsmt|up|8|256|2|2\n",
        "scontrol": "AccountingStorageType   = accounting_storage/slurmdbd\n",
        "sbatch": "",
        "sacct": "",
        "squeue": "",
    },
    "pbs": answers_of("pbs") | {"qsub": ""},
    "lsf-span": answers_of("lsf") | {"bsub": ""},
    "flux": {"flux": 'case "$1" in resource) echo 4 192 ;; queue) echo batch ;; esac'},
}
PARTITIONS = {
    "slurm": [
        Partition("cpu", 60, Processors(128, 1, 2), kinds=2),
        Partition("smt", 8, Processors(256, 2, 2)),
    ],
    "pbs": [
        Partition("workq", 4, Processors(64), kinds=2),
        Partition("bigmem", 2, Processors(128)),
    ],
    "lsf-span": [
        Partition("normal", 12, Processors(40)),
        Partition("fat", 2, Processors(48)),
        Partition("any", 13, Processors(40)),
    ],
    "flux": [Partition("batch", 4, Processors(48))],
}


@pytest.fixture
def answering(tmp_path, monkeypatch):
    """Puts the commands of a scheduler on the path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def put(scheduler: str) -> None:
        bin = tmp_path / f"{scheduler}-bin"
        bin.mkdir()
        for name, answer in ANSWERS[scheduler].items():
            script = answer if answer.startswith("case") else f"cat <<'END'\n{answer.rstrip()}\nEND"
            (bin / name).write_text(f"#!/bin/sh\n{script}\n")
            (bin / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{os.environ['PATH']}")

    return put


def init(*options: str, code: int = 0) -> str:
    answer = CliRunner().invoke(main, ["site", "init", *options])
    assert answer.exit_code == code, answer.output
    return answer.output


@pytest.mark.parametrize("name", list(ANSWERS))
def test_a_scheduler_is_found_by_its_commands_and_tells_its_partitions(name, answering):
    answering(name)
    found = schedulers.detect()
    assert found.name == name
    assert found.partitions() == PARTITIONS[name]


@pytest.mark.parametrize("storage", ["accounting_storage/none", "(null)"])
def test_slurm_without_accounting_is_asked_by_squeue(storage, answering, tmp_path):
    answering("slurm")
    scontrol = tmp_path / "slurm-bin" / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho 'AccountingStorageType = {storage}'\n")
    assert schedulers.detect().name == "squeue"


def test_a_scheduler_that_does_not_answer_is_named(answering, tmp_path):
    answering("slurm")
    sinfo = tmp_path / "slurm-bin" / "sinfo"
    sinfo.write_text("#!/bin/sh\necho 'slurm_load_partitions: Unable to contact' >&2\nexit 1\n")
    with pytest.raises(SchedulerError, match=r"sinfo.*Unable to contact"):
        schedulers.SCHEDULERS["slurm"].partitions()
    assert "Unable to contact" in init("--scheduler", "slurm", code=1)
    assert "Unable to contact; --scheduler local" in init(code=1)
    sinfo.write_text("#!/bin/sh\necho 'cpu|up|many'\n")
    with pytest.raises(SchedulerError, match="cannot parse"):
        schedulers.SCHEDULERS["slurm"].partitions()


@pytest.mark.parametrize(
    ("scheduler", "command", "answer", "said"),
    [
        ("flux", "flux", "", "reports no nodes"),
        ("flux", "flux", "many few", "flux was not detected: cannot parse the output of flux"),
        ("pbs", "pbsnodes", '{"nodes": []}', "pbs was not detected: cannot parse the output of"),
        ("pbs", "qstat", "{}", "pbs was not detected: .*'Queue'"),
        ("lsf-span", "lshosts", "HOST_NAME\n\nn1 X86_64", "reports no nodes"),
    ],
)
def test_answers_that_cannot_be_used_are_one_line(
    scheduler, command, answer, said, answering, tmp_path
):
    answering(scheduler)
    (tmp_path / f"{scheduler}-bin" / command).write_text(f"#!/bin/sh\ncat <<'E'\n{answer}\nE\n")
    with pytest.raises(SchedulerError, match=said) as error:
        schedulers.SCHEDULERS[scheduler].partitions()
    assert "\n" not in str(error.value)


def test_lines_that_tell_nothing_are_passed_over(answering, tmp_path, monkeypatch):
    answering("lsf-span")
    bqueues = tmp_path / "lsf-span-bin" / "bqueues"
    was = bqueues.read_text()
    bqueues.write_text(was.replace("night ", "\nodd "))
    assert bqueues.read_text() != was
    assert schedulers.SCHEDULERS["lsf"].partitions() == PARTITIONS["lsf-span"]
    nodes = {f"n{number}": PBS_NODE for number in range(16)}
    queue = {"workq": PBS_QUEUE, "routing": PBS_QUEUE | {"queue_type": "Route"}}
    expected = [Partition("workq", 16, Processors(64))]
    switches = {"sw0": {"state": "free"}, "sw1": {"resources_available": {"mem": "1gb"}}}
    answer = {
        "pbsnodes": json.dumps({"nodes": nodes | switches}),
        "qstat": json.dumps({"Queue": queue}),
    }
    monkeypatch.setitem(ANSWERS, "pbs0", answer)
    answering("pbs0")
    assert schedulers.SCHEDULERS["pbs"].partitions() == expected
    own = {f"n{n}": PBS_NODE | {"queue": "workq"} for n in range(16)}
    down = {"d0": PBS_NODE | {"queue": "other", "state": "down"}}
    both = {"workq": PBS_QUEUE, "other": PBS_QUEUE}
    answer = {"pbsnodes": json.dumps({"nodes": own | down}), "qstat": json.dumps({"Queue": both})}
    monkeypatch.setitem(ANSWERS, "pbs1", answer)
    answering("pbs1")
    assert schedulers.SCHEDULERS["pbs"].partitions() == expected
    away = {
        f"x{n}": PBS_NODE | {"state": state} for n, state in enumerate(("offline", "down,busy"))
    }
    large = {"b0": PBS_NODE | {"queue": "big", "resources_available": {"ncpus": 256}}}
    queues = {"workq": PBS_QUEUE | {"resources_max": {"nodect": 8}}, "big": PBS_QUEUE}
    every = json.dumps({"nodes": nodes | away | large})
    monkeypatch.setitem(
        ANSWERS, "pbs2", {"pbsnodes": every, "qstat": json.dumps({"Queue": queues})}
    )
    answering("pbs2")
    assert schedulers.SCHEDULERS["pbs"].partitions() == [
        Partition("workq", 8, Processors(64)),
        Partition("big", 1, Processors(256)),
    ]
    by_state = "case $1 in resource) printf '0 0\\n3 144\\n1 48\\n' ;; queue) echo batch ;; esac"
    monkeypatch.setitem(ANSWERS["flux"], "flux", by_state)
    answering("flux")
    assert schedulers.SCHEDULERS["flux"].partitions() == PARTITIONS["flux"]


def job_scripts(config: Path, place: Path) -> list[str]:
    """What ReFrame would submit for the discovery checks of one pattern."""
    command = [
        *(Path(sys.executable).with_name("reframe"), "-C", config, "-c", CHECKOUT / "checks"),
        *("--name=^discovery.*random", f"--prefix={place}", "--keep-stage-files", "--nocolor"),
        f"--prgenv=^{find_mpis()[0].name}$",
    ]
    answer = subprocess.run(
        [*command, "--dry-run"],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        cwd=place,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return [path.read_text() for path in place.glob("stage/**/rfm_job.sh")]


@pytest.mark.parametrize(
    ("scheduler", "expected"),
    [
        (
            "slurm",
            {
                "#SBATCH --nodes=4",
                "#SBATCH --ntasks=512",
                "#SBATCH --ntasks-per-node=128",
                "#SBATCH --partition=cpu",
                "#SBATCH --exclusive",
                "#SBATCH --account=m42",
                "#SBATCH --no-requeue",
            },
        ),
        (
            "pbs",
            {
                "#PBS -l select=4:mpiprocs=64:ncpus=64",
                "#PBS -q workq",
                "#PBS -l place=scatter:exclhost",
                "#PBS -A m42",
                "#PBS -r n",
            },
        ),
        (
            "lsf-span",
            {
                "#BSUB -n 160",
                '#BSUB -R "span[ptile=40]"',
                "#BSUB -W 4",  # 6 launches of 33 s at most
                "#BSUB -x",
                "#BSUB -rn",
                "#BSUB -P m42",
            },
        ),
    ],
)
def test_reframe_writes_job_scripts_that_ask_for_whole_nodes(
    scheduler, expected, answering, tmp_path
):
    answering(scheduler)
    config = tmp_path / "site.py"
    options = ["--name", "site", "--account", "m42", "--max-nodes", "4", "--output", str(config)]
    init(*options, "--partition", PARTITIONS[scheduler][0].name)
    scripts = job_scripts(config, tmp_path)
    launcher = schedulers.SCHEDULERS[scheduler].launcher
    largest = [script for script in scripts if expected <= set(script.splitlines())]
    assert len(largest) == 1, scripts
    launches = re.findall(rf"^{launcher} .*swpbench run .*", largest[0], re.M)
    assert len(launches) == 6
    assert len({launch.split("/")[0] for launch in launches}) == 1  # as many ranks
    assert len(scripts) == 4  # half a node to four nodes


def test_a_job_of_slurm_ends_when_its_processes_have(monkeypatch):
    states = iter(["COMPLETING Reason=None", "COMPLETING Reason=None", "NODE_FAIL Reason=None"])
    monkeypatch.setattr(jobs, "ask", lambda *_: f"JobId=2 JobState={next(states)} Dependency=x")
    assert ending("slurm", "2", "") == "job 2 lost a node"


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (
            "pbs",
            "job 12.pbs is pending: Not Running: Insufficient amount of resource: ncpus "
            "(R: 128 A: 64 T: 384)",
        ),
        (
            "lsf-span",
            "job 12 is pending: Job slot limit reached: 4 hosts; Closed by LSF administrator: "
            "2 hosts;",
        ),
    ],
)
def test_a_job_of_pbs_or_lsf_says_why_it_waits(scheduler, said, answering, monkeypatch):
    monkeypatch.setenv("LOGNAME", "alice")
    answering(scheduler)
    assert pending(scheduler, Path("/stage")) == said
    assert pending(scheduler, Path("/elsewhere")) == ""


WALLTIME = "=>> PBS: job killed: walltime 181 exceeded limit 180\n"
RUN_LIMIT = "TERM_RUNLIMIT: job killed after reaching LSF run time limit.\nExited.\n"
RAN = (
    "Job run at Fri Nov 27 at 12:31 on (cn01[0]:ncpus=32+cn01[1]:ncpus=32)+(cn02[0]:ncpus=32"
    "+cn02[1]:ncpus=32)"
)


@pytest.mark.parametrize(
    ("job", "output", "said"),
    [
        ("21.pbs", "", f"was cancelled ({RAN} and terminated by alice@login1.cluster.example)"),
        ("22.pbs", "", f"exceeded its time limit ({RAN} and exceeded resource walltime)"),
        ("23.pbs", "", f"was ended by signal 15 ({RAN} and failed)"),
        ("24.pbs", "", f"lost a node ({RAN})"),
        ("25.pbs", "", f"ran out of memory ({RAN} and exceeded resource mem)"),
        ("26.pbs", "", f"was ended by PBS with status -1 ({RAN} and failed)"),
        ("27.pbs", "all is well", ""),
        ("28.pbs", "", ""),  # which failed by itself
        ("29.pbs", "", ""),  # not known
        (
            "23.pbs",
            WALLTIME,
            f"exceeded its time limit ({RAN} and failed; job killed: walltime 181 exceeded limit "
            "180)",
        ),
        (
            "29.pbs",
            WALLTIME,
            "exceeded its time limit (job killed: walltime 181 exceeded limit 180)",
        ),
        (
            "31",
            "",
            "exceeded its time limit (TERM_RUNLIMIT: job killed after reaching LSF run time limit)",
        ),
        (
            "31",
            RUN_LIMIT,
            "exceeded its time limit (TERM_RUNLIMIT: job killed after reaching LSF run time limit)",
        ),
        ("32", "", "was cancelled (TERM_OWNER: job killed by owner)"),
        ("33", "", "lost a node (UNKWN)"),
        ("34", "", "lost a node (TERM_REMOVE_HUNG_JOB: job removed from the LSF system)"),
        ("35", "", "lost a node (TERM_ZOMBIE: job exited while LSF is not available)"),
        (
            "36",
            "",
            "ran out of memory (TERM_MEMLIMIT: job killed after reaching LSF memory usage limit)",
        ),
        (
            "37",
            "",
            "was ended by the scheduler (TERM_CWD_NOTEXIST: current working directory is not "
            "accessible or does not exist on the execution host)",
        ),
        ("38", "", ""),
        ("39", "all is well", ""),
        ("40", "", ""),
        ("41", "", ""),
        (
            "41",
            "TERM_OWNER: job killed by owner.\n",
            "was cancelled (TERM_OWNER: job killed by owner)",
        ),
    ],
)
def test_a_job_of_pbs_or_lsf_says_how_it_ended(job, output, said, answering):
    scheduler = "pbs" if "pbs" in job else "lsf-span"
    answering(scheduler)
    assert ending(scheduler, job, output) == (f"job {job} {said}" if said else "")


def test_a_terminal_is_asked_for_what_nothing_tells(answering, tmp_path):
    answering("slurm")
    config = tmp_path / "site.py"
    ours, theirs = os.openpty()
    os.write(ours, b"smt\nm42\nmany\n2\n")
    answer = subprocess.run(
        [sys.executable, "-m", "tuner.cli", "site", "init", "--output", config],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        stdin=theirs,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    os.close(ours)
    os.close(theirs)
    assert answer.returncode == 0, answer.stderr
    assert "not a valid integer" in answer.stdout + answer.stderr
    text = config.read_text()
    assert '"name": "cpu"' not in text
    assert '"--account=m42"' in text
    assert '"max_nodes": 2' in text


def test_without_a_scheduler_it_is_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = tmp_path / "here.py"
    said = init("--scheduler", "local", "--output", str(config))
    assert f"1 nodes of {available_cores()} cores" in said
    answer = CliRunner().invoke(main, ["doctor", "--config", str(config), "--json"])
    assert answer.exit_code == 0, answer.output
    parts = json.loads(answer.stdout)
    assert {mpi.name for mpi in find_mpis()} <= {part["name"] for part in parts}
    assert "would run" in parts[-1]["found"]


def test_a_configuration_is_not_replaced_unasked(tmp_path):
    config = tmp_path / "here.py"
    config.write_text("mine")
    assert "--force" in init("--scheduler", "local", "--output", str(config), code=1)
    assert config.read_text() == "mine"
    init("--scheduler", "local", "--output", str(config), "--force")
    assert "site_configuration" in config.read_text()


def test_partitions_that_are_not_there_are_an_error(answering, tmp_path):
    answering("slurm")
    said = init("--partition", "gpu", "--output", str(tmp_path / "site.py"), code=1)
    assert "no partition gpu" in said
    assert "cpu, smt" in said


def test_whatever_a_site_is_called_is_python_and_a_name_of_reframe(answering, tmp_path):
    answering("pbs")
    config = tmp_path / "site.py"
    init("--name", 'a "b"\n{{ c }}', "--account", "x'; \\", "--output", str(config))
    made = {}
    exec(config.read_text(), made)
    system = made["site_configuration"]["systems"][0]
    assert system["name"] == "a-b-c"
    assert system["partitions"][0]["access"][-1] == "-A x'; \\"
    assert reframe_name("4.2") == "_4-2"


def test_flux_comes_with_a_caution(answering, tmp_path):
    answering("flux")
    assert "inside `flux alloc`" in init("--output", str(tmp_path / "site.py"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", "site_configuration"),
        ("site_configuration = {'systems': [], 'environments': []}", "no systems"),
        ("import no_such_module", "no_such_module"),
        ("raise SystemExit('no MPI')", "no MPI"),
        ("import os\nos._exit(3)", "exits with 3"),
        ("print('[')\nsite_configuration = 4", "not a ReFrame configuration"),
        (
            "site_configuration = {'systems': [{'name': 'a', 'partitions': ['cpu']}],"
            " 'environments': [{'name': 'e'}]}",
            "system a: 'cpu' is not a partition",
        ),
    ],
)
def test_a_file_that_is_no_configuration_is_told(tmp_path, text, reason):
    config = tmp_path / "site.py"
    config.write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        examine(config)


def test_a_configuration_that_does_not_end_is_told(tmp_path, monkeypatch):
    config = tmp_path / "site.py"
    config.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr("tuner.campaign.examine._READ_S", 0.5)
    answer = CliRunner().invoke(main, ["doctor", "--config", str(config), "--json"])
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.stderr.splitlines() == [
        f"reading {config}, for 0.5 s at most",
        f"Error: {config}: not read within 0.5 s",
    ]


def test_the_doctor_tells_what_a_configuration_lacks(answering, tmp_path, monkeypatch):
    config = tmp_path / "site.py"
    answering("lsf-span")
    init("--name", "site", "--output", str(config))
    text = config.read_text().replace('"features": ["mpi"]', '"features": []')
    text = re.sub(r'"num_cpus_per_core": \d+', '"num_cpus_per_core": 0', text)
    config.write_text(re.sub(r'"cc": ".*"', '"cc": "no-such-mpicc"', text))
    (tmp_path / "lsf-span-bin" / "bsub").unlink()
    monkeypatch.setattr("tuner.campaign.examine._PLAN_S", 0.1)
    done: list[str] = []
    parts = [part for part in examine(config, done.append) if part.required and not part.found]
    lacking = {(part.name, part.used_for): part.advice for part in parts}
    assert done == [
        f"reading {config}, for 60 s at most",
        f"ReFrame plans with {config}, for 0.1 s at most",
    ]
    assert "bsub" in lacking["site:normal", "scheduler"]
    assert "mpi" in lacking["site:normal", "selection"]
    assert "num_cpus_per_core" in lacking["site:normal", "scales"]
    assert "did not end within 0.1 s" in lacking["checks", "measuring"]
    assert "no-such-mpicc" in lacking[find_mpis()[0].name, "building"]


def test_modules_of_mpi_libraries_are_found_the_last_version_of_each(
    require, tmp_path, monkeypatch
):
    command = Path("/usr/lib/x86_64-linux-gnu/modulecmd.tcl")
    require("modules", command.is_file(), "no Environment Modules here")
    for module in ("mpich/4.9", "mpich/4.10", "gcc/12/openmpi/5.0", "hdf5/1.14-mpich", "gcc/12.2"):
        path = tmp_path / "modules" / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#%Module1.0\n")
    monkeypatch.setenv("MODULES_CMD", str(command))
    monkeypatch.setenv("MODULEPATH", str(tmp_path / "modules"))
    assert environments.modules_system() == "tmod4"
    assert sorted(environments.mpi_modules()) == ["gcc/12/openmpi/5.0", "mpich/4.10"]
    made = environments.of_modules(["gcc/12.2 mpich/4.10", "cray-mpich/9"])
    assert [(each.name, each.cc) for each in made] == [
        ("gcc-12-2-mpich-4-10", "mpicc"),
        ("cray-mpich-9", "cc"),
    ]


def test_modules_without_a_module_command_are_an_error(monkeypatch):
    monkeypatch.delenv("MODULES_CMD", raising=False)
    monkeypatch.delenv("LMOD_CMD", raising=False)
    with pytest.raises(environments.ModulesError, match="login shell"):
        environments.of_modules(["gcc/13"])
    assert environments.mpi_modules() == []


# In a mount namespace of its own, of a user namespace where that needs one.
UNSHARE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@pytest.fixture
def from_read_only(require, tmp_path, monkeypatch):
    """Returns the start of commands for which the checkout is read-only; HOME is a new one."""
    prefix = [*UNSHARE, "sh", "-c", READ_ONLY, str(CHECKOUT)]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    require("namespaces", tried.returncode == 0, f"no read-only mount: {tried.stderr.strip()}")
    assert subprocess.run([*prefix, "touch", CHECKOUT / "new"], capture_output=True).returncode == 1
    for name in ("SWITCHPOINT_RESULTS", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("CCACHE_DISABLE", "1")  # the tests' is in the checkout
    return [*prefix, sys.executable, "-m", "tuner.cli"]


def test_a_read_only_checkout_has_its_files_elsewhere(from_read_only, tmp_path):
    words = ["run", "--dry-run", "--json", "--", "--name=^discovery.*=1_node.*random"]
    answer = subprocess.run(
        [*from_read_only, *words], capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT_S
    )
    assert answer.returncode == 0, answer.stderr
    plan = json.loads(answer.stdout)
    home = tmp_path / "home"
    assert Path(plan["file"]).is_relative_to(home / ".local" / "state" / "switchpoint" / "results")
    assert Path(plan["stage"]).is_relative_to(home / ".cache" / "switchpoint" / "reframe")


@pytest.mark.parametrize(
    "sites", by_day([pytest.param(("north",), marks=pytest.mark.check)], [(("north", "south"),)])
)
def test_two_sites_share_a_read_only_checkout(from_read_only, tmp_path, sites):
    """At the same time, and each builds kernels of its own."""
    name, running = find_mpis()[0].name, {}
    for site in sites:
        config = tmp_path / f"{site}.py"
        init("--name", site, "--scheduler", "local", "--output", str(config))
        words = ["run", f"--config={config}", f"--environment={name}", "--minutes=0.7"]
        words += ["--require-soak=0", "--", "--name=^discovery.*=1_node.*random"]
        words += ["--setvar=methods=pex;nbx", "--setvar=sizes=8"]
        running[site] = subprocess.Popen(
            [*from_read_only, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )
    said = {site: process.communicate(timeout=TIMEOUT_S)[0] for site, process in running.items()}
    assert {process.returncode for process in running.values()} == {0}, said
    state, cache = tmp_path / "home/.local/state/switchpoint", tmp_path / "home/.cache/switchpoint"
    with Store.open(state / "results" / "switchpoint.db", readonly=True) as store:
        assert {*store.systems()["name"]} == {f"{site}:cpu" for site in sites}
    for site in running:
        assert (cache / "install" / f"{site}-cpu-{name}" / "bin" / "swpbench").is_file()
        assert list((state / "results").glob(f"{site}-cpu-{name}-*/switchpoint.table")), said
