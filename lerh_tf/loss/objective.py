"""f on the current minibatch as a pure function of the weights.

Keras hands an optimizer gradients; Algorithms 3-5 need the loss, and its gradient, at hundreds of
other weights. `Objective` says what a kernel asks of it; `LossFunction` is for losses that are such
a function already, `ReplayedLoss` (`lerh_tf/loss/replayed.py`) for those a train step has built.
"""

import abc
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import keras
import tensorflow as tf

from lerh_tf.loss.gradients import GRADIENT_FREE_ADVICE
from lerh_tf.loss.parts import Part
from lerh_tf.loss.repeatable import repeatable
from lerh_tf.replicas import Replicas

Variable: TypeAlias = keras.Variable | tf.Variable
Weights: TypeAlias = Sequence[tf.Tensor]

# Of a loss that is a Python function, about which nothing is known: few evaluations at once.
_UNKNOWN_FOOTPRINT = 2**19


def displaced(anchor: Weights, displacement: Weights) -> list[tf.Tensor]:
    """Returns the weights x + d in the dtypes of x; `d` may carry a leading axis of samples."""
    return [x + tf.cast(d, x.dtype) for x, d in zip(anchor, displacement, strict=True)]


def scaled(tau: tf.Tensor, z: Iterable[tf.Tensor]) -> list[tf.Tensor]:
    """Returns sqrt(tau) z, the displacements of N(x, tau I)."""
    root = tf.sqrt(tau)
    return [tf.cast(root, z_v.dtype) * z_v for z_v in z]


def moves(tau: tf.Tensor, z: Weights, offset: Weights | None) -> list[tf.Tensor]:
    """Returns y + sqrt(tau) z, where y is None without y."""
    drawn = scaled(tau, z)
    return drawn if offset is None else [y + d for y, d in zip(offset, drawn, strict=True)]


def native(variable: Variable) -> tf.Variable:
    """Returns the `tf.Variable` inside a Keras variable, or `variable` itself."""
    return variable.value if isinstance(variable, keras.Variable) else variable


