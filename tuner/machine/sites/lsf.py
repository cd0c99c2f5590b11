"""ReFrame's backend for LSF, which asks for nodes as every LSF understands.

ReFrame's own writes `-nnodes`, which only LSF with CSM knows. A site's configuration imports this.
"""

from typing import Any

from reframe.core.backends import register_scheduler
from reframe.core.schedulers.lsf import LsfJobScheduler


@register_scheduler("lsf-span")
class SpanScheduler(LsfJobScheduler):  # type: ignore[misc]
    """LSF by ranks, and by ranks a node."""

    def emit_preamble(self, job: Any) -> list[str]:
        """Return the options of a job's script."""
        ranks = [f"#BSUB -n {job.num_tasks}", f'#BSUB -R "span[ptile={job.num_tasks_per_node}]"']
        lines = super().emit_preamble(job)
        return [each for line in lines for each in (ranks if "-nnodes" in line else [line])]
