import keras
import pytest

from lerh_tf import ImportanceSampling, LocalEntropy
from reproduce import methods
from reproduce.protocols import GradientDescent, LocalEntropyByImportanceSampling, Method


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
    assert optimizer.sampler == ImportanceSampling(samples=7, loss_multiplier=20.0)


def test_optimizer_of_a_method_without_one() -> None:
    with pytest.raises(TypeError, match="`method` must have an optimizer"):
        methods.optimizer(Method(), 0)
