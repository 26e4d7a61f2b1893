import numpy as np

from reproduce.datasets import gathered


def test_minibatches_are_gathered_in_their_order() -> None:
    x, y = np.arange(10.0, dtype="float32")[:, None], np.arange(10)
    made = gathered((x, y), np.array([[3, 1], [9, 9]]))
    found = [(list(a[:, 0]), list(b)) for a, b in made.as_numpy_iterator()]
    assert found == [([3.0, 1.0], [3, 1]), ([9.0, 9.0], [9, 9])]
    # A training of half a minute would else wait at its end, now and then, as long again.
    assert made.map(lambda a, b: (a, b)).skip(1).options().autotune.enabled is False
