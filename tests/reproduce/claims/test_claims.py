"""The rules on made-up worlds: one as the paper tells it, others in which it is not so."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reproduce import paper
from reproduce.claims import CLAIMS, TOPICS, judge
from reproduce.claims.cases import COLUMNS, SMALL, small, table1
from reproduce.claims.claim import (
    FAILS,
    HOLDS,
    MISSING,
    OPEN,
    UNCONTRADICTED,
    UNINFORMATIVE,
    Claim,
    Contrast,
    about,
    decide,
)
from reproduce.claims.evidence import EARLIER, FRESH, Control, Evidence, curves_of
from reproduce.claims.measures import Curves, at
from reproduce.claims.parts import Part
from reproduce.experiments import figure5, section61
from reproduce.experiments.base import cases_of
from reproduce.experiments.readings import PROTOCOL as READINGS
from reproduce.experiments.registry import TRAINING
from reproduce.protocols import TABLE1, Case
from reproduce.records import Store
from reproduce.theory import claims as theorems
from reproduce.theory import statement
from reproduce.theory.statement import Statement
from reproduce.theory.table import StatementRow
from tests.reproduce._examples import record

BY_KEY = {claim.key: claim for claim in CLAIMS}
SGD_FIRST = figure5.TRAINING.sgd_updates
SECTION61 = [one.training for one in section61.PROTOCOL.panels.values()]
Value = Callable[[int], float]


@dataclass(frozen=True)
class World(Evidence):
    """Evidence without records: a curve is a function of the update, shifted a little by seed."""

    value: Callable[[Case], Value] = lambda case: lambda update: 0.0
    verdict: str = statement.HOLDS
    ratio: float = 1.0
    reported: Mapping[str, float] = field(default_factory=dict)
    asked: dict[Case, Curves] = field(default_factory=dict)
    count: int = 20

    def curves(self, case: Case) -> Curves:
        if case in self.replaced:
            return super().curves(case)
        if case not in self.asked:
            value = self.value(case)
            curve = {update: value(update) for update in case.training.evaluations}
            self.asked[case] = {
                seed: {
                    update: accuracy + (update > 0) * 0.001 * (seed % 7 - 3)
                    for update, accuracy in curve.items()
                }
                for seed in range(5, 25)
            }
        return {seed: self.asked[case][seed] for seed in range(5, 5 + self.count)}

    def diagnostics(self, case: Case, name: str) -> Mapping[int, Sequence[float]]:
        if (case, name) in self.replaced:
            return super().diagnostics(case, name)
        return {seed: [self.reported[name] * (1 + seed / 1000)] for seed in range(20)}

    def seconds(self, method: str) -> Mapping[int, float]:
        if method in self.replaced:
            return super().seconds(method)
        faster = {"sgd": 1.0, "hr": self.ratio**0.5}.get(method, self.ratio)
        own = paper.TABLE2[method] * faster
        return {repetition: own * (1 + repetition / 100) for repetition in range(5)}

    def statement(self, wanted: Statement) -> StatementRow:
        return StatementRow("", wanted.statement, wanted.place, 0.0, None, 1, "", self.verdict)


CURSED = {
    "effective_sample_size": 2.0,
    "standard_error": 2.0,
    "step_norm": 2.0,
    "dimensions": 159010.0,
    "sampled_dimensions": 6210.0,
}
BLESSED = CURSED | {
    "effective_sample_size": 950.0,
    "standard_error": 0.1,
    "sampled_dimensions": 150000.0,
}


def _zigzag(level: float, amplitude: float) -> Value:
    return lambda update: level + amplitude * (update // 10 % 2)


def _line(start: float, end: float, updates: int) -> Value:
    return lambda update: start + (end - start) * update / updates


def _through(points: Mapping[int, float], amplitude: float = 0.0, scale: float = 1.0) -> Value:
    def value(update: int) -> float:
        known = sorted({0: 0.1, **points}.items())
        for (low, first), (high, last) in pairwise(known):
            if low <= update <= high:
                straight = first + (last - first) * (update - low) / (high - low)
                own = scale if update else 1.0
                return own * straight + amplitude * (update // 10 % 2) * (350 >= update > 0)
        raise AssertionError(update)

    return value


def _as_told(case: Case) -> Value:
    training, method = case.training, case.method
    name, settings = method.row.partition("-")[0], vars(method)
    if training.sgd_updates:
        ends = {"sgd": 0.92, "is": 0.91, "sgld": 0.915, "hr": 0.9}
        before = _through({SGD_FIRST: 0.9, SGD_FIRST + 500: 0.9})
        return lambda update: before(update) if update <= SGD_FIRST else ends[name]
    if training in SECTION61:
        level = 0.912 if training.network == "small_dense" else 0.975
        return lambda update: level if update else 0.1
    if training == SMALL:
        return _small_as_told(name, settings)
    published = paper.TABLE1[name]
    if name == "sgd":
        return _through(published, amplitude=0.008)
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
        return lambda update: (early if update else 0.1) if update <= 100 else late
    return _through(published)


def _small_as_told(name: str, settings: Mapping[str, float]) -> Value:
    tau = settings["learning_rate" if name == "sgd" else "tau"]
    if name != "is":
        return _line(0.1, {0.001: 0.4, 0.003: 0.5, 0.01: 0.6}.get(tau, 0.85), 500)
    ends = {0.001: 0.2, 0.003: 0.3, 0.01: 0.4, 0.03: 0.8, 0.1: 0.7, 0.3: 0.6, 1.0: 0.3}
    return _zigzag(ends[tau], 0.05 if tau == 0.001 else 0.01)


def _otherwise(case: Case) -> Value:
    training, method = case.training, case.method
    row, settings = method.row, vars(method)
    name = row.partition("-")[0]
    if training.sgd_updates:
        ends = {"sgd": 0.84, "is": 0.86, "sgld": 0.86, "hr": 0.87}
        before = _through({SGD_FIRST: 0.8, SGD_FIRST + 500: 0.8})
        return lambda update: before(update) if update <= SGD_FIRST else ends[name]
    if training in SECTION61:
        level = 0.5 if training.network == "small_dense" else 0.995
        return lambda update: level if update else 0.1
    if training == SMALL:
        if name == "sgd":
            return _line(0.1, 0.9, 500)
        if name == "sgld":
            return _zigzag({0.1: 0.4, 1.0: 0.95}.get(settings["tau"], 0.9), 0.0)
        return _zigzag({0.03: 0.5, 0.1: 0.5}.get(settings["tau"], 0.9), 0.0)
    if name == "sgd":
        return lambda update: 0.1 + 0.4 * update / 500 + 0.1 * (update // 10 % 2) * (update > 350)
    if name == "is":
        samples = settings["samples"]
        return lambda update: 0.1 if not update else _is_otherwise(update, samples)
    if name == "hr":
        steps = settings["steps"]
        rough = 0.001 * steps
        return lambda update: (
            0.1 if not update else 0.15 + 0.4 * update / 500 + rough * (1 + update // 10 % 2)
        )
    few = settings["samples"] == 10
    return lambda update: (
        0.1 if not update else 0.1 * few + 0.3 + 0.25 * update / 500 + 0.2 * (update // 10 % 2)
    )


def _is_otherwise(update: int, samples: int) -> float:
    level = {10: 0.40, 100: 0.38, 1000: 0.36}[samples]
    return level + 0.38 * (min(update, 300) - 100) / 200 + samples / 50000 * (update // 10 % 2)


def _world(value: Callable[[Case], Value], **more: object) -> World:
    return World(value=value, **more)  # type: ignore[arg-type]


AS_TOLD = _world(_as_told, reported=CURSED)
OTHERWISE = _world(_otherwise, verdict=statement.FAILS, ratio=0.01, reported=BLESSED)

LAGGING = _world(
    lambda case: (
        _as_told(case)
        if case.method.row == "sgd"
        else lambda update: _as_told(case)(update) * (0.8 if update else 1.0)
    )
)

CONTRADICTED_BY_ITS_OWN_NUMBERS = {"par.is", "par.hr", "constant-rate.is"}
"""What the paper says and its Table 1 does not."""

EXPECTED = {
    # The paper's SGLD is 0.03 behind SGD at 100 updates, which is the bound.
    "par.sgld": OPEN,
    "par.sgld-linear": OPEN,
    # The paper's IS and HR end so far below SGD that their falls say nothing.
    "monotone.is": UNINFORMATIVE,
    "monotone.hr": UNINFORMATIVE,
}
"""Where the paper's own world does not keep, or test, what it says."""


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.key)
def test_rule_says_what_holds_and_what_does_not(claim: Claim) -> None:
    found = decide(claim, {"world": AS_TOLD})
    assert found.is_final
    if claim.key in CONTRADICTED_BY_ITS_OWN_NUMBERS:
        assert (found.verdict, found.paper) == (FAILS, False)
        return
    predicted = claim.topic == 2 or claim.is_contradictable_only
    expected = EXPECTED.get(claim.key, UNCONTRADICTED if predicted else HOLDS)
    assert found.verdict == expected, [(part.rule, part) for part in found.parts]
    assert found.paper is not False
    assert not any({**found.passed, **found.passed_later}.values())
    if claim.seeds:
        assert found.gate
        assert found.passed or found.passed_later
    kind = claim.key.split(".")[0]
    other = decide(claim, {"world": LAGGING if kind == "par" else OTHERWISE})
    gated = {"stabler", "monotone", "after", "section61", "stable", "start"}
    accepted = {FAILS} | ({UNINFORMATIVE} if kind in gated else set())
    assert other.verdict in accepted, [(part.rule, part) for part in (*other.gate, *other.parts)]


