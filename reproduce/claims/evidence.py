"""What the records say: curves by case, seconds, statements; and what stands in for them."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from reproduce.claims.bounds import CHANCE
from reproduce.claims.measures import Curves, MissingError, final
from reproduce.experiments import table2, theory
from reproduce.experiments.base import RECORDS
from reproduce.protocols import Case
from reproduce.records import Archive, Record
from reproduce.summary import by_case
from reproduce.theory import table
from reproduce.theory.protocol import THEORY
from reproduce.theory.statement import Statement

FRESH = range(5, 25)
"""The seeds that verdicts rest on: seeds 0 to 4 were looked at while the rules were made."""

EARLIER = range(5)
"""Those."""

Reported = Mapping[int, Sequence[float]]
"""A diagnostic along the training, by seed."""


@dataclass(frozen=True)
class Evidence:
    """The records of a folder, found by their configuration.

    Args:
        trained: Takes a case to its records by seed.
        theory: The rows of the theorems' table.
        timed: The rows of Table 2.
        seeds: Those that count.
        replaced: What stands in for curves, by case, for diagnostics, by case and name, and for
            seconds, by method.
    """

    trained: Callable[[Case], Mapping[int, Record]] = lambda case: {}
    theory: Sequence[table.StatementRow] = ()
    timed: Sequence[table2.TimedRow] = ()
    seeds: Container[int] = FRESH
    replaced: Mapping[Any, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, store: Archive) -> "Evidence":
        """Reads a folder's records."""
        measured = theory.measured(store.scan(theory.NAME), THEORY, None)
        rows = table2.rows(store.scan(table2.NAME), table2.PROTOCOL)
        return cls(by_case(store.scan(RECORDS)), table.rows(measured), rows)

    def of(self, seeds: Container[int]) -> "Evidence":
        """Returns the same of other seeds."""
        return replace(self, seeds=seeds)

    def instead(self, answers: Mapping[Any, Any]) -> "Evidence":
        """Returns the same with other answers; see `replaced`."""
        return replace(self, replaced={**self.replaced, **answers})

    def curves(self, case: Case) -> Curves:
        """Returns the curves of a case by seed; one that diverged is at chance from there on.

        Raises:
            MissingError: There is none.
        """
        if case in self.replaced:
            stand_in: Curves = self.replaced[case]
            return stand_in
        return {seed: _curve(record, case) for seed, record in self._records(case).items()}

    def diagnostics(self, case: Case, name: str) -> Reported:
        """Returns a diagnostic of a case by seed, at the measurements of its curve.

        Raises:
            MissingError: There is none.
        """
        if (case, name) in self.replaced:
            stand_in: Reported = self.replaced[case, name]
            return stand_in
        reported = {
            seed: values
            for seed, record in self._records(case).items()
            if (values := record.result["diagnostics"].get(name))
        }
        if not reported:
            raise MissingError
        return reported

    def seconds(self, method: str) -> Mapping[int, float]:
        """Returns seconds per weight update of the plain kernels by repetition; SGD's own as is.

        Raises:
            MissingError: It was not timed.
        """
        if method in self.replaced:
            stand_in: Mapping[int, float] = self.replaced[method]
            return stand_in
        for row in self.timed:
            if (
                row.method == method
                and row.repetitions
                and (method == "sgd" or row.kernels == "plain")
            ):
                return row.repetitions
        raise MissingError

    def statement(self, wanted: Statement) -> table.StatementRow:
        """Returns the row of a statement.

        Raises:
            MissingError: It was not measured.
        """
        for row in self.theory:
            is_wanted = (row.statement, row.place) == (wanted.statement, wanted.place)
            if is_wanted and row.measured is not None:
                return row
        raise MissingError

    def _records(self, case: Case) -> Mapping[int, Record]:
        kept = {seed: one for seed, one in self.trained(case).items() if seed in self.seeds}
        if not kept:
            raise MissingError
        return kept


Control = Callable[[Evidence, Sequence[Case]], Evidence]
"""Takes what the records say, and a claim's cases, to what stands in for it."""


class Blank(Evidence):
    """No records: every curve is 0, so that a rule can be put into words."""

    def curves(self, case: Case) -> Curves:
        """Returns one curve that is 0."""
        return {0: dict.fromkeys(case.training.evaluations, 0.0)}

    def diagnostics(self, case: Case, name: str) -> Reported:
        """Returns one number that is 1."""
        return {0: [1.0]}

    def seconds(self, method: str) -> Mapping[int, float]:
        """Returns one number that is 1."""
        return {0: 1.0}

    def statement(self, wanted: Statement) -> table.StatementRow:
        """Returns the statement, not measured."""
        return table.StatementRow("", wanted.statement, wanted.place, 0.0, None, 0, "", "")


# What stands in for records in a negative control.


def with_curves(stand_in: Callable[[Evidence, Case], Curves]) -> Control:
    """Returns the control in which other curves take the place of those of a claim's cases."""
    return lambda evidence, own: evidence.instead({case: stand_in(evidence, case) for case in own})


def with_diagnostic(case: Case, name: str, stand_in: Callable[[Evidence], Reported]) -> Control:
    """Returns the control in which something else takes the place of a case's diagnostic."""
    return lambda evidence, own: evidence.instead({(case, name): stand_in(evidence)})


@with_curves
def chance(evidence: Evidence, case: Case) -> Curves:
    """Returns curves that stay at chance."""
    return {seed: dict.fromkeys(curve, CHANCE) for seed, curve in evidence.curves(case).items()}


@with_curves
def constant(evidence: Evidence, case: Case) -> Curves:
    """Returns curves that are all along where they end."""
    curves = evidence.curves(case)
    return {seed: dict.fromkeys(curve, final(curve)) for seed, curve in curves.items()}


def curves_of(other: Case) -> Control:
    """Returns what stands in with the curves of another case, seed by seed."""
    return with_curves(lambda evidence, case: evidence.curves(other))


def other_seeds(of: Case) -> Control:
    """Returns what stands in with the curves of a case under each other's seeds."""

    @with_curves
    def stand_in(evidence: Evidence, case: Case) -> Curves:
        curves = evidence.curves(of)
        seeds = sorted(curves)
        return dict(zip(seeds, [curves[seed] for seed in (*seeds[1:], seeds[0])], strict=True))

    return stand_in


def shifted(of: Case, by: float) -> Control:
    """Returns what stands in with the curves of a case, higher by so much after the start."""

    @with_curves
    def stand_in(evidence: Evidence, case: Case) -> Curves:
        return {
            seed: {update: value + by * (update > 0) for update, value in curve.items()}
            for seed, curve in evidence.curves(of).items()
        }

    return stand_in


TRIVIAL: Mapping[str, Control] = {"a chance curve": chance, "a constant curve": constant}
"""Curves of which no statement about training may hold."""


def _curve(record: Record, case: Case) -> dict[int, float]:
    measured = record.result["curve"]
    curve = dict(zip(measured["update"], measured["accuracy"], strict=True))
    return {update: curve.get(update, CHANCE) for update in case.training.evaluations}
