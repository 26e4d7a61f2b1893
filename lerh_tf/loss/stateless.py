"""A model's loss at other weights, which moves none of its variables."""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf


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
    """
    x, y, sample_weight = batch
    # As Keras does for models whose own `compute_loss` does not know of it.
    knows = "training" in inspect.signature(model.compute_loss).parameters
    mode = {"training": training} if knows else {}
    with keras.StatelessScope(list(mapping), collect_losses=True) as scope:
        y_pred = model(x, training=training)
        with _explained(model, y):
            loss = model.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, **mode)
    return loss, scope


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
