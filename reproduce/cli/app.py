"""The commands and their help."""

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated

from cyclopts import App, Parameter

from reproduce import checks, readings
from reproduce.arguments import integers_only, several, single
from reproduce.cli.options import (
    DEFAULT_SHARE,
    Copying,
    Data,
    Drawing,
    Jobs,
    Making,
    Measuring,
    Output,
    Threads,
    TrainingOptions,
    usage_errors,
)
from reproduce.protocols import QUICK_TABLE1, TABLE1, Comparison, Panels

_READING = (
    "Other readings of the text, NAME=VALUE each; the default is the first. "
    "R3, R4 and R7 have one reading each."
)
_explained = Parameter(help=f"{_READING}\n{readings.explained()}")

_ILLUSTRATED = {
    "figure1": "Draw Figure 1: local entropy of a toy landscape.",
    "figure2": "Draw Figure 2: heat regularization of a toy landscape.",
    "figure3": "Draw Figure 3: the mean-seeking and the mode-seeking Gaussian.",
}
_TRAINED = {
    "figure5": "Train by SGD first, then by every method, and draw Figure 5.",
    "figure6": "Train with 10, 100 and 1000 samples per weight update, and draw Figure 6.",
    "figure7": "Train the small network at small to large tau, and draw Figure 7.",
    "figure8": "Train with constant and scoped tau, and draw Figure 8.",
    "section61": "Train both networks for 5 epochs by SGD: Section 6.1's two accuracies.",
    "exact": "Train with accurate means too, beyond the paper: what the estimates cost.",
}

app = App(
    name="reproduce",
    help=(
        "Regenerates the tables and figures of Garcia Trillos, Kaplan and Sanz-Alonso, "
        "arXiv 1901.10082, on the real MNIST. Every run is recorded once; an interrupted command, "
        "given again, goes on where it was."
    ),
    help_format="plaintext",
    version=lambda: version("lerh-tf"),
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,
)


@app.command(name=("table1", "figure4"))
def table1(
    *,
    methods: Annotated[list[str] | None, several] = None,
    samples: Annotated[int | None, integers_only] = None,
    updates: Annotated[int | None, integers_only] = None,
    reading: Annotated[list[str] | None, several, _explained] = None,
    options: TrainingOptions = TrainingOptions(),
) -> int:
    """Train by each method, print Table 1 beside the paper's, draw Figure 4.

    Args:
        methods: Rows to run, in order: any of sgd, is, sgld, hr, sgld-linear. [default: all]
        samples: Samples per weight update. hr takes M = J = 30 sqrt(samples / 1000), rounded.
            [default: 1000, the paper's; with --quick: 50]
        updates: Weight updates. [default: 500, the paper's; with --quick: 100]
        reading: See `readings.explained`.
        options: Shared with other commands.
    """
    with usage_errors():
        asked, whole = (
            _comparison(options.quick, rows, updates, samples, reading) for rows in (methods, None)
        )
    return _train("table1", options, asked, whole)


@app.command(name="readings")
def screen(
    *,
    settings: Annotated[list[str] | None, several] = None,
    options: TrainingOptions = TrainingOptions(),
) -> int:
    """Train under other readings of the text, hours per seed, and hold them against Table 1.

    Args:
        settings: Which of the settings to run, by the names that the table has. [default: all]
        options: Shared with other commands.
    """
    from reproduce.experiments.readings import EXPERIMENT

    whole = EXPERIMENT.QUICK if options.quick else EXPERIMENT.PROTOCOL
    with usage_errors():
        asked = whole if settings is None else whole.with_panels(tuple(settings))
    return _train("readings", options, asked, whole)


def _training_command(name: str) -> Callable[..., int]:
    def command(*, options: TrainingOptions = TrainingOptions()) -> int:
        return _train(name, options)

    return command


def _illustration_command(name: str) -> Callable[..., int]:
    def command(*, threads: Threads = Threads(), drawing: Drawing = Drawing()) -> int:
        from reproduce.cli import commands

        return commands.make_illustration(name, threads, drawing)

    return command


for _name, _help in _ILLUSTRATED.items():
    app.command(_illustration_command(_name), name=_name, help=_help)
for _name, _help in _TRAINED.items():
    app.command(_training_command(_name), name=_name, help=_help)


@app.command
def table2(
    *,
    quick: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    threads: Threads = Threads(),
    where: Output = Output(),
    data: Data = Data(),
) -> int:
    """Time a weight update of every method, one run at a time, and print Table 2.

    Args:
        quick: Time a few updates only, marked as such.
        threads: Shared with other commands.
        where: Shared with other commands.
        data: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.time_updates(quick, threads, where, data)


@app.command
def theory(*, options: Measuring = Measuring()) -> int:
    """Measure the theorems, statement by statement, and print what holds.

    Args:
        options: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.measure_theory(options)


@app.command(name="all")
def everything(*, options: Making = Making()) -> int:
    """Make everything: theorems, Tables 1 and 2, Figures 1 to 8, Section 6.1, the report.

    Args:
        options: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.make_all(options)


@app.command
def figures(*, drawing: Drawing = Drawing()) -> int:
    """Draw every table and figure, by the reference run where there are no records; no training.

    Args:
        drawing: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.draw_figures(drawing)


@app.command
def report(*, drawing: Drawing = Drawing()) -> int:
    """Draw everything and write what holds on one page, by the reference run likewise.

    Args:
        drawing: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.report(drawing)


@app.command
def verify(
    *, share: Annotated[float, single] = DEFAULT_SHARE, how: Jobs = Jobs(), data: Data = Data()
) -> int:
    """Recompute a part of the committed reference run and compare.

    Args:
        share: Of the seconds that the reference run took, above 0, at most 1; keys draw the runs.
        how: Shared with other commands.
        data: Shared with other commands.
    """
    with usage_errors():
        checks.must(0.0 < share <= 1.0, "share", share, "in (0, 1]")
    from reproduce.cli import commands

    return commands.verify(share, how, data)


@app.command
def reference(*, options: Copying = Copying()) -> int:
    """Copy the records of everything, at the paper's budget, into the committed reference run.

    Args:
        options: Shared with other commands.
    """
    from reproduce.cli import commands

    return commands.update_reference(options)


def _train(
    name: str,
    options: TrainingOptions,
    protocol: Comparison | Panels | None = None,
    whole: Comparison | Panels | None = None,
) -> int:
    """Makes an experiment's runs and prints its table; `None`: its own protocol.

    The table has what else was recorded of the `whole` too: a part does not replace it.
    """
    from reproduce.cli import commands
    from reproduce.experiments.registry import NAMED

    experiment = NAMED[name]
    if protocol is None:
        protocol = experiment.QUICK if options.quick else experiment.PROTOCOL
    code = commands.train(experiment, protocol, options)
    commands.show(experiment, protocol, whole or protocol, options)
    return code


def _comparison(
    quick: bool,
    methods: Sequence[str] | None,
    updates: int | None,
    samples: int | None,
    reading: Sequence[str] | None,
) -> Comparison:
    comparison = (QUICK_TABLE1 if quick else TABLE1).with_budget(updates=updates, samples=samples)
    if methods is not None:
        comparison = comparison.with_methods(tuple(methods))
    return comparison if reading is None else readings.choose(comparison, readings.parse(reading))
