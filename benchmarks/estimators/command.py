"""What `make estimators` does, once its arguments are known to be good."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any

from benchmarks.estimators import accuracy, costs, landscapes, report
from benchmarks.estimators.protocol import PROTOCOL, QUICK, Protocol
from reproduce.cli.options import Making
from reproduce.experiments import base
from reproduce.making import CONSOLE, DONE, Data, make, mnist
from reproduce.parallel import Plan, Workers
from reproduce.records import Store
from reproduce.runner import Job

_TIMED_THREADS = (1, 2)


def compare(options: Making, *, costs_only: bool = False) -> int:
    """Makes the missing measurements of the estimators, writes the report and prints it.

    Args:
        options: Those of `reproduce all`.
        costs_only: Whether nothing but what an update costs is measured.

    Returns:
        The exit code.
    """
    chosen = QUICK if options.quick else PROTOCOL
    data = partial(mnist, options.folder)
    code = DONE
    if not costs_only:
        planned = partial(jobs, chosen, options.chosen, data)
        code = make(Plan(planned, options.threads, options.output, data), options.workers)
    for count in _TIMED_THREADS:
        # A process of its own, as threads are set once, and alone: others would take its time.
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            timed = Plan(partial(costs.jobs, chosen.turns, data), count, options.output, data)
            code = max(code, alone.submit(make, timed, Workers()).result())
    store = Store(options.output, warn=CONSOLE.print)
    text, written = report.render(store, chosen, options.chosen, options.output, options.figures)
    for path in written:
        CONSOLE.print(f"wrote {path}")
    print(text, end="")
    return code


def jobs(
    protocol: Protocol, seeds: Sequence[int], data: Data, execution: Mapping[str, Any]
) -> list[Job]:
    """Returns the runs of the comparison of estimators."""
    return [
        *accuracy.jobs(protocol.accuracy, data, execution),
        *landscapes.jobs(protocol.bias, execution),
        *base.jobs(protocol.training, seeds, "auto", data, execution),
    ]
