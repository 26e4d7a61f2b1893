"""Figures 1 and 2: a loss on R^2 beside its local entropy, and beside its heat regularization."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.ndimage import minimum_filter
from scipy.optimize import minimize

from reproduce import checks
from reproduce.experiments.illustration import rounded
from reproduce.figures import landscapes as figure
from reproduce.landscapes.convolution import Convolution
from reproduce.landscapes.functions import FUNCTIONS, Array

Point = tuple[float, float]
Values = Callable[[Array], Array]

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

    draw = staticmethod(figure.draw)
    EXPERIMENT: ClassVar[str] = "landscapes"

    function: str
    regularization: str
    tau: float
    half_width: float
    points: int
    cut: tuple[Point, Point]

    def __post_init__(self) -> None:
        checks.one_of("regularization", self.regularization, figure.SYMBOLS)
        checks.numbers(self)

    def compute(self) -> dict[str, Any]:
        """Returns the functions on the grid and along the cut, and their minima.

        `witness_error` is the largest difference between the convolution and the oracle's
        quadrature over a few points.
        """
        f = FUNCTIONS[self.function]
        corner = np.full(2, self.half_width)
        convolution = Convolution(f, self.tau, -corner, corner)
        functions: dict[str, Values] = {
            "f": f,
            "local_entropy": convolution.local_entropy,
            "heat": convolution.heat,
        }
        axis = np.linspace(-self.half_width, self.half_width, self.points)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
        cut = np.linspace(self.cut[0], self.cut[1], 4 * self.points)
        drawn = ("f", self.regularization)
        return {
            "axis": rounded(axis, _DIGITS),
            "maps": {name: rounded(functions[name](grid), _DIGITS) for name in drawn},
            "minima": {name: rounded(_minima(functions[name], grid), _DIGITS) for name in drawn},
            "cut": {
                "distance": rounded(np.linalg.norm(cut - cut[0], axis=-1), _DIGITS),
                "points": rounded(cut, _DIGITS),
                **{name: rounded(values(cut), _DIGITS) for name, values in functions.items()},
            },
            "witness_error": _witness_error(self, functions),
        }


FIGURES: Mapping[str, LandscapeFigure] = {
    "figure1": LandscapeFigure(
        "sharp_and_wide", "local_entropy", 0.06, 2.2, 101, ((-1.9, -0.7), (2.1, 1.3))
    ),
    "figure2": LandscapeFigure("textured", "heat", 0.02, 2.2, 101, ((-2.1, -1.26), (2.1, 1.26))),
}


def _minima(values: Values, grid: Array) -> Array:
    """The local minima inside the grid as rows (x, y, value), the deepest first."""
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
    from lerh_tf.oracles import Landscape as Oracle

    oracle = Oracle(FUNCTIONS[shown.function], shown.tau)
    points = np.linspace(shown.cut[0], shown.cut[1], _WITNESSES)
    differences = [
        abs(float(functions[name](point[None])[0]) - float(exact(point).value))
        for name, exact in (("local_entropy", oracle.local_entropy), ("heat", oracle.heat))
        for point in points
    ]
    return max(differences)
