"""Keras's own tests of optimizers on two replicas, with ours in the place of SGD.

They make two CPUs of one, which a process can't take back: `test_distribute.py` runs them in one of
their own.
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

import keras
import pytest
import tensorflow as tf
from keras.src.backend.tensorflow import optimizer_distribute_test

from tests.lerh_tf.keras_suite._adapter import SGD
from tests.lerh_tf.keras_suite._excluded import excluded

# Keras itself converts its variables in a way that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't:DeprecationWarning"
)


class OptimizerDistributeTest(optimizer_distribute_test.OptimizerDistributeTest):
    locals().update(excluded(optimizer_distribute_test.OptimizerDistributeTest))

    def put(self, sgd: type) -> None:
        run = in_a_graph(self.strategy.run, sgd)
        self.enterContext(mock.patch.object(optimizer_distribute_test, "SGD", sgd))
        self.enterContext(mock.patch.object(self.strategy, "run", run))

    def setUp(self) -> None:
        super().setUp()
        if not self._testMethodName.endswith("with_keras_s_sgd_too"):
            self.put(SGD)

    def test_ema_fails_in_a_graph_with_keras_s_sgd_too(self) -> None:
        self.put(keras.optimizers.SGD)
        with pytest.raises(RuntimeError, match="`merge_call` called while defining a new graph"):
            optimizer_distribute_test.OptimizerDistributeTest.test_ema(self)

    def test_gradient_accumulation_fails_in_a_graph_with_keras_s_sgd_too(self) -> None:
        self.put(keras.optimizers.SGD)
        with pytest.raises(RuntimeError, match="`merge_call` called while defining a new graph"):
            optimizer_distribute_test.OptimizerDistributeTest.test_gradient_accumulation(self)


def in_a_graph(run: Callable[[Any], Any], sgd: type) -> Callable[[Any], Any]:
    """Runs the replicas as `fit` does: variables are made eagerly, then all else in a graph."""

    def build(optimizer: Any, grads: Any, variables: Any) -> None:
        optimizer.build(list(variables))

    def run_in_a_graph(update: Callable[[], Any]) -> Any:
        with mock.patch.object(sgd, "apply", build):
            run(update)
        return tf.function(run, autograph=False)(update)

    return run_in_a_graph
