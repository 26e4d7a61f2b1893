import pytest

import lerh_tf
from reproduce import methods
from reproduce.experiments import variations
from reproduce.experiments.variations import FIGURE6, FIGURE7, FIGURE8
from reproduce.protocols import (
    TABLE1,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
)
from reproduce.summary import Panel, summarise


@pytest.mark.parametrize(
    ("samples", "side"), [(10, 3), (100, 10), (1000, 31), (1023, 31), (1024, 32)]
)
def test_heat_regularization_takes_the_floor_of_the_root(samples: int, side: int) -> None:
    expected = HeatRegularizationByRobbinsMonro(steps=side, samples=side)
    assert variations.heat_regularization(samples) == expected


def test_figure_6_has_a_panel_per_method_and_a_line_per_number_of_samples() -> None:
    importance, heat, printed, linear = FIGURE6.PROTOCOL.panels.values()
    assert importance.methods == {
        f"S = {s}": LocalEntropyByImportanceSampling(samples=s) for s in (10, 100, 1000)
    }
    assert heat.methods == {
        f"S = {s}": HeatRegularizationByRobbinsMonro(steps=side, samples=side)
        for s, side in ((10, 3), (100, 10), (1000, 31))
    }
    assert printed.methods["S = 10"] == LocalEntropyBySGLD(samples=10)
    assert linear.methods["S = 10"] == LocalEntropyBySGLD(samples=10, noise="linear")
    assert all(panel.training == TABLE1.training for panel in FIGURE6.PROTOCOL.panels.values())


PANELS = FIGURE7.PROTOCOL.panels


def test_figure_7_has_a_row_of_panels_per_method_and_a_column_per_interval() -> None:
    sgld, linear, importance = (list(PANELS.values())[at : at + 3] for at in (0, 3, 6))
    taus = [(0.001, 0.003, 0.01), (0.01, 0.03, 0.1), (0.1, 0.3, 1.0)]
    for panel, values in zip(sgld, taus, strict=True):
        assert list(panel.methods.values()) == [LocalEntropyBySGLD(tau) for tau in values]
    for panel, values in zip(linear, taus, strict=True):
        expected = [LocalEntropyBySGLD(tau, noise="linear") for tau in values]
        assert list(panel.methods.values()) == expected
    for panel, values in zip(importance, taus, strict=True):
        expected_is = [LocalEntropyByImportanceSampling(tau) for tau in values]
        assert list(panel.methods.values()) == expected_is
    assert list(PANELS["IS, τ in [0.1, 1]"].methods) == ["τ = 0.1", "τ = 0.3", "τ = 1"]


def test_figure_7_is_of_the_small_network_and_makes_shared_ends_once() -> None:
    assert {panel.training.network for panel in PANELS.values()} == {"small_dense"}
    assert len(FIGURE7.PROTOCOL.cases()) == 3 * 7


LAST = TABLE1.training.updates - 1


@pytest.mark.parametrize(
    ("title", "first", "last"),
    [
        ("τ = 0.01", 0.01, 0.01),
        ("τ = 1.5", 1.5, 1.5),
        ("τ: 0.01 → 1.5", 0.01, 1.484),  # 0.01 / 0.99003^499
        ("τ: 1.5 → 0.01", 1.5, 0.01047),  # 1.5 / 1.01^499
    ],
)
def test_tau_at_the_first_and_the_last_update(title: str, first: float, last: float) -> None:
    scoping = variations.SCOPINGS[title]
    assert scoping.at(0) == first
    assert scoping.at(LAST) == pytest.approx(last, rel=1e-3)
    for row in ("sgld", "sgld-linear"):
        method = FIGURE8.PROTOCOL.panels[title].methods[row]
        assert isinstance(method, LocalEntropyBySGLD)
        library = lerh_tf.Scoping(method.tau, method.tau1)
        for k in (0, 1, LAST):
            assert float(library(k)) == pytest.approx(scoping.at(k), rel=1e-12)


def test_growing_tau_would_be_the_other_panels_start_after_the_last_update() -> None:
    growing = variations.SCOPINGS["τ: 0.01 → 1.5"]
    assert growing.at(LAST + 1) == pytest.approx(1.5, rel=1e-3)


def test_every_panel_of_figure_8_has_sgd_and_both_readings_of_the_noise() -> None:
    for panel in FIGURE8.PROTOCOL.panels.values():
        assert list(panel.methods) == ["sgd", "sgld", "sgld-linear"]
        assert panel.methods["sgd"] == TABLE1.methods["sgd"]
        assert panel.training == TABLE1.training
    held = FIGURE8.PROTOCOL.panels["τ = 0.01"].methods
    assert all(held[row] == TABLE1.methods[row] for row in held)


def test_each_panel_shows_its_schedule() -> None:
    rows = summarise([], TABLE1, ())
    (shown,) = variations.scheduled([Panel("τ: 1.5 → 0.01", rows, columns=(100, 500))])
    assert list(shown.schedule)[-1] < 500
    assert shown.schedule[0] == 1.5
    assert shown.schedule[490] == pytest.approx(1.5 / 1.01**490)


def test_optimizer_scopes_tau() -> None:
    scoped = methods.optimizer(LocalEntropyBySGLD(1.5, samples=2, tau1=0.01), 0)
    held = methods.optimizer(LocalEntropyBySGLD(1.5, samples=2), 0)
    assert scoped.get_config()["tau"] != held.get_config()["tau"] == 1.5
    with pytest.raises(
        ValueError, match=r"`tau1` must be finite and above -1\. Received: tau1=-1\.0"
    ):
        LocalEntropyBySGLD(tau1=-1.0)
