"""What every figure shares: the methods' colours, sizes, how files are written."""

import os
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.style
from matplotlib.figure import Figure

COLOURS = {"sgd": "#d62728", "sgld": "#1f4fd8", "hr": "#1a8a3a", "is": "#000000"}
"""The paper's: SGD red, SGLD blue, HR green, IS black."""

_SETTINGS: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "pdf.fonttype": 42,
}


def line(name: str) -> dict[str, Any]:
    """Returns colour and dashes of a method's line; a variant of a method is dashed."""
    method, _, variant = name.partition("-")
    return {"color": COLOURS[method], "linestyle": "--" if variant else "-"}


def new_figure(width: float = 5.5, height: float = 4.2) -> Figure:
    """Returns an empty figure in the house style, sizes in inches."""
    with mpl.style.context(["default", _SETTINGS]):
        return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path) -> list[Path]:
    """Writes `stem.png` and `stem.pdf`, each whole or not at all, equal figures as equal bytes.

    Returns:
        The files written.
    """
    stem.parent.mkdir(parents=True, exist_ok=True)
    kinds = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None}}
    return [_save(figure, stem, kind, metadata) for kind, metadata in kinds.items()]


def settings() -> Any:
    """Returns the context in which axes are made and drawn on."""
    return mpl.style.context(["default", _SETTINGS])


def _save(figure: Figure, stem: Path, kind: str, metadata: dict[str, None]) -> Path:
    target = stem.with_name(f"{stem.name}.{kind}")
    temporary = stem.with_name(f".{stem.name}.{os.getpid()}.part")
    try:
        with settings():
            figure.savefig(temporary, format=kind, dpi=200, metadata=metadata)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
