"""Methods side by side, and how two comparisons differ."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from reproduce import checks
from reproduce.protocols.methods import (
    VARIANTS,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)
from reproduce.protocols.settings import settings
from reproduce.protocols.training import Training

SUBSPACES: tuple[str | bool, ...] = ("auto", False)


@dataclass(frozen=True)
class Case:
    """One row: a method on a training set-up; with a seed it is a run."""

    training: Training
    method: Method

    @property
    def name(self) -> str:
        """Where its records lie: the row of Table 1 it resembles, and what sets it apart.

        The rest of the budget is told apart by the records' keys.
        """
        row = self.method.row
        usual = type(self.method)(**VARIANTS.get(row, {}))
        start = Training(network=self.training.network, sgd_updates=self.training.sgd_updates)
        changes = _changes(self.method, usual) + _changes(start, Training())
        return "-".join([row, *(f"{name}-{value}" for name, value in changes)])

    def configuration(self) -> dict[str, Any]:
        """Returns every hyper-parameter, resolved, as JSON types."""
        method = {"name": type(self.method).__name__, **settings(self.method)}
        return {"training": settings(self.training), "method": method}


def _table1_methods() -> dict[str, Method]:
    return {
        "sgd": GradientDescent(),
        "is": LocalEntropyByImportanceSampling(),
        "sgld": LocalEntropyBySGLD(),
        "hr": HeatRegularizationByRobbinsMonro(),
        "sgld-linear": LocalEntropyBySGLD(**VARIANTS["sgld-linear"]),
    }


@dataclass(frozen=True)
class Comparison:
    """Methods side by side from the same weights on the same minibatches: Table 1, Figure 4.

    Args:
        training: What the methods share.
        methods: The rows, by the names the command line knows them by.
    """

    training: Training = field(default_factory=Training)
    methods: Mapping[str, Method] = field(default_factory=_table1_methods)

    def with_budget(self, *, updates: int | None = None, samples: int | None = None) -> Self:
        """Returns this comparison with other numbers of updates or samples; `None` keeps one."""
        training, methods = self.training, self.methods
        if updates is not None:
            training = replace(training, updates=updates)
        if samples is not None:
            checks.positive_integer("samples", samples)
            methods = {name: method.with_samples(samples) for name, method in methods.items()}
        return replace(self, training=training, methods=methods)

    def with_methods(self, names: tuple[str, ...]) -> Self:
        """Returns this comparison with the named rows only, in the order asked for."""
        checks.distinct("methods", names)
        for name in names:
            checks.one_of("methods", name, self.methods)
        return replace(self, methods={name: self.methods[name] for name in names})

    def cases(self) -> dict[str, Case]:
        """Returns the rows as cases."""
        return {name: Case(self.training, method) for name, method in self.methods.items()}

    def differences(self, other: "Comparison") -> list["Difference"]:
        """Returns the fields in which this differs from `other`.

        Methods that only one of the two has are no difference.
        """
        changed: dict[tuple[str, str], list[str]] = {}
        for row in (row for row in self.methods if row in other.methods):
            for change in _changes(self.methods[row], other.methods[row]):
                changed.setdefault(change, []).append(row)
        training = [
            Difference(name, value) for name, value in _changes(self.training, other.training)
        ]
        return training + [
            Difference(name, value, tuple(rows)) for (name, value), rows in changed.items()
        ]


@dataclass(frozen=True)
class Panels:
    """Comparisons side by side: Figures 5 to 8, Section 6.1.

    Args:
        panels: Comparisons by title; one run may be shown in several.
    """

    panels: Mapping[str, Comparison]

    def with_panels(self, titles: tuple[str, ...]) -> Self:
        """Returns the named panels only, in the order asked for."""
        checks.distinct("settings", titles)
        for title in titles:
            checks.one_of("settings", title, self.panels)
        return replace(self, panels={title: self.panels[title] for title in titles})

    def cases(self) -> list[Case]:
        """Returns what is to be run, each case once."""
        return list(
            dict.fromkeys(case for panel in self.panels.values() for case in panel.cases().values())
        )

    def methods(self) -> Comparison:
        """Returns one method for each of Table 1's rows that occurs, side by side."""
        shown = list(self.panels.values())
        rows = {method.row: method for panel in shown for method in panel.methods.values()}
        known = {row: method for row, method in rows.items() if row in _table1_methods()}
        return Comparison(shown[0].training, known)

    def differences(self, other: "Panels") -> list["Difference"]:
        """Returns the fields in which any panel differs from that of `other`, each once."""
        found = [
            Difference(one.name, one.value)
            for title in self.panels
            if title in other.panels
            for one in self.panels[title].differences(other.panels[title])
        ]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Difference:
    """A field in which two comparisons differ: `updates=100`, `samples=50 (is sgld)`.

    Args:
        name: The field.
        value: As the command line spells it.
        methods: The rows it differs in; none for a field of the training set-up.
    """

    name: str
    value: str
    methods: tuple[str, ...] = ()

    def __str__(self) -> str:
        rows = f" ({' '.join(self.methods)})" if self.methods else ""
        return f"{self.name}={self.value}{rows}"


def spelled(value: Any) -> str:
    """Returns a setting's value as the command line spells it."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _changes(ours: Any, theirs: Any) -> list[tuple[str, str]]:
    new, old = dataclasses.asdict(ours), dataclasses.asdict(theirs)
    return [(name, spelled(new[name])) for name in new if new[name] != old.get(name)]


TABLE1 = Comparison()
"""Section 6.2's comparison at the paper's budget."""

QUICK_TABLE1 = TABLE1.with_budget(updates=100, samples=50)
"""The same at a budget for a first look; not the paper's."""
