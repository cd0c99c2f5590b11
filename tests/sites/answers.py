"""Commands of schedulers that cannot run here: what they answer, and the partitions in that."""

import shlex

from tuner.machine.sites.schedulers import Partition, Processors
from tuner.paths import CHECKOUT


def answers_of(scheduler: str) -> dict[str, str]:
    """Return the programs that answer as in the sessions of tests/data, and to nothing else."""
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
        # %R|%a|%T|%D|%s|%c|%X|%Y|%Z, a line for each kind of node
        "sinfo": "cpu|up|idle|50|1-infinite|128|2|64|1\ncpu|up|mixed|10|1-infinite|128|2|64|1\n"
        "cpu|up|idle|4|1-infinite|96|2|48|1\n"
        "old|down|idle|64|1-infinite|32|2|16|1\nsmt|up|idle~|8|1-16|256|2|64|2\n"
        "cloud|up|idle|0|1-infinite|0|0|0|0\n",
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
