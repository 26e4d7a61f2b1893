"""`python -m benchmarks.estimators`; `make estimators` runs it."""

import sys
from typing import Annotated

from cyclopts import App

from reproduce.arguments import single
from reproduce.cli.entry import main
from reproduce.cli.options import Making

app = App(
    name="python -m benchmarks.estimators",
    help_format="plaintext",
    version_flags=[],
    suppress_keyboard_interrupt=False,
)


@app.default
def estimators(*, costs: Annotated[bool, single] = False, options: Making = Making()) -> int:
    """Compare the estimators of the mean, train with accurate means, and print what they show.

    It is written to estimators.md in the output folder, too, committed in docs/measured.

    Args:
        costs: Time the weight updates alone, a minute, and show what else is recorded.
        options: Those of `reproduce all`.
    """
    from benchmarks.estimators import command

    return command.compare(options, costs_only=costs)


if __name__ == "__main__":
    sys.exit(main(app=app))
