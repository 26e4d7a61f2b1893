"""The readings: what is run, and how far it is from the paper's rows."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from reproduce import paper
from reproduce.claims.evidence import EARLIER, FRESH
from reproduce.experiments import readings
from reproduce.experiments.reading_distances import distances, drawn_anew, nearest, p_value
from reproduce.experiments.reading_settings import PROTOCOL, QUICK, SETTINGS
from reproduce.protocols import TABLE1, LocalEntropyByImportanceSampling, LocalEntropyBySGLD
from reproduce.records import Record
from tests.reproduce._examples import record


def test_settings_are_one_at_a_time_and_a_dozen_combinations() -> None:
    sizes = [len(chosen) for chosen in SETTINGS.values()]
    assert sizes[:11] == [0] + [1] * 10
    assert len(sizes[11:]) == 12
    assert all(size > 1 for size in sizes[11:])
    assert len({tuple(sorted(chosen.items())) for chosen in SETTINGS.values()}) == len(SETTINGS)


def test_reading_touches_only_the_rows_that_it_concerns() -> None:
    summed = PROTOCOL.panels["R2 sum"]
    assert summed.methods["is"] == LocalEntropyByImportanceSampling(loss_multiplier=20.0)
    others = {row: method for row, method in summed.methods.items() if row != "is"}
    assert others.items() <= TABLE1.methods.items()
    uniform = PROTOCOL.panels["R8 uniform"]
    assert uniform.training.initialization == "uniform"
    assert uniform.methods == TABLE1.methods
    assert PROTOCOL.panels["Table 1's"] == TABLE1


def test_figures_7_and_8_have_their_own() -> None:
    (scoped,) = [panel for title, panel in PROTOCOL.panels.items() if "R11" in title]
    method = scoped.methods["sgld-linear"]
    assert isinstance(method, LocalEntropyBySGLD)
    assert method.tau / (1 + method.tau1) ** 500 == pytest.approx(0.001)
    (summed,) = [panel for title, panel in PROTOCOL.panels.items() if "R2 sum, Figure 7" in title]
    assert summed.training.network == "small_dense"
    assert len(summed.methods) == 7


def test_quick_is_the_same_at_a_small_budget() -> None:
    assert list(QUICK.panels) == list(PROTOCOL.panels)
    for quick, full in zip(QUICK.panels.values(), PROTOCOL.panels.values(), strict=True):
        assert list(quick.methods) == list(full.methods)
        assert quick.training.updates == 6


def _through(row: str, shift: float) -> dict[int, float]:
    return {0: 0.1} | {at: value + shift for at, value in paper.TABLE1[row].items()}


def _runs(
    setting: str, shifts: dict[str, float], seeds: Iterable[int], spread: float = 0.0
) -> list[Record]:
    """Runs whose rows are the paper's, shifted, and more or less by seed."""
    return [
        record(
            PROTOCOL.panels[setting],
            row,
            seed,
            _through(row.partition("-")[0], shift + (seed % 5 - 2) * spread),
        )
        for row, shift in shifts.items()
        for seed in seeds
    ]


def _all(shift: float, **others: float) -> dict[str, float]:
    return {row: others.get(row.replace("-", "_"), shift) for row in TABLE1.methods}


