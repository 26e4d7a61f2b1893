"""A pipeline whose replicas all see the whole minibatch."""

from typing import Any

import tensorflow as tf


def whole_batches(
    dataset: tf.data.Dataset, strategy: tf.distribute.Strategy | None = None
) -> tf.distribute.DistributedDataset:
    """Returns a pipeline that hands each batch of a data set to all replicas, whole.

    That is what `parallel="samples"` needs; `fit` splits the batches of other data sets over the
    replicas. It starts anew without end, so `fit` is told how many batches make an epoch:

        batches = dataset.shuffle(1000, seed=0).batch(128)
        whole = lerh_tf.whole_batches(batches, strategy)
        model.fit(whole, steps_per_epoch=len(batches), epochs=3, shuffle=False)

    Without end, since Keras counts a pipeline's batches once per replica, and `tf.distribute` makes
    an update without data behind the end of one that has an end. Where several workers run, each
    reads the data set by itself: `shuffle` then needs a `seed`. `fit` looks at a batch before it
    trains, for which a shuffled data set starts once more.

    Args:
        dataset: a batched `tf.data.Dataset`; the last batch may be smaller.
        strategy: whose replicas; None for the current one. Defaults to None.

    Returns:
        The pipeline, to be handed to `fit` as its data.

    Raises:
        TypeError: `dataset` is no `tf.data.Dataset`.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise TypeError(
            f"`dataset` must be a batched `tf.data.Dataset`. Received: dataset={dataset!r}"
        )

    def for_each_replica(context: tf.distribute.InputContext) -> tf.data.Dataset:
        copies = context.num_replicas_in_sync // context.num_input_pipelines

        def copied(*batch: Any) -> tf.data.Dataset:
            (one,) = batch if len(batch) == 1 else (batch,)
            return tf.data.Dataset.from_tensors(one).repeat(copies)

        return dataset.flat_map(copied).repeat()

    strategy = strategy or tf.distribute.get_strategy()
    return strategy.distribute_datasets_from_function(for_each_replica)
