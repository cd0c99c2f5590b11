"""Ask a scheduler why jobs wait, and how they ended when not by themselves."""

import getpass
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuner.machine.sites.schedulers import LSF, ODD, SLURM, SchedulerError, ask

_SLURM_STATES = {
    "BOOT_FAIL": "lost a node",
    "CANCELLED": "was cancelled",
    "DEADLINE": "missed its deadline",
    "NODE_FAIL": "lost a node",
    "OUT_OF_MEMORY": "ran out of memory",
    "PREEMPTED": "was preempted",
    "TIMEOUT": "exceeded its time limit",
}

# What schedulers write among the output of a job that they end.
_WRITTEN = (
    r"error: \*\*\* JOB [0-9]+ ON \S+ (CANCELLED AT .*?) \*\*\*",  # Slurm
    r"^=>> PBS: (job killed: .*)$",
    r"^(TERM_\w+: .*?)\.?$",  # LSF
)

# What those words mean.
_MEANINGS = {
    r"\bDUE TO TIME LIMIT$": "exceeded its time limit",
    r"\bDUE TO PREEMPTION$": "was preempted",
    r"\bDUE TO NODE FAILURE\b": "lost a node",
    r"\bwalltime \S+ exceeded|^TERM_RUNLIMIT\b": "exceeded its time limit",
    r"\bv?mem \S+ exceeded|^TERM_(MEMLIMIT|SWAP)\b": "ran out of memory",
    r"^TERM_(BUCKET_KILL|(FORCE_)?(ADMIN|OWNER))\b": "was cancelled",
    r"^TERM_(RC|REMOVE_HUNG_JOB|ZOMBIE)\b": "lost a node",
    r"^TERM_PREEMPT\b": "was preempted",
}
# And where nothing says more.
_VAGUE = {r"^CANCELLED AT\b": "was cancelled", r"^job killed|^TERM_": "was ended by the scheduler"}
_COMPLETING_S = 10.0
_POLL_S = 0.3

# PBS: what it adds to the number of the signal that ended a job, other statuses, and a substate.
_SIGNALS = 256
_PBS_STATUSES = {
    -20: "lost a node",
    -26: "ran out of memory",
    -27: "ran out of memory",
    -29: "exceeded its time limit",
}
_TERMINATED = 91  # by qdel

_LOST = ("UNKWN", "ZOMBI")  # states of jobs of LSF whose host is not reached


class PendingJob(NamedTuple):
    """A job of this user that waits for nodes."""

    number: str
    reason: str
    directory: str

    def __str__(self) -> str:
        return f"job {self.number} is pending: {self.reason or 'no reason given'}"


def nodes_of_job() -> int:
    """Return the nodes of the job of Slurm, PBS or LSF that this process belongs to, 1 in none."""
    hosts = os.environ.get("LSB_HOSTS", "").split()
    with suppress(OSError, KeyError):
        hosts += Path(os.environ["PBS_NODEFILE"]).read_text().split()
    return max(len({*hosts}), _number("SLURM_JOB_NUM_NODES"), 1)


def cpus_on_node() -> int:
    """Return the CPUs of this node that Slurm gave the job of this process, 0 in none."""
    return _number("SLURM_CPUS_ON_NODE")


def _number(variable: str) -> int:
    """Return the number that a variable of the environment holds, 0 if it holds none."""
    text = os.environ.get(variable, "")
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def pending(scheduler: str, place: Path) -> str:
    """Return why the job in a directory below `place` waits; "" if none does, or none says."""
    find = _PENDING.get(scheduler)
    try:
        jobs, place = find() if find else [], place.resolve()
        below = (job for job in jobs if Path(job.directory).resolve().is_relative_to(place))
        return str(next(below, ""))
    except (SchedulerError, OSError, RuntimeError, *ODD):  # the latter two of links
        return ""  # progress is shown without it


