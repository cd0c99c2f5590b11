"""ReFrame's backends for Slurm, which take a preempted job as one that will start again.

Ours are never requeued, so they would be waited for without end. The checks import this.
"""

from typing import Any

from reframe.core.schedulers.slurm import SlurmJobScheduler

_finished = SlurmJobScheduler.finished


def finished(scheduler: Any, job: Any) -> bool:
    """Return whether a job has ended, preempted ones included."""
    return job.state == "PREEMPTED" or bool(_finished(scheduler, job))


SlurmJobScheduler.finished = finished
