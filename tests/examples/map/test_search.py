"""The random search: ranges, strata, the same draws for what methods share."""

import numpy as np
import pytest

from examples.map.methods import METHODS
from examples.map.search import Choice, LogUniform, trials


def test_quantiles() -> None:
    assert LogUniform(0.01, 1.0).at(0.5) == pytest.approx(0.1)
    assert LogUniform(0.01, 1.0).at(0.0) == 0.01
    assert [Choice((1.0, 2.0)).at(u) for u in (0.0, 0.49, 0.5, 0.99)] == [1.0, 1.0, 2.0, 2.0]


def test_every_eighth_of_a_range_is_tried_once() -> None:
    found = [one["x"] for one in trials({"x": LogUniform(1e-4, 1e4)}, 8)]
    assert sorted(np.floor(np.log10(found)).astype(int)) == list(range(-4, 4))
    momenta = [one["p"] for one in trials({"p": Choice((0.0, 0.9))}, 8)]
    assert sorted(momenta) == [0.0] * 4 + [0.9] * 4


def test_names_are_independent() -> None:
    found = trials({name: LogUniform(1.0, 10.0) for name in ("a", "b")}, 8)
    one, other = (np.argsort([each[name] for each in found]) for name in ("a", "b"))
    assert list(one) != list(other)


def test_methods_that_share_a_hyper_parameter_try_the_same_values() -> None:
    tried = {name: trials(method.space, 8) for name, method in METHODS.items()}
    for name in ("learning_rate", "weight_decay", "length"):
        values = {tuple(one[name] for one in each) for each in tried.values()}
        assert len(values) == 1
    taus = {tuple(one["tau"] for one in tried[name]) for name in ("local_entropy", "heat")}
    assert taus == {tuple(one["tau"] for one in tried["weight_noise"])}
