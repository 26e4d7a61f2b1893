import pytest

from reproduce.experiments import figure6
from reproduce.protocols import (
    TABLE1,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
)


@pytest.mark.parametrize(
    ("samples", "side"), [(10, 3), (100, 10), (1000, 31), (1023, 31), (1024, 32)]
)
def test_heat_regularization_takes_the_floor_of_the_root(samples: int, side: int) -> None:
    expected = HeatRegularizationByRobbinsMonro(steps=side, samples=side)
    assert figure6.heat_regularization(samples) == expected


def test_protocol_has_a_panel_per_method_and_a_line_per_number_of_samples() -> None:
    importance, heat, printed, linear = figure6.PROTOCOL.panels.values()
    assert importance.methods == {
        f"S = {s}": LocalEntropyByImportanceSampling(samples=s) for s in (10, 100, 1000)
    }
    assert heat.methods == {
        f"S = {s}": HeatRegularizationByRobbinsMonro(steps=side, samples=side)
        for s, side in ((10, 3), (100, 10), (1000, 31))
    }
    assert printed.methods["S = 10"] == LocalEntropyBySGLD(samples=10)
    assert linear.methods["S = 10"] == LocalEntropyBySGLD(samples=10, noise="linear")
    assert all(panel.training == TABLE1.training for panel in figure6.PROTOCOL.panels.values())
