"""
Two processes, one weight update
================================

Two processes of ``MultiWorkerMirroredStrategy`` train one model on this machine. They hold a half
of each minibatch, or draw a half of the samples, and make the updates of a process alone.
:doc:`What can be shared how </distribution>` has the table.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

QUICK = "QUICK" in os.environ
UPDATES = 3 if QUICK else 60

# %%
# What each process runs
# ----------------------
# The loop is one's own, since ``fit`` of stock Keras does not work with several processes. A loss
# is the replica's share, so that shares add up: a sum over its rows, over the rows of all; with
# ``"samples"``, where all hold the same rows, one over the number of processes of it.

WORKER = """
import hashlib
import json
import sys

import keras
import tensorflow as tf

import lerh_tf

parallel, updates = sys.argv[1], int(sys.argv[2])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
index, workers = strategy.cluster_resolver.task_id or 0, strategy.num_replicas_in_sync
keras.utils.set_random_seed(0)
with strategy.scope():
    layers = [keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((2,)), *layers])
    sampler = lerh_tf.ImportanceSampling(20, estimator="gradients")
    optimizer = lerh_tf.LocalEntropy(0.2, sampler, seed=0, parallel=parallel)
    optimizer.build(model.trainable_variables)

x = tf.random.stateless_uniform([40, 2], [0, 1], -1.0, 1.0)
y = tf.sin(3.0 * x[:, :1]) * x[:, 1:]
own = slice(None) if parallel == "samples" else slice(index, None, workers)


@tf.function
def update():
    def share():
        loss = tf.reduce_sum((model(x[own]) - y[own]) ** 2) / 40.0
        return loss / workers if parallel == "samples" else loss

    strategy.run(lambda: optimizer.step(share, model.trainable_variables))


losses = []
for _ in range(updates):
    update()
    losses.append(float(tf.reduce_mean((model(x) - y) ** 2)))
weights = b"".join(w.numpy().tobytes() for w in model.weights)
print(json.dumps({"losses": losses, "weights": hashlib.sha256(weights).hexdigest()[:16]}))
"""

# %%
# Starting them
# -------------
# ``TF_CONFIG`` tells a process who the others are. On several machines the addresses are theirs,
# and a cluster's scheduler starts one process on each.


def trained(workers, parallel):
    """What each of so many processes prints."""
    with ExitStack() as held:
        ports = [held.enter_context(socket.create_server(("localhost", 0))) for _ in range(workers)]
        addresses = [f"localhost:{port.getsockname()[1]}" for port in ports]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "worker.py"
        script.write_text(WORKER)
        command = [sys.executable, str(script), parallel, str(UPDATES)]
        started = []
        for index in range(workers):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
            environment = {**os.environ, "TF_CONFIG": json.dumps(task), "TF_CPP_MIN_LOG_LEVEL": "3"}
            started.append(
                subprocess.Popen(
                    command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            )
        printed = [process.communicate(timeout=300)[0] for process in started]
    return [json.loads(text.splitlines()[-1]) for text in printed]


alone = trained(1, "batch")[0]
together = {parallel: trained(2, parallel) for parallel in ("batch", "samples")}

# %%
# The same weights
# ----------------
# Both processes end with the same bits, and all with the losses of the process alone, to rounding.

print(f"alone: {alone['weights']}")
for parallel, both in together.items():
    apart = np.abs(np.subtract(both[0]["losses"], alone["losses"])).max()
    print(f"{parallel}: {' '.join(one['weights'] for one in both)}, losses apart by {apart:.0e}")
    assert both[0]["weights"] == both[1]["weights"]
    np.testing.assert_allclose(both[0]["losses"], alone["losses"], rtol=1e-4)

figure, axes = plt.subplots(layout="constrained")
axes.plot(alone["losses"], linewidth=5, alpha=0.3, label="one process")
for (parallel, both), style in zip(together.items(), ("--", ":"), strict=True):
    axes.plot(both[0]["losses"], style, linewidth=2, label=f'two, "{parallel}"')
axes.set(xlabel="weight update", ylabel="mean squared error")
axes.legend()

# %%
# A process that is killed gives the others an error within seconds. ``examples/two_workers.py``
# has what a long training needs besides: checkpoints, timeouts, and a restart that goes on as if
# uninterrupted.
