"""The options that commands share, each said once, and the rules of their values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from reproduce import checks
from reproduce.arguments import UsageError, integers_only, several, single
from reproduce.environment import DEFAULT_THREADS
from reproduce.parallel import Workers
from reproduce.protocols import SUBSPACES, spelled

_OUTPUT = Path("results")
_FIGURES = Path("figures")
_SEEDS = (0, 1, 2)
_QUICK_SEEDS = (0,)

DEFAULT_SHARE = 0.003
"""Of the reference run's seconds: a minute or two of recomputing."""

SPELLED_SUBSPACES = {spelled(value): value for value in SUBSPACES}


_RULES: dict[str, Callable[[Any], None]] = {
    "chosen": checks.seeds,
    "threads": lambda value: checks.positive_integer("threads", value),
    "jobs": lambda value: checks.positive_integer("jobs", value),
    "scheduler": checks.scheduler,
    "subspace": lambda value: checks.one_of("subspace", value, SPELLED_SUBSPACES),
}


@Parameter(name="*")
class Options:
    """Options whose values are held to their rules, on the command line by their own names."""

    def __post_init__(self) -> None:
        with usage_errors():
            for name, rule in _RULES.items():
                if hasattr(self, name):
                    rule(getattr(self, name))


@dataclass(frozen=True)
class Output(Options):
    """Where numbers go.

    Args:
        output: Folder of the records and the tables.
    """

    output: Path = _OUTPUT


@dataclass(frozen=True)
class Drawing(Output):
    """Where numbers and pictures go.

    Args:
        figures_dir: Folder of the figures. [default: figures; with --output: its figures/]
    """

    figures_dir: Annotated[Path | None, single] = None

    @property
    def figures(self) -> Path:
        """The folder of the figures."""
        if self.figures_dir is not None:
            return self.figures_dir
        return _FIGURES if self.output == _OUTPUT else self.output / _FIGURES


@dataclass(frozen=True)
class Threads(Options):
    """How a run executes.

    Args:
        threads: Threads per run; other numbers round differently, recorded apart. [default: 1]
    """

    threads: Annotated[int, integers_only] = DEFAULT_THREADS


@dataclass(frozen=True)
class Jobs(Threads):
    """How runs execute.

    Args:
        jobs: Runs at a time, each in a process of its own; the records are the same.
    """

    jobs: Annotated[int, integers_only] = 1

    @property
    def workers(self) -> Workers:
        """Who makes the runs."""
        return Workers(self.jobs)


@dataclass(frozen=True)
class Machines(Jobs):
    """How runs execute, and where.

    Args:
        scheduler: tcp://host:port of a Dask scheduler whose workers make the runs: docs/cluster.md.
            [default: processes of this machine]
    """

    scheduler: Annotated[str | None, single] = None

    @property
    def workers(self) -> Workers:
        """Who makes the runs."""
        return Workers(self.jobs, self.scheduler)


@dataclass(frozen=True)
class Data(Options):
    """Where the images are.

    Args:
        data_dir: Folder of the prepared MNIST. [default: TFDS_DATA_DIR, else the cache folder]
    """

    data_dir: Annotated[Path | None, single] = None

    @property
    def folder(self) -> Path:
        """The absolute folder, for workers that have another current one."""
        from reproduce.data import resolve_data_dir

        return resolve_data_dir(self.data_dir)


@dataclass(frozen=True)
class Seeds(Options):
    """What is run.

    Args:
        seeds: Seeds, one run of everything each. [default: 0 1 2; with --quick: 0]
    """

    seeds: Annotated[list[int] | None, several, integers_only] = None

    @property
    def chosen(self) -> tuple[int, ...]:
        """The seeds asked for."""
        return _SEEDS if self.seeds is None else tuple(self.seeds)


@dataclass(frozen=True)
class BudgetOptions(Seeds):
    """What is run, and at which budget.

    Args:
        quick: Take a small budget for a first look, marked everywhere as not the paper's.
    """

    quick: Annotated[bool, single] = False

    @property
    def chosen(self) -> tuple[int, ...]:
        """The seeds asked for."""
        return _QUICK_SEEDS if self.quick and self.seeds is None else super().chosen


@dataclass(frozen=True)
class Copying(Output, Threads, Seeds):
    """Which records are copied."""


@dataclass(frozen=True)
class Measuring(Output, Machines, BudgetOptions):
    """Everything about runs that need no data."""


@dataclass(frozen=True)
class Making(Data, Drawing, Measuring):
    """Everything about runs on data, and showing them."""


@dataclass(frozen=True)
class TrainingOptions(Making):
    """Everything about training runs.

    Args:
        subspace: auto, or false to draw noise in all weights; equal in law. [default: auto]
    """

    subspace: Annotated[str, single] = "auto"

    @property
    def sampled(self) -> str | bool:
        """The optimizers' own argument."""
        return SPELLED_SUBSPACES[self.subspace]


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turns a value that breaks its rule into a `UsageError`."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from error
