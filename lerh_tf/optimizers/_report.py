"""What a weight update tells: its diagnostics, and failures, which the host raises or warns of."""

import warnings
from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from lerh_tf.kernels.base import Kernel
from lerh_tf.loss.gradients import GRADIENT_FREE_ADVICE

POLICIES = ("raise", "warn")

COMMON = ("step_norm", "dimensions", "sampled_dimensions", "compiled", "vectorized")
"""Diagnostics of every kernel."""
_TAU = (
    "`tau` must be positive and finite at every weight update, also where it follows a schedule. "
    "The weights were left as they were."
)
_DTYPE = (
    "The mean m or the gradient (x - m) / tau is infinite or NaN in the dtype of the weights. The "
    "weights were left as they were. Try another tau or a wider dtype."
)
_ROWS = (
    'With `parallel="samples"` all replicas must hold the same minibatch, rows in the same order, '
    "with the same dropout masks: make the pipeline by `lerh_tf.whole_batches`. The weights were "
    "left as they were."
)
_TRACE = (
    "The update was part of a function that made the optimizer's variables and ran as it was first "
    "traced, as where a variable's first value depends on the function's arguments: call "
    "`optimizer.build(variables)` before it. The weights were left as they were."
)
_STILL = (
    "The mean m was x itself, `step_norm` 0, at every weight update so far: the loss does not "
    "depend on the weights, or its gradient is zero at all samples, as behind `tf.sign`. "
    f"{GRADIENT_FREE_ADVICE}"
)


class Report:
    """The last update's diagnostics and the failures that the caller does not know of yet.

    None of it is part of the optimizer's state: no later update depends on it.

    Args:
        kernel: the estimator of m, which has diagnostics and a failure of its own.
    """

    def __init__(self, kernel: Kernel):
        self._names = (*COMMON, *kernel.diagnostic_names)
        self._messages = (_TAU, kernel.failure, _DTYPE, _ROWS, _TRACE)
        self._values = keras.Variable(
            np.zeros(len(self._names), "float32"),
            trainable=False,
            aggregation="only_first_replica",
            name="diagnostics",
        )
        self._failures = keras.Variable(
            np.zeros(len(self._messages), "int64"),
            dtype="int64",
            trainable=False,
            aggregation="only_first_replica",
            name="failures",
        )
        # Valid updates whose m was x, and others.
        self._steps = keras.Variable(
            np.zeros(2, "int64"),
            dtype="int64",
            trainable=False,
            aggregation="only_first_replica",
            name="steps",
        )
        self._is_told = False

    def store(
        self, diagnostics: Mapping[str, tf.Tensor | float], fails: Sequence[tf.Tensor]
    ) -> None:
        """Stores an update's diagnostics and counts its failure.

        Args:
            diagnostics: scalars by name.
            fails: see `Update`.
        """
        values = [tf.cast(diagnostics[name], tf.float32) for name in self._names]
        self._values.value.assign(tf.stack(values))
        self._failures.value.assign_add(tf.cast(tf.stack(fails), tf.int64))
        is_step = tf.stack([diagnostics["step_norm"] == 0.0, diagnostics["step_norm"] > 0.0])
        self._steps.value.assign_add(tf.cast(is_step & ~tf.reduce_any(fails), tf.int64))

    def diagnostics(self) -> dict[str, float]:
        """Returns the last update's diagnostics by name, on the host."""
        return dict(zip(self._names, self._values.numpy().tolist(), strict=True))

    def raise_or_warn(self, policy: str, context: str = "", stacklevel: int = 2) -> None:
        """Raises or warns if updates have failed since the last call.

        Args:
            policy: "raise" or "warn".
            context: what stands before a warning. Python shows warnings of one text and place once.
            stacklevel: of the warning, counted from here.

        Raises:
            tf.errors.InvalidArgumentError: there are some, and the policy is to raise.
        """
        counts = self._failures.numpy()
        if not counts.any():
            return
        self._failures.value.assign(np.zeros_like(counts))
        message = " ".join(
            f"{text} (In {count} weight update{'s' if count > 1 else ''}.)"
            for text, count in zip(self._messages, counts, strict=True)
            if count
        )
        if policy == "raise":
            raise tf.errors.InvalidArgumentError(None, None, message)
        warnings.warn(f"{context}{message}", RuntimeWarning, stacklevel=stacklevel + 1)

    def warn_if_still(self, context: str = "", stacklevel: int = 2) -> None:
        """Warns, once, if there were valid updates and m was x in each of them.

        Args:
            context: what stands before the warning.
            stacklevel: of the warning, counted from here.
        """
        still, others = self._steps.numpy()
        if still and not (others or self._is_told):
            self._is_told = True
            warnings.warn(f"{context}{_STILL}", RuntimeWarning, stacklevel=stacklevel + 1)
