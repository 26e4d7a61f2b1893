"""How a loss gets from the caller to the weight update."""

import functools
import threading
import warnings
from collections.abc import Callable, Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import tensorflow as tf

from lerh_tf.loss.objective import Variable
from lerh_tf.loss.replayed import CapturedLoss

# A loop that makes a new closure at each update traces each anew; do not keep them all.
_CLOSURES = 8

# How many operations of a graph belong to earlier weight updates, by whichever optimizer.
_earlier: WeakKeyDictionary[tf.Graph, int] = WeakKeyDictionary()


def end_update() -> None:
    """Notes that what the current graph holds so far belongs to earlier weight updates."""
    if tf.inside_function():
        graph = tf.compat.v1.get_default_graph()
        _earlier[graph] = len(graph.get_operations())


def captured_loss(loss: tf.Tensor) -> CapturedLoss:
    """Captures a loss, as one of the weight update that its graph has come to."""
    since = _earlier.get(loss.graph, 0) if tf.is_symbolic_tensor(loss) else 0
    return CapturedLoss(loss, since)


class CapturedLosses:
    """The loss on its way from `scale_loss` to `apply`; replicas trace in threads of their own."""

    def __init__(self) -> None:
        self._losses: dict[int, CapturedLoss] = {}

    def put(self, loss: CapturedLoss) -> None:
        thread = threading.get_ident()
        # One of another graph is left over from a trace that failed.
        if thread in self._losses and self._losses[thread].graph is loss.graph:
            raise ValueError(
                "`scale_loss` must be called once per weight update, with the whole loss: add up "
                f"all terms first. Received: loss={loss.name!r} after "
                f"{self._losses[thread].name!r}"
            )
        self._losses[thread] = loss

    def take(self) -> CapturedLoss:
        try:
            return self._losses.pop(threading.get_ident())
        except KeyError:
            raise ValueError(
                "`apply` received gradients but no loss. Under the mixed_float16 policy compile "
                "the model with `auto_scale_loss=False`: a wrapping `LossScaleOptimizer` does not "
                "forward the loss, nor does a `MultiOptimizer`; pass the optimizer itself. "
                "Without a wrapper gradients are not enough either, since this optimizer evaluates "
                "the minibatch loss at other weights. Train with `model.fit` and Keras's own "
                "`train_step`, or subclass `lerh_tf.TrainStep`. In a `train_step` or loop of your "
                "own call `optimizer.step(closure, variables)`, or `optimizer.scale_loss(loss)` "
                "inside the tape."
            ) from None


class CompiledClosures:
    """The latest closures' functions, so that a hand-written loop traces each once.

    Args:
        function: takes a closure, the weights and the closure's inputs.
    """

    def __init__(self, function: Callable[..., Any]):
        self._compiled = functools.lru_cache(maxsize=_CLOSURES)(self._compile)
        self._function = function
        self._latest: Any = None
        self._new_closures = 0

    def get(
        self, closure: Callable[..., Any], variables: Sequence[Variable]
    ) -> Callable[[Any], Any]:
        """Returns the compiled function of the inputs."""
        # Bound methods are new objects each time, and equal.
        key = closure if isinstance(closure, Hashable) else _ById(closure)
        return self._compiled(key, tuple(map(_ById, variables)))

    def _compile(
        self, closure: "Callable[..., Any] | _ById", variables: "tuple[_ById, ...]"
    ) -> Callable[[Any], Any]:
        closure = closure.value if isinstance(closure, _ById) else closure
        self._new_closures += closure != self._latest
        self._latest = closure
        if self._new_closures == _CLOSURES + 1 and not self._compiled.cache_info().hits:
            warnings.warn(
                f"`step` has received a new closure {_CLOSURES + 1} times and traced each, which "
                "takes time and memory. Make one closure before the loop, and pass it each "
                f"minibatch as `*inputs`. Received: closure={closure!r}",
                UserWarning,
                stacklevel=4,
            )
        weights = [v.value for v in variables]
        # As `fit` does it: batches of a second size are traced once for all sizes.
        return tf.function(
            lambda inputs: self._function(closure, weights, inputs),
            autograph=False,
            reduce_retracing=True,
        )


class _ById:
    """Any object as a dictionary key: Keras variables compare by value."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