def test_keys_are_distinct_and_topics_in_order() -> None:
    assert len(BY_KEY) == len(CLAIMS)
    numbers = [claim.topic for claim in CLAIMS]
    assert sorted(set(numbers)) == list(TOPICS) == list(range(1, 15))
    assert numbers == sorted(numbers)


def test_every_case_asked_for_is_one_that_a_command_makes() -> None:
    for claim in CLAIMS:
        decide(claim, {"world": AS_TOLD})
    made = {
        case
        for protocol in (*(one.PROTOCOL for one in TRAINING), READINGS)
        for case in cases_of(protocol)
    }
    assert AS_TOLD.asked.keys() <= made


def test_each_statement_of_the_theorems_is_part_of_one_claim() -> None:
    for topic, statements in ((1, theorems.THEOREMS), (12, theorems.MINIBATCHES)):
        words = [word for claim in CLAIMS if claim.topic == topic for word in claim.words]
        assert sorted(words) == sorted(f"{one.statement} ({one.rule})" for one in statements)


def test_one_seed_decides_nothing() -> None:
    for claim in CLAIMS:
        if claim.own:
            found = decide(claim, {"world": replace(AS_TOLD, count=1)})
            assert (found.verdict, found.is_final) == (OPEN, False), claim.key


def test_verdict_is_final_only_with_the_planned_number_of_fresh_seeds() -> None:
    claim = BY_KEY["stabler.sgld"]
    assert decide(claim, {"world": replace(AS_TOLD, count=20)}).is_final
    found = decide(claim, {"world": replace(AS_TOLD, count=19)})
    assert (found.verdict, found.seeds, found.is_final) == (HOLDS, 19, False)


