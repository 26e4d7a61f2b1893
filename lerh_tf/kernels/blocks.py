"""Loops over samples, a block of them at a time."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import tensorflow as tf

from lerh_tf.noise import DivisibleNoise, Noise
from lerh_tf.replicas import ALONE, Replicas

State = TypeVar("State")
Drawn = TypeVar("Drawn")

# Blocks that may be in memory at once, where there are as many cores.
_BLOCKS_AT_ONCE = 4


def fold_blocks(
    draw: Callable[[tf.Tensor], Drawn],
    add: Callable[[State, Drawn, tf.Tensor], State],
    samples: int | tf.Tensor,
    size: int | tf.Tensor,
    state: State,
) -> State:
    """Folds `add` over the blocks that hold `samples` samples, in a loop in the graph.

    All blocks have one size, so that one trace, and one compilation, serves them all. They are
    added in their order, and drawn side by side on as many cores as TensorFlow may use: compiled
    by XLA a block keeps one of them.

    Args:
        draw: takes a block to what is to be added; knows nothing of the state.
        add: takes (state, what was drawn, samples of it that count) to the new state. The others,
            at the end of the last block, are to be ignored.
        samples: the number of samples in all.
        size: the number of samples in a block.
        state: nest of tensors whose shapes `add` keeps.

    Returns:
        The last state.
    """
    blocks = (samples + size - 1) // size

    def body(block: tf.Tensor, state: State) -> tuple[tf.Tensor, State]:
        count = tf.minimum(size, samples - block * size)
        new = add(state, draw(tf.cast(block, tf.int64)), count)
        return block + 1, tf.nest.map_structure(_with_shape_of, new, state)

    _, state = tf.while_loop(
        lambda block, _: block < blocks,
        body,
        (tf.constant(0), state),
        parallel_iterations=_BLOCKS_AT_ONCE,
    )
    return state


def fold_samples(
    draw: Callable[[list[tf.Tensor], tf.Tensor], Drawn],
    add: Callable[[State, Drawn], State],
    noise: Noise,
    samples: int,
    size: int | tf.Tensor,
    state: State,
    first_block: int | tf.Tensor = 0,
    replicas: Replicas = ALONE,
) -> State:
    """Folds `add` over the noise of `samples` samples, or of this replica's part of them.

    Where samples are split over replicas, each takes whole blocks in turn if there are at least as
    many, else its rows of every block; no sample's noise depends on it.

    Args:
        draw: takes (noise, bool tensor of which samples of it count) to what is to be added; knows
            nothing of the state.
        add: takes (state, what was drawn) to the new state.
        noise: source of standard normal noise.
        samples: the number of samples in all.
        size: the number of samples in a block.
        state: nest of tensors whose shapes `add` keeps.
        first_block: position of the first block.
        replicas: who draws.

    Returns:
        The last state.
    """

    def add_block(state: State, drawn: Drawn, _: tf.Tensor) -> State:
        return add(state, drawn)

    if replicas.split != "samples":

        def draw_block(block: tf.Tensor) -> Drawn:
            count = samples - tf.cast(block, tf.int32) * size
            return draw(noise(first_block + block, size), tf.range(size) < count)

        return fold_blocks(draw_block, add_block, samples, size, state)

    part = cast(DivisibleNoise, noise)
    blocks = (samples + size - 1) // size
    is_whole = blocks >= replicas.count
    rows = tf.where(is_whole, size, (size + replicas.count - 1) // replicas.count)
    first = tf.where(is_whole, 0, replicas.position * rows)
    turn, stride = (
        tf.where(is_whole, n, m) for n, m in ((replicas.position, 0), (replicas.count, 1))
    )

    def draw_part(step: tf.Tensor) -> Drawn:
        block = turn + stride * tf.cast(step, tf.int32)
        count = tf.minimum(size, samples - block * size) - first
        z = part(first_block + tf.cast(block, tf.int64), rows, first)
        return draw(z, tf.range(rows) < count)

    return fold_blocks(draw_part, add_block, (blocks + stride - 1) // stride, 1, state)


def map_blocks(
    draw: Callable[[tf.Tensor], State], samples: int, size: int | tf.Tensor, dtypes: Any
) -> State:
    """Returns what `draw` gives for the blocks that hold `samples` samples, joined.

    Args:
        draw: takes a block to a nest of tensors of shape [size, ...].
        samples: the number of samples in all.
        size: the number of samples in a block.
        dtypes: nest of the tensors' dtypes.

    Returns:
        Nest of tensors of shape [samples, ...].
    """
    blocks = tf.range(tf.cast((samples + size - 1) // size, tf.int64))

    def join(tensor: tf.Tensor) -> tf.Tensor:
        return tf.reshape(tensor, tf.concat([[-1], tf.shape(tensor)[2:]], 0))[:samples]

    return tf.nest.map_structure(join, tf.map_fn(draw, blocks, fn_output_signature=dtypes))


def _with_shape_of(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
    return tf.ensure_shape(new, old.shape)
