"""Weight updates that can't be made: what they leave, and how the caller is told."""

import warnings
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from lerh_tf.loss.objective import native
from lerh_tf.optimizers._replicas import is_eager_replica

POLICIES = ("raise", "warn")

_TAU = (
    "`tau` must be positive and finite at every weight update, also where it follows a schedule. "
    "The weights were left as they were."
)
_STEP = (
    "The weights after the step to the mean are infinite or NaN in their dtype, or the gradients "
    "for it are, accumulated or clipped. The weights were left as they were. Try another tau or "
    "learning rate, or a wider dtype."
)


class Failures:
    """Why weight updates failed, and how often since the caller was last told.

    Args:
        policy: "raise" or "warn".
        kernel: what to say where the kernel found nothing finite.
    """

    def __init__(self, policy: str, kernel: str):
        self._policy = policy
        self._messages = (_TAU, kernel, _STEP)
        self._has_warned = False

    @property
    def causes(self) -> int:
        """The number of causes that are told apart."""
        return len(self._messages)

    def record(
        self, fails: Sequence[tf.Tensor], tau: tf.Tensor, add: Callable[[tf.Tensor], None]
    ) -> list[tf.Operation]:
        """Adds one weight update to the counts, and raises if it failed, outside XLA.

        Args:
            fails: per cause, in their order, whether the update failed for it.
            tau: for the message.
            add: adds to the counts, one number per cause.

        Returns:
            What the update is to wait for.
        """
        # XLA drops assertions: there the counts alone tell, and the host reads them.
        assertions = self._assertions(fails, tau)
        with tf.control_dependencies(assertions):
            add(tf.stack(fails))
        return assertions

    def report(self, counts: keras.Variable) -> None:
        """Tells of the failures counted, on the host, and sets the counts back.

        Raises:
            tf.errors.InvalidArgumentError: there are some, and the policy is to raise.
        """
        found = counts.numpy()
        if not found.any():
            return
        native(counts).assign(np.zeros_like(found))
        message = " ".join(
            f"{text} (Weight updates: {count}.)"
            for text, count in zip(self._messages, found, strict=True)
            if count
        )
        if self._policy == "raise":
            raise tf.errors.InvalidArgumentError(None, None, message)
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{message} Later failures are not told.", RuntimeWarning, stacklevel=3)

    def _assertions(self, fails: Sequence[tf.Tensor], tau: tf.Tensor) -> list[tf.Operation]:
        # A replica that stops alone leaves the others' sums waiting for good: `step` reports.
        if self._policy != "raise" or is_eager_replica():
            return []
        return [
            tf.debugging.Assert(~failed, [text, "Received: tau=", tau])
            for failed, text in zip(fails, self._messages, strict=True)
        ]
