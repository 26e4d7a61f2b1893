"""The pipeline of whole batches; on two replicas see `optimizers/test_parallel.py`."""

import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf import whole_batches


def taken(batches: Any, count: int) -> list[list[int]]:
    return [batch.numpy().tolist() for batch in itertools.islice(iter(batches), count)]


def test_it_starts_anew_without_end_and_keeps_partial_batches() -> None:
    batches = whole_batches(tf.data.Dataset.range(5).batch(2))
    assert taken(batches, 7) == [[0, 1], [2, 3], [4], [0, 1], [2, 3], [4], [0, 1]]


def test_nests_stay_nests() -> None:
    dataset = tf.data.Dataset.from_tensor_slices(({"a": np.arange(4)}, np.ones(4))).batch(4)
    x, y = next(iter(whole_batches(dataset)))
    assert x["a"].shape == y.shape == (4,)


def test_a_seed_gives_all_workers_one_order_and_each_start_another() -> None:
    first, second = (
        whole_batches(tf.data.Dataset.range(20).shuffle(20, seed=0).batch(4)) for _ in range(2)
    )
    started = taken(first, 10)
    assert taken(second, 10) == started
    # As where `fit` looks at a batch before it trains.
    assert taken(second, 10) != started


def test_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match=r"`dataset` must be a batched `tf.data.Dataset`"):
        whole_batches(np.zeros(3))