class Objective(abc.ABC):
    """The minibatch loss f as a pure function of the weights that it depends on.

    Attributes:
        is_used: per variable, whether f depends on it. The `weights` arguments below hold one
            tensor per variable that is used, in the order of the variables.
        footprint: about how many numbers one evaluation holds.
        unbatched: how many of those numbers are there once, whatever the minibatch.
        operations: the nodes of a graph that an evaluation runs; None where they are not known.
        jit_compile: whether XLA compiles the inner loops: True, False, or "auto", where it is known
            to compile the loss and not to be slower.
        is_vectorized: False once an operation had to be evaluated sample by sample, or if the loss
            has a loop.
    """

    is_used: tuple[bool, ...]
    footprint: int | tf.Tensor = _UNKNOWN_FOOTPRINT
    unbatched: int | tf.Tensor = 0
    operations: Sequence[Any] | None = None
    jit_compile: str | bool = "auto"
    is_vectorized: bool = True

    @abc.abstractmethod
    def __call__(self, weights: Weights) -> tf.Tensor:
        """Returns f(weights).

        Args:
            weights: one tensor per used variable, with its shape and dtype.

        Returns:
            Scalar tensor, the loss, in the dtype the model computes it in.
        """

    @abc.abstractmethod
    def value_and_gradient(self, weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns f(weights) and grad f(weights).

        Args:
            weights: one tensor per used variable, with its shape and dtype.

        Returns:
            The loss, as a call returns it, and one tensor per used variable, of its shape and
            dtype.

        Raises:
            ValueError: f has no gradient with respect to any of them.
        """

    def gradient(self, weights: Weights) -> list[tf.Tensor]:
        """Returns grad f(weights), as `value_and_gradient` does."""
        return self.value_and_gradient(weights)[1]

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """Returns f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            Tensor of shape [samples], the losses.
        """
        return tf.reshape(self.vectorize(self, stacked), tf.shape(stacked[0])[:1])

    def vectorized_gradient(self, stacked: Weights) -> list[tf.Tensor]:
        """Returns grad f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            One tensor per used variable, shape [samples, *shape].
        """
        return _shaped(self.vectorize(self.gradient, stacked), stacked)

    def vectorized_value_and_gradient(self, stacked: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Returns f and grad f at many weights at once.

        Args:
            stacked: one tensor per used variable, shape [samples, *shape].

        Returns:
            The losses, shape [samples], and one tensor per used variable, shape
            [samples, *shape].
        """
        losses, gradients = self.vectorize(self.value_and_gradient, stacked)
        return tf.reshape(losses, tf.shape(stacked[0])[:1]), _shaped(gradients, stacked)

    def noise_like(self, weights: Weights) -> list[tf.Tensor]:
        """Returns tensors of the shapes of the noise that a sample around a centre is made of.

        Args:
            weights: one tensor per used variable.
        """
        return list(weights)

    def losses_around(
        self, anchor: Weights, tau: tf.Tensor, z: Weights
    ) -> tuple[tf.Tensor, list[Part]]:
        """Returns f at x + sqrt(tau) z, and z: of its dimensions those that f may depend on.

        Args:
            anchor: x, one tensor per used variable.
            tau: variance of the Gaussian (paper's tau), scalar tensor.
            z: standard normal noise, shape [samples, *shape] per tensor of `noise_like`.

        Returns:
            The losses, shape [samples], and one part per used variable.
        """
        return self.vectorized(displaced(anchor, scaled(tau, z))), list(z)

    def gradients_around(
        self, anchor: Weights, tau: tf.Tensor, z: Weights, offset: Weights | None = None
    ) -> tuple[tf.Tensor, list[Part]]:
        """Returns f and grad f at x + y + sqrt(tau) z.

        Args:
            anchor: x, one tensor per used variable.
            tau: variance of the Gaussian (paper's tau), scalar tensor.
            z: standard normal noise, shape [samples, *shape] per tensor of `noise_like`.
            offset: y, one tensor per used variable; None for zeros.

        Returns:
            The losses, shape [samples], and one part per used variable.
        """
        return self.vectorized_value_and_gradient(displaced(anchor, moves(tau, z, offset)))

    def whole_footprint(self, replicas: Replicas) -> int | tf.Tensor:
        """Returns the footprint of the minibatch of which each replica may hold a part."""
        if replicas.split != "batch" or self.operations is None:
            return self.footprint
        once = tf.cast(self.unbatched, tf.int64)
        return replicas.total([tf.cast(self.footprint, tf.int64) - once])[0] + once

    def dimensions(self, weights: Weights) -> tf.Tensor:
        """Returns in how many dimensions of the weights f lives.

        Args:
            weights: one tensor per used variable.
        """
        return tf.add_n([tf.size(weight) for weight in weights])

    def vectorize(self, function: Callable[[Weights], Any], stacked: Weights) -> Any:
        """Maps `function` over the leading axis of every tensor in `stacked`."""
        before = _loops()
        samples = tf.shape(stacked[0])[0]
        # One sample alone goes in twice: of an axis of size 1 TensorFlow makes none, and then adds
        # a convolution's bias along another.
        twice = tf.cast(tf.equal(samples, 1), tf.int32)
        at_least_two = [tf.concat([s, s[:twice]], 0) for s in stacked]
        specs, one_by_one = None, False

        def watched(weights: Weights) -> Any:
            nonlocal specs, one_by_one
            result = tf.nest.map_structure(tf.convert_to_tensor, function(weights))
            specs = tf.nest.map_structure(tf.TensorSpec.from_tensor, result)
            one_by_one = _pads_by_a_value()
            return result

        try:
            # Convolutions with one kernel per sample, for one, have no vectorised form.
            result = tf.vectorized_map(watched, at_least_two, fallback_to_while_loop=True)
        except Exception:
            # Nor have gradients through some loops and functions, of which TensorFlow says so in
            # errors of many kinds. What the function itself raises is none of them.
            if specs is None:
                raise
            one_by_one = True
        if one_by_one:
            result = tf.map_fn(function, at_least_two, fn_output_signature=specs)
            self.is_vectorized = False
        self.is_vectorized = self.is_vectorized and _loops() == before
        return tf.nest.map_structure(lambda each: each[:samples], result)


class LossFunction(Objective):
    """A loss that is a Python function of the weights.

    Args:
        function: takes one tensor per variable to the scalar loss. It must be the same function
            each time: random numbers are drawn outside of it or from fixed seeds
            (`tf.random.stateless_normal`), and it assigns to no variable.
        size: the number of variables; f is taken to depend on all of them.
        vectorize: False evaluates the loss at one sample after the other, where XLA compiles the
            train step: of a loss with loops, such as an LSTM's, it compiles no vectorised form.

    Raises:
        ValueError: as it is evaluated, if the loss is no scalar.
        ReplayError: as it is evaluated in a `tf.function`, where it draws other random numbers
            each time or assigns to a variable.
    """

    def __init__(self, function: Callable[[Weights], tf.Tensor], size: int, vectorize: bool = True):
        self._function = repeatable(function)
        self._vectorize_samples = vectorize
        self.is_used = (True,) * size

    def __call__(self, weights: Weights) -> tf.Tensor:
        """See `Objective`."""
        loss = self._function(weights)
        if tf.convert_to_tensor(loss).shape.rank not in (0, None):
            raise ValueError(
                "The loss must be a scalar: take the mean over the rows, `tf.reduce_mean(loss)`. "
                f"Received: loss={loss!r}"
            )
        return loss

    def value_and_gradient(self, weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`."""
        local = [tf.identity(weight) for weight in weights]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(local)
            loss = self(local)
        return loss, connected(tape.gradient(loss, local), local)

    def vectorized(self, stacked: Weights) -> tf.Tensor:
        """See `Objective`."""
        if self._vectorize_samples:
            return super().vectorized(stacked)
        dtype = _dtype_of_losses(stacked)
        return self._one_by_one(lambda w: _scalar(self(w), dtype), stacked, dtype)

    def vectorized_gradient(self, stacked: Weights) -> list[tf.Tensor]:
        """See `Objective`."""
        if self._vectorize_samples:
            return super().vectorized_gradient(stacked)
        return self._one_by_one(self.gradient, stacked, [s.dtype for s in stacked])

    def vectorized_value_and_gradient(self, stacked: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """See `Objective`."""
        if self._vectorize_samples:
            return super().vectorized_value_and_gradient(stacked)
        dtype = _dtype_of_losses(stacked)

        def evaluate(weights: Weights) -> tuple[tf.Tensor, list[tf.Tensor]]:
            loss, gradient = self.value_and_gradient(weights)
            return _scalar(loss, dtype), gradient

        return self._one_by_one(evaluate, stacked, (dtype, [s.dtype for s in stacked]))

    def _one_by_one(self, function: Callable[[Weights], Any], stacked: Weights, dtypes: Any) -> Any:
        self.is_vectorized = False
        return tf.map_fn(function, list(stacked), fn_output_signature=dtypes)


def connected(gradients: Sequence[Any], weights: Weights) -> list[tf.Tensor]:
    """Returns the gradients as tensors, zeros where some are missing; refuses if all are."""
    if all(gradient is None for gradient in gradients):
        raise ValueError(
            "The loss has no gradient with respect to any weight: an operation without one, such "
            "as `tf.argmax`, `tf.round` or `tf.numpy_function`, stands before it. Take none: "
            f"{GRADIENT_FREE_ADVICE}"
        )
    return [
        tf.zeros_like(weight) if gradient is None else tf.convert_to_tensor(gradient)
        for gradient, weight in zip(gradients, weights, strict=True)
    ]


def _shaped(gradients: Sequence[tf.Tensor], stacked: Weights) -> list[tf.Tensor]:
    return [tf.ensure_shape(g, s.shape) for g, s in zip(gradients, stacked, strict=True)]


def _dtype_of_losses(stacked: Weights) -> tf.DType:
    return tf.float64 if tf.float64 in [s.dtype for s in stacked] else tf.float32


def _scalar(loss: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    return tf.cast(tf.reshape(loss, []), dtype)


def _loops() -> int:
    """Returns the number of loops in the current graph and the functions that it calls."""
    return sum(node.op in ("While", "StatelessWhile") for node in _nodes())


def _pads_by_a_value() -> bool:
    """Returns whether the current graph, or a function that it calls, pads by what may not be 0.

    Of `tf.pad(..., constant_values=v)` TensorFlow's vectorised form forgets v.
    """
    return any(node.op == "PadV2" for node in _nodes())


def _nodes() -> Iterable[Any]:
    """Returns the nodes of the current graph and of the functions that it calls."""
    definition = tf.compat.v1.get_default_graph().as_graph_def()
    functions = (function.node_def for function in definition.library.function)
    return itertools.chain(definition.node, *functions)