def test_distance_by_hand(tmp_path: Path) -> None:
    shifts = {"sgd": 0.02, "is": 0.3, "hr": 0.0, "sgld-linear": 0.0}
    runs = _runs("R8 normal", shifts, EARLIER, spread=0.01)
    found = {(one.setting, one.row): one for one in distances(runs, PROTOCOL, EARLIER)}
    sgd = found["R8 normal", "sgd"]
    assert sgd.gaps == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04])
    assert sgd.root == pytest.approx(0.02)
    assert sgd.ends == pytest.approx([0.87, 0.88, 0.89, 0.90, 0.91])
    # 0.015 away, rounding granted, in units of 0.0158 sqrt(6 / 5): the upper tail of t with 4.
    assert sgd.broken == pytest.approx([0.217] * 5, abs=1e-3)
    assert p_value([sgd]) == 1.0
    contradicts = p_value([found["R8 normal", "is"]])
    assert contradicts is not None
    assert contradicts < 0.002
    assert p_value([sgd, found["R8 normal", "is"]]) == pytest.approx(2 * contradicts)
    assert p_value([found["R8 normal", "sgld"]]) is None
    assert not found["R8 uniform", "sgd"].ends
    text, written = readings.EXPERIMENT.render(runs, PROTOCOL, None, "auto", tmp_path, tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    # t with 4 degrees of freedom is 2.776 at 97.5 %: 0.02 ± 2.776 * 0.0158 / sqrt(5).
    assert [
        "R8 normal", "sgd", "5", "0.770 0.820 0.870 0.890 0.890", "+0.020 [+0.000, +0.040]",
        "0.020", "could be one more",
    ] in rows  # fmt: skip
    assert ["Table 1's", "sgd", "not run", "-", "-", "-", "-"] in rows
    assert "All rows are run of 0 of 23 settings." in text
    assert [path.name for path in written] == ["readings.md", "readings.csv"]
    values = pd.read_csv(written[1]).set_index(["stage", "setting", "row"])
    assert values.loc[("screened", "R8 normal", "is"), "gap"] == pytest.approx(0.3)
    assert values.loc[("screened", "R8 normal", "sgd"), "gap_high"] == pytest.approx(0.0396, 1e-2)
    assert values.loc[("fresh", "R8 normal", "sgd"), "runs"] == 0


def test_all_columns_of_all_rows_are_one_test() -> None:
    (one, *_) = distances(_runs("R13 tanh", {"sgd": 0.0}, EARLIER), PROTOCOL, EARLIER)
    row = replace(one, is_complete=True, gaps=[0.0, 0.0], broken=[0.004, 1.0, 1.0, 1.0, 1.0])
    other = replace(row, broken=[1.0] * 5)
    # Either side of five columns, or of twenty.
    assert p_value([row]) == pytest.approx(0.04)
    assert p_value([row, other, other, other]) == pytest.approx(0.16)
    assert p_value([other]) == 1.0
    assert p_value([row, replace(other, is_complete=False)]) is None


def test_run_that_diverged_is_at_chance_from_there_on() -> None:
    whole = _through("is", 0.0)
    cut = {update: value for update, value in whole.items() if update <= 300}
    panel = PROTOCOL.panels["R2 sum"]
    runs = [record(panel, "is", 0, whole), record(panel, "is", 1, cut)]
    found = distances(runs, PROTOCOL, (0, 1))
    (one,) = [one for one in found if (one.setting, one.row) == ("R2 sum", "is")]
    assert one.is_complete
    assert one.ends == pytest.approx([0.65, 0.1])
    assert one.gaps == pytest.approx([0.0, (0.1 - 0.57 + 0.1 - 0.65) / 5])


def test_nearest_are_three_complete_settings_by_the_nearer_noise() -> None:
    runs = [
        *_runs("R13 tanh", _all(0.0, sgd=0.03, sgld=0.4, sgld_linear=0.04), EARLIER),
        *_runs("R13 sigmoid", _all(0.0, sgld=0.08, sgld_linear=0.4), EARLIER),
        *_runs("R8 normal", _all(0.1), EARLIER),
        *_runs("R8 uniform", _all(0.2), EARLIER),
        *_runs("Table 1's", _all(0.0), EARLIER),
        # Not all run: a seed short of a row, and a single seed.
        *_runs("R15 standardised", _all(0.001), EARLIER)[1:],
        *_runs("R14 replacement", _all(0.0), [0]),
    ]
    near = nearest(distances(runs, PROTOCOL, EARLIER))
    # The square roots of (0.03^2 + 0.04^2) / 4 and of 0.08^2 / 4.
    assert list(near) == ["R13 tanh", "R13 sigmoid", "R8 normal"]
    assert [root for root, _ in near.values()] == pytest.approx([0.025, 0.04, 0.1])
    assert [row for _, row in near.values()] == ["sgld-linear", "sgld", "sgld"]


def test_fresh_seeds_judge_what_the_screen_chose(tmp_path: Path) -> None:
    runs = [
        # The screen takes the noise of sd eps_j: that the other is not contradicted is no matter.
        *_runs("R13 tanh", _all(0.01, sgld=0.1), EARLIER),
        *_runs("R13 tanh", _all(0.0, sgld_linear=0.05), FRESH, spread=0.01),
        *_runs("R13 sigmoid", _all(0.05), EARLIER),
        *_runs("R13 sigmoid", _all(0.0, hr=-0.3), FRESH, spread=0.01),
        *_runs("R8 normal", _all(0.06), EARLIER),
        *_runs("R8 uniform", _all(0.07), EARLIER),
        *_runs("R8 uniform", _all(0.0), FRESH, spread=0.01),
    ]
    said, (screen, confirmation, figures) = readings.told(runs, PROTOCOL)
    assert screen.lines[0] == "All rows are run of 4 of 23 settings."
    assert screen.lines[1].endswith(
        ': "R13 tanh" (0.010, sgld-linear), "R13 sigmoid" (0.050, sgld), "R8 normal" (0.060, sgld).'
    )
    assert [line.partition(",")[0] for line in confirmation.lines] == [
        '"R13 tanh"', '"R13 sigmoid"', '"R8 normal"',
    ]  # fmt: skip
    one_row, broken, missing = confirmation.lines
    # 0.045 away, rounding granted, in units of 0.01451 sqrt(21 / 20): t is 3.03 with 19 degrees of
    # freedom, its upper tail 0.0035, twice, times 5 or times 20.
    assert one_row == (
        "\"R13 tanh\", SGLD's row sgld-linear: the paper's four rows as one test: not contradicted "
        "(p = 0.14), with test images drawn at each evaluation (R10) judged by the report. Rows "
        "that would contradict it each by itself: sgld-linear (p = 0.035)."
    )
    assert ", SGLD's row sgld: the paper's four rows as one test: contradicted (p = " in broken
    assert "each by itself: hr (p = " in broken
    assert said.startswith("Of the text's other readings 22 settings were screened with seeds 0")
    assert '; "R13 sigmoid" contradicted (p = ' in said
    assert "R8 normal" not in said
    assert missing == '"R8 normal", SGLD\'s row sgld: not all run.'
    assert {cells[0] for cells in screen.cells} >= {"Table 1's", "R8 uniform"}
    assert {cells[0] for cells in confirmation.cells} == {"Table 1's", "R13 tanh", "R13 sigmoid"}
    assert not figures.cells
    text, _ = readings.EXPERIMENT.render(runs, PROTOCOL, None, "auto", tmp_path, tmp_path)
    assert text.index("+0.100") < text.index("## Confirmed") < text.index("-0.300")


def test_confirmation_is_judged_on_images_drawn_anew_too() -> None:
    runs = _runs("R13 tanh", _all(0.0), [*EARLIER, *FRESH], spread=0.01)
    beside = {"held_out": {"per_evaluation": [0.1] * 6}}
    anew = drawn_anew(
        [one if one.run.case == "sgd" else replace(one, timings=beside) for one in runs]
    )
    assert {one.result["curve"]["accuracy"][-1] for one in anew} == {0.1}
    assert len(anew) < len(runs)
    _, (_, confirmation, _) = readings.told(runs, PROTOCOL, anew=anew)
    # Those of SGD were not recorded.
    assert "drawn at each evaluation (R10) not all recorded. Rows" in confirmation.lines[0]
    anew = drawn_anew([replace(one, timings=beside) for one in runs])
    _, (_, confirmation, _) = readings.told(runs, PROTOCOL, anew=anew)
    assert "rows as one test: not contradicted (p = 1), with" in confirmation.lines[0]
    assert "drawn at each evaluation (R10) contradicted (p = " in confirmation.lines[0]
    assert confirmation.lines[0].endswith("itself: none.")


def test_readings_on_figures_have_a_table_of_their_own() -> None:
    title = "R11 from 1.5 to 0.001, Figure 8"
    runs = [
        record(PROTOCOL.panels[title], "sgld", seed, _through("sgld", 0.0)) for seed in (0, 1, 7)
    ]
    figures = readings.told(runs, PROTOCOL).sections[-1]
    assert figures.cells == [[title, "sgld", "3", "0.880"]]
    assert figures.header == ["setting", "row", "runs", "accuracy"]


def test_reading_is_run_once_all_rows_are_recorded_that_it_touches() -> None:
    own = [record(TABLE1, row, 0, _through("sgd", 0.0)) for row in ("sgd", "sgld")]
    assert not any(readings.run(own).values())
    assert "Table 1's" not in readings.run(own)
    chain = PROTOCOL.panels["R6 chain from the weights"]
    others = [record(chain, row, 7, _through("sgld", 0.0)) for row in ("sgld", "sgld-linear")]
    assert not any(readings.run([*own, others[0]]).values())
    is_run = readings.run([*own, *others])
    assert [setting for setting, recorded in is_run.items() if recorded] == [
        "R6 chain from the weights"
    ]


def test_one_seed_contradicts_nothing() -> None:
    runs = [record(PROTOCOL.panels["R13 tanh"], "sgd", 0, _through("sgd", 0.5))]
    found = distances(runs, PROTOCOL, [0])
    (one,) = [one for one in found if (one.setting, one.row) == ("R13 tanh", "sgd")]
    assert p_value([one]) is None
    assert one.root == pytest.approx(0.5)


def test_nothing_is_concluded_before_a_setting_has_its_fresh_seeds() -> None:
    runs = _runs("R13 tanh", _all(0.0), [*EARLIER, *FRESH], spread=0.01)
    assert '"R13 tanh" not contradicted (p = 1), with' in readings.told(runs, PROTOCOL).conclusion
    assert not readings.told(runs[1:], PROTOCOL).conclusion
