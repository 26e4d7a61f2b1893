"""`docs/keras.md` from the tests' own marks: prints it, or with `--write` writes it.

`@pytest.mark.feature(group, feature, works, cases=...)` stands on a test that proves a row. Where
several prove one, `works` is given once. `cases` names what proves it among a test's parameters, or
among a class's tests; without it all of them do.
"""

import argparse
import contextlib
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "keras.md"
INTRODUCTION = """\
# What Keras users take for granted

Whatever Keras does with `Adam` or `SGD` it does with `LocalEntropy` and `HeatRegularization`, or an
error says what to do instead. Each line of the tables below is proven by a test.
"""
MATRIX = """\
## How it is proven

Two things carry most of the proof. Keras's own tests of optimizers, as its wheel ships them, run
with ours in the place of SGD. And where the noise is switched off, one move of Robbins-Monro of
size 1 is a step of gradient descent, so that whole trainings, logs and states included, have to be
what `keras.optimizers.SGD` makes of them.

By default XLA compiles the inner loops where it can. Many of the tests leave them to TensorFlow,
which draws the same noise and is ready sooner; where the two could differ, others repeat them as a
user has them, by default.

The groups follow, feature by feature.
"""
# By the marks' names, in the order of the page, and what holds of all features of one.
GROUPS = {
    "models": "Models",
    "training": "Ways to train",
    "update": "What happens around the update",
    "inner": "A Keras optimizer inside",
    "callbacks": "Callbacks and schedules",
    "saving": "Saving and copying",
    "numbers": "Numbers",
    "logs": "Logs and state",
    "memory": "Memory",
    "keras": "Keras's own tests",
}
# What a user wants to know of each before all else.
IN_SHORT = {
    "models": "stock, subclassed and nested; recurrent ones and custom gradients by `TrainStep`",
    "training": "`fit`, `train_on_batch`, `step`, a tape with `scale_loss`, `tf.distribute`",
    "update": "clipping, decay, averages, accumulation, constraints, once per weight update",
    "inner": "any Keras optimizer of gradients moves the weights",
    "callbacks": "Keras's own; those of the learning rate need one that is not tied to tau",
    "saving": "`.keras`, weights, checkpoints, `pickle`: bit-identically, but for dropout masks",
    "numbers": "float64, `mixed_bfloat16`; `mixed_float16` with `auto_scale_loss=False`",
    "logs": "Keras's, at the weights before the update; diagnostics by a callback",
    "memory": "levels off over updates, fits and models",
    "keras": "those of optimizers run on these two",
}
OF_ALL = {"update": "Each acts once per weight update, whatever the number of inner evaluations.\n"}
Rows = Mapping[tuple[str, str], str]


class Collected:
    """A plugin of pytest's that keeps what is collected."""

    items: list[pytest.Item]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = session.items


def collect() -> list[pytest.Item]:
    """Every test of the library."""
    collected, output = Collected(), io.StringIO()
    options = ["--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    with contextlib.redirect_stdout(output):
        code = pytest.main([*options, str(ROOT / "tests" / "lerh_tf")], [collected])
    if code != pytest.ExitCode.OK:
        raise SystemExit(output.getvalue())
    return collected.items


def rows_of(items: Iterable[Any]) -> Rows:
    """What works, by group and feature, as the tests' marks say.

    Raises:
        ValueError: a group is unknown, a case is none of the test's, or one feature has no
            answer or several.
    """
    answers: dict[tuple[str, str], set[str]] = {}
    missing: dict[int, set[str]] = {}
    for item in items:
        case = item.name.removesuffix("]").partition("[")[2] or item.name
        for mark in item.iter_markers("feature"):
            group, feature, *works = mark.args
            if group not in GROUPS:
                raise ValueError(f"`group` must be one of {[*GROUPS]}. Received: group={group!r}")
            answers.setdefault((group, feature), set()).update(works)
            # All cases of a test, and all tests of a class, share its marks.
            missing.setdefault(id(mark), set(mark.kwargs.get("cases", ()))).discard(case)
    if unknown := sorted(set().union(*missing.values())):
        raise ValueError(f"`cases` must be names of cases or tests. Received: cases={unknown}")
    for (_, feature), works in answers.items():
        if len(works) != 1:
            raise ValueError(f"`works` must be given once. Received: {feature}: {sorted(works)}")
    return {row: works for row, (works,) in answers.items()}


def page_of(rows: Rows) -> str:
    """The page: all groups on one screen, then each group's features by their letters."""
    parts = [INTRODUCTION, summary_of(rows), MATRIX]
    for group, heading in GROUPS.items():
        of_group = ((feature, works) for (its, feature), works in rows.items() if its == group)
        lines = [f"| {feature} | {works} |\n" for feature, works in sorted(of_group, key=letters)]
        table = "".join(["| feature | works? |\n", "|---|---|\n", *lines])
        parts += [f"## {heading}\n", *([OF_ALL[group]] if group in OF_ALL else []), table]
    return "\n".join(parts)


def summary_of(rows: Rows) -> str:
    """A table of the groups: in short, and how many features work or are refused with advice."""
    lines = ["| | in short | features | refused with advice |\n", "|---|---|---|---|\n"]
    for group, heading in GROUPS.items():
        works = [answer for (its, _), answer in rows.items() if its == group]
        refused = sum(answer.startswith("refused") for answer in works)
        link = f"[{heading}](#{slug(heading)})"
        lines.append(f"| {link} | {IN_SHORT[group]} | {len(works)} | {refused or ''} |\n")
    return "".join(lines)


def slug(heading: str) -> str:
    """What a heading is linked to by."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def letters(row: tuple[str, str]) -> str:
    """What a row is sorted by."""
    return row[0].replace("`", "").lower()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.keras_page", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/keras.md")
    write = parser.parse_args().write
    page = page_of(rows_of(collect()))
    if write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
