"""`python -m tests.slurm up DIRECTORY` starts a Slurm that lives there, `down` ends it."""

import argparse
from pathlib import Path

from tests.slurm import accounting
from tests.slurm.cluster import Cluster, ClusterError, missing

parser = argparse.ArgumentParser(prog="python -m tests.slurm", description=__doc__)
parser.add_argument("action", choices=["up", "down"])
parser.add_argument("directory", type=Path, help="where configuration, keys, logs and state lie")
parser.add_argument("--nodes", type=int, default=4)
parser.add_argument("--cpus", type=int, default=2, help="of a node")
parser.add_argument("--accounts", action="store_true", help="by slurmdbd and MariaDB")
arguments = parser.parse_args()

cluster = Cluster(
    arguments.directory.resolve(), arguments.nodes, arguments.cpus, arguments.accounts
)
if arguments.action == "down":
    cluster.down()
else:
    if lacking := missing() + (missing(accounting.PROGRAMS) if arguments.accounts else []):
        parser.error(f"no {', '.join(lacking)} here")
    try:
        cluster.up()
    except ClusterError as error:
        parser.exit(3, f"Slurm does not come up: {error}\n")
    print(f"export SLURM_CONF={cluster.configuration}")
