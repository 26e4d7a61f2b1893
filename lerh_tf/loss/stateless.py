"""A model's loss at other weights, which moves none of its variables."""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf.loss.objective import native
from lerh_tf.loss.repeatable import ReplayError


def loss_of_model(
    model: Any,
    mapping: Sequence[tuple[Any, tf.Tensor]],
    batch: tuple[Any, Any, Any],
    training: bool,
) -> tuple[tf.Tensor, keras.StatelessScope]:
    """Returns the compiled loss and the regularization losses on one batch.

    Args:
        model: a compiled `keras.Model`.
        mapping: pairs of a variable and the value to use in its place.
        batch: x, y and the rows' weights.
        training: whether layers such as `Dropout` act.

    Returns:
        The loss, and the scope in which the model ran, which holds what would have moved.

    Raises:
        ValueError: there are no targets, and the compiled loss needs them.
        ReplayError: something inside, such as a `tf.function` that was traced before, reads a
            trainable variable of the mapping past its value.
    """
    x, y, sample_weight = batch
    # As Keras does for models whose own `compute_loss` does not know of it.
    knows = "training" in inspect.signature(model.compute_loss).parameters
    mode = {"training": training} if knows else {}
    since = len(_operations())
    with _functions_in_line(), keras.StatelessScope(list(mapping), collect_losses=True) as scope:
        y_pred = model(x, training=training)
        with _explained(model, y):
            loss = model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, **mode)
    _check_unread([v for v, _ in mapping if v.trainable], _operations()[since:])
    return loss, scope


@contextlib.contextmanager
def _functions_in_line() -> Iterator[None]:
    """Runs each `tf.function` as Python where all is eager: a trace would not see the values."""
    before = tf.config.functions_run_eagerly()
    if not tf.inside_function():
        tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def _operations() -> list[tf.Operation]:
    graph = tf.compat.v1.get_default_graph()
    return graph.get_operations() if tf.inside_function() else []


def _check_unread(variables: Sequence[Any], operations: Sequence[tf.Operation]) -> None:
    """Refuses what reads a variable itself, as a `tf.function` does that was traced elsewhere."""
    if not operations:
        return
    taken = {id(t) for one in operations for t in one.inputs if t.dtype == tf.resource}
    read = {id(outside) for outside, inside in operations[0].graph.captures if id(inside) in taken}
    for variable in variables:
        if id(native(variable).handle) in read:
            raise ReplayError(
                f"The model calls a `tf.function` that reads the weight {variable.path!r}, so the "
                "loss can't be computed at other weights. Take the decorator away: Keras compiles "
                "the train step as a whole."
            )


@contextlib.contextmanager
def _explained(model: Any, y: Any) -> Iterator[None]:
    """Says so where a compiled loss fails without targets; there are losses that need none."""
    try:
        yield
    except ValueError as error:
        if y is not None or model.loss is None:
            raise
        raise ValueError(
            "`y` must hold the targets of the loss that the model was compiled with: give x and y, "
            "or data that yield both, such as `measure_on=(x, y)`. "
            f"Received: y=None, loss={model.loss!r}, and the error: {error}"
        ) from error


def rows_of(x: Any) -> tf.Tensor:
    """Returns the number of rows of a batch's inputs, optional ones that are None left out."""
    return tf.shape(next(each for each in tf.nest.flatten(x) if each is not None))[0]
