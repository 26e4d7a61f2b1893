"""What the records say of one method, or of a theorem, or of Table 2."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from reproduce.claims.measures import Curves, MissingError
from reproduce.experiments import table2, theory
from reproduce.experiments.base import RECORDS
from reproduce.protocols import Case, Comparison, Method, Training
from reproduce.records import Archive, Record
from reproduce.summary import summarise
from reproduce.theory import table
from reproduce.theory.protocol import THEORY


@dataclass
class Evidence:
    """The records of a folder, those at the paper's budget only.

    Args:
        trained: Records of training.
        theory: The rows of the theorems' table.
        timed: The rows of Table 2.
        asked: The cases that were asked for.
    """

    trained: Sequence[Record]
    theory: Sequence[table.StatementRow] = ()
    timed: Sequence[table2.TimedRow] = ()
    asked: set[Case] = field(default_factory=set)

    @classmethod
    def read(cls, store: Archive) -> "Evidence":
        """Reads a folder's records."""
        measured = theory.measured(store.scan(theory.NAME), THEORY, None)
        rows = table2.rows(store, table2.PROTOCOL)
        return cls(store.scan(RECORDS), table.rows(measured), rows)

    def curves(self, training: Training, method: Method) -> Curves:
        """Returns the curves of a case by seed, those that went through to the end.

        Raises:
            MissingError: There is none.
        """
        self.asked.add(Case(training, method))
        (row,) = summarise(self.trained, Comparison(training, {"one": method}), None)
        points = set(training.evaluations)
        kept = {seed: curve for seed, curve in row.curves.items() if points <= curve.keys()}
        if not kept:
            raise MissingError
        return kept

    def ratio(self, method: str, kernels: str) -> float:
        """Returns how many times SGD's seconds a weight update takes.

        Raises:
            MissingError: It was not timed.
        """
        found = {(row.method, row.kernels): table2.ratio(row, self.timed) for row in self.timed}
        value = found.get((method, kernels))
        if value is None:
            raise MissingError
        return value
