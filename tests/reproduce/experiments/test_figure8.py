import pytest

import lerh_tf
from reproduce import methods
from reproduce.experiments import figure8
from reproduce.protocols import TABLE1, LocalEntropyBySGLD
from reproduce.summary import Panel, summarise

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
    scoping = figure8.SCOPINGS[title]
    assert scoping.at(0) == first
    assert scoping.at(LAST) == pytest.approx(last, rel=1e-3)
    for row in ("sgld", "sgld-linear"):
        method = figure8.PROTOCOL.panels[title].methods[row]
        assert isinstance(method, LocalEntropyBySGLD)
        library = lerh_tf.Scoping(method.tau, method.tau1)
        for k in (0, 1, LAST):
            assert float(library(k)) == pytest.approx(scoping.at(k), rel=1e-12)


def test_growing_tau_would_be_the_other_panels_start_after_the_last_update() -> None:
    growing = figure8.SCOPINGS["τ: 0.01 → 1.5"]
    assert growing.at(LAST + 1) == pytest.approx(1.5, rel=1e-3)


def test_every_panel_has_sgd_and_both_readings_of_the_noise() -> None:
    for panel in figure8.PROTOCOL.panels.values():
        assert list(panel.methods) == ["sgd", "sgld", "sgld-linear"]
        assert panel.methods["sgd"] == TABLE1.methods["sgd"]
        assert panel.training == TABLE1.training
    held = figure8.PROTOCOL.panels["τ = 0.01"].methods
    assert all(held[row] == TABLE1.methods[row] for row in held)


def test_each_panel_shows_its_schedule() -> None:
    rows = summarise([], TABLE1, ())
    (shown,) = figure8.views([Panel("τ: 1.5 → 0.01", rows, columns=(100, 500))])
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
