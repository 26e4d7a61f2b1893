"""Keras's own tests of optimizers on two replicas, with ours in the place of SGD.

They make two CPUs of one, which a process can't take back: `test_distribute.py` runs them in one of
their own.
"""

from unittest import mock

import pytest
import tensorflow as tf
from keras.src.backend.tensorflow import optimizer_distribute_test

from lerh_tf import noise
from tests.lerh_tf.keras_suite._adapter import SGD
from tests.lerh_tf.keras_suite._excluded import excluded

# Keras itself converts its variables in a way that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't:DeprecationWarning"
)


class OptimizerDistributeTest(optimizer_distribute_test.OptimizerDistributeTest):
    locals().update(excluded(optimizer_distribute_test.OptimizerDistributeTest))

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(mock.patch.object(optimizer_distribute_test, "SGD", SGD))
        # Keras starts TensorFlow's context anew, to which nothing traced before belongs.
        for name in ("random_bits", "_normal"):
            untraced = getattr(noise, name).python_function
            traced = tf.function(untraced, jit_compile=True, autograph=False)
            self.enterContext(mock.patch.object(noise, name, traced))
