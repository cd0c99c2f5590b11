"""What schedulers answer is read: which one it is, and its partitions."""

import json

import pytest

from tests.sites.answers import ANSWERS, PARTITIONS, PBS_NODE, PBS_QUEUE
from tests.sites.conftest import init
from tuner.machine.sites import schedulers
from tuner.machine.sites.schedulers import Partition, Processors, SchedulerError


@pytest.mark.parametrize("name", list(ANSWERS))
def test_a_scheduler_is_found_by_its_commands_and_lists_its_partitions(name, answering):
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
    for words in ("many", "8|1-4|64+|2|32|2", "8|1-4|64|2|32+|2"):
        sinfo.write_text(f"#!/bin/sh\necho 'cpu|up|idle|{words}'\n")
        with pytest.raises(SchedulerError, match="cannot parse"):
            schedulers.SCHEDULERS["slurm"].partitions()


@pytest.mark.parametrize(
    ("job_nodes", "most"), [("1-infinite", 60), ("1-4", 4), ("1", 1), ("2-80", 60)]
)
def test_a_partition_of_slurm_has_as_many_nodes_as_a_job_may(
    job_nodes, most, answering, monkeypatch
):
    nodes = f"cpu|up|idle|60|{job_nodes}|128|2|64|1\ncpu|up|idle|4|{job_nodes}|96|2|48|1"
    monkeypatch.setitem(ANSWERS["slurm"], "sinfo", nodes)
    answering("slurm")
    (found,) = schedulers.SCHEDULERS["slurm"].partitions()
    assert found == Partition("cpu", most, Processors(128, 1, 2), kinds=2)


def test_nodes_of_slurm_that_take_no_jobs_are_not_counted(answering, monkeypatch):
    away = "down down* idle* drained draining fail failing maint mixed$ future planned idle-"
    here = "idle mixed allocated completing reserved idle~ idle#"
    lines = [f"cpu|up|{state}|1|1-infinite|64|2|32|1" for state in [*away.split(), *here.split()]]
    monkeypatch.setitem(ANSWERS["slurm"], "sinfo", "\n".join(lines))
    answering("slurm")
    (found,) = schedulers.SCHEDULERS["slurm"].partitions()
    assert found.nodes == len(here.split())


@pytest.mark.parametrize(
    ("nodes", "shape", "kinds"),
    [
        (["8|1-infinite|64|2|32|2"], Processors(64, 1, 2), 1),
        (["8|1-infinite|128|2|32|2"], Processors(128, 2, 2), 1),
        (["8|1-infinite|64|2|32|2", "9|1-infinite|128|2|32|2"], Processors(128, 2, 2), 2),
        (["8|1-infinite|64|2|32|2", "1|1-infinite|64|2|32|1"], Processors(64, 1, 2), 1),
        (["8|1-infinite|30|2|16|2"], Processors(30, 1, 2), 1),  # two cores are the system's
    ],
)
def test_slurm_may_count_cores_as_cpus(nodes, shape, kinds, answering, monkeypatch):
    monkeypatch.setitem(
        ANSWERS["slurm"], "sinfo", "\n".join(f"cpu|up|idle|{each}" for each in nodes)
    )
    answering("slurm")
    (found,) = schedulers.SCHEDULERS["slurm"].partitions()
    assert (found.shape, found.kinds) == (shape, kinds)


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


def test_lines_that_say_nothing_are_passed_over(answering, tmp_path, monkeypatch):
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
