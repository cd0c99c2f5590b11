"""Virtual nodes come up, are nodes apart, and leave nothing behind."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.processes import command_lines, wait_for
from tuner.export import loaded
from tuner.machine.nodes import namespaces
from tuner.machine.nodes.namespaces import UNLIMITED, Nodes, NodesError
from tuner.machine.nodes.traffic import traffic
from tuner.paths import CHECKOUT

SOON_S = 120  # how long a test waits for what follows at once, on a busy machine too


def said(nodes: Nodes, host: str, command: str) -> str:
    answer = subprocess.run(
        [*nodes.on_node(host), command], capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()


def switches(name: str) -> set[int]:
    """Return the processes that run switch.sh for a set; other sets are of other tests."""
    found = set()
    for number, words in command_lines():
        scripts = [word for word in words if word.endswith("/switch.sh")]
        if scripts and any(word.endswith(f"/{name}") for word in words):
            found.add(number)
    return found


def program_before(tmp_path: Path, monkeypatch, name: str, script: str) -> None:
    """Put a program of this name before the real one on the path."""
    program = tmp_path / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


def test_each_node_has_a_name_an_address_and_memory_of_its_own(nodes, tmp_path):
    for number, host in enumerate(nodes.hosts):
        assert said(nodes, host, "hostname; ls /sys/class/net; ls /dev/shm") == f"{host}\neth0\nlo"
        addresses = said(nodes, host, "PATH=$PATH:/usr/sbin:/sbin ip -brief address show eth0")
        assert f"10.77.0.{number + 2}/24" in addresses
        said(nodes, host, f"touch /dev/shm/of-{host}; touch {tmp_path}/of-{host}")
        assert said(nodes, host, "ls /dev/shm; rm /dev/shm/*") == f"of-{host}"
    assert {path.name for path in tmp_path.iterdir()} == {f"of-{host}" for host in nodes.hosts}


def test_processes_of_a_node_do_not_see_those_of_another(nodes):
    names = {host: said(nodes, host, "readlink /proc/self/ns/pid") for host in nodes.hosts}
    assert len(set(names.values())) == len(nodes.hosts)


def test_up_and_down_can_be_repeated(set_name):
    first = namespaces.up(set_name, 2, UNLIMITED)
    assert namespaces.up(set_name, 2, UNLIMITED) == first
    assert namespaces.find(set_name) == first
    with pytest.raises(NodesError, match=r"2 nodes at unlimited are up; .*nodes down"):
        namespaces.up(set_name, 3, UNLIMITED)
    assert namespaces.down(set_name)
    assert not namespaces.down(set_name)
    assert namespaces.find(set_name) is None


def test_down_ends_what_runs_on_the_nodes(set_name):
    made = namespaces.up(set_name, 1, UNLIMITED)
    sleeper = subprocess.Popen([*made.on_node("vnode0"), "sleep 1000"])
    launcher = subprocess.Popen([*made.beside_switch(), "sleep", "1000"])
    namespaces.down(set_name)
    assert sleeper.wait(SOON_S) != 0
    assert launcher.wait(SOON_S) != 0
    assert not made.directory.exists()


def test_what_is_terminated_beside_the_switch_is_gone(nodes):
    seconds = str(10**6 + os.getpid())

    def sleeps() -> bool:
        return any(words == ["sleep", seconds] for _, words in command_lines())

    launcher = subprocess.Popen([*nodes.beside_switch(), "sleep", seconds])
    wait_for(sleeps)
    launcher.terminate()
    launcher.wait(SOON_S)
    wait_for(lambda: not sleeps())


def test_a_rate_is_set_on_both_ends_of_every_cable(set_name):
    made = namespaces.up(set_name, 2, "100mbit")
    for host in made.hosts:
        assert "rate 100Mbit" in said(made, host, "tc qdisc show dev eth0")
    shown = subprocess.run(
        [*made.beside_switch(), "tc", "qdisc", "show"], capture_output=True, text=True, check=True
    ).stdout
    assert shown.count("rate 100Mbit") == 2


def test_a_failure_half_way_leaves_nothing(set_name, tmp_path, monkeypatch):
    """The third network card cannot be limited."""
    place = namespaces.meant().directory.parent
    script = f'echo >>{tmp_path}/calls; [ "$(wc -l <{tmp_path}/calls)" -lt 5 ] || {{'
    program_before(tmp_path, monkeypatch, "tc", f"{script} echo 'tc: broken' >&2; exit 1; }}")
    with pytest.raises(NodesError, match=r"cannot be made: tc: broken: failed: tc qdisc") as error:
        namespaces.up(set_name, 4, UNLIMITED)
    assert "\n" not in str(error.value)
    wait_for(lambda: not switches(set_name))
    assert not (place / set_name).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_while_they_come_up_leaves_nothing(set_name, tmp_path, monkeypatch, number):
    reached, go = tmp_path / "reached", tmp_path / "go"
    script = f"touch {reached}; while [ ! -e {go} ]; do sleep 0.1; done"
    program_before(tmp_path, monkeypatch, "tc", script)
    command = [sys.executable, "-m", "tuner.cli", "nodes", "up", "--name", set_name]
    making = subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Tests that run in the background of a shell have it ignored, and hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(reached.exists)
    assert switches(set_name)
    making.send_signal(number)
    assert making.wait(SOON_S) != 0
    go.touch()
    wait_for(lambda: not switches(set_name))
    assert namespaces.find(set_name) is None


def test_temporary_nodes_end_with_the_process_that_made_them(nodes):
    name = f"orphan-{os.getpid()}"
    script = (
        "import os, signal\nfrom tuner.machine.nodes import namespaces\n"
        f"with namespaces.temporary({name!r}, 1, 'unlimited'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=CHECKOUT)
    assert done.returncode == -signal.SIGKILL
    wait_for(lambda: namespaces.find(name) is None)
    namespaces.down(name)


def test_results_are_continued_on_nodes_of_their_network(nodes, set_name, monkeypatch):
    monkeypatch.setenv(namespaces.SET_VARIABLE, set_name)
    with namespaces.available("tcp-100mbit", 2) as made:
        assert (made.rate, made.partition, made.count) == ("100mbit", "tcp-100mbit", 2)
        with namespaces.available("tcp-100mbit") as there:
            assert there == made
        with pytest.raises(NodesError, match="up are 2 of tcp-100mbit, not 2 of tcp-1gbit; end"):
            namespaces.available("tcp-1gbit").__enter__()


def test_a_machine_that_cannot_have_them_says_so(set_name, tmp_path, monkeypatch):
    words = "unshare: unshare failed: Operation not permitted"
    program_before(tmp_path, monkeypatch, "unshare", f"echo '{words}' >&2; exit 1")
    with pytest.raises(NodesError, match=f"virtual nodes cannot be made: {words} \\("):
        namespaces.up(set_name, 2, UNLIMITED)


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodesError, match=r"need \w+: install (iproute2|util-linux)"):
        namespaces.up("none", 2, UNLIMITED)


@pytest.mark.parametrize(
    ("name", "count", "rate", "reason"),
    [
        ("../x", 2, "1gbit", "is not a name"),
        ("x", 0, "1gbit", "1 to 64 are possible"),
        ("x", 65, "1gbit", "1 to 64 are possible"),
        ("x", 2, "fast", 'rate "fast": write 100mbit'),
    ],
)
def test_nonsense_is_refused(name, count, rate, reason):
    with pytest.raises(NodesError, match=reason):
        namespaces.up(name, count, rate)


def test_a_node_that_is_not_there_is_reported(nodes):
    with pytest.raises(NodesError, match="no virtual node vnode9; the nodes are vnode0 to vnode3"):
        nodes.on_node("vnode9")


@pytest.fixture
def record(tmp_path: Path, monkeypatch) -> Path:
    """Return the path of the record of the set `mine`, in directories of the test alone.

    No process can be killed in the test.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "of-a-login"))  # not on compute nodes
    path = namespaces._own_directory() / "mine" / namespaces.RECORD
    path.parent.mkdir()
    monkeypatch.setattr(os, "kill", lambda pid, number: pytest.fail(f"killed {pid}"))
    return path


