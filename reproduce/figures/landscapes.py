"""A loss on R^2 beside its regularization as maps, minima marked, and a cut through both."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from reproduce.figures import style
from reproduce.records import Record

SYMBOLS = {"local_entropy": r"$F_\tau$", "heat": r"$F^H_\tau$"}
"""How the regularizations are written."""

_LOOKS = {
    "f": ("loss $f$", "0.2", "-"),
    "local_entropy": (r"local entropy $F_\tau$", style.COLOURS["sgld"], "--"),
    "heat": (r"heat regularization $F^H_\tau$", style.COLOURS["hr"], "-."),
}
"""Names, colours, those of a method that minimises it, and dashes."""

_COLOUR_MAP = "cividis"
_LEVELS = 14
_FEW = 4
"""So many minima can have their depths beside them."""

_MINIMUM: dict[str, Any] = {
    "marker": "o",
    "linestyle": "none",
    "markersize": 4,
    "markerfacecolor": "white",
    "markeredgecolor": "black",
    "markeredgewidth": 0.7,
}
_DEPTH: dict[str, Any] = {
    "xytext": (0, 10),
    "textcoords": "offset points",
    "ha": "center",
    "color": "white",
    "fontsize": 7,
    "bbox": {"facecolor": "black", "alpha": 0.6, "pad": 1, "linewidth": 0},
}
_DEEPEST = _MINIMUM | {"marker": "*", "markersize": 10}


def draw(record: Record, stem: Path) -> list[Path]:
    """Draws Figure 1 or 2 into `stem.png` and `stem.pdf`, the plotted values into `stem.csv`.

    Args:
        record: Of one of them.
        stem: The files' path without suffix.

    Returns:
        The files written.
    """
    settings, result = record.run.configuration, record.result
    shown = ("f", settings["regularization"])
    maps = np.array([result["maps"][each] for each in shown])
    figure = style.new_figure(width=5.5, height=5.6)
    with style.settings():
        panels = figure.subplot_mosaic([["f", "map"], ["cut", "cut"]], height_ratios=(1.35, 1))
        limits = float(maps.min()), float(maps.max())
        for letter, key, each, values in zip("ab", ("f", "map"), shown, maps, strict=True):
            image = _map(panels[key], result, values, limits)
            panels[key].set_title(f"({letter}) {_LOOKS[each][0]}", fontsize=9)
            _mark(panels[key], result["minima"], each)
            panels[key].plot(
                *np.transpose(settings["cut"]), color="white", linestyle=":", linewidth=1
            )
        panels["map"].set_ylabel("")
        bar = figure.colorbar(image, ax=[panels["f"], panels["map"]], aspect=18, pad=0.02)
        bar.set_label("value (nats)")
        _cut(panels["cut"], result["cut"], shown[1], settings["tau"])
        handles = panels["f"].get_legend_handles_labels()[0]
        handles += panels["cut"].get_legend_handles_labels()[0]
        figure.legend(handles=handles, loc="outside lower center", ncols=2, fontsize=8)
    return style.save(figure, stem, _plotted(result, shown))


def _map(
    axes: Axes, result: Mapping[str, Any], values: Any, limits: tuple[float, float]
) -> AxesImage:
    axis = np.array(result["axis"])
    extent = (axis[0], axis[-1], axis[0], axis[-1])
    image = axes.imshow(
        values.T,
        origin="lower",
        extent=extent,
        cmap=_COLOUR_MAP,
        vmin=limits[0],
        vmax=limits[1],
        interpolation="bicubic",
    )
    levels = np.linspace(*limits, _LEVELS)
    axes.contour(axis, axis, values.T, levels, colors="white", linewidths=0.4, linestyles="solid")
    axes.grid(visible=False)
    axes.set_xlabel("$x_1$")
    axes.set_ylabel("$x_2$")
    return image


def _mark(axes: Axes, minima: Mapping[str, Any], name: str) -> None:
    x, y, depth = np.array(minima[name]).T
    are_few = max(map(len, minima.values())) <= _FEW
    others, deepest = (", above the deepest by", ", its value") if are_few else ("", "")
    axes.plot(x[1:], y[1:], label=f"local minimum{others}", **_MINIMUM)
    axes.plot(x[:1], y[:1], label=f"deepest minimum{deepest}", **_DEEPEST)
    for at in range(len(depth) if are_few else 0):
        text = f"${depth[0]:.2f}$" if at == 0 else f"${depth[at] - depth[0]:+.2f}$"
        axes.annotate(text, (x[at], y[at]), **_DEPTH)


def _cut(axes: Axes, cut: Mapping[str, Any], regularization: str, tau: float) -> None:
    for name, (label, colour, dashes) in _LOOKS.items():
        width = 1.6 if name in ("f", regularization) else 0.9
        axes.plot(cut["distance"], cut[name], dashes, color=colour, linewidth=width, label=label)
    axes.set_xlim(0, cut["distance"][-1])
    axes.set_xlabel("distance along the dotted line")
    axes.set_ylabel("value (nats)")
    axes.set_title(rf"(c) along the dotted line; $\tau = {tau:g}$", fontsize=9)


def _plotted(result: Mapping[str, Any], shown: tuple[str, ...]) -> pd.DataFrame:
    axis, cut = result["axis"], result["cut"]
    x1, x2 = (values.ravel() for values in np.meshgrid(axis, axis, indexing="ij"))
    parts = [
        *[(name, x1, x2, np.ravel(result["maps"][name])) for name in shown],
        *[(f"minima of {name}", *np.transpose(result["minima"][name])) for name in shown],
        *[(f"cut of {name}", *np.transpose(cut["points"]), cut[name]) for name in _LOOKS],
    ]
    columns = ("panel", "x1", "x2", "value")
    return pd.concat(pd.DataFrame(dict(zip(columns, part, strict=True))) for part in parts)
