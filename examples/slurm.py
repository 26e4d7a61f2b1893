"""Runs on SLURM: a Dask scheduler here, jobs of one worker each, and a command of `reproduce`.

python -m examples.slurm 64 table1 --seeds 0 1 2 --output /shared/results
"""

import subprocess
import sys
from typing import Any

from dask_jobqueue.slurm import SLURMCluster

# One run and thread per job; a run that outlasts its job is lost. What else a site asks for goes
# here, such as a queue or an account.
CLUSTER: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4GB", "walltime": "04:00:00"}


def main(count: str, *command: str) -> int:
    """Makes the runs of a command of `reproduce` in so many SLURM jobs.

    Returns:
        The command's exit code.
    """
    with SLURMCluster(**CLUSTER) as cluster:
        # Jobs that end, as at their walltime, are submitted again.
        cluster.adapt(minimum_jobs=int(count), maximum_jobs=int(count))
        where = ["--jobs", count, "--scheduler", cluster.scheduler_address]
        return subprocess.call([sys.executable, "-m", "reproduce", *command, *where])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
