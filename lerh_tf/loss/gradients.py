"""Whether the gradient of a replayed loss is that of the loss."""

from collections.abc import Iterable
from typing import Any

from lerh_tf.loss.repeatable import TRAIN_STEP_ADVICE, ReplayError

GRADIENT_FREE_ADVICE = (
    "`LocalEntropy(sampler=ImportanceSampling(1000, control_variate=True, loss_multiplier=50.0))` "
    "needs losses alone; `loss_multiplier` is the first thing to tune (docs/choosing.md)."
)


def custom_gradient(nodes: Iterable[Any]) -> str | None:
    """Returns the name of a node with a custom gradient, whose backward pass can't be replayed."""
    return next((node.name for node in nodes if _has_custom_gradient(node)), None)


def check_gradient(nodes: Iterable[Any]) -> None:
    """Raises a `ReplayError` where a node's gradient can't be replayed."""
    for node in nodes:
        if _has_custom_gradient(node):
            raise ReplayError(
                f"Operation '{node.name}' has a custom gradient (`tf.custom_gradient`; "
                "`tf.nn.silu` is one), whose backward pass would use the tensors of the "
                f"original weights and return a wrong gradient. {TRAIN_STEP_ADVICE}"
            )
        if node.op == "EagerPyFunc":
            raise ReplayError(
                f"Operation '{node.name}' is a `tf.py_function`, whose gradient TensorFlow takes "
                "from the train step's own call alone. Write it in TensorFlow, or take none: "
                f"{GRADIENT_FREE_ADVICE}"
            )


def _has_custom_gradient(node: Any) -> bool:
    own = b"lerh_tf>"
    return "_gradient_op_type" in node.attr and not node.attr["_gradient_op_type"].s.startswith(own)
