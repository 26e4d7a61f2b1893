"""Figure 3: the mode-seeking and the mean-seeking best Gaussian of a bimodal density."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reproduce import checks
from reproduce.figures import gaussians as figure
from reproduce.records import Record, Run
from reproduce.runner import Job, Outcome, Report

if TYPE_CHECKING:
    from reproduce.landscapes.functions import Array

NAME = "gaussians"
FIGURE = "figure3"

_SEED = 0
_DIGITS = 9


@dataclass(frozen=True)
class Approximation:
    """What the figure shows; the paper's is a cartoon without a formula.

    f(v) = -log cosh(steepness v), so that q_{x,tau} is a mixture of two Gaussians of variance tau
    about -steepness tau and steepness tau, moved by x and weighted by exp(-+ steepness x). Only
    the mean of the approximating Gaussian is free, its variance is tau, as in Algorithms 1 and 2.

    Args:
        steepness: Of f; the modes are about 2 steepness sqrt(tau) standard deviations apart.
        tau: Variance of the Gaussians, the paper's tau.
        x: The weights x_k that q is formed at.
        half_width: The densities are drawn from minus this to this.
        points: Points of each curve.
    """

    steepness: float = 2.2
    tau: float = 1.0
    x: float = 0.12
    half_width: float = 6.0
    points: int = 241

    def __post_init__(self) -> None:
        for name in ("steepness", "tau", "half_width"):
            checks.positive_number(name, getattr(self, name))
        checks.positive_integer("points", self.points)


def jobs(shown: Approximation, execution: Mapping[str, Any]) -> list[Job]:
    """Returns the figure's run; nothing is drawn at random, so the seed is always 0.

    Args:
        shown: What is shown.
        execution: How this process executes: part of the run's configuration.
    """
    configuration = dataclasses.asdict(shown) | {"execution": dict(execution)}
    return [
        Job(
            run=Run(NAME, FIGURE, _SEED, configuration),
            steps=1,
            execute=partial(run, shown),
        )
    ]


def run(shown: Approximation, report: Report) -> Outcome:
    """Computes q, its best Gaussians by the exact steps of Algorithms 1 and 2, and the divergences.

    Returns:
        The record's result, and no timings.
    """
    import numpy as np

    from lerh_tf.oracles import Landscape, heat_minimizers, local_entropy_step

    def f(v: "Array") -> "Array":
        u = shown.steepness * v[..., 0]
        return np.asarray(np.log(2.0) - np.logaddexp(u, -u))

    landscape, x = Landscape(f, shown.tau), shown.x
    v = np.linspace(-shown.half_width, shown.half_width, shown.points)
    mean = local_entropy_step(landscape, x).value
    modes = [minimiser.value for minimiser in heat_minimizers(landscape, x)]

    def minimum(m: "Array", divergence: Any) -> dict[str, Any]:
        return {
            "mean": _rounded(m)[0],
            "divergence": _rounded(divergence(m, x).value),
            "density": _rounded(np.exp(landscape.gaussian(m).log_density(v[:, None]))),
        }

    result = {
        "status": "completed",
        "v": _rounded(v),
        "f": _rounded(f(v[:, None])),
        "q": _rounded(np.exp(landscape.density(x).log_density(v[:, None]))),
        "mean_seeking": {
            "divergence": _rounded(np.array([landscape.kl_mean_seeking(m, x).value for m in v])),
            "minimisers": [minimum(mean, landscape.kl_mean_seeking)],
        },
        "mode_seeking": {
            "divergence": _rounded(np.array([landscape.kl_mode_seeking(m, x).value for m in v])),
            "minimisers": [minimum(m, landscape.kl_mode_seeking) for m in modes],
        },
    }
    report(1)
    return result, {}


def render(records: Sequence[Record], shown: Approximation, folder: Path) -> list[Path]:
    """Draws the figure from its record.

    Args:
        records: Any records of this experiment.
        shown: What is shown.
        folder: Of the figure.

    Returns:
        The files written; none without a record.
    """
    record = _record(records, shown)
    return [] if record is None else figure.draw(record, folder / FIGURE)


def has_records(records: Sequence[Record], shown: Approximation) -> bool:
    """Whether any record is of this figure."""
    return _record(records, shown) is not None


def _record(records: Sequence[Record], shown: Approximation) -> Record | None:
    for record in records:
        if record.run.settings == dataclasses.asdict(shown):
            return record
    return None


def _rounded(values: "Array") -> Any:
    # Adding zero turns -0.0 into 0.0.
    return (values.round(_DIGITS) + 0.0).tolist()
