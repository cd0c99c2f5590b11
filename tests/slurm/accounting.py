"""Slurm's accounting: a database of its own, and the daemon that keeps it, in one directory."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PROGRAMS = ("mariadb-install-db", "mariadbd", "slurmdbd")
START_S = 120.0
CONFIGURATION = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports[0]}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
PidFile={place}/slurmdbd.pid
LogFile={place}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports[1]}
StorageUser=root
StorageLoc=accounts
"""
SETTINGS = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports[0]}
AccountingStoragePass={place}/munge.socket
"""


def configure(place: Path, ports: Sequence[int], user: str) -> str:
    """Write slurmdbd.conf for its port and the database's; return the lines for slurm.conf."""
    file = place / "slurmdbd.conf"
    file.write_text(CONFIGURATION.format(place=place, ports=ports, user=user))
    file.chmod(0o600)
    return SETTINGS.format(place=place, ports=ports)


def start(
    place: Path, port: int, start_daemon: Callable[[str], None], env: Mapping[str, str], user: str
) -> None:
    """Start the database on its port, and slurmdbd, which then knows the cluster."""
    options = [f"--datadir={place}/accounts", f"--user={user}"]
    with (place / "mariadbd.log").open("ab") as log:
        subprocess.run(
            [
                *("mariadb-install-db", "--no-defaults", *options),
                "--auth-root-authentication-method=normal",
            ],
            stdout=log,
            stderr=log,
            check=True,
        )
        subprocess.Popen(
            [
                *("mariadbd", "--no-defaults", *options),
                f"--port={port}",
                "--bind-address=127.0.0.1",
                f"--socket={place}/mariadb.socket",
                f"--pid-file={place}/mariadbd.pid",
            ],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while not (place / "mariadb.socket").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    start_daemon("slurmdbd")
    command = ["sacctmgr", "--immediate", "add", "cluster", "switchpoint"]
    while subprocess.run(command, capture_output=True, env=env).returncode != 0:
        if time.monotonic() > deadline:
            return  # wait_for_nodes then reports where the logs are
        time.sleep(0.2)
