"""The map as a page: sentences, a figure, and a table per task, from records alone."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from examples.map import figure, findings, statistics
from examples.map.findings import Finding, Found
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL
from examples.map.statistics import Difference
from reproduce import tables
from reproduce.records import Store

_NOT_RUN = "**Not run yet.** The code and the protocol are here, the records are not."
_MISSING = "-"
_OF_INVENTORY = "share of the base-stock rule's cost that is saved"


def render(store: Store, plan: Plan, page: Path, stem: Path) -> tuple[str, list[Path]]:
    """Writes the page and, if there is a whole task, the figure with the plotted values beside it.

    Args:
        store: Where the records are.
        plan: What the protocol says and what updates cost.
        page: The page's path.
        stem: The figure's path without an ending.

    Returns:
        The page as Markdown, and the files written.
    """
    found = findings.findings(plan, store) if plan.can_run else []
    whole = [one for one in found if one.contrast is not None]
    drawn = figure.draw(figure.frame(whole), stem) if whole else []
    text = markdown(found, plan, f"../{stem.parent.name}/{stem.name}.png" if whole else None)
    tables.write_text(page, text)
    return text, [page, *drawn]


def markdown(found: Sequence[Finding], plan: Plan, picture: str | None) -> str:
    """Returns the page.

    Args:
        found: What the records say.
        plan: What the protocol says.
        picture: Where the figure lies, seen from the page; None for none.
    """
    quick = [] if plan.protocol == PROTOCOL else ["**A budget that shows only that it runs.**"]
    parts = [
        "# What it is good for",
        *quick,
        _introduction(plan),
        *(_sentences(found) if any(one.methods for one in found) else [_NOT_RUN]),
        *([f"![The map]({picture})"] if picture else []),
        *(_task(one) for one in found if one.methods),
        _method(plan),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(plan: Plan) -> str:
    return (
        "Local entropy and heat regularization beside what one would use otherwise: "
        f"{sum(task.primary for task in plan.protocol.tasks)} tasks, every method tuned by "
        f"{plan.protocol.trials} trials and given the same time, {len(plan.protocol.seeds)} fresh "
        "seeds. `make map` makes all of it; this page is written from the records by "
        "`python -m examples.map report`."
    )


def _sentences(found: Sequence[Finding]) -> list[str]:
    differ, equal = findings.gains(found), findings.equalities(found)
    lines = []
    for one in found:
        name, contrast = one.task.name, one.contrast
        if contrast is None:
            lines.append(f"- **{_start(one.task.title)}**: not run to its end yet.")
            continue
        each = contrast.difference
        if one.task.primary:
            says = findings.verdict(each, differ[name], equal[name], one.task.bound)
        else:
            says = "secondary, not tested"
        lines.append(
            f"- **{_start(one.task.title)}**: {contrast.ours.title} against "
            f"{contrast.rival.title}: {says} ({interval(each)}; "
            f"{contrast.ours.average('test'):.3f} against {contrast.rival.average('test'):.3f})."
        )
    return [
        "\n".join(lines),
        "In brackets the mean difference of test scores with its 95 % interval, then both means. "
        "*Gains* and *loses*: the difference is not 0 by a t test with Holm's correction over the "
        "primary tasks. *Equal within the bound*: two one-sided tests, corrected likewise, show "
        "that it is smaller than the bound stated beforehand. *No gain shown*: neither, which is "
        "no proof of equality.",
    ]


def _task(one: Finding) -> str:
    scored = _OF_INVENTORY if one.task.kind == "control" else "accuracy"
    lines = [_row(one, method) for method in one.methods]
    header = ["method", "chosen by", "validation", "test", "less the rival"]
    names = [
        name for name in ("nll", "ece", "gap", "trace") if all(m.has(name) for m in one.methods)
    ]
    table = pd.DataFrame([line[: len(header)] for line in lines], columns=header)
    for name in names:
        table[name] = [f"{method.average(name):.3g}" for method in one.methods]
    table["settings"] = [line[-1] for line in lines]
    parts = [
        f"## {_start(one.task.title)}",
        table.to_markdown(index=False, disable_numparse=True),
        f"Score: {scored}. *Chosen by*: the best trial's validation score, the one that decided.",
    ]
    if one.missing:
        parts.append(f"Missing: {', '.join(one.missing)}.")
    return "\n\n".join([*parts, *_flatness(one)])


def _row(one: Finding, method: Found) -> list[str]:
    against = one.against_rival(method)
    is_rival = one.contrast is not None and method is one.contrast.rival
    settings = ", ".join(f"{name} {value:g}" for name, value in method.settings.items())
    return [
        f"**{method.title}**" if method.is_ours else method.title,
        f"{method.tuning:.3f}",
        f"{method.average('validation'):.3f}",
        f"{method.average('test'):.3f} ± {method.deviation('test'):.3f}",
        "the rival" if is_rival else _MISSING if against is None else interval(against),
        settings,
    ]


def _flatness(one: Finding) -> list[str]:
    """Whether methods that find flatter weights err less."""
    sentences = []
    for name, title in (("gap", "F_tau - f"), ("trace", "the Hessian's trace")):
        if not all(method.has(name) for method in one.methods):
            continue
        found = statistics.rank_correlation(
            [method.average(name) for method in one.methods],
            [1.0 - method.average("test") for method in one.methods],
        )
        if found is not None:
            sentences.append(
                f"Rank correlation of {title} with the test error over the "
                f"{len(one.methods)} methods: {found[0]:+.2f} (p = {found[1]:.2f})."
            )
    return [" ".join(sentences)] if sentences else []


def _method(plan: Plan) -> str:
    protocol = plan.protocol
    lines = [
        [
            task.title,
            task.network,
            task.data,
            str(task.training),
            f"{task.seconds:g} s",
            f"{task.bound:g}",
            "yes" if task.primary else "no",
            "; ".join(_budget(plan, task.name, name) for name in task.methods),
        ]
        for task in protocol.tasks
    ]
    header = ["task", "network", "data", "training", "budget", "bound", "primary", "updates"]
    return "\n\n".join(
        [
            "## How it was measured",
            pd.DataFrame(lines, columns=header).to_markdown(index=False, disable_numparse=True),
            f"The protocol, `examples/map/protocol.py`, was committed before any result: what is "
            f"searched where, budgets, bounds, seeds {protocol.seeds[0]} to {protocol.seeds[-1]}, "
            f"tuning on seed {protocol.tuning_seed}. Flatness is measured on "
            f"{protocol.flatness_examples} training examples with the labels trained on: *gap*, "
            f"F_tau - f at tau = {protocol.flatness_tau:g}, and *trace*, the Hessian's. *nll* and "
            "*ece*: negative log-likelihood and expected calibration error on the test set. With "
            "wrong labels the validation labels are as wrong as the training labels.",
        ]
    )


def _budget(plan: Plan, task: str, method: str) -> str:
    title = findings.title_of(method, plan.protocol.task(task))
    return f"{title} {plan.updates((task, method))}" if plan.can_run else title


def interval(each: Difference) -> str:
    """Returns a mean with its interval."""
    return f"{each.mean:+.3f} [{each.low:+.3f}, {each.high:+.3f}]"


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]
