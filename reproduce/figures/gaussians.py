"""A bimodal q, its best Gaussians of fixed variance, and the divergences they minimise."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from reproduce.figures import style
from reproduce.records import Record

_TITLES = {
    "mode_seeking": r"mode-seeking: KL$(\varphi_m\,\|\,q)$",
    "mean_seeking": r"mean-seeking: KL$(q\,\|\,\varphi_m)$",
}
# Heat regularization seeks the mode, local entropy the mean.
_COLOURS = {"mode_seeking": style.COLOURS["hr"], "mean_seeking": style.COLOURS["sgld"]}
_LABELS = (r"best $N(m, {tau:g})$, its variance fixed", "the other local minimiser")
_DASHES: tuple[Literal["-"], Literal["--"]] = ("-", "--")
_MARKERS = ("o", "s")
_HEADROOM = 4.0
"""The divergences are drawn up to so many times the largest one at a minimiser."""


def draw(record: Record, stem: Path) -> list[Path]:
    """Draws Figure 3 into `stem.png` and `stem.pdf`, the plotted values into `stem.csv`.

    Args:
        record: The figure's.
        stem: The files' path without suffix.

    Returns:
        The files written.
    """
    result, tau = record.result, record.run.configuration["tau"]
    figure = style.new_figure(width=5.5, height=4.1)
    with style.settings():
        panels = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=(1.4, 1))
        for column, name in enumerate(_TITLES):
            above, below = panels[0, column], panels[1, column]
            _densities(above, result, name)
            _divergence(below, result, name)
            above.set_title(f"({'ab'[column]}) {_TITLES[name]}", fontsize=9)
            below.set_xlabel(r"$v$, and the mean $m$ of $\varphi_m$")
        panels[0, 0].set_ylabel("density")
        panels[1, 0].set_ylabel("KL (nats)")
        highest = max(one["divergence"] for name in _TITLES for one in _kept(result, name))
        panels[1, 0].set_ylim(0, _HEADROOM * highest)
        panels[0, 0].set_ylim(0, None)
        figure.legend(
            handles=_handles(tau), loc="outside lower center", ncols=3, fontsize=8, handlelength=3
        )
    return style.save(figure, stem, _plotted(result))


def _densities(axes: Axes, result: Mapping[str, Any], name: str) -> None:
    v, colour = result["v"], _COLOURS[name]
    axes.fill_between(v, result["q"], color="0.8", linewidth=0)
    axes.plot(v, result["q"], color="0.35", linewidth=1.0)
    for place, minimiser in enumerate(_kept(result, name)):
        axes.plot(v, minimiser["density"], _DASHES[place], color=colour, linewidth=1.6)
        axes.axvline(minimiser["mean"], color=colour, linestyle=":", linewidth=0.8)
    axes.set_xlim(v[0], v[-1])


def _divergence(axes: Axes, result: Mapping[str, Any], name: str) -> None:
    colour = _COLOURS[name]
    axes.plot(result["v"], result[name]["divergence"], color=colour, linewidth=1.4)
    for place, minimiser in enumerate(_kept(result, name)):
        x, y = minimiser["mean"], minimiser["divergence"]
        face = colour if place == 0 else "white"
        axes.plot(x, y, _MARKERS[place], color=colour, markerfacecolor=face, markersize=5)
        axes.axvline(x, color=colour, linestyle=":", linewidth=0.8)


def _handles(tau: float) -> list[Artist]:
    lines = [
        Line2D(
            [],
            [],
            color="black",
            linestyle=_DASHES[place],
            marker=_MARKERS[place],
            markersize=5,
            markerfacecolor="black" if place == 0 else "white",
            label=label.format(tau=tau),
        )
        for place, label in enumerate(_LABELS)
    ]
    return [Patch(facecolor="0.8", edgecolor="0.35", label="density $q$"), *lines]


def _kept(result: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """The global minimiser, and the next one if there are more."""
    return list(result[name]["minimisers"])[: len(_LABELS)]


def _plotted(result: Mapping[str, Any]) -> pd.DataFrame:
    v, parts, minimisers = result["v"], [("q", result["v"], result["q"])], []
    for name in _TITLES:
        parts.append((f"divergence {name}", v, result[name]["divergence"]))
        for place, one in enumerate(_kept(result, name), 1):
            parts.append((f"gaussian {name} {place}", v, one["density"]))
            minimisers.append((f"minimiser {name} {place}", [one["mean"]], [one["divergence"]]))
    columns = ("curve", "v", "value")
    return pd.concat(
        pd.DataFrame(dict(zip(columns, part, strict=True))) for part in [*parts, *minimisers]
    )
