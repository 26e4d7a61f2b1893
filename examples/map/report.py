"""The map as a page: sentences, a figure, and a table per task, from records alone."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from examples.map import figure, findings, how_measured, statistics
from examples.map.findings import Finding, Found
from examples.map.jobs import Plan
from examples.map.protocol import PROTOCOL, RATES
from examples.map.statistics import Difference
from reproduce import tables
from reproduce.records import Archive

_NOT_RUN = "**Not run yet.** The code and the protocol are here, the records are not."
_MISSING = "-"
_OF_INVENTORY = "share of the base-stock rule's cost that is saved"


def render(archive: Archive, plan: Plan, page: Path, stem: Path) -> tuple[str, list[Path]]:
    """Writes the page and, if there is a whole task, the figure with the plotted values beside it.

    Args:
        archive: Where the records are.
        plan: What the protocol says and what updates cost.
        page: The page's path.
        stem: The figure's path without an ending.

    Returns:
        The page as Markdown, and the files written.
    """
    found = findings.findings(plan, archive) if plan.can_run else []
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
        *(_task(one, plan) for one in found if one.methods),
        how_measured.section(plan),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(plan: Plan) -> str:
    return (
        "Local entropy and heat regularization beside what one would use otherwise: "
        f"{sum(task.primary for task in plan.protocol.tasks)} tasks, every method tuned by "
        f"{plan.protocol.trials} trials and given the same time at most, "
        f"{len(plan.protocol.seeds)} fresh seeds. `make map` makes all of it; this page is written "
        "from the records by `python -m examples.map report`."
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
        "*Gains* and *loses*: the difference is not 0 by a t test with Holm's correction over all "
        "primary tasks, finished or not. *Equal within the bound*: two one-sided tests, corrected "
        "likewise, show that it is smaller than the bound stated beforehand. *No gain shown*: "
        "neither, which is no proof of equality. *Settings* are as they were searched; what Keras "
        "gets of learning rates and decays stands at the end, under how it was measured.",
    ]


def _task(one: Finding, plan: Plan) -> str:
    scored = _OF_INVENTORY if one.task.kind == "control" else "accuracy"
    table = pd.DataFrame([_row(one, method, plan) for method in (*one.methods, *one.added)])
    parts = [
        f"## {_start(one.task.title)}",
        table.to_markdown(index=False, disable_numparse=True),
        f"Score: {scored}. *Tuning*: the best trial's validation score, which chose the settings, "
        "the length among them: *updates*, of *at most* as many. *Validation*: the mean over the "
        "seeds, which chose ours and the rival.",
        *_added(one),
        *_by_rate(one),
        *([f"Not run to their end yet: {', '.join(one.missing)}."] if one.missing else []),
        *_diverged(one),
        *_flatness(one),
    ]
    return "\n\n".join(parts)


def _row(one: Finding, method: Found, plan: Plan) -> dict[str, str]:
    cell = (one.task.name, method.method)
    against = one.against_rival(method)
    is_rival = one.contrast is not None and method is one.contrast.rival
    row = {
        "method": _named(one, method),
        "updates": str(plan.updates(cell, method.settings)),
        "at most": str(plan.updates(cell, {})),
        "tuning": f"{method.tuning:.3f}",
        "validation": f"{method.average('validation'):.3f}",
    }
    if one.task.wrong_labels:
        row["the same, right labels"] = f"{method.average('clean_validation'):.3f}"
    row |= {
        "test": f"{method.average('test'):.3f} ± {method.deviation('test'):.3f}",
        "less the rival": _MISSING if against is None else interval(against),
    }
    if is_rival:
        row["less the rival"] = "the rival"
    for name in ("nll", "ece", "gap", "trace"):
        if any(other.has(name) for other in one.methods):
            row[name] = f"{method.average(name):.3g}" if method.has(name) else _MISSING
    settings = (f"{name} {value:g}" for name, value in method.settings.items())
    return row | {"settings": ", ".join(settings)}


def _named(one: Finding, method: Found) -> str:
    if method in one.added:
        return f"*{method.title}*"
    return f"**{method.title}**" if method.is_ours else method.title


def _added(one: Finding) -> list[str]:
    if not one.added:
        return []
    return [
        "In italics: added when results were known, without a part in the contrast, at most as "
        "many updates as ours with SGD inside."
    ]


def _by_rate(one: Finding) -> list[str]:
    """Test accuracies at each learning rate."""
    if one.task.kind != "rates":
        return []
    lines = [
        [method.title, *(f"{value:.3f}" for value in method.average_of_list("by_rate", "test"))]
        for method in one.methods
    ]
    table = pd.DataFrame(
        lines, columns=["test accuracy at learning rate", *(f"{rate:g}" for rate in RATES)]
    )
    return [table.to_markdown(index=False, disable_numparse=True)]


def _diverged(one: Finding) -> list[str]:
    counts = {method.title: method.diverged() for method in (*one.methods, *one.added)}
    found = [f"{title} ({count})" for title, count in counts.items() if count]
    if not found:
        return []
    return [
        f"Runs that diverged, weights not finite at a checkpoint, counted as they are: "
        f"{', '.join(found)}."
    ]


def _flatness(one: Finding) -> list[str]:
    """Whether methods that find flatter weights err less, of a task that is finished."""
    if one.contrast is None:
        return []
    sentences = []
    for name, title in (("gap", "F_tau - f"), ("trace", "the Hessian's trace")):
        measured = [method for method in one.methods if method.has(name)]
        found = statistics.rank_correlation(
            [method.average(name) for method in measured],
            [1.0 - method.average("test") for method in measured],
        )
        if found is not None:
            sentences.append(
                f"Rank correlation of {title} with the test error over the "
                f"{len(measured)} methods: {found:+.2f}."
            )
    described = "It describes these methods as they were chosen, and tests nothing."
    return [" ".join([*sentences, described])] if sentences else []


def interval(each: Difference) -> str:
    """Returns a mean with its interval."""
    return f"{each.mean:+.3f} [{each.low:+.3f}, {each.high:+.3f}]"


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]
