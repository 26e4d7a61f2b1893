"""The rules on made-up worlds: one in which every claim holds, one in which none does."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from reproduce import paper
from reproduce.claims.claim import FAILS, HOLDS, MISSING, OPEN, Claim, decide
from reproduce.claims.evidence import Evidence
from reproduce.claims.measures import Curves, MissingError, largest_gap, shared
from reproduce.claims.report import CLAIMS, markdown, render
from reproduce.claims.training import STEADY
from reproduce.experiments import figure5, figure7, section61, table1
from reproduce.experiments.registry import TRAINING
from reproduce.protocols import Case, Comparison, Method, Training
from reproduce.records import Store
from reproduce.theory import claims as theorems
from reproduce.theory import statement, table
from tests.reproduce._examples import record

SGD_FIRST = figure5.TRAINING.sgd_updates
HIDDEN = table1.PROTOCOL.training
SMALL = next(iter(figure7.PROTOCOL.panels.values())).training
Value = Callable[[int], float]


class World(Evidence):
    """Evidence without records: a curve is a function of the update."""

    def __init__(self, value: Callable[[Training, Method], Value], verdict: str, ratio: float):
        rows = [
            table.StatementRow("", one.statement, one.place, 0.0, None, 1, one.rule, verdict)
            for one in (*theorems.THEOREMS, *theorems.MINIBATCHES)
        ]
        super().__init__((), rows)
        self._value, self._ratio = value, ratio

    def curves(self, training: Training, method: Method) -> Curves:
        self.asked.add(Case(training, method))
        value = self._value(training, method)
        return {0: {update: value(update) for update in training.evaluations}}

    def ratio(self, method: str, kernels: str) -> float:
        return self._ratio * paper.TABLE2[method] / paper.TABLE2["sgd"]


def _zigzag(level: float, amplitude: float) -> Value:
    return lambda update: level + amplitude * (update // 10 % 2)


def _line(start: float, end: float, updates: int) -> Value:
    return lambda update: start + (end - start) * update / updates


def _through(points: dict[int, float], amplitude: float = 0.0, scale: float = 1.0) -> Value:
    def value(update: int) -> float:
        known = sorted({0: 0.1, **points}.items())
        for (low, first), (high, last) in pairwise(known):
            if low <= update <= high:
                straight = first + (last - first) * (update - low) / (high - low)
                return scale * straight + amplitude * (update // 10 % 2)
        raise AssertionError(update)

    return value


def _as_claimed(training: Training, method: Method) -> Value:
    name, settings = method.row.partition("-")[0], vars(method)
    if training.sgd_updates:
        ends = {"sgd": 0.92, "is": 0.91, "sgld": 0.915, "hr": 0.9}
        return lambda update: 0.9 if update <= SGD_FIRST else ends[name]
    if training in [one.training for one in section61.PROTOCOL.panels.values()]:
        return _zigzag(0.912 if training.network == "small_dense" else 0.975, 0.0)
    if training == SMALL:
        return _small_as_claimed(name, settings["tau"])
    published = paper.TABLE1[name]
    if name == "sgd":
        return _through(published, amplitude=0.002)
    if name == "hr":
        return _through(
            published, (31 - settings["steps"]) / 1000, 1 - (settings["steps"] - 30) / 310
        )
    if settings["samples"] < 1000:
        few = settings["samples"] == 10
        return _through(published, 0.02 if few else 0.01, 0.8 if few else 0.9)
    if name == "sgld" and (settings["tau"], settings["tau1"]) != (0.01, 0.0):
        early, late = {
            (1.5, 0.0): (0.9, 0.8),
            (0.01, -0.00997): (0.5, 0.6),
            (1.5, 0.01): (0.8, 0.87),
        }[settings["tau"], settings["tau1"]]
        return lambda update: early if update <= 100 else late
    return _through(published)


def _small_as_claimed(name: str, tau: float) -> Value:
    if name == "sgld":
        return _line(0.1, {0.001: 0.4, 0.003: 0.5, 0.01: 0.6}.get(tau, 0.85), 500)
    ends = {0.001: 0.2, 0.003: 0.3, 0.01: 0.4, 0.03: 0.8, 0.1: 0.7, 0.3: 0.6, 1.0: 0.3}
    return _zigzag(ends[tau], 0.05 if tau == 0.001 else 0.01)


def _otherwise(training: Training, method: Method) -> Value:
    row, settings = method.row, vars(method)
    name = row.partition("-")[0]
    if training.sgd_updates:
        ends = {"sgd": 0.2, "is": 0.3, "sgld": 0.3, "hr": 0.9}
        return lambda update: 0.5 if update <= SGD_FIRST else ends[name]
    if training in [one.training for one in section61.PROTOCOL.panels.values()]:
        return _zigzag(0.5 if training.network == "small_dense" else 0.995, 0.0)
    if training == SMALL:
        return _zigzag({0.1: 0.2, 1.0: 0.95}.get(settings["tau"], 0.9), 0.0)
    if name == "sgd":
        return _zigzag(0.3, 0.1)
    if name == "is":
        return _zigzag({10: 0.97, 100: 0.96, 1000: 0.95}[settings["samples"]], 0.03)
    if name == "hr":
        return _zigzag(0.9 + settings["steps"] / 1000, 0.03)
    return _zigzag(0.6 if settings["samples"] == 10 else 0.5, 0.2)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.statement)
def test_rule_says_what_holds_and_what_does_not(claim: Claim) -> None:
    held = decide(claim, World(_as_claimed, statement.HOLDS, 1.0))
    assert held.verdict == HOLDS, held.measured
    failed = decide(claim, World(_otherwise, statement.FAILS, 0.01))
    assert failed.verdict == FAILS, failed.measured


def test_every_case_asked_for_is_one_that_a_command_makes() -> None:
    world = World(_as_claimed, statement.HOLDS, 1.0)
    for claim in CLAIMS:
        decide(claim, world)
    made = {
        case
        for experiment in TRAINING
        for case in (
            experiment.PROTOCOL.cases().values()
            if isinstance(experiment.PROTOCOL, Comparison)
            else experiment.PROTOCOL.cases()
        )
    }
    assert world.asked <= made


def test_claims_are_the_projects_twelve() -> None:
    numbers = [claim.number for claim in CLAIMS]
    assert sorted(set(numbers)) == list(range(1, 13))
    assert numbers == sorted(numbers)


def test_each_statement_of_the_theorems_is_part_of_one_claim() -> None:
    for number, statements in ((1, theorems.THEOREMS), (12, theorems.MINIBATCHES)):
        bundles = [claim for claim in CLAIMS if claim.number == number]
        for one in statements:
            rows = [
                table.StatementRow("", one.statement, one.place, 0.0, None, 1, "", statement.FAILS)
            ]
            verdicts = [decide(claim, Evidence((), rows)).verdict for claim in bundles]
            assert sorted(verdicts) == sorted([FAILS] + [MISSING] * (len(bundles) - 1))


def test_deepest_fall_that_counts_as_none_is_two_standard_errors() -> None:
    assert pytest.approx(2 * (0.87 * 0.13 / 1000) ** 0.5) == STEADY


class Seeds(World):
    """Several seeds of one method, each shifted by its own amount; the others are alike."""

    def __init__(self, method: str, shifts: tuple[float, ...]):
        super().__init__(_as_claimed, statement.HOLDS, 1.0)
        self._method, self._shifts = method, shifts

    def curves(self, training: Training, method: Method) -> Curves:
        (curve,) = super().curves(training, method).values()
        name = method.row.partition("-")[0]
        shifts = self._shifts if name == self._method else (0.0,) * len(self._shifts)
        return {
            seed: {update: accuracy + shift for update, accuracy in curve.items()}
            for seed, shift in enumerate(shifts)
        }


@pytest.mark.parametrize(
    ("shifts", "verdict"),
    [
        ((0.0, 0.0), HOLDS),
        ((0.001, -0.001, 0.0), HOLDS),
        ((0.1, -0.1), OPEN),
        ((0.02, -0.03, 0.01), OPEN),
        ((-0.1, -0.101), FAILS),
    ],
)
def test_seeds_far_apart_leave_a_statement_undecided(
    shifts: tuple[float, ...], verdict: str
) -> None:
    (claim,) = [claim for claim in CLAIMS if claim.statement == "after SGD, IS does better than HR"]
    assert decide(claim, Seeds("is", shifts)).verdict == verdict


def test_summary_counts_the_verdicts_of_each_claim() -> None:
    about = [claim for claim in CLAIMS if claim.number == 6]
    text = markdown([decide(claim, Seeds("hr", (0.02, -0.02))) for claim in about])
    (row,) = [
        line for line in text.splitlines() if line.startswith("| 6 ") and "after SGD " in line
    ][:1]
    assert [cell.strip() for cell in row.strip("|").split("|")][2:] == ["4", "", "4", ""]


def test_report_of_records_says_what_was_measured(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    for seed, shift in enumerate((0.0, 0.002)):
        curve = {
            update: paper.TABLE1["sgd"].get(update, 0.5) + shift for update in HIDDEN.evaluations
        }
        store.save(record(table1.PROTOCOL, "sgd", seed, curve), {})
    store.save(record(table1.PROTOCOL, "is", 0, {0: 0.1, 10: 0.2}, diverged_at=11), {})
    text, used, written = render({"here": store}, tmp_path)
    (row,) = [line for line in text.splitlines() if "row SGD:" in line]
    assert "0.751 ± 0.001 (0.75)" in row
    assert "| holds" in row
    (diverged,) = [line for line in text.splitlines() if "row IS:" in line]
    assert MISSING in diverged
    assert "| here" in row
    assert "| here" not in diverged
    assert used == ["here"]
    assert [path.name for path in written] == ["claims.md", "claims.csv"]


def test_statement_rests_on_the_first_records_that_it_has_and_on_no_other(tmp_path: Path) -> None:
    rising = {update: 0.1 + update / 1000 for update in HIDDEN.evaluations}
    flat = dict.fromkeys(HIDDEN.evaluations, 0.1)
    stores = {name: Store(tmp_path / name, warn=pytest.fail) for name in ("own", "reference")}
    stores["own"].save(record(table1.PROTOCOL, "sgd", 0, rising), {})
    for method in ("sgd", "is"):
        stores["reference"].save(record(table1.PROTOCOL, method, 1, flat), {})
    text, used, _ = render(stores, tmp_path)
    rows = {
        cells[2].strip(): [cell.strip() for cell in cells[4:7]]
        for line in text.splitlines()
        if len(cells := line.split("|")) > 7
    }
    assert rows["Table 1, row SGD: ours (the paper's)"][0].startswith("0.200 (0.75), 0.300")
    assert rows["Table 1, row SGD: ours (the paper's)"][2] == "own"
    assert rows["Table 1, row IS: ours (the paper's)"][2] == "reference"
    assert rows["Table 1, row HR: ours (the paper's)"] == ["-", MISSING, "-"]
    assert used == ["own", "reference"]


def test_reading_is_named_where_a_claim_does_not_hold() -> None:
    (claim,) = [claim for claim in CLAIMS if "longer chains" in claim.statement]
    good, bad = (
        markdown([decide(claim, World(world, statement.HOLDS, 1.0))])
        for world in (_as_claimed, _otherwise)
    )
    assert claim.reading in bad
    assert claim.reading not in good


def test_other_seeds_of_another_method_are_no_comparison(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    rising = {update: 0.1 + update / 1000 for update in HIDDEN.evaluations}
    store.save(record(table1.PROTOCOL, "sgd", 0, rising), {})
    store.save(record(table1.PROTOCOL, "sgld", 1, rising), {})
    text, _, _ = render({"here": store}, tmp_path)
    (row,) = [line for line in text.splitlines() if "more stable than SGD" in line][:1]
    assert MISSING in row


def test_methods_are_compared_on_the_seeds_that_all_have() -> None:
    few, many = {0: {0: 0.2}}, {0: {0: 0.3}, 1: {0: 0.9}}
    assert shared([few, many]) == [{0: {0: 0.2}}, {0: {0: 0.3}}]
    assert largest_gap(many, few).value == pytest.approx(0.1)
    with pytest.raises(MissingError):
        shared([few, {1: {0: 0.9}}])


def test_noise_as_printed_explains_nothing_of_the_other_reading() -> None:
    about = [claim for claim in CLAIMS if claim.statement.endswith("(noise=linear)")]
    assert about
    assert not [claim.statement for claim in about if "printed noise" in claim.reading]
