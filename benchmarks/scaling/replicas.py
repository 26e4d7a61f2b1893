"""A process with so many replicas, a thread each, that makes weight updates when asked."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache, cached_property
from multiprocessing.connection import Connection
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.asked import Asked
from benchmarks.peers.worker import fix_threads
from benchmarks.scaling.cases import Case

_TAU = 0.01
_INPUTS = {"dense": (784,), "convolutional": (28, 28, 1)}


class Replicas(Asked):
    """A process of replicas.

    Args:
        count: how many, each with one thread.
    """

    def __init__(self, count: int):
        super().__init__(_serve, count)

    def update(self, case: Case) -> float:
        """Makes a weight update; returns its seconds."""
        return float(self.ask("update", case))

    def noise(self, case: Case) -> float:
        """Draws the noise of a weight update, all of it on one replica; returns the seconds."""
        return float(self.ask("noise", case))

    def exchanged(self, case: Case) -> tuple[int, int]:
        """Returns the bytes that a replica sends in an update, and how often it sends."""
        sent, times = self.ask("exchanged", case)
        return int(sent), int(times)


def _serve(connection: Connection, count: int) -> None:
    """Answers until the other side closes."""
    fix_threads(count)
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(count)
    (processor,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(
        processor, [tf.config.LogicalDeviceConfiguration()] * count
    )
    # One for all: TensorFlow's exchanges of a second one would meet the first one's.
    strategy = tf.distribute.MirroredStrategy([f"CPU:{device}" for device in range(count)])
    updates = cache(lambda case: Update(case, strategy))
    while True:
        try:
            question, case = connection.recv()
        except EOFError:
            return
        own = updates(case)
        started = time.perf_counter()
        found = getattr(own, question)()
        seconds = time.perf_counter() - started
        connection.send(seconds if found is None else found)


class Update:
    """A weight update that this process's replicas share.

    Args:
        case: which.
        strategy: the replicas', each a logical device.
    """

    def __init__(self, case: Case, strategy: Any):
        import keras
        import tensorflow as tf

        from lerh_tf import ImportanceSampling, LocalEntropy

        count = strategy.num_replicas_in_sync
        self._case, self._count = case, count
        draw = np.random.default_rng(0)
        inputs = draw.random((case.rows, *_INPUTS[case.network]), dtype=np.float32)
        x, y = tf.constant(inputs), tf.constant(draw.integers(10, size=case.rows))
        keras.utils.set_random_seed(0)
        with strategy.scope():
            model = _network(case.network)
            self._optimizer = LocalEntropy(
                _TAU, ImportanceSampling(case.samples), seed=0, parallel=case.parallel
            )
            self._optimizer.build(model.trainable_variables)
        cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        parts = count if case.parallel == "batch" else 1

        def on_replica() -> None:
            part = tf.distribute.get_replica_context().replica_id_in_sync_group % parts
            own, labels = (tf.stack(tf.split(each, parts))[part] for each in (x, y))

            def share() -> tf.Tensor:
                return cross_entropy(labels, model(own, training=True)) / count

            self._optimizer.step(share, model.trainable_variables)

        self._on_replicas: Callable[[], None] = lambda: strategy.run(on_replica)
        self._run = tf.function(self._on_replicas, autograph=False)

    def update(self) -> None:
        """Makes it."""
        with _standing_in() if self._case.stands_in else nullcontext():
            self._run()

    def noise(self) -> None:
        """Draws the noise of all samples, in the dimensions of the last update."""
        self._draw(self._optimizer.iterations.value)

    def exchanged(self) -> tuple[int, int]:
        """Returns the bytes that a replica sends in an update, and how often it sends."""
        import tensorflow as tf

        from lerh_tf import replicas as sharing

        sent: list[tf.Tensor] = []

        def noting(method: Any) -> Any:
            def noted(replicas: Any, tensors: Any) -> Any:
                for dtype in {each.dtype for each in tf.nest.flatten(tensors)}:
                    own = [each for each in tf.nest.flatten(tensors) if each.dtype == dtype]
                    sent.append(tf.add_n([tf.size(each) for each in own]) * dtype.size)
                return method(replicas, tensors)

            return noted

        def counted() -> tf.Tensor:
            self._on_replicas()
            return tf.add_n(sent or [tf.constant(0)])

        with (
            mock.patch.object(sharing.Replicas, "total", noting(sharing.Replicas.total)),
            mock.patch.object(sharing.Replicas, "gathered", noting(sharing.Replicas.gathered)),
        ):
            total = tf.function(counted, autograph=False)()
        return int(total) // self._count, len(sent) // self._count

    @cached_property
    def _draw(self) -> Any:
        import tensorflow as tf

        from lerh_tf import PhiloxNoise
        from lerh_tf.kernels.blocks import fold_blocks
        from lerh_tf.noise import block_size

        like = tf.zeros([int(self._optimizer.diagnostics["sampled_dimensions"])])
        size = min(int(block_size([like])), self._case.samples)

        @tf.function(autograph=False)
        def draw(update: tf.Tensor) -> tf.Tensor:
            noise = PhiloxNoise(0, update, [like])
            return fold_blocks(
                lambda block: noise(block, size)[0],
                lambda total, z, _: total + tf.reduce_sum(z, 0),
                self._case.samples,
                size,
                like,
            )

        return draw


def _standing_in() -> Any:
    """Has one replica do what one of two does that hold the same rows; they exchange nothing."""
    import tensorflow as tf

    from lerh_tf import replicas as sharing
    from lerh_tf.optimizers._replicas import Sharing

    class One(sharing.Replicas):
        @property
        def position(self) -> tf.Tensor:
            return tf.constant(0)

        def total(self, tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
            return [each + each for each in tensors]

        def static_total(self, number: int | None) -> int | None:
            return None if number is None else 2 * number

        def gathered(self, tensor: tf.Tensor) -> tf.Tensor:
            return tf.concat([tensor, tensor], 0)

    def of_two(kernel: Any, _: str) -> Sharing:
        return Sharing(kernel, One(2, "batch"))

    return mock.patch.object(Sharing, "of", of_two)


def _network(name: str) -> Any:
    if name == "convolutional":
        from benchmarks.peers.networks.library import convolutional

        return convolutional()
    from reproduce import networks

    return networks.build("hidden_dense", "glorot_uniform", 0)
