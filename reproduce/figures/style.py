"""What every figure shares: the methods' colours, sizes, how files are written."""

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from reproduce import storage

COLOURS = {"sgd": "#d62728", "sgld": "#1f4fd8", "hr": "#1a8a3a", "is": "#000000"}
"""The paper's: SGD red, SGLD blue, HR green, IS black."""

_PALEST = 0.6
_DASHES: tuple[Any, ...] = ((0, (1, 1)), (0, (4, 1.2)), "-")

_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}


def line(row: str, level: int = 0, levels: int = 1) -> dict[str, Any]:
    """Returns the look of a row's line.

    A variant of a method is dashed. Several lines of one row, as for several values of tau, go
    from pale and dotted to the row's own colour and drawn through.

    Args:
        row: Table 1's row.
        level: Which of the lines, from 0 on.
        levels: How many lines there are.
    """
    method, _, variant = row.partition("-")
    if levels == 1:
        dashes: Any = "--" if variant else "-"
        return {"color": COLOURS[method], "linestyle": dashes, "linewidth": 1.4}
    paleness = _PALEST * (1 - level / (levels - 1))
    return {
        "color": _mixed_with_white(COLOURS[method], paleness),
        "linestyle": _DASHES[round(level * (len(_DASHES) - 1) / (levels - 1))],
        "linewidth": 1.2 + 0.4 * level / (levels - 1),
    }


def new_figure(width: float = 5.5, height: float = 4.2) -> Figure:
    """Returns an empty figure in the house style, sizes in inches."""
    with mpl.style.context(["default", _SETTINGS]):
        return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `stem.png` and `stem.pdf`, each whole or not at all, equal figures as equal bytes.

    Returns:
        The files written.
    """
    kinds = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}}
    return [_save(figure, stem, kind, metadata) for kind, metadata in kinds.items()]


def settings() -> Any:
    """Returns the context in which axes are made and drawn on."""
    return mpl.style.context(["default", _SETTINGS])


def _mixed_with_white(colour: str, share: float) -> str:
    red, green, blue = (part + share * (1 - part) for part in to_rgb(colour))
    return to_hex((red, green, blue))


def _save(figure: Figure, stem: Path, kind: str, metadata: dict[str, None]) -> Path:
    target = stem.with_name(f"{stem.name}.{kind}")
    drawn = BytesIO()
    with settings():
        figure.savefig(drawn, format=kind, dpi=200, metadata=metadata)
    storage.write(target, drawn.getvalue(), stem.with_name(f".{stem.name}.{os.getpid()}.part"))
    return target