def _made_up(parts: Sequence[Part], gate: Sequence[Part] = (), **more: object) -> Claim:
    return Claim("key", 1, "", "", lambda e: parts, lambda e: gate, **more)  # type: ignore[arg-type]


GOOD, BAD, WIDE = (0.5, 0.51, 0.52), (-0.5, -0.51, -0.52), (-1.0, 0.0, 2.0)


def test_one_broken_part_is_enough_by_holms_p_values() -> None:
    kept, broken, unclear = (Part("", values, low=0.0) for values in (GOOD, BAD, WIDE))
    among = {"here": Evidence()}
    assert decide(_made_up([kept, kept]), among).verdict == HOLDS
    assert decide(_made_up([kept, unclear]), among).verdict == OPEN
    assert decide(_made_up([unclear, broken]), among).verdict == FAILS
    # Alone it is broken at p = 0.0224, below 0.025; as one of two it is not.
    barely = Part("", (-1.0, -2.0, -1.0, 0.1, -0.9), low=0.0)
    assert 0.0125 < barely.broken() < 0.025
    assert decide(_made_up([barely]), among).verdict == FAILS
    assert decide(_made_up([barely, unclear]), among).verdict == OPEN


def test_gate_that_is_not_shown_makes_either_verdict_uninformative() -> None:
    kept, broken, unclear = (Part("", values, low=0.0) for values in (GOOD, BAD, WIDE))
    for gate in (broken, unclear):
        for part in (kept, broken):
            found = decide(_made_up([part], [gate]), {"here": Evidence()})
            assert found.verdict == UNINFORMATIVE


def _answering(answers: Mapping[Any, Any]) -> Control:
    return lambda evidence, own: evidence.instead(answers)


def test_control_that_passes_makes_either_verdict_uninformative() -> None:
    case = table1("sgd")

    def rule(evidence: Evidence) -> list[Part]:
        ends = [curve[500] for curve in evidence.curves(case).values()]
        return [Part("", ends, high=0.9)]

    for level, expected in ((0.5, HOLDS), (0.95, FAILS)):
        evidence = Evidence().instead({case: {seed: {500: level} for seed in range(3)}})
        for stand_in, verdict in ((0.99, expected), (0.2, UNINFORMATIVE)):
            flat = {case: {seed: {500: stand_in} for seed in range(3)}}
            controls = {"c": _answering(flat)}
            claim = Claim("key", 1, "", "", rule, own=[case], controls=controls)
            found = decide(claim, {"here": evidence})
            assert found.verdict == verdict
            assert found.passed == {"c": verdict == UNINFORMATIVE}


