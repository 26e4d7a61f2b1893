from reproduce.experiments import figure7
from reproduce.protocols import LocalEntropyByImportanceSampling, LocalEntropyBySGLD

PANELS = figure7.PROTOCOL.panels


def test_protocol_has_a_row_of_panels_per_method_and_a_column_per_interval() -> None:
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


def test_protocol_is_of_the_small_network_and_makes_shared_ends_once() -> None:
    assert {panel.training.network for panel in PANELS.values()} == {"small_dense"}
    assert len(figure7.PROTOCOL.cases()) == 3 * 7
