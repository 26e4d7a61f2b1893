"""`python -m benchmarks.estimators`; `make estimators` runs it."""

import sys

from cyclopts import App

from reproduce.cli.entry import main
from reproduce.cli.options import Making

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
    from benchmarks.estimators import command

    return command.compare(options)


if __name__ == "__main__":
    sys.exit(main(app=app))