POSSIBLE = {"name": "mine", "count": 2, "rate": "1gbit", "pid": 2**31 - 1, "started": "7"}


@pytest.mark.parametrize(
    "wrong",
    [
        *({"pid": pid} for pid in (-1, 0, 1, 2**31, 10**400)),
        *({"name": name} for name in ("../../evil", "other", "")),
        *({"count": count} for count in (-1, 0, 65, 10**9)),
        *({"rate": rate} for rate in ("", "0gbit", "1gbit; true")),
        *({"started": started} for started in ("", "-1", "7 ", "\u0667")),
    ],
    ids=str,
)
def test_an_impossible_record_is_refused_and_kills_nobody(record: Path, wrong) -> None:
    record.write_text(json.dumps(POSSIBLE | wrong))
    (key,) = wrong
    for command in (namespaces.find, namespaces.down, namespaces.meant):
        with pytest.raises(NodesError, match=f"not a record of virtual nodes: impossible {key};"):
            command("mine")
    assert record.is_file()


def test_rules_of_one_node_are_checked_where_virtual_nodes_have_no_place(monkeypatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/no-such-directory")
    with ExitStack() as stack:
        assert "No such file" in str(loaded._nodes(stack, 2))


def test_sets_of_other_process_numbers_are_apart(nodes, tmp_path, monkeypatch) -> None:
    """As those of other containers and hosts that share the temporary directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = "from tuner.machine.nodes import namespaces; print(namespaces.down('mine'))"
    command = f"cd {CHECKOUT} && TMPDIR={tmp_path} {sys.executable} -c {shlex.quote(script)}"
    with namespaces.temporary("mine", 1, UNLIMITED) as made:
        assert said(made, "vnode0", command) == "False"
        assert namespaces.find("mine") == made
        assert len(list(tmp_path.iterdir())) == 2


def test_scripts_are_where_they_can_be_executed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    assert namespaces._own_directory().parent == tmp_path / "cache" / "switchpoint"


def test_a_directory_that_others_can_write_is_named(record: Path) -> None:
    directory = record.parent.parent
    directory.chmod(0o777)
    with pytest.raises(NodesError, match=f"^{directory} belongs to .* by TMPDIR$"):
        namespaces.find("mine")


def test_a_lock_that_is_a_pipe_is_one_line(record: Path) -> None:
    pipe = record.parent.with_name("lock")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    with pytest.raises(OSError, match="not a regular file; delete it"):
        namespaces.down("mine")
    os.close(reader)


def test_a_record_of_nodes_that_ended_is_removed(record: Path, monkeypatch) -> None:
    record.write_text(json.dumps(POSSIBLE))
    assert not namespaces.down("mine")
    assert not record.parent.exists()
    record.parent.mkdir()
    record.write_text(json.dumps(POSSIBLE))
    starts = iter(["7", ""])
    monkeypatch.setattr(namespaces, "start_of", lambda pid: next(starts))

    def ended(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", ended)
    assert namespaces.down("mine")
    assert not record.parent.exists()


def test_nodes_whose_switch_has_ended_are_not_recorded(record: Path, monkeypatch) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    monkeypatch.setattr(namespaces, "_check", lambda count, rate: None)
    monkeypatch.setattr(namespaces, "_start_switch", lambda *arguments: process)
    monkeypatch.setattr(namespaces, "_await_ready", lambda *arguments: None)
    with pytest.raises(NodesError, match="cannot be made: their switch has ended"):
        namespaces.up("mine", 2, UNLIMITED)
    assert not record.parent.exists()


@pytest.mark.parametrize("said", ["", "{", "[]", "[1]", "[{}]", '[{"stats64": {"tx": 1}}]'])
def test_counts_that_are_none_are_one_line(record: Path, said: str) -> None:
    enter = record.with_name("enter")
    enter.write_text(f"#!/bin/sh\necho '{said}'\n")
    enter.chmod(0o755)
    nodes = Nodes("mine", 1, UNLIMITED, 2, "7")
    with pytest.raises(NodesError, match="vnode0 does not answer with the counts of eth0"):
        traffic(nodes)
