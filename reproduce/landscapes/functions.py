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


def quadratic(v: Any, xp: Any) -> Any:
    """The one landscape on which both algorithms move alike."""
    del xp
    return 0.75 * (v[..., 0] - 0.5) ** 2


def double_well(v: Any, xp: Any) -> Any:
    """Two wells of unequal depth."""
    del xp
    return (v[..., 0] ** 2 - 1.0) ** 2 + 0.5 * v[..., 0]


def symmetric_double_well(v: Any, xp: Any) -> Any:
    """Two equal wells, deep enough for Algorithm 2 to leave the ridge between them."""
    del xp
    return 4.0 * (v[..., 0] ** 2 - 1.0) ** 2


def multimodal(v: Any, xp: Any) -> Any:
    """Many minima of unequal depth in a bowl."""
    u = v[..., 0]
    return 0.1 * u**2 + 0.8 * xp.cos(4.0 * u) + 0.3 * xp.cos(7.0 * u + 1.0)


def plateau(v: Any, xp: Any) -> Any:
    """A well in a plain where the gradient vanishes."""
    return 2.0 * (1.0 - xp.exp(-0.5 * v[..., 0] ** 2))


def slope(v: Any, xp: Any) -> Any:
    """A straight slope, whose exp(-f) is not integrable."""
    del xp
    return 1.5 * v[..., 0]


def pinhole(v: Any, xp: Any) -> Any:
    """A high plain with one deep hole in it."""
    return 20.0 * (1.0 - xp.exp(-50.0 * v[..., 0] ** 2))


def bent_valley(v: Any, xp: Any) -> Any:
    """Two dimensions: a curved valley with a slope along it."""
    del xp
    u, w = v[..., 0], v[..., 1]
    return 0.5 * (1.0 - u) ** 2 + (w - u**2) ** 2


def egg_box(v: Any, xp: Any) -> Any:
    """Two dimensions: a lattice of minima in a bowl."""
    u, w = v[..., 0], v[..., 1]
    return 0.1 * (u**2 + w**2) + xp.cos(3.0 * u) * xp.cos(3.0 * w)


def sharp_and_wide(v: Any, xp: Any) -> Any:
    """Two dimensions: two sharp minima, one of them the deepest, and a wide one (Figure 1)."""
    return (
        0.08 * (v[..., 0] ** 2 + v[..., 1] ** 2)
        - _well(v, xp, (-0.9, -0.2), depth=3.0, width=0.75)
        - _well(v, xp, (1.1, 0.8), depth=4.2, width=0.16)
        - _well(v, xp, (0.9, -1.1), depth=3.0, width=0.16)
    )


def textured(v: Any, xp: Any) -> Any:
    """Two dimensions: two deep minima under a fine texture (Figure 2)."""
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


FUNCTIONS: dict[str, Function] = {
    formula.__name__: Function(formula.__name__, dimension, formula)
    for dimension, formulas in (
        (1, (quadratic, double_well, symmetric_double_well, multimodal, plateau, slope, pinhole)),
        (2, (bent_valley, egg_box, sharp_and_wide, textured)),
    )
    for formula in formulas
}
"""Every function by its name."""