def test_control_thought_of_later_is_told_and_decides_nothing() -> None:
    case, other = table1("sgd"), table1("is")

    def rule(evidence: Evidence) -> list[Part]:
        return [Part("", [curve[500] for curve in evidence.curves(case).values()], low=0.5)]

    levels = {case: 0.9, other: 0.7}
    evidence = Evidence().instead(
        {one: {seed: {500: level} for seed in range(3)} for one, level in levels.items()}
    )
    claim = Claim("key", 1, "", "", rule, own=[case], later_controls={"IS": curves_of(other)})
    found = decide(claim, {"here": evidence})
    assert (found.verdict, found.passed, found.passed_later) == (HOLDS, {}, {"IS": True})


def test_what_no_run_can_show_is_at_best_not_contradicted() -> None:
    for values, verdict in ((GOOD, UNCONTRADICTED), (WIDE, OPEN), (BAD, FAILS)):
        claim = _made_up([Part("", values, low=0.0)], is_contradictable_only=True)
        assert decide(claim, {"here": Evidence()}).verdict == verdict


def test_papers_own_numbers_go_through_the_rule_first() -> None:
    nothing = {"none": Evidence()}
    verdicts = {key: decide(claim, nothing).paper for key, claim in BY_KEY.items()}
    assert {key for key, kept in verdicts.items() if kept is False} == (
        CONTRADICTED_BY_ITS_OWN_NUMBERS
    )
    assert {key for key, kept in verdicts.items() if kept} == {
        "slower.is.sgld", "slower.is.sgld-linear", "slower.hr.sgld", "slower.hr.sgld-linear",
        "start.is", "par.sgld", "par.sgld-linear", "scoping.low.sgld", "scoping.low.sgld-linear",
        "outperform.is", "outperform.sgld", "outperform.hr", "outperform.sgld-linear",
        "table2.thousand", "table2.is", "table2.sgld", "table2.hr", "table2.half",
    }  # fmt: skip


def _flat(accuracy: float) -> dict[int, float]:
    return dict.fromkeys(TABLE1.training.evaluations, accuracy)


def test_fresh_seeds_go_before_earlier_ones_and_own_records_before_others(tmp_path: Path) -> None:
    stores = {name: Store(tmp_path / name, warn=pytest.fail) for name in ("own", "reference")}
    for seed in EARLIER:
        stores["own"].save(record(TABLE1, "sgd", seed, _flat(0.4 + seed / 1000)))
    by_key = {one.claim.key: one for one in judge(stores)}
    first = by_key["table1.sgd"]
    assert (first.source, first.seeds, first.is_fresh, first.is_final) == ("own", 5, False, False)
    assert by_key["table1.is"].verdict == MISSING
    for seed in FRESH:
        stores["reference"].save(record(TABLE1, "sgd", seed, _flat(0.7 + seed / 1000)))
    then = {one.claim.key: one for one in judge(stores)}["table1.sgd"]
    assert (then.source, then.seeds, then.is_final) == ("reference", 20, True)
    assert then.verdict == FAILS


def test_ten_seeds_decide_though_there_are_more(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    for seed in FRESH:
        store.save(record(TABLE1, "is", seed, _flat(0.7)))
    claim = about("key", 7, "", "", [Contrast("", at(500), table1("is"), low=0.6)])
    assert decide(claim, {"here": Evidence.read(store)}).seeds == claim.seeds == 10


def test_diverged_run_counts_and_is_at_chance_from_there_on(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    store.save(record(TABLE1, "is", 5, {0: 0.1, 10: 0.2}, diverged_at=11))
    curve = Evidence.read(store).curves(table1("is"))[5]
    assert (curve[10], curve[20], curve[500]) == (0.2, 0.1, 0.1)
    assert set(COLUMNS) <= curve.keys()


def test_runs_are_found_by_their_settings_and_not_in_all_weights(tmp_path: Path) -> None:
    store = Store(tmp_path, warn=pytest.fail)
    store.save(record(TABLE1, "is", 5, _flat(0.9), subspace=False))
    store.save(record(TABLE1, "is", 6, _flat(0.5), threads=1))
    store.save(record(TABLE1, "is", 6, _flat(0.5), threads=2))
    evidence = Evidence.read(store)
    assert list(evidence.curves(table1("is"))) == [6]
    assert small("sgd", 0.001).name == "sgd-learning_rate-0.001-network-small_dense"
