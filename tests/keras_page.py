"""`docs/keras.md` from the tests' own marks: prints it, or with `--write` writes it.

`@pytest.mark.feature(group, feature, works, cases=...)` stands on a test that proves a row. Where
several prove one, `works` is given once. `cases` names what proves it among a test's parameters, or
among a class's tests; without it all of them do.
"""

import argparse
import contextlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "keras.md"
INTRODUCTION = """\
# What Keras users take for granted

Whatever Keras does with `Adam` or `SGD` it does with `LocalEntropy` and `HeatRegularization`, or an
error says what to do instead. Each row is proven by tests, whose marks this page is made of
(`python -m tests.keras_page --write`).

Two things carry most of the proof. Keras's own tests of optimizers, as its wheel ships them, run
with ours in the place of SGD. And where the noise is switched off, one move of Robbins-Monro of
size 1 is a step of gradient descent, so that whole trainings, logs and states included, have to be
what `keras.optimizers.SGD` makes of them.

By default XLA compiles the inner loops where it can. Many of the tests leave them to TensorFlow,
which draws the same noise and is ready sooner; where the two could differ, others repeat them as a
user has them, by default.
"""
# By the marks' names, in the order of the page, and what holds of all features of one.
GROUPS = {
    "keras": "Keras's own tests",
    "saving": "Saving and copying",
    "callbacks": "Callbacks and schedules",
    "update": "What happens around the update",
    "inner": "A Keras optimizer inside",
    "numbers": "Numbers",
    "training": "Ways to train",
    "memory": "Memory",
    "models": "Models",
    "logs": "Logs and state",
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
    """The page, each group's features in the order of their letters."""
    parts = [INTRODUCTION]
    for group, heading in GROUPS.items():
        of_group = ((feature, works) for (its, feature), works in rows.items() if its == group)
        lines = [f"| {feature} | {works} |\n" for feature, works in sorted(of_group, key=letters)]
        table = "".join(["| feature | works? |\n", "|---|---|\n", *lines])
        parts += [f"## {heading}\n", *([OF_ALL[group]] if group in OF_ALL else []), table]
    return "\n".join(parts)


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
