"""What Figures 1 to 3 share: computed without noise, so once, and drawn from the record."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Protocol

from reproduce.landscapes.functions import Array
from reproduce.protocols.settings import settings
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report

_SEED = 0


class Illustration(Protocol):
    """What such a figure shows.

    Args:
        EXPERIMENT: The records' experiment name.
    """

    EXPERIMENT: ClassVar[str]

    def compute(self) -> dict[str, Any]:
        """Returns the record's result."""

    def draw(self, record: Record, stem: Path, /) -> list[Path]:
        """Draws the record and returns the files written, all of that stem."""


def jobs(shown: Mapping[str, Illustration], execution: Mapping[str, Any]) -> list[Job]:
    """Returns one run per figure.

    Args:
        shown: The figures by name.
        execution: How this process executes: part of each run's configuration.
    """
    return [
        Job(
            run=Run(one.EXPERIMENT, name, _SEED, settings(one) | {"execution": dict(execution)}),
            steps=1,
            execute=partial(_run, one),
        )
        for name, one in shown.items()
    ]


def recorded(records: Sequence[Record], name: str, shown: Illustration) -> Record | None:
    """Returns the figure's record among any of its experiment, None if there is none."""
    own = settings(shown)
    return next((r for r in records if (r.run.case, r.run.settings) == (name, own)), None)


def render(records: Sequence[Record], name: str, shown: Illustration, folder: Path) -> list[Path]:
    """Draws the figure into a folder and returns the files written; none without a record."""
    record = recorded(records, name, shown)
    return [] if record is None else shown.draw(record, folder / name)


def rounded(values: Array, digits: int) -> Any:
    """Returns numbers as lists, with so many decimals."""
    # Adding zero turns -0.0 into 0.0.
    return (values.round(digits) + 0.0).tolist()


def _run(shown: Illustration, report: Report) -> Outcome:
    result = shown.compute()
    report(1)
    return {"status": "completed", **result}, {}
