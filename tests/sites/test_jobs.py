"""Jobs: the scripts that ReFrame's own backends write, why a job waits, and how one ended."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from reframe.core.schedulers.slurm import SlurmJobScheduler

import checks.campaign  # noqa: F401  it changes when jobs have ended
from tests.sites.answers import ANSWERS, PARTITIONS
from tests.sites.conftest import init
from tuner.campaign.order import SOAKINGS, SOAKS, SoakJob, SoakLaunch, SoakOrder
from tuner.machine.mpi import find_mpis
from tuner.machine.sites import jobs, schedulers
from tuner.machine.sites.jobs import ending, pending
from tuner.paths import CHECKOUT
from tuner.selection import off


def job_scripts(config: Path, place: Path, name: str) -> list[str]:
    """Return what ReFrame would submit for the checks of a name."""
    command = [
        *(Path(sys.executable).with_name("reframe"), "-C", config, "-c", CHECKOUT / "checks"),
        *(f"--name={name}", f"--prefix={place}", "--keep-stage-files", "--nocolor"),
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
    scheduler, expected, answering, tmp_path, monkeypatch
):
    answering(scheduler)
    monkeypatch.setenv(off.VARIABLE, "nbx; rsx")
    config = tmp_path / "site.py"
    options = ["--name", "site", "--account", "m42", "--max-nodes", "4", "--output", str(config)]
    init(*options, "--partition", PARTITIONS[scheduler][0].name)
    scripts = job_scripts(config, tmp_path, "^discovery.*random")
    launcher = schedulers.SCHEDULERS[scheduler].launcher
    largest = [script for script in scripts if expected <= set(script.splitlines())]
    assert len(largest) == 1, scripts
    launches = re.findall(rf"^{launcher} .*swpbench run .*", largest[0], re.M)
    assert len(launches) == 6
    assert len({launch.split("/")[0] for launch in launches}) == 1  # as many ranks
    assert len(scripts) == 4  # half a node to four nodes
    assert all(f"export {off.VARIABLE}='nbx; rsx'\n" in script for script in scripts)


def test_a_job_of_soaks_asks_for_the_time_of_each(answering, tmp_path, monkeypatch):
    answering("lsf-span")
    config, partition = tmp_path / "site.py", PARTITIONS["lsf-span"][0].name
    init("--name", "site", "--output", str(config), "--partition", partition)
    launches = [SoakLaunch(budget_s, [], "exchange") for budget_s in (1000.0, 5.0, 5.0)]
    job = SoakJob(f"site:{partition}", find_mpis()[0].name, 1, 2, launches)
    SOAKINGS.save(SoakOrder([job]), tmp_path / "order.json")
    monkeypatch.setenv(SOAKS, str(tmp_path / "order.json"))
    (script,) = job_scripts(config, tmp_path, "^winners")
    assert "#BSUB -W 22\n" in script  # 1010 s, and 90 s more for each


def test_a_job_of_slurm_ends_when_its_processes_have(monkeypatch):
    states = iter(["COMPLETING Reason=None", "COMPLETING Reason=None", "NODE_FAIL Reason=None"])
    monkeypatch.setattr(jobs, "ask", lambda *_: f"JobId=2 JobState={next(states)} Dependency=x")
    assert ending("slurm", "2", "") == "job 2 lost a node"


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("", "was cancelled"),
        (" DUE TO TIME LIMIT", "exceeded its time limit"),
        (" DUE TO PREEMPTION", "was preempted"),
        (" DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS", "lost a node"),
    ],
)
def test_what_slurm_wrote_says_how_a_job_ended_that_it_has_forgotten(why, said, monkeypatch):
    def ask(*_: str) -> str:
        raise schedulers.SchedulerError("Invalid job id specified")

    monkeypatch.setattr(jobs, "ask", ask)
    written = f"CANCELLED AT 2026-11-30T18:45:15{why}"
    output = f"a line\nslurmstepd: error: *** JOB 2 ON n1 {written} ***\n"
    assert ending("slurm", "2", output) == f"job 2 {said} ({written})"
    monkeypatch.setattr(jobs, "ask", lambda *_: "JobState=DEADLINE Reason=None")
    cancelled = "error: *** JOB 2 ON n1 CANCELLED AT 2026-11-30T18:45:15 ***"
    assert ending("slurm", "2", cancelled).startswith("job 2 missed its deadline")


@pytest.mark.parametrize(
    ("state", "has_ended"),
    [("PREEMPTED", True), ("COMPLETED", True), ("REQUEUED", False), (None, False)],
)
def test_a_preempted_job_of_slurm_is_not_waited_for(state, has_ended):
    """ReFrame would: until it has started again and ended, which ours never do."""
    assert SlurmJobScheduler.finished(None, SimpleNamespace(state=state)) is has_ended


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


def test_a_job_waits_in_its_directory_by_any_path(answering, tmp_path, monkeypatch):
    """The scheduler names the physical one, where the project is a link on the login node."""
    real, link, loop = tmp_path / "real", tmp_path / "link", tmp_path / "loop"
    real.mkdir()
    link.symlink_to(real)
    loop.symlink_to(loop)
    monkeypatch.setitem(ANSWERS, "waiting", {"squeue": f"12|PENDING|Priority|{real}/stage/job"})
    answering("waiting")
    for place in (link / "stage", real / "stage"):
        assert pending("slurm", place) == "job 12 is pending: Priority"
    assert pending("slurm", link / "other") == pending("slurm", loop) == ""


def test_a_job_of_slurm_waits_until_its_nodes_are_ready(monkeypatch):
    """They may have to boot; its state is then no longer PENDING, and its reason None."""

    def squeue(*words: str) -> str:
        (states,) = [word for word in words if word.startswith("--states=")]
        return "12|CONFIGURING|None|/stage/job\n" * ("CONFIGURING" in states)

    monkeypatch.setattr(jobs, "ask", squeue)
    assert pending("slurm", Path("/stage")) == "job 12 is pending: its nodes are not ready"


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
