"""What `make estimators` found, as tables and one figure, from records alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd

from benchmarks.estimators import accuracy, costs, figure, landscapes
from benchmarks.estimators.protocol import PROTOCOL, Protocol
from reproduce import tables
from reproduce.experiments import panels
from reproduce.experiments.base import RECORDS
from reproduce.protocols import Panels
from reproduce.records import Record, Store
from reproduce.summary import centre, spread

_MISSING = "-"
_EXPLODED = 1e3
_COST = ("ms", "over SGD's")


def render(
    store: Store, protocol: Protocol, seeds: Sequence[int], output: Path, figures: Path
) -> tuple[str, list[Path]]:
    """Writes the report, the errors as CSV and the figure.

    Args:
        store: Where the records are.
        protocol: What is shown, made or not.
        seeds: Of the trainings.
        output: Folder of the tables.
        figures: Folder of the figure.

    Returns:
        The report as Markdown, and the files written; no figure without a record.
    """
    suffix = "" if protocol is PROTOCOL else "-quick"
    measured = measured_errors(store, protocol)
    frame = error_frame(protocol, measured)
    parts = [
        "# Estimators of the mean",
        *([] if protocol is PROTOCOL else ["**A budget for a first look.**"]),
        _references(measured),
        _errors(frame[frame.noise == "independent"] if len(frame) else frame),
        _other_noise(frame),
        _bias(store, protocol),
        _costs(store, protocol),
        _training(store, protocol.training, seeds),
        _environment([*measured.values()]),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    stem = f"estimators{suffix}"
    written = tables.write(text, frame, output / stem)
    if not frame.empty:
        written += figure.draw(frame[frame.noise == "independent"], figures / stem)
    return text, written


def measured_errors(store: Store, protocol: Protocol) -> dict[tuple[int, float], Record]:
    """Returns the records of errors on the network, by place."""
    setup = protocol.accuracy
    found: dict[tuple[int, float], Record] = {}
    for record in store.scan(accuracy.NAME):
        execution = record.run.configuration["execution"]
        for place in [(u, t) for u in setup.updates for t in setup.taus]:
            if record.run.configuration == accuracy.configuration(setup, *place, execution):
                found.setdefault(place, record)
    return dict(sorted(found.items()))


def error_frame(protocol: Protocol, measured: Mapping[tuple[int, float], Record]) -> pd.DataFrame:
    """Returns a line per estimator and place: root mean square of the relative errors, seconds."""
    lines = []
    for (updates, tau), record in measured.items():
        for each in protocol.accuracy.estimators:
            label, errors = each.label, record.result["errors"][each.label]
            lines.append(
                {
                    "estimator": each.name,
                    "evaluations": each.evaluations,
                    "noise": each.noise,
                    "after": updates,
                    "tau": tau,
                    "error": float(np.sqrt(np.mean(np.square(errors)))),
                    "median_error": median(errors),
                    "seconds": record.timings.get("estimates", {}).get(label),
                }
            )
    return pd.DataFrame(lines)


def _references(measured: Mapping[tuple[int, float], Record]) -> str:
    if not measured:
        return ""
    lines = []
    for (updates, tau), record in measured.items():
        first, second = record.result["references"].values()
        lines.append(
            [
                updates,
                f"{tau:g}",
                ", ".join(sorted({one["by"] for one in first})),
                f"{median(one['effective_sample_size'] for one in first):.0f}",
                f"{max(one['chains_apart'] for one in first):.3f}",
                f"{max(one['samplers_apart'] for one in first):.3f}",
                f"{max(one['starts_apart'] for one in second):.3f}",
            ]
        )
    header = ["after", "tau", "Algorithm 1 by", "ESS", "chains apart", "samplers apart"]
    table = pd.DataFrame(lines, columns=[*header, "Algorithm 2's starts apart"])
    return "\n\n".join(
        [
            "## How converged the references are",
            table.to_markdown(index=False, disable_numparse=True),
            "Distances relative to |m - x|, the largest over minibatches: of two chains with step "
            "sizes tau / 20 and tau / 10, from x and from a draw of N(x, tau I), of their mean and "
            "importance sampling, and of Algorithm 2's root from x and from such a draw.",
        ]
    )


def _errors(frame: pd.DataFrame) -> str:
    if frame.empty:
        return ""
    named = frame.assign(place=[f"{u}, {t:g}" for u, t in zip(frame.after, frame.tau, strict=True)])
    places = list(dict.fromkeys(named.place))
    lines = []
    for (name, evaluations), group in named.groupby(["estimator", "evaluations"], sort=False):
        at = dict(zip(group.place, group.error, strict=True))
        seconds = [each for each in group.seconds if each == each]
        cells = [f"{at[place]:.2g}" if place in at else _MISSING for place in places]
        lines.append([name, evaluations, *cells, f"{1e3 * median(seconds):.1f}" if seconds else ""])
    table = pd.DataFrame(lines, columns=["estimator", "evaluations", *places, "ms"])
    return "\n\n".join(
        [
            "## Error of m, relative to |m - x|",
            table.to_markdown(index=False, disable_numparse=True),
            "Root mean square over minibatches and repetitions of the noise, at weights after so "
            "many updates and at tau; 1 is the error of not moving. Seconds of an estimate "
            "without Keras's train step, the median.",
        ]
    )


def _other_noise(frame: pd.DataFrame) -> str:
    """Errors under other noise over those under independent noise, where both were measured."""
    if frame.empty:
        return ""
    keys = ["estimator", "evaluations", "after", "tau"]
    plain = frame[frame.noise == "independent"].set_index(keys)
    other = frame[frame.noise != "independent"]
    lines = []
    for (name, evaluations, noise), group in other.groupby([*keys[:2], "noise"], sort=False):
        own = group.set_index(keys).error
        ratios = (own / plain.error.reindex(own.index)).groupby("tau").median()
        cells = [f"{one:.2f}" if one == one else _MISSING for one in ratios]
        lines.append([f"{name}, {noise}", evaluations, *cells])
    taus = sorted(set(other.tau))
    table = pd.DataFrame(lines, columns=["estimator", "evaluations", *(f"{t:g}" for t in taus)])
    return "\n\n".join(
        [
            "## Other noise",
            table.to_markdown(index=False, disable_numparse=True),
            "The error of m over that with independent noise at the same tau, the median over the "
            "weights: below 1 the other noise pays.",
        ]
    )


def _bias(store: Store, protocol: Protocol) -> str:
    setup = protocol.bias
    shown: dict[tuple[str, float, float], Record] = {}
    for record in store.scan(landscapes.NAME):
        execution = record.run.configuration["execution"]
        for site in setup.sites:
            if record.run.configuration == landscapes.configuration(setup, *site, execution):
                shown.setdefault(site, record)
    if not shown:
        return ""
    header = [f"{function}, x = {x:g}, tau = {tau:g}" for function, x, tau in shown]
    lines = []
    for each in setup.estimators:
        found = [record.result["found"][each.label] for record in shown.values()]
        lines.append([each.name, each.evaluations, *map(_bias_cell, found)])
    table = pd.DataFrame(lines, columns=["estimator", "evaluations", *header])
    return "\n\n".join(
        [
            "## Bias and standard deviation in one dimension",
            table.to_markdown(index=False, disable_numparse=True),
            f"Relative to the exact step by quadrature, over {setup.repetitions} repetitions; an "
            "update that is not valid does not move, a bias of -1.",
        ]
    )


def _bias_cell(found: Mapping[str, float]) -> str:
    if not abs(found["deviation"]) < _EXPLODED:
        return "explodes"
    return f"{found['bias']:+.3f} (s.e. {found['bias_error']:.3f}), {found['deviation']:.2g}"


def _costs(store: Store, protocol: Protocol) -> str:
    by_threads = {
        record.run.configuration["execution"]["threads"]: record.timings["updates"]
        for record in store.scan(costs.NAME)
        if record.run.configuration["turns"] == protocol.turns and "updates" in record.timings
    }
    if not by_threads:
        return ""
    lines = [
        [
            name,
            *(
                cell
                for _, seconds in sorted(by_threads.items())
                for cell in (
                    f"{1e3 * seconds[name]:.1f}",
                    f"{seconds[name] / seconds[costs.SGD]:.1f}",
                )
            ),
        ]
        for name in costs.METHODS
    ]
    columns = [f"{head}, {threads} threads" for threads in sorted(by_threads) for head in _COST]
    table = pd.DataFrame(lines, columns=["", *columns])
    return "\n\n".join(
        [
            "## Cost of a weight update",
            table.to_markdown(index=False, disable_numparse=True),
            f"Means over {protocol.turns} turns of the median over the updates of one, Keras's "
            "train step included, all of them in turns in one process per number of threads.",
        ]
    )


def _training(store: Store, protocol: Panels, seeds: Sequence[int]) -> str:
    records = store.scan(RECORDS)
    shown = panels.summarised(records, protocol, seeds, "auto")
    columns = sorted({update for panel in shown for update in panel.columns})
    lines = []
    for panel in shown:
        for row in panel.rows:
            own = _of(records, protocol, panel.title, row.name)
            cells = [
                f"{centre(values):.3f} ± {spread(values) or 0.0:.3f}" if values else _MISSING
                for values in (row.at(update) for update in columns)
            ]
            lines.append([row.name, *cells, _error_over_step(own), _moves(own), len(row.curves)])
    header = ["", *map(str, columns), "error / step", "moves", "seeds"]
    table = pd.DataFrame(lines, columns=header)
    if not any(line[-1] for line in lines):
        return ""
    return "\n\n".join(
        [
            "## Training with accurate means: held-out accuracy after N weight updates",
            table.to_markdown(index=False, disable_numparse=True),
            "Mean ± standard deviation over seeds, on Table 1's protocol. Error / step: the "
            "estimate's own standard error over its own, noisy step, the median along the "
            "training, without bias: near 1 or above it says only that most of the step is noise. "
            "How far from the mean such a step ends stands under the errors of m. Moves of "
            "Algorithm 5, the median, of at most so many.",
        ]
    )


def _of(records: Sequence[Record], protocol: Panels, title: str, name: str) -> list[Record]:
    settings = protocol.panels[title].cases()[name].configuration()
    return [one for one in records if one.run.settings == settings]


def _error_over_step(records: Sequence[Record]) -> str:
    ratios = [
        error / step
        for record in records
        if (found := record.result.get("diagnostics", {})).get("standard_error")
        for error, step in zip(found["standard_error"], found["step_norm"], strict=True)
        if step
    ]
    return f"{median(ratios):.2f}" if ratios else _MISSING


def _moves(records: Sequence[Record]) -> str:
    """Moves of Algorithm 5 until its tolerance was met, and how many there may be."""
    found = [
        (steps, record.run.configuration["method"]["steps"])
        for record in records
        for steps in record.result.get("diagnostics", {}).get("steps", ())
    ]
    if not found:
        return _MISSING
    made, most = zip(*found, strict=True)
    return f"{median(made):.0f} of {max(most)}"


def _environment(records: Sequence[Record]) -> str:
    ran_on = {
        f"{one.run.configuration['execution']['threads']} threads on "
        f"{one.environment['processor']}, TensorFlow {one.environment['tensorflow']}"
        for one in records
    }
    return "\n".join(f"- Run with {text}." for text in sorted(ran_on))
