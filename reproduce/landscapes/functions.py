"""Losses on R and R^2, each one formula for NumPy and for TensorFlow.

A formula is given the array library and uses `exp`, `cos` and arithmetic alone: the oracles
evaluate `loss(v, numpy)` and the kernels `loss(v, tensorflow)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Formula = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Function:
    """A loss f.

    Args:
        name: What protocols know it by.
        dimension: 1 or 2.
        loss: Maps points (..., dimension) and an array library to values (...).
    """

    name: str
    dimension: int
    loss: Formula

    def __call__(self, v: Array) -> Array:
        """Returns the values at NumPy points (..., dimension), shape (...)."""
        return np.asarray(self.loss(v, np), dtype=np.float64)


def sharp_and_wide(v: Any, xp: Any) -> Any:
    """Two sharp minima, one of them the deepest, and a wide one (Figure 1)."""
    return (
        0.08 * (v[..., 0] ** 2 + v[..., 1] ** 2)
        - _well(v, xp, (-0.9, -0.2), depth=3.0, width=0.75)
        - _well(v, xp, (1.1, 0.8), depth=4.2, width=0.16)
        - _well(v, xp, (0.9, -1.1), depth=3.0, width=0.16)
    )


def textured(v: Any, xp: Any) -> Any:
    """Two deep minima under a fine texture (Figure 2)."""
    u, w = v[..., 0], v[..., 1]
    texture = xp.cos(11.0 * u + 2.0 * w) * xp.cos(10.0 * w - 3.0 * u)
    return (
        0.08 * (u**2 + w**2)
        - _well(v, xp, (-1.03, -0.62), depth=3.0, width=0.6)
        - _well(v, xp, (1.03, 0.62), depth=2.4, width=0.6)
        + 0.25 * texture
    )


def _well(v: Any, xp: Any, centre: tuple[float, float], depth: float, width: float) -> Any:
    square = (v[..., 0] - centre[0]) ** 2 + (v[..., 1] - centre[1]) ** 2
    return depth * xp.exp(-square / (2.0 * width**2))


_FORMULAS: dict[str, tuple[int, Formula]] = {
    # The one landscape on which both algorithms move alike.
    "quadratic": (1, lambda v, xp: 0.75 * (v[..., 0] - 0.5) ** 2),
    # Two wells of unequal depth.
    "double_well": (1, lambda v, xp: (v[..., 0] ** 2 - 1.0) ** 2 + 0.5 * v[..., 0]),
    # Two equal wells, deep enough for Algorithm 2 to leave the ridge between them.
    "symmetric_double_well": (1, lambda v, xp: 4.0 * (v[..., 0] ** 2 - 1.0) ** 2),
    # Many minima of unequal depth in a bowl.
    "multimodal": (
        1,
        lambda v, xp: (
            0.1 * v[..., 0] ** 2
            + 0.8 * xp.cos(4.0 * v[..., 0])
            + 0.3 * xp.cos(7.0 * v[..., 0] + 1.0)
        ),
    ),
    # A well in a plain where the gradient vanishes.
    "plateau": (1, lambda v, xp: 2.0 * (1.0 - xp.exp(-0.5 * v[..., 0] ** 2))),
    # A straight slope, whose exp(-f) is not integrable.
    "slope": (1, lambda v, xp: 1.5 * v[..., 0]),
    # A high plain with one deep hole in it.
    "pinhole": (1, lambda v, xp: 20.0 * (1.0 - xp.exp(-50.0 * v[..., 0] ** 2))),
    # A curved valley with a slope along it.
    "bent_valley": (
        2,
        lambda v, xp: 0.5 * (1.0 - v[..., 0]) ** 2 + (v[..., 1] - v[..., 0] ** 2) ** 2,
    ),
    # A lattice of minima in a bowl.
    "egg_box": (
        2,
        lambda v, xp: (
            0.1 * (v[..., 0] ** 2 + v[..., 1] ** 2)
            + xp.cos(3.0 * v[..., 0]) * xp.cos(3.0 * v[..., 1])
        ),
    ),
    "sharp_and_wide": (2, sharp_and_wide),
    "textured": (2, textured),
}

FUNCTIONS = {name: Function(name, *formula) for name, formula in _FORMULAS.items()}
"""Every function by its name."""
