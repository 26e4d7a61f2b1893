"""What the page tells beside the claims: other test images, and what lies beyond the paper."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from reproduce.claims.cases import COLUMNS, NAMES
from reproduce.claims.claim import Contrast
from reproduce.claims.evidence import FRESH, Evidence
from reproduce.claims.measures import MissingError, final
from reproduce.experiments import base, exact, table2
from reproduce.experiments.readings import Section
from reproduce.protocols import TABLE1, Case
from reproduce.records import Record
from reproduce.report import view
from reproduce.summary import TITLES, by_case, spread, summarise

_BEYOND = "Beyond the paper:"
_AT = [str(update) for update in COLUMNS]


def sections(
    records: Mapping[str, list[Record]], times: Mapping[str, list[Record]]
) -> list[Section]:
    """Returns them; each table is from one folder of records, which it names.

    Args:
        records: Those of training, by the name of where they lie.
        times: Those of Table 2 likewise.
    """
    trained = first(records, lambda found: bool(base.recorded(found, TABLE1)))
    compared = {name: _with_accurate_means(found) for name, found in records.items()}
    accurate = next(filter(compared.get, compared), list(compared)[-1])
    timed = first(times, lambda found: table2.has_records(found, table2.PROTOCOL))
    return [
        Section(
            "Other test images",
            [
                "Table 1's rows on all 10,000 test images, and on 1,000 drawn at each evaluation "
                "instead of once (R10); mean ± sample standard deviation over seeds. Records: "
                f"`make table1`. From {trained}."
            ],
            ["row", "seeds", "test images", *_AT],
            _on_other_images(records[trained]),
        ),
        Section(
            f"{_BEYOND} the algorithms with accurate means",
            [
                "Algorithms 1 and 2 ask for a mean that the paper's methods estimate. Table 1's "
                "rows beside their algorithms with means that are accurate to about a tenth of "
                "the step, by seeds 5 to 24: mean ± sample standard deviation, and how far a "
                "method ends from its algorithm, with the 95 % interval. How accurate each "
                "estimate is, and what it costs, is measured by `make estimators`. Records: "
                f"`make exact`. From {accurate}."
            ],
            ["row", *_AT, "end, less its algorithm's"],
            compared[accurate],
            exact.FIGURE.NAME,
        ),
        Section(
            f"{_BEYOND} accuracy against seconds",
            [
                f"Table 1's accuracy after {TABLE1.training.updates} weight updates beside the "
                "seconds that they take, by `make table1` and `make table2`; kernels: plain, as "
                "printed, or in the subspace that the minibatch sees, equal in law. Accuracies "
                f"from {trained}, seconds from {timed}."
            ],
            ["row, kernels", "accuracy", "seconds per update", "seconds for all"],
            _costs(times[timed], records[trained]),
        ),
        Section(
            f"{_BEYOND} what the methods are good for",
            [
                "Other tasks, losses that have no gradient among them, beside the rivals that one "
                "would take there, at equal budgets: `make map`, told in docs/map.md."
            ],
            [],
            [],
            "map",
        ),
    ]


def first(found: Mapping[str, list[Record]], has: Callable[[list[Record]], bool]) -> str:
    """Returns the name of the first store that has something, of the last if none has."""
    return next((name for name, records in found.items() if has(records)), list(found)[-1])


def _on_other_images(records: Sequence[Record]) -> list[list[str]]:
    """Each row's accuracies where they were recorded, of runs that went through."""
    runs_of, lines = by_case(records), []
    kinds = {"all": "all 10,000", "per_evaluation": "1,000 drawn anew"}
    for row, case in TABLE1.cases().items():
        found = [
            record
            for record in runs_of(case).values()
            if record.result["diverged_at"] is None and "held_out" in record.timings
        ]
        for kind, title in kinds.items():
            curves = [
                dict(zip(one.result["curve"]["update"], one.timings["held_out"][kind], strict=True))
                for one in found
            ]
            cells = [_mean([curve[update] for curve in curves]) for update in COLUMNS]
            lines.append([NAMES[row], str(len(found)), title, *cells])
    return lines


def _with_accurate_means(records: Sequence[Record]) -> list[list[str]]:
    """A line for each row and each algorithm; none unless all fresh seeds of all are there."""
    evidence, lines = Evidence(by_case(records)), []
    algorithms = {name: Case(TABLE1.training, method) for name, method in exact.ACCURATE.items()}
    try:
        for name, case in (TABLE1.cases() | algorithms).items():
            curves = evidence.curves(case)
            if len(curves) < len(FRESH):
                return []
            means = [_mean([curve[update] for curve in curves.values()]) for update in COLUMNS]
            lines.append([NAMES.get(name, name), *means, "-"])
            if name in exact.ALGORITHM:
                apart = Contrast("", final, case, algorithms[exact.ALGORITHM[name]]).on(evidence)
                lines[-1][-1] = view.part_view(apart, 1).effect
    except MissingError:
        return []
    return lines


def _costs(timed: Sequence[Record], records: Sequence[Record]) -> list[list[str]]:
    """What a row of Table 1 costs: accuracy against seconds, per weight update and of all."""
    updates = TABLE1.training.updates
    ends = {row.name: row.at(updates) for row in summarise(records, TABLE1, None)}
    return [
        [
            f"{TITLES[row.method]}, {'-' if row.method == 'sgd' else row.kernels}",
            f"{mean(ends[row.method]):.3f}",
            f"{row.seconds:.4f}",
            f"{updates * row.seconds:.1f}",
        ]
        for row in table2.rows(timed, table2.PROTOCOL)
        if row.seconds is not None and ends.get(row.method)
    ]


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "not run"
    deviation = spread(values)
    return f"{mean(values):.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")
