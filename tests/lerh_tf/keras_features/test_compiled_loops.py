"""The same trainings by default, that is with the inner loops compiled by XLA.

The other tests of this folder leave them to TensorFlow, which is ready sooner.
"""

import keras
import numpy as np
import pytest

from lerh_tf import SGLD, LangevinSteps, LocalEntropy
from tests.lerh_tf.keras_features import test_callbacks, test_models, test_training
from tests.lerh_tf.keras_features._descent import Array, assert_same, descent, sgd, training

CASES = (
    *("state-metrics-and-a-ragged-batch", "steps-per-execution", "tf-data-of-unknown-batches"),
    *("sample-weights", "frozen-before-compile"),
)


@pytest.mark.feature("training", "`steps_per_execution`", cases=["steps-per-execution"])
@pytest.mark.feature("training", "ragged last batch", cases=["state-metrics-and-a-ragged-batch"])
@pytest.mark.feature(
    "training", "`tf.data`, also of unknown batch size", cases=["tf-data-of-unknown-batches"]
)
@pytest.mark.feature("training", "sample weights, class weights", cases=["sample-weights"])
@pytest.mark.feature("models", "layers frozen before `compile`", cases=["frozen-before-compile"])
@pytest.mark.usefixtures("no_noise")
@pytest.mark.parametrize("name", CASES)
def test_same_as_gradient_descent(name: str) -> None:
    # Made anew: generators go on from where they are.
    ours, stock = test_training.CASES[name](), test_training.CASES[name]()
    optimizer = descent()
    actual = training(optimizer, ours.build, ours.train)
    assert optimizer.diagnostics["compiled"] == 1.0
    assert_same(actual, training(sgd(), stock.build, stock.train))


@pytest.mark.feature("update", "`gradient_accumulation_steps`")
@pytest.mark.usefixtures("no_noise")
def test_optimizer_s_arguments_act_once_per_weight_update() -> None:
    arguments = test_training.ARGUMENTS["accumulation-clipped-decayed-averaged"]
    optimizer = descent(**arguments)
    actual = training(optimizer, test_training.PLAIN, test_training.fit)
    assert optimizer.diagnostics["compiled"] == 1.0
    assert_same(actual, training(sgd(**arguments), test_training.PLAIN, test_training.fit))


@pytest.mark.feature("update", "tau set while `fit` runs")
@pytest.mark.usefixtures("no_noise")
# Keras itself converts its variables in a way that NumPy 2 deprecates.
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning")
def test_tau_set_while_fit_runs_takes_effect() -> None:
    model = test_callbacks.compiled(descent())
    test_callbacks.fit(model, test_callbacks.HalvesTau())
    assert model.optimizer.diagnostics["compiled"] == 1.0
    expected = test_callbacks.compiled(sgd())
    halved = keras.callbacks.LearningRateScheduler(test_callbacks.halving)
    test_callbacks.fit(expected, halved)
    for actual, value in zip(model.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(actual, value, rtol=3e-6, atol=3e-6)


def trained(optimizer: LocalEntropy, name: str) -> list[Array]:
    """The weights after two updates of a model of the given dtypes."""
    keras.utils.set_random_seed(1)
    model = test_models.of_dtypes(*test_models.DTYPES[name][0])()
    optimizer.build(model.trainable_variables)
    model.compile(optimizer, "mse", auto_scale_loss=False)
    for _ in range(2):
        model.train_on_batch(test_models.X, test_models.Y)
    return [np.array(v.numpy()) for v in model.trainable_variables]


@pytest.mark.feature("numbers", "`mixed_float16`", cases=["mixed_float16"])
@pytest.mark.feature("numbers", "`mixed_bfloat16`", cases=["mixed_bfloat16"])
@pytest.mark.feature("numbers", "float64", cases=["float64"])
@pytest.mark.feature("numbers", "several dtypes in one model", cases=["several"])
@pytest.mark.parametrize("name", test_models.DTYPES)
def test_dtypes(name: str, request: pytest.FixtureRequest) -> None:
    def optimizer() -> LocalEntropy:
        return LocalEntropy(0.1, SGLD(5, step_sizes=LangevinSteps(50.0)), seed=2)

    by_default = optimizer()
    actual = trained(by_default, name)
    assert by_default.diagnostics["compiled"] == 1.0
    request.getfixturevalue("plain_loops")
    expected = trained(optimizer(), name)
    # Keras computes losses in float32, also of models in float64.
    rounding = max(test_models.DTYPES[name][1], 2**-23)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=8 * rounding, atol=8 * rounding)
