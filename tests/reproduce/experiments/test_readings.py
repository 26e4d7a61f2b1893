"""The readings: what is run, and how far it is from the paper's rows."""

from pathlib import Path

import pandas as pd
import pytest

from reproduce import paper
from reproduce.experiments import readings
from reproduce.experiments.readings import PROTOCOL, QUICK, SETTINGS
from reproduce.protocols import TABLE1, LocalEntropyByImportanceSampling, LocalEntropyBySGLD
from tests.reproduce._examples import record

SEEDS = (0, 1, 2)


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


def test_distance_by_hand(tmp_path: Path) -> None:
    comparison = PROTOCOL.panels["R8 normal"]
    runs = [
        record(comparison, row, seed, _through(row.partition("-")[0], shift + (seed - 1) / 100))
        for row, shift in (("sgd", 0.02), ("is", 0.3), ("hr", 0.0), ("sgld-linear", 0.0))
        for seed in SEEDS
    ]
    found = {(one.setting, one.row): one for one in readings.distances(runs, PROTOCOL, SEEDS)}
    sgd = found["R8 normal", "sgd"]
    assert sgd.gaps == pytest.approx([0.01, 0.02, 0.03])
    assert sgd.root == pytest.approx(0.02)
    assert sgd.ends == pytest.approx([0.88, 0.89, 0.90])
    assert sgd.fits
    assert found["R8 normal", "is"].fits is False
    assert found["R8 normal", "sgld"].fits is None
    assert not found["R8 uniform", "sgd"].ends
    text, written = readings.render(runs, PROTOCOL, SEEDS, "auto", tmp_path, tmp_path)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    # t with 2 degrees of freedom is 4.303 at 97.5 %: 0.02 ± 4.303 * 0.01 / sqrt(3).
    assert [
        "R8 normal", "sgd", "3", "0.890", "+0.020 [-0.005, +0.045]", "0.020", "could be one more",
    ] in rows  # fmt: skip
    assert ["R8 uniform", "sgd", "not run", "-", "-", "-", "-"] in rows
    assert "Settings that no row of Table 1 contradicts: none." in text
    assert [path.name for path in written] == ["readings.md", "readings.csv"]
    values = pd.read_csv(written[1]).set_index(["setting", "row"])
    assert values.loc[("R8 normal", "is"), "gap"] == pytest.approx(0.3)
    assert values.loc[("R8 normal", "sgd"), "gap_high"] == pytest.approx(0.0448, abs=1e-4)


def test_setting_fits_only_if_it_fits_all_rows() -> None:
    comparison = PROTOCOL.panels["R13 tanh"]
    runs = [
        record(comparison, row, seed, _through(row.partition("-")[0], (seed - 1) / 100))
        for row in ("sgd", "is", "hr", "sgld-linear")
        for seed in SEEDS
    ]
    line, _ = readings.joint(readings.distances(runs, PROTOCOL, SEEDS))
    assert line == "Settings that no row of Table 1 contradicts: `R13 tanh`."
    line, _ = readings.joint(readings.distances(runs, PROTOCOL, (*SEEDS, 3)))
    assert line.endswith(": none."), "a seed that was asked for is not run"
    without = [one for one in runs if "hr" not in one.run.case]
    (line,) = readings.joint(readings.distances(without, PROTOCOL, SEEDS))
    assert line.endswith(": none.")


def test_nearest_setting_is_that_of_all_rows_with_the_nearer_noise() -> None:
    # SGLD as printed varies so much that nothing contradicts it: nearer is the other all the same.
    shifts = {
        "R13 tanh": {"sgd": 0.03, "is": 0.0, "sgld": 0.4, "sgld-linear": 0.04, "hr": 0.0},
        "R13 sigmoid": {"sgd": 0.0, "is": 0.0, "sgld": 0.08, "sgld-linear": 0.4, "hr": 0.0},
    }
    runs = [
        record(
            PROTOCOL.panels[setting],
            row,
            seed,
            _through(row.partition("-")[0], shift + (seed - 1) * 0.3 * (row == "sgld")),
        )
        for setting, rows in shifts.items()
        for row, shift in rows.items()
        for seed in SEEDS
    ]
    found = readings.distances(runs, PROTOCOL, SEEDS)
    assert [one.fits for one in found if (one.setting, one.row) == ("R13 tanh", "sgld")] == [True]
    _, line = readings.joint(found)
    # The square roots of (0.03^2 + 0.04^2) / 4 and of 0.08^2 / 4.
    assert line.endswith(": `R13 tanh` (0.025), `R13 sigmoid` (0.040).")


def test_screen_and_confirmation_are_apart(tmp_path: Path) -> None:
    comparison = PROTOCOL.panels["R13 tanh"]
    runs = [
        record(comparison, "sgd", seed, _through("sgd", shift))
        for seed, shift in ((0, 0.1), (1, 0.1), (5, 0.2), (24, 0.2))
    ]
    text, written = readings.render(runs, PROTOCOL, None, "auto", tmp_path, tmp_path)
    screened, confirmed = text.split("## ")[1:3]
    assert "+0.100" in screened
    assert "+0.100" not in confirmed
    assert "+0.200" in confirmed
    lines = pd.read_csv(written[1])
    tanh = lines[(lines.setting == "R13 tanh") & (lines.row == "sgd")]
    assert [(*line,) for line in tanh[["stage", "runs"]].values] == [
        ("Screened with seeds 0 1 2 3 4", 2),
        ("Confirmed with seeds " + " ".join(map(str, range(5, 25))), 2),
    ]


def test_seeds_that_screen_and_others() -> None:
    assert readings.stages([30, 0]) == {
        "Screened with seeds 0": [0],
        "Confirmed with seeds 30": [30],
    }
    assert list(readings.stages([7])) == ["Confirmed with seeds 7"]


def test_report_tells_what_a_setting_runs_otherwise() -> None:
    runs = [record(PROTOCOL.panels["R2 sum"], row, 0, _through(row, 0.0)) for row in ("sgd", "is")]
    told = readings.told(readings.distances(runs, PROTOCOL, SEEDS))
    assert [(one.setting, one.row) for one in told if one.ends] == [
        ("Table 1's", "sgd"),
        ("R2 sum", "is"),
        ("R2 + R5", "is"),
    ]
    assert {one.setting for one in told} == {"Table 1's", "R2 sum", "R2 + R5"}


def test_reading_is_run_once_a_row_is_recorded_that_it_touches() -> None:
    own = [record(TABLE1, row, 0, _through("sgd", 0.0)) for row in ("sgd", "sgld")]
    assert not any(readings.run(readings.distances(own, PROTOCOL, SEEDS)).values())
    other = record(PROTOCOL.panels["R6 chain from the weights"], "sgld", 0, _through("sgld", 0.0))
    is_run = readings.run(readings.distances([*own, other], PROTOCOL, SEEDS))
    assert [setting for setting, recorded in is_run.items() if recorded] == [
        "R6 chain from the weights"
    ]
    assert "Table 1's" not in is_run


def test_one_seed_fits_nothing() -> None:
    runs = [record(PROTOCOL.panels["R13 tanh"], "sgd", 0, _through("sgd", 0.0))]
    found = readings.distances(runs, PROTOCOL, SEEDS)
    (one,) = [one for one in found if (one.setting, one.row) == ("R13 tanh", "sgd")]
    assert one.fits is None
    assert one.root == pytest.approx(0.0)
