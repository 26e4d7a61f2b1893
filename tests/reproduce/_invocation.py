"""An invocation of the runner on trivial jobs, in a process of its own: FOLDER SECONDS SEEDS..."""

import sys
import time
from pathlib import Path

from reproduce.records import Run, Store
from reproduce.runner import Job, Outcome, Report, Watcher, run_missing

FAILING_SEED = 13


class Lines(Watcher):
    """Prints what happens, a line each."""

    def reused(self, job: Job) -> None:
        say("reused", job)

    def began(self, job: Job) -> None:
        say("began", job)

    def ended(self, job: Job, outcome: str) -> None:
        say(outcome, job)

    def error(self, text: str) -> None:
        print(text, file=sys.stderr)


def say(what: str, job: Job) -> None:
    print(what, job.run.seed, flush=True)


def job(seed: int, seconds: float) -> Job:
    def execute(report: Report) -> Outcome:
        time.sleep(seconds)
        if seed == FAILING_SEED:
            raise RuntimeError("as asked")
        report(1)
        return {"status": "completed", "square": seed**2}, {"slept": seconds}

    return Job(Run("trivial", "square", seed, {}), 1, execute)


if __name__ == "__main__":
    folder, seconds, *seeds = sys.argv[1:]
    store = Store(Path(folder), warn=print)
    run_missing([job(int(seed), float(seconds)) for seed in seeds], store, {}, Lines())
