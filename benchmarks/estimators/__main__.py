"""`python -m benchmarks.estimators`; `make estimators` runs it."""

import sys

from cyclopts import App
from rich.console import Console

from reproduce.cli.entry import main
from reproduce.cli.options import Making, check

app = App(
    name="python -m benchmarks.estimators",
    help_format="plaintext",
    version_flags=[],
    suppress_keyboard_interrupt=False,
)


@app.default
def estimators(*, options: Making = Making()) -> int:
    """Compare the estimators of the mean, train with accurate means, and print what they show.

    It is written to estimators.md in the output folder, too, committed in docs/measured.

    Args:
        options: Those of `reproduce all`.
    """
    check(options)
    from benchmarks.estimators import command, protocol

    code, text = command.compare(
        protocol.QUICK if options.quick else protocol.PROTOCOL,
        options.chosen,
        threads=options.threads,
        workers=options.workers,
        output=options.output,
        figures=options.figures,
        data_dir=options.folder,
        console=Console(stderr=True, highlight=False, markup=False, soft_wrap=True),
    )
    print(text, end="")
    return code


if __name__ == "__main__":
    sys.exit(main(app=app))
