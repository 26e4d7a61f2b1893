"""`python -m examples.map`: makes the map, run by run, and writes its page and figure."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from cyclopts import App
from rich.console import Console

from examples.map.protocol import PROTOCOL, QUICK, TASKS
from reproduce.environment import DEFAULT_THREADS

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "examples" / "map" / "reference"
"""The records that are committed, as tables."""
NAMES = tuple(task.name for task in TASKS)

app = App(
    name="python -m examples.map",
    help="Measures what local entropy and heat regularization are good for, beside their rivals.",
    help_format="plaintext",
    version_flags=[],
)


@app.default
def make(
    *,
    tasks: tuple[str, ...] = NAMES,
    quick: bool = False,
    jobs: int = 2,
    threads: int = DEFAULT_THREADS,
    output: Path = Path("results/map"),
    data_dir: Path | None = None,
) -> int:
    """Make every run that is not recorded yet, task after task, and write the page.

    Updates are timed first where that has not been done. Can be interrupted at any moment and
    called again. What is made is added to the committed tables, examples/map/reference, and the
    page is docs/map.md; with --quick both stay in the output folder.

    Args:
        tasks: The tasks to make, by name.
        quick: Take a budget that shows only that it runs.
        jobs: Runs at a time.
        threads: Processors per run.
        output: Folder of the records.
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """
    from examples.map import command
    from examples.map.jobs import Plan
    from reproduce.making import mnist

    for name in tasks:
        if name not in NAMES:
            raise SystemExit(f"`--tasks` must be among {', '.join(NAMES)}. Received: tasks={name}")
    console = Console(stderr=True)
    data = partial(mnist, data_dir)
    plan = Plan(
        QUICK if quick else PROTOCOL,
        {} if quick else command.costs_of(threads, data, console),
        tasks,
        data_dir,
    )
    where = _where(output, quick)
    code = command.make(plan, where, jobs, threads, console)
    print(command.write(plan, where, console))
    return code


@app.command
def report(*, quick: bool = False, output: Path = Path("results/map")) -> None:
    """Write the page and the figure from the records there are.

    Args:
        quick: Show the quick budget's, of the output folder.
        output: The folder.
    """
    from examples.map import command, costs
    from examples.map.jobs import Plan

    protocol = QUICK if quick else PROTOCOL
    plan = Plan(protocol, {} if quick else costs.read() or {}, NAMES, None)
    print(command.write(plan, _where(output, quick), Console(stderr=True)))


def _where(output: Path, quick: bool) -> Any:
    from examples.map.command import Where

    if quick:
        folder = output / "quick"
        return Where(folder, folder / "tables", folder / "docs/map.md", folder / "figures/map")
    return Where(output, REFERENCE, ROOT / "docs/map.md", ROOT / "figures/map")


if __name__ == "__main__":
    sys.exit(app())
