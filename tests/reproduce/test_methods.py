import keras
import pytest

from lerh_tf import (
    SGLD,
    HeatRegularization,
    ImportanceSampling,
    LangevinSteps,
    LocalEntropy,
    RobbinsMonro,
    RobbinsMonroSteps,
)
from reproduce import methods
from reproduce.protocols import (
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    HeatRegularizationSolved,
    LocalEntropyByControlledSGLD,
    LocalEntropyByGradients,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
)


def test_optimizer_of_gradient_descent() -> None:
    optimizer = methods.optimizer(GradientDescent(learning_rate=0.5), 0)
    assert isinstance(optimizer, keras.optimizers.SGD)
    assert float(optimizer.learning_rate) == 0.5


def test_optimizer_of_importance_sampling_carries_every_setting() -> None:
    method = LocalEntropyByImportanceSampling(tau=0.5, samples=7, loss_multiplier=20.0)
    optimizer = methods.optimizer(method, 3)
    assert isinstance(optimizer, LocalEntropy)
    assert float(optimizer.tau) == 0.5
    assert float(optimizer.learning_rate) == 0.5
    assert optimizer.seed == 3
    assert optimizer.sampler == methods.RecordedSampling(samples=7, loss_multiplier=20.0)


def test_optimizer_of_sgld_carries_every_setting() -> None:
    method = LocalEntropyBySGLD(0.5, 7, 50.0, noise="linear", persistent=False, restart=False)
    optimizer = methods.optimizer(method, 3)
    assert isinstance(optimizer, LocalEntropy)
    assert (float(optimizer.tau), optimizer.seed) == (0.5, 3)
    expected = SGLD(
        7, step_sizes=LangevinSteps(50.0), noise="linear", persistent=False, restart=False
    )
    assert optimizer.sampler.get_config() == expected.get_config()


def test_optimizer_of_heat_regularization_carries_every_setting() -> None:
    method = HeatRegularizationByRobbinsMonro(0.5, 7, 8, c=0.2, alpha=0.9, growing=True)
    optimizer = methods.optimizer(method, 3)
    assert isinstance(optimizer, HeatRegularization)
    assert (float(optimizer.tau), optimizer.seed) == (0.5, 3)
    expected = RobbinsMonro(7, 8, step_sizes=RobbinsMonroSteps(0.2, 0.9, growing=True))
    assert optimizer.solver.get_config() == expected.get_config()


def test_optimizers_of_means_found_well_carry_every_setting() -> None:
    gradients = methods.optimizer(LocalEntropyByGradients(0.2, 7, 0.3), 5)
    assert gradients.sampler == ImportanceSampling(7, estimator="gradients")
    assert gradients.seed == 5
    assert float(gradients.learning_rate) == pytest.approx(0.3)
    assert gradients.tau.numpy() == pytest.approx(0.2)
    assert methods.optimizer(LocalEntropyByGradients(0.2), 5).get_config()["learning_rate"] is None
    chain = methods.optimizer(LocalEntropyByControlledSGLD(0.2, 9, 0.25), 5).sampler
    assert (chain.samples, chain.relative_to_tau, chain.persistent) == (9, True, False)
    assert chain.control_variate
    assert {float(chain.step_sizes(j)) for j in (1, 9)} == {0.25}
    solver = methods.optimizer(HeatRegularizationSolved(0.2, 8, 6, 0.15), 5).solver
    assert (solver.steps, solver.samples, solver.tolerance) == (8, 6, 0.15)
    assert [float(solver.step_sizes(j)) for j in (1, 2, 4)] == [0.5, 0.5, 0.25]


@pytest.mark.parametrize(
    "method",
    [
        LocalEntropyByImportanceSampling(),
        LocalEntropyBySGLD(),
        HeatRegularizationByRobbinsMonro(),
        LocalEntropyByGradients(),
        LocalEntropyByControlledSGLD(),
        HeatRegularizationSolved(),
    ],
)
def test_optimizer_carries_the_subspace(method: Method) -> None:
    for subspace in ("auto", False):
        assert methods.optimizer(method, 0, subspace).get_config()["subspace"] == subspace


def test_optimizer_of_a_method_without_one() -> None:
    with pytest.raises(TypeError, match="`method` must have an optimizer"):
        methods.optimizer(Method(), 0)
