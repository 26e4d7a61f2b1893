"""`python -m examples.map`: makes the map, run by run, and writes its page and figure."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console

from examples.map.protocol import PROTOCOL, QUICK, TASKS
from reproduce.environment import DEFAULT_THREADS

RECORDS = Path(__file__).parent / "reference"
"""Where records are made and kept."""
_QUICK = Path("results/map-quick")
_NAMES = tuple(task.name for task in TASKS)

app = App(
    name="python -m examples.map",
    help="Measures what local entropy and heat regularization are good for, beside their rivals.",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def make(
    *,
    tasks: tuple[str, ...] = _NAMES,
    quick: bool = False,
    jobs: int = 2,
    threads: int = DEFAULT_THREADS,
    output: Path | None = None,
    data_dir: Path | None = None,
) -> int:
    """Make every run that has no record yet, the trials first, then write the page.

    Updates are timed first where that has not been done. Can be interrupted at any moment and
    called again.

    Args:
        tasks: The tasks to make, by name.
        quick: Take a budget that shows only that it runs.
        jobs: Runs at a time.
        threads: Processors per run.
        output: Folder of the records. [default: examples/map/reference; quick: results/map-quick]
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    from examples.map.jobs import Plan, chosen, final_jobs, tuned, tuning_jobs
    from reproduce.making import make as make_runs
    from reproduce.making import mnist
    from reproduce.records import Store

    for name in tasks:
        if name not in _NAMES:
            raise SystemExit(f"`--tasks` must be among {', '.join(_NAMES)}. Received: {name}")
    console = Console(stderr=True)
    protocol = QUICK if quick else PROTOCOL
    folder = output or (_QUICK if quick else RECORDS)
    data = partial(mnist, data_dir)
    costs = {} if quick else _costs(threads, data, console)
    plan = Plan(protocol, costs, tasks, data_dir)

    def made(jobs_of: Callable[[Mapping[str, Any]], Any]) -> int:
        return make_runs(jobs_of, threads, jobs, folder, console, data)

    code = made(partial(tuning_jobs, plan))
    store = Store(folder, warn=console.print)
    settings = chosen(tuned(plan, store.scan("map-tuning")))
    code = max(code, made(partial(final_jobs, plan, settings)))
    _write(folder, quick, console)
    return code


@app.command
def report(*, quick: bool = False, output: Path | None = None) -> None:
    """Write the page and the figure from the records there are.

    Args:
        quick: Show the quick budget's.
        output: Folder of the records, as above.
    """
    _write(output or (_QUICK if quick else RECORDS), quick, Console(stderr=True))


@app.command
def costs(*, threads: int = DEFAULT_THREADS, data_dir: Path | None = None) -> None:
    """Time a weight update of every method anew; records of other budgets then count no more.

    Args:
        threads: Processors per run.
        data_dir: As above.
    """
    from examples.map import costs
    from reproduce.making import mnist

    costs.PATH.unlink(missing_ok=True)
    _costs(threads, partial(mnist, data_dir), Console(stderr=True))


def _costs(threads: int, data: Any, console: Console) -> Any:
    from examples.map import costs
    from reproduce import environment

    found = costs.read()
    if found is None:
        environment.prepare(threads)
        found = costs.measure(PROTOCOL, data, console)
        console.print(f"wrote {costs.PATH}")
    return found


def _write(folder: Path, quick: bool, console: Console) -> None:
    from examples.map import costs, report
    from examples.map.jobs import Plan
    from reproduce.records import Store

    protocol = QUICK if quick else PROTOCOL
    plan = Plan(protocol, {} if quick else costs.read() or {}, _NAMES)
    is_public = folder.resolve() == RECORDS.resolve()
    page = Path("docs/map.md") if is_public else folder / "docs" / "map.md"
    stem = Path("figures/map") if is_public else folder / "figures" / "map"
    text, written = report.render(Store(folder, warn=console.print), plan, page, stem)
    print(text)
    for path in written:
        console.print(f"wrote {path}")


if __name__ == "__main__":
    sys.exit(app())
