"""Figures 1 and 2: a loss on R^2 beside its local entropy, and beside its heat regularization."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import checks
from reproduce.figures import landscapes as figure
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report

if TYPE_CHECKING:
    from reproduce.landscapes.functions import Array

NAME = "landscapes"

Point = tuple[float, float]
Values = Callable[["Array"], "Array"]

_SEED = 0
_DIGITS = 6
_WITNESSES = 5
_SAME = 1e-3


@dataclass(frozen=True)
class LandscapeFigure:
    """What one of the two figures shows; the paper's captions describe it in words only.

    Args:
        function: Its name among `reproduce.landscapes.functions`.
        regularization: `"local_entropy"` or `"heat"`.
        tau: Variance of the Gaussian, the paper's tau.
        half_width: Both coordinates run from minus this to this.
        points: Grid points per axis.
        cut: Ends of the segment along which the functions are also drawn as curves.
    """

    function: str
    regularization: str
    tau: float
    half_width: float
    points: int
    cut: tuple[Point, Point]

    def __post_init__(self) -> None:
        checks.one_of("regularization", self.regularization, figure.SYMBOLS)
        checks.positive_number("tau", self.tau)
        checks.positive_number("half_width", self.half_width)
        checks.positive_integer("points", self.points)

    def configuration(self) -> dict[str, Any]:
        """Returns the fields as JSON types."""
        return dataclasses.asdict(self) | {"cut": [list(end) for end in self.cut]}


FIGURES: Mapping[str, LandscapeFigure] = {
    "figure1": LandscapeFigure(
        "sharp_and_wide", "local_entropy", 0.06, 2.2, 101, ((-1.9, -0.7), (2.1, 1.3))
    ),
    "figure2": LandscapeFigure("textured", "heat", 0.02, 2.2, 101, ((-2.1, -1.26), (2.1, 1.26))),
}


def jobs(figures: Mapping[str, LandscapeFigure], execution: Mapping[str, Any]) -> list[Job]:
    """Returns one run per figure; nothing is drawn at random, so the seed is always 0.

    Args:
        figures: What is shown, by name.
        execution: How this process executes: part of each run's configuration.
    """
    return [
        Job(
            run=Run(NAME, name, _SEED, shown.configuration() | {"execution": dict(execution)}),
            steps=1,
            execute=partial(run, shown),
        )
        for name, shown in figures.items()
    ]


def run(shown: LandscapeFigure, report: Report) -> Outcome:
    """Computes the functions on the grid and along the cut, and their minima.

    Returns:
        The record's result, and no timings. `witness_error` is the largest difference between the
        convolution and the oracle's quadrature over a few points.
    """
    import numpy as np

    from reproduce.landscapes.convolution import Convolution
    from reproduce.landscapes.functions import FUNCTIONS

    f = FUNCTIONS[shown.function]
    corner = np.full(2, shown.half_width)
    convolution = Convolution(f, shown.tau, -corner, corner)
    functions: dict[str, Values] = {
        "f": f,
        "local_entropy": convolution.local_entropy,
        "heat": convolution.heat,
    }
    axis = np.linspace(-shown.half_width, shown.half_width, shown.points)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    cut = np.linspace(shown.cut[0], shown.cut[1], 4 * shown.points)
    drawn = ("f", shown.regularization)
    result = {
        "status": "completed",
        "axis": _rounded(axis),
        "maps": {name: _rounded(functions[name](grid)) for name in drawn},
        "minima": {name: _rounded(_minima(functions[name], grid)) for name in drawn},
        "cut": {
            "distance": _rounded(np.linalg.norm(cut - cut[0], axis=-1)),
            "points": _rounded(cut),
            **{name: _rounded(values(cut)) for name, values in functions.items()},
        },
        "witness_error": _witness_error(shown, functions),
    }
    report(1)
    return result, {}


def render(
    records: Sequence[Record], name: str, figures: Mapping[str, LandscapeFigure], folder: Path
) -> list[Path]:
    """Draws one of the figures from its record.

    Args:
        records: Any records of this experiment.
        name: The figure's.
        figures: What is shown, by name.
        folder: Of the figure.

    Returns:
        The files written; none without a record.
    """
    record = _record(records, name, figures[name])
    return [] if record is None else figure.draw(name, record, folder / name)


def has_records(
    records: Sequence[Record], name: str, figures: Mapping[str, LandscapeFigure]
) -> bool:
    """Whether any record is of this figure."""
    return _record(records, name, figures[name]) is not None


def _record(records: Sequence[Record], name: str, shown: LandscapeFigure) -> Record | None:
    for record in records:
        if record.run.case == name and record.run.settings == shown.configuration():
            return record
    return None


def _rounded(values: "Array") -> Any:
    # Adding zero turns -0.0 into 0.0.
    return (values.round(_DIGITS) + 0.0).tolist()


def _minima(values: Values, grid: "Array") -> "Array":
    """The local minima inside the grid as rows (x, y, value), the deepest first."""
    import numpy as np
    from scipy.ndimage import minimum_filter
    from scipy.optimize import minimize

    heights = values(grid)
    inside = np.zeros(heights.shape, dtype=bool)
    inside[1:-1, 1:-1] = True
    starts = grid[(heights == minimum_filter(heights, size=3)) & inside]
    found: list[Array] = []
    for start in starts:
        end = minimize(values, start, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 0.0})
        if not any(np.linalg.norm(end.x - other[:2]) < _SAME for other in found):
            found.append(np.array([*end.x, end.fun]))
    return np.stack(found)[np.argsort([height for _, _, height in found])]


def _witness_error(shown: LandscapeFigure, functions: Mapping[str, Values]) -> float:
    import numpy as np

    from lerh_tf.oracles import Landscape as Oracle
    from reproduce.landscapes.functions import FUNCTIONS

    oracle = Oracle(FUNCTIONS[shown.function], shown.tau)
    points = np.linspace(shown.cut[0], shown.cut[1], _WITNESSES)
    differences = [
        abs(float(functions[name](point[None])[0]) - float(exact(point).value))
        for name, exact in (("local_entropy", oracle.local_entropy), ("heat", oracle.heat))
        for point in points
    ]
    return max(differences)