def ending(scheduler: str, job: str, output: str) -> str:
    """Return how a job with this output ended when not by itself, in the scheduler's words."""
    found = (re.search(pattern, output, re.MULTILINE) for pattern in _WRITTEN)
    written = next((match.group(1) for match in found if match), "")
    find = _ENDINGS.get(scheduler)
    try:
        how, why = find(job) if find else ("", "")
    except (SchedulerError, *ODD):
        how = why = ""  # it may have forgotten the job
    said = _meaning(written) or how or _meaning(why) or _meaning(written or why, _VAGUE)
    reasons = "; ".join(dict.fromkeys(filter(None, (why, written))))
    return f"job {job} {said}" + (f" ({reasons})" if reasons else "") if said else ""


def _meaning(words: str, meanings: Mapping[str, str] = _MEANINGS) -> str:
    return next((said for pattern, said in meanings.items() if re.search(pattern, words)), "")


def _slurm_pending() -> list[PendingJob]:
    user = f"--user={getpass.getuser()}"
    states = "--states=PENDING,CONFIGURING"
    said = ask("squeue", user, "--noheader", states, "--format=%i|%T|%r|%Z")
    lines = [line.split("|", 3) for line in said.splitlines()]
    return [
        PendingJob(number, "its nodes are not ready" if state == "CONFIGURING" else reason, place)
        for number, state, reason, place in lines
    ]


def _pbs_pending() -> list[PendingJob]:
    numbers = ask("qselect", "-u", getpass.getuser(), "-s", "Q").split()
    if not numbers:
        return []
    jobs = json.loads(ask("qstat", "-f", "-F", "json", *numbers))["Jobs"]
    return [
        PendingJob(number, _pbs_comment(facts), facts["Variable_List"]["PBS_O_WORKDIR"])
        for number, facts in jobs.items()
    ]


def _lsf_pending() -> list[PendingJob]:
    fields = "jobid sub_cwd pend_reason delimiter='|'"
    said = ask("bjobs", "-p", "-noheader", "-o", fields)
    lines = [line.split("|", 2) for line in said.splitlines() if "|" in line]
    return [PendingJob(number, reason.strip(), place) for number, place, reason in lines]


def _slurm_ending(job: str) -> tuple[str, str]:
    # How a job ended shows when its processes have.
    latest_s = time.monotonic() + _COMPLETING_S
    state = "COMPLETING"
    while state == "COMPLETING" and time.monotonic() < latest_s:
        said = ask("scontrol", "show", "job", job)
        match = re.search(r"JobState=(\w+) Reason=(\S+)", said)
        if match is None:
            return "", ""
        state, reason = match.groups()
        time.sleep(_POLL_S * (state == "COMPLETING"))
    # The reason of a job that was cancelled is that for which it was pending.
    return _SLURM_STATES.get(state, ""), "" if state == "CANCELLED" or reason == "None" else reason


def _pbs_ending(job: str) -> tuple[str, str]:
    ((_, facts),) = json.loads(ask("qstat", "-x", "-f", "-F", "json", job))["Jobs"].items()
    status = int(facts.get("Exit_status", 0))
    if int(facts.get("substate", 0)) == _TERMINATED:
        how = "was cancelled"
    elif status > _SIGNALS:
        how = f"was ended by signal {status - _SIGNALS}"
    else:
        how = _PBS_STATUSES.get(status, f"was ended by PBS with status {status}" * (status < 0))
    return how, _pbs_comment(facts)


def _pbs_comment(facts: Mapping[str, object]) -> str:
    return str(facts.get("comment", ""))  # PBS writes what looks like a number as one


def _lsf_ending(job: str) -> tuple[str, str]:
    fields = "stat exit_reason delimiter='|'"
    state, reason = ask("bjobs", "-noheader", "-o", fields, job).strip().split("|", 1)
    return ("lost a node", state) if state in _LOST else ("", reason.strip(" -"))


_PENDING = dict.fromkeys(SLURM, _slurm_pending) | {"pbs": _pbs_pending}
_PENDING |= dict.fromkeys(LSF, _lsf_pending)
_ENDINGS = dict.fromkeys(SLURM, _slurm_ending) | {"pbs": _pbs_ending}
_ENDINGS |= dict.fromkeys(LSF, _lsf_ending)
