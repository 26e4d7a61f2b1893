"""Two processes train one model: `MultiWorkerMirroredStrategy` and a loop of one's own.

Both on this machine: `python -m examples.two_workers FOLDER`. On two machines, with the folder on
a file system of both, the same on each with its index:
`TF_CONFIG='{"cluster": {"worker": ["a:2222", "b:2222"]}, "task": {"type": "worker", "index": 0}}'
python -m examples.two_workers FOLDER`. Given again it goes on from the last checkpoint.
"""

import argparse
import faulthandler
import json
import os
import socket
import subprocess
import sys
import traceback
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

ROWS, BATCH = 200, 20


def train(
    folder: Path, updates: int, parallel: str, heat: bool, start_timeout: float, timeout: float
) -> None:
    """Trains as one of the workers that TF_CONFIG names, from the last checkpoint on.

    Prints after each weight update its number and a digest of the weights.

    Args:
        folder: Of the checkpoints; all workers must see the same.
        updates: Weight updates in all, those before the checkpoint included.
        parallel: How the workers share an update, see `LocalEntropy`: "means", of two chains of
            Langevin dynamics; "samples" or "batch", by importance sampling, the update of one.
        heat: Whether it is heat regularization, by Robbins-Monro, in each of these ways.
        start_timeout: Seconds in which the workers must have met.
        timeout: Seconds for which one waits for another one in an update.

    Raises:
        tensorflow.errors.OpError: Another worker was lost, or did not answer in time.
    """
    # The launcher needs none of them.
    import keras
    import tensorflow as tf

    import lerh_tf

    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=timeout)
    # TensorFlow waits for an hour for a worker that never comes, and SIGTERM does not end that.
    faulthandler.dump_traceback_later(start_timeout, exit=True)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    faulthandler.cancel_dump_traceback_later()
    index, workers = strategy.cluster_resolver.task_id, strategy.num_replicas_in_sync

    keras.utils.set_random_seed(0)
    with strategy.scope():
        layers = [keras.layers.Dense(8, "tanh"), keras.layers.Dense(1)]
        model = keras.Sequential([keras.Input((5,)), *layers])
        if heat:
            steps = lerh_tf.RobbinsMonroSteps(1.0, 1.0, largest=0.5)
            solver = lerh_tf.RobbinsMonro(20, 4, step_sizes=steps, tolerance=1.0)
            optimizer = lerh_tf.HeatRegularization(0.05, solver, seed=0, parallel=parallel)
        else:
            sampler = lerh_tf.SGLD(20) if parallel == "means" else lerh_tf.ImportanceSampling(20)
            optimizer = lerh_tf.LocalEntropy(0.05, sampler, seed=0, parallel=parallel)
        optimizer.build(model.trainable_variables)
    # Each its own, as each has a chain of its own.
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    kept = [folder / f"worker-{each}" for each in range(workers)]
    manager = tf.train.CheckpointManager(checkpoint, kept[index], max_to_keep=2)
    # One that was lost may be a checkpoint behind.
    last = [tf.train.latest_checkpoint(each) for each in kept]
    done = min(int(path.rpartition("-")[2]) if path else 0 for path in last)
    if done:
        checkpoint.restore(str(kept[index] / f"ckpt-{done}")).assert_consumed()

    @tf.function
    def update(x: tf.Tensor, y: tf.Tensor) -> None:
        def share() -> tf.Tensor:
            loss = tf.reduce_sum((model(x) - y) ** 2) / BATCH
            return loss / workers if parallel == "samples" else loss

        strategy.run(lambda: optimizer.step(share, model.trainable_variables))

    inputs = tf.random.stateless_normal([ROWS, 5], [0, 1])
    rows = tf.data.Dataset.from_tensor_slices((inputs, tf.sin(inputs[:, :1])))
    # The seed makes it the same order for all, and for those that start again.
    batches = rows.shuffle(ROWS, seed=0).batch(BATCH, drop_remainder=True).repeat()
    for number, (x, y) in enumerate(batches.skip(done).take(updates - done), done + 1):
        own = slice(None) if parallel == "samples" else slice(index, None, workers)
        update(x[own], y[own])
        manager.save(number)
        weights = b"".join(w.numpy().tobytes() for w in model.weights)
        # In one piece: both workers may write to one pipe.
        print(f"{index} {number} {sha256(weights).hexdigest()}\n", end="", flush=True)


def cluster(workers: int) -> list[dict[str, str]]:
    """Returns the environments of workers that meet on free ports of this machine."""
    with ExitStack() as held:
        ports = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(workers)]
        addresses = [f"localhost:{port.getsockname()[1]}" for port in ports]
    tasks = [{"type": "worker", "index": index} for index in range(workers)]
    configurations = [{"cluster": {"worker": addresses}, "task": task} for task in tasks]
    return [{**os.environ, "TF_CONFIG": json.dumps(each)} for each in configurations]


def launch(command: list[str]) -> int:
    """Runs both workers on this machine.

    Returns:
        The larger exit code. Where one is lost the other one ends too.
    """
    workers = [subprocess.Popen(command, env=environment) for environment in cluster(2)]
    try:
        return max(abs(worker.wait()) for worker in workers)
    finally:
        for worker in workers:
            worker.kill()


def main() -> int:
    """Is a worker where TF_CONFIG is set, else launches two of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="of the checkpoints")
    parser.add_argument("--updates", type=int, default=20, help="weight updates in all")
    parser.add_argument("--parallel", choices=["means", "samples", "batch"], default="means")
    parser.add_argument("--heat", action="store_true", help="heat regularization")
    parser.add_argument("--start-timeout", type=float, default=300.0, help="seconds")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds")
    arguments = parser.parse_args()
    if "TF_CONFIG" not in os.environ:
        return launch([sys.executable, "-m", "examples.two_workers", *sys.argv[1:]])
    try:
        train(**vars(arguments))
    except Exception:
        traceback.print_exc()
        sys.stderr.flush()
        # TensorFlow's own end would wait for the worker that was lost.
        os._exit(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
