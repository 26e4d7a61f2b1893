"""Keras's own tests of optimizers, as its wheel ships them, with ours in the place of SGD."""

import unittest
from fnmatch import fnmatch
from typing import Any
from unittest import mock

import pytest
from keras.src import optimizers
from keras.src.optimizers import (
    loss_scale_optimizer_test,
    optimizer_sparse_test,
    optimizer_test,
    sgd_test,
)

from lerh_tf.optimizers._report import Report
from tests.lerh_tf.keras_suite._adapter import SGD, Adam
from tests.lerh_tf.keras_suite._excluded import EXCLUDED, excluded, names_of

pytestmark = [
    pytest.mark.usefixtures("plain_loops"),
    # Keras itself converts its variables in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't:DeprecationWarning"),
]


INNER_VARIABLES = property(lambda optimizer: optimizer.inner_optimizer.variables)


@pytest.mark.feature("keras", "Keras's base optimizer tests", "yes")
@pytest.mark.feature(
    "keras", "automatic names, `local_entropy_1`", "yes", cases=["test_optimizer_auto_naming"]
)
class OptimizerTest(optimizer_test.OptimizerTest):
    locals().update(excluded(optimizer_test.OptimizerTest))

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.multiple(optimizers, SGD=SGD, Adam=Adam))
        self.enterContext(mock.patch.dict(optimizers.ALL_OBJECTS_DICT, sgd=SGD, adam=Adam))

    def test_gradient_accumulation_with_weigth_decay_of_sgd(self) -> None:
        super().test_gradient_accumulation_with_weigth_decay0.__wrapped__(self, "sgd")

    def test_setting_lr_to_callable_untracks_lr_var(self) -> None:
        """Keras counts variables: those of the SGD inside."""
        with mock.patch.object(Adam, "variables", INNER_VARIABLES):
            super().test_setting_lr_to_callable_untracks_lr_var()

    def test_pickleable_optimizers_sgd_and_adam(self) -> None:
        for name in ("sgd", "adam"):
            super().test_pickleable_optimizers0.__wrapped__(self, name)


@pytest.mark.feature("keras", "Keras's SGD tests", "yes, momentum included")
@pytest.mark.feature("update", "`exclude_from_weight_decay`", "yes", cases=["test_weight_decay"])
class SGDTest(sgd_test.SGDTest):
    locals().update(excluded(sgd_test.SGDTest))

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.object(sgd_test, "SGD", SGD))

    def test_single_step(self) -> None:
        """Keras counts variables: those of the SGD inside."""
        with mock.patch.object(SGD, "variables", INNER_VARIABLES):
            super().test_single_step()


@pytest.mark.feature("keras", "Keras's LossScaleOptimizer tests", "yes, on gradients")
class LossScaleOptimizerTest(loss_scale_optimizer_test.LossScaleOptimizerTest):
    locals().update(excluded(loss_scale_optimizer_test.LossScaleOptimizerTest))

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.object(loss_scale_optimizer_test, "SGD", SGD))


def scaled() -> optimizers.LossScaleOptimizer:
    return optimizers.LossScaleOptimizer(SGD(learning_rate=0.5))


MOMENTUM: list[dict[str, Any]] = [{}, {"momentum": 0.05}, {"momentum": 0.05, "nesterov": True}]


@pytest.mark.feature(
    "keras",
    "Keras's tests of sparse gradients",
    "yes, momentum included; the update is dense, as Adam's is",
)
class OptimizerSparseTest(optimizer_sparse_test.OptimizerSparseTest):
    """As with Adam the update of a sparse gradient is dense: a mean of Gaussians is."""

    locals().update(excluded(optimizer_sparse_test.OptimizerSparseTest))

    def test_sparse_gradients_in_the_place_of_sgd(self) -> None:
        # What is stored for the host is no part of the update, which is the inner optimizer's.
        wrappers = (optimizers.LossScaleOptimizer, SGD)
        with (
            mock.patch.object(Report, "store"),
            mock.patch.object(optimizers, "LossScaleOptimizer", wrappers),
        ):
            for arguments in MOMENTUM:
                super().test_sparse_gradients_sgd.__wrapped__(self, SGD, arguments)

    def test_sparse_correctness_in_the_place_of_sgd(self) -> None:
        for optimizer, arguments in [*((SGD, each) for each in MOMENTUM), (scaled, {})]:
            super().test_sparse_correctness_sgd.__wrapped__(self, optimizer, arguments)


@pytest.mark.feature("keras", "Keras's base optimizer tests", cases=["OptimizerTest"])
@pytest.mark.feature("keras", "Keras's SGD tests", cases=["SGDTest"])
@pytest.mark.feature("keras", "Keras's LossScaleOptimizer tests", cases=["LossScaleOptimizerTest"])
@pytest.mark.parametrize("ours", [OptimizerTest, SGDTest, LossScaleOptimizerTest])
def test_all_others_of_keras_s_tests_run(ours: type[unittest.TestCase]) -> None:
    keras_s = ours.__mro__[1]
    assert keras_s.__module__.startswith("keras.src")
    patterns = EXCLUDED[ours.__name__]
    left_out = {name for name in names_of(keras_s) if name not in names_of(ours)}
    assert left_out == {n for n in names_of(keras_s) if any(fnmatch(n, p) for p in patterns)}
    # No pattern stands for nothing.
    assert all(any(fnmatch(name, pattern) for name in left_out) for pattern in patterns)
