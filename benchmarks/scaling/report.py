"""The measurements as tables and a figure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from benchmarks.scaling.measured import Measured
from reproduce.figures import style

PROCESSORS = tuple(2**power for power in range(11))
"""On which the model is evaluated: 1 to 1,024."""


def measurements(found: Sequence[Measured]) -> pd.DataFrame:
    """Returns a line per weight update: measured on one and two replicas, and the model's two."""
    return pd.DataFrame(
        [
            {
                "update": one.case.title,
                "s, L = 1": _with_spread(one.one),
                "s, L = 2": _with_spread(one.two),
                "efficiency": f"{one.efficiency:.2f}",
                "model's s, L = 2": f"{one.costs.seconds(2, np.inf, 0.0):.3f}",
                "shared s": f"{one.costs.shared:.3f}",
                "repeated s": f"{one.costs.repeated:.3f}",
                "kB sent": f"{one.costs.bytes / 1000:.1f}",
                "exchanges": str(one.costs.exchanges),
            }
            for one in found
        ]
    )


def model(found: Sequence[Measured], bandwidth: float, latency: float) -> pd.DataFrame:
    """Returns the modelled efficiency on each number of processors, a line per update.

    Args:
        found: what was measured.
        bandwidth: bytes per second between two processors.
        latency: seconds per step of an exchange.
    """
    rows = []
    for one in found:
        times = {L: one.costs.seconds(L, bandwidth, latency) for L in PROCESSORS}
        exchange = [L for L in times if one.costs.exchange(L, bandwidth, latency) > times[L] / 2]
        noise = [L for L in times if L > 1 and one.costs.repeated > times[L] / 2]
        efficiency = {f"L = {L}": f"{times[1] / (L * t):.2f}" for L, t in times.items() if L > 1}
        rows.append(
            {
                "update": one.case.title,
                **efficiency,
                "fastest L": str(min(times, key=lambda L: times[L])),
                "exchange is half from": str(exchange[0]) if exchange else "-",
                "repeated noise is half from": str(noise[0]) if noise else "-",
            }
        )
    return pd.DataFrame(rows)


def errors(found: Mapping[str, Sequence[float]], samples: Sequence[int]) -> pd.DataFrame:
    """Returns a line per estimator, the errors relative to the step."""
    return pd.DataFrame(
        [
            {
                "estimator": name,
                **{f"J = {J}": f"{e:.2g}" for J, e in zip(samples, own, strict=True)},
            }
            for name, own in found.items()
        ]
    )


def draw(
    found: Sequence[Measured],
    error: Mapping[str, Sequence[float]],
    samples: Sequence[int],
    network: tuple[float, float],
    stem: Path,
) -> list[Path]:
    """Draws seconds over processors, and the mean's error over samples.

    Args:
        found: what was measured.
        error: per estimator its errors.
        samples: at these numbers of samples.
        network: bandwidth and latency of the model.
        stem: the files' path without their endings.

    Returns:
        The files written.
    """
    with style.settings():
        figure = style.new_figure(10.0, 4.4)
        left, right = figure.subplots(1, 2)
        _scaling(left, found, network)
        for place, (name, own) in enumerate(error.items()):
            right.plot(samples, own, label=name, **style.level(place, len(error)))
        right.axhline(1.0, color="grey", linewidth=0.8, linestyle=":")
        right.set(xscale="log", yscale="log", xlabel="samples J, of all processors together")
        right.set(ylabel="error of m over |m - x|", title="One update's mean, tau = 0.01")
        right.legend()
        return style.save(figure, stem)


def _scaling(axes: Axes, found: Sequence[Measured], network: tuple[float, float]) -> None:
    for place, one in enumerate(found):
        look = style.level(place, len(found))
        times = [one.costs.seconds(L, *network) for L in PROCESSORS]
        axes.plot(PROCESSORS, times, label=one.case.title, **{**look, "marker": ""})
        axes.plot((1, 2), (median(one.one), median(one.two)), **{**look, "linestyle": ""})
    axes.set(xscale="log", yscale="log", xlabel="processors L", ylabel="seconds per weight update")
    axes.set_title("Modelled (lines) and measured (marks)")
    axes.set_xticks(PROCESSORS[::2], [str(L) for L in PROCESSORS[::2]], minor=False)
    axes.legend(fontsize="small")


def _with_spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.3f} ({min(seconds):.3f} - {max(seconds):.3f})"
