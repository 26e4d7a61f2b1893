"""What every figure shares: the methods' colours, sizes, how files are written."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from reproduce import storage, tables

COLOURS = {"sgd": "#d55e00", "sgld": "#0072b2", "hr": "#009e73", "is": "#000000"}
"""The paper's, SGD red, SGLD blue, HR green, IS black, in Okabe and Ito's hues for all eyes."""

ROWS: dict[str, tuple[Any, str]] = {
    "sgd": ("-", "o"),
    "is": ((0, (6, 1.5)), "s"),
    "sgld": ((0, (5, 1.2, 1, 1.2)), "^"),
    "hr": ((0, (1.2, 1)), "v"),
    "sgld-linear": ((0, (2.5, 1.2)), "D"),
    "sgld-paper": ((0, (7, 1.2, 2, 1.2)), "X"),
}
"""How the line of each of Table 1's rows is dashed, and its marker."""

_LEVELS: list[tuple[Any, str]] = list(
    zip(("-", (0, (4, 1.2)), (0, (1.2, 1))) * 3, "osDv^PX<>", strict=True)
)
_LIGHTEST = 0.78
_LINE = {"linewidth": 1.4, "markersize": 5.0, "markeredgecolor": "white", "markeredgewidth": 0.5}

_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}


def line(row: str) -> dict[str, Any]:
    """Returns the look of a row of Table 1: its method's colour, dashes and a marker of its own."""
    return _look(COLOURS[row.partition("-")[0]], *ROWS[row])


def level(which: int, among: int, beside: int = 0) -> dict[str, Any]:
    """Returns the look of one of several values, from light to dark.

    Args:
        which: The value's place, from 0 on.
        among: How many values there are.
        beside: How many rows of Table 1 are shown too, whose first markers are not taken again.
    """
    share = _LIGHTEST * (1 - which / max(1, among - 1))
    return _look(to_hex(mpl.colormaps["viridis"](share)), *_LEVELS[(which + beside) % len(_LEVELS)])


def _look(colour: str, dashes: Any, marker: str) -> dict[str, Any]:
    return {"color": colour, "linestyle": dashes, "marker": marker} | _LINE


def new_figure(width: float = 5.5, height: float = 4.2) -> Figure:
    """Returns an empty figure in the house style, sizes in inches."""
    with settings():
        return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path, values: pd.DataFrame | None = None) -> list[Path]:
    """Writes `stem.png` and `stem.pdf`, each whole or not at all, equal figures as equal bytes.

    Args:
        figure: What is drawn.
        stem: The files' path without suffix.
        values: What is plotted, for `stem.csv`.

    Returns:
        The files written.
    """
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}}
    written = []
    for kind, metadata in undated.items():
        drawn = BytesIO()
        with settings():
            figure.savefig(drawn, format=kind, dpi=200, metadata=metadata)
        written.append(stem.with_name(f"{stem.name}.{kind}"))
        storage.write(written[-1], drawn.getvalue())
    return written if values is None else [*written, tables.write_csv(values, stem)]


def settings() -> Any:
    """Returns the context in which axes are made and drawn on."""
    return mpl.style.context(["default", _SETTINGS])
