"""What the records say, task by task: scores, the contrast, and its verdict."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from examples.map import jobs, statistics
from examples.map.jobs import Cell, Plan
from examples.map.methods import METHODS, SIGN_METHODS
from examples.map.protocol import Task
from examples.map.search import Settings
from examples.map.statistics import Difference
from examples.map.strategies import strategies_of
from reproduce.records import Archive, Record


@dataclass(frozen=True)
class Found:
    """A method on a task.

    Args:
        method: Its name.
        title: What the page calls it.
        is_ours: Whether it is of this library.
        settings: Those that validation chose.
        tuning: The best validation score of the trials.
        records: Of the fresh seeds, by seed.
    """

    method: str
    title: str
    is_ours: bool
    settings: Settings
    tuning: float
    records: Mapping[int, Record]

    def values(self, name: str, seeds: Sequence[int]) -> list[float]:
        """Returns a number of the results, seed by seed."""
        return [float(self.records[seed].result[name]) for seed in seeds]

    def has(self, name: str) -> bool:
        """Whether the results have a number of that name."""
        return all(name in record.result for record in self.records.values())

    def average(self, name: str) -> float:
        """Returns the mean of a number over the seeds."""
        return mean(self.values(name, sorted(self.records)))

    def average_of_list(self, name: str, part: str) -> list[float]:
        """Returns the means over the seeds of a list within the results, place by place."""
        lists = [record.result[name][part] for record in self.records.values()]
        return [mean(values) for values in zip(*lists, strict=True)]

    def diverged(self) -> int:
        """Returns how many of the runs diverged, in part or whole."""
        return sum(record.result["status"] != "completed" for record in self.records.values())

    def deviation(self, name: str) -> float:
        """Returns its standard deviation over the seeds."""
        values = self.values(name, sorted(self.records))
        return stdev(values) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Contrast:
    """Ours against the rival, each the one with the best mean validation score of its runs.

    Args:
        ours: Ours.
        rival: The rival.
        difference: Ours less the rival's test scores.
    """

    ours: Found
    rival: Found
    difference: Difference


@dataclass(frozen=True)
class Finding:
    """A task's.

    Args:
        task: The task.
        methods: Every method whose trials and runs are all there.
        missing: The titles of the others.
        contrast: None as long as any is missing.
        added: Methods without a part in the contrast whose runs are all there.
    """

    task: Task
    methods: Sequence[Found]
    missing: Sequence[str]
    contrast: Contrast | None
    added: Sequence[Found] = ()

    def against_rival(self, method: Found) -> Difference | None:
        """Returns a method's scores less the rival's; None of the rival itself."""
        if self.contrast is None or method is self.contrast.rival:
            return None
        return _difference(method, self.contrast.rival, self.task.bound)


def findings(plan: Plan, archive: Archive) -> list[Finding]:
    """Returns what an archive's records say, every task of the protocol's."""
    trials = jobs.tuned(plan, archive.scan(jobs.TUNING))
    settings = jobs.chosen(trials)
    finals = jobs.finals(plan, settings, archive.scan(jobs.FINAL))
    return [_finding(plan, task, trials, settings, finals) for task in plan.protocol.tasks]


def gains(found: Sequence[Finding]) -> dict[str, bool]:
    """Returns of each primary task whether the contrast's t test rejects, by Holm over all."""
    return statistics.holm(_primary(found, lambda each: each.p))


def equalities(found: Sequence[Finding]) -> dict[str, bool]:
    """Returns of each primary task whether the two one-sided tests reject, by Holm over all."""
    return statistics.holm(_primary(found, lambda each: each.p_equal))


def verdict(each: Difference, differs: bool, is_equal: bool, bound: float) -> str:
    """Returns what the tests of a primary contrast say, in a sentence's predicate.

    Args:
        each: Ours less the rival.
        differs: Whether the t test rejects.
        is_equal: Whether the two one-sided tests reject.
        bound: Differences below are equal for practice.
    """
    within = f", though by less than the bound of {bound:g}" if is_equal else ""
    if differs and each.low > 0.0:
        return f"gains{within}"
    if differs and each.high < 0.0:
        return f"loses{within}"
    if is_equal:
        return f"equal within the bound of {bound:g}"
    return "no gain shown"


def title_of(method: str, task: Task) -> str:
    """Returns what the page calls a method of a task."""
    return _method(method, task)[0]


def _primary(found: Sequence[Finding], p: Callable[[Difference], float]) -> dict[str, float]:
    """Returns the primary tasks' p values, 1 of a task that is not finished.

    Holm's correction is then for as many as there will be: no verdict turns back later.
    """
    return {
        one.task.name: 1.0 if one.contrast is None else p(one.contrast.difference)
        for one in found
        if one.task.primary
    }


def _finding(
    plan: Plan,
    task: Task,
    trials: Mapping[Cell, Sequence[Record]],
    settings: Mapping[Cell, Settings],
    finals: Mapping[Cell, Mapping[int, Record]],
) -> Finding:
    found: dict[str, Found] = {}
    for name in (*task.methods, *task.added):
        cell, (title, is_ours) = (task.name, name), _method(name, task)
        records = finals.get(cell, {})
        if set(records) == set(plan.protocol.seeds):
            best = max(map(jobs.validation, trials[cell]))
            found[name] = Found(name, title, is_ours, settings[cell], best, records)
    methods = [found[name] for name in task.methods if name in found]
    missing = [title_of(name, task) for name in task.methods if name not in found]
    contrast = None if missing else _contrast(task, methods)
    added = [found[name] for name in task.added if name in found]
    return Finding(task, methods, missing, contrast, added)


def _contrast(task: Task, methods: Sequence[Found]) -> Contrast:
    ours = _best(one for one in methods if one.is_ours)
    rival = _best(one for one in methods if not one.is_ours)
    return Contrast(ours, rival, _difference(ours, rival, task.bound))


def _best(methods: Iterable[Found]) -> Found:
    # By validation alone: no test score has a part in who is compared.
    return max(methods, key=lambda one: one.average("validation"))


def _difference(one: Found, other: Found, bound: float) -> Difference:
    seeds = sorted(one.records)
    return statistics.difference(one.values("test", seeds), other.values("test", seeds), bound)


def _method(name: str, task: Task) -> tuple[str, bool]:
    if jobs.trains_by_fit(task, name):
        method = (SIGN_METHODS if task.kind == "sign" else METHODS)[name]
        return method.title, method.is_ours
    strategy = strategies_of(task.kind)[name]
    return strategy.title, strategy.is_ours
