"""The floor counts what the reduced update must compute, and measures it."""

import numpy as np
import pytest

from benchmarks.peers.floor import evaluations, floor, operations
from benchmarks.peers.problem import Problem
from benchmarks.peers.work import PAPER, SMALL, Work

BATCH, PIXELS, HIDDEN, CLASSES = 3, 7, 5, 2


def problem(batch: int = BATCH) -> Problem:
    images = np.ones((batch, PIXELS), "float32")
    return Problem.of_minibatch(images, np.zeros(batch, "int64"), HIDDEN, CLASSES)


def test_operations_are_those_of_the_products() -> None:
    first, second = 2 * BATCH * BATCH * HIDDEN, 2 * BATCH * HIDDEN * CLASSES
    assert operations(problem(), gradient=False) == first + second
    # X^T G is as large as X U; H^T G and G W^T are each as large as H W.
    assert operations(problem(), gradient=True) == 2 * first + 3 * second


def test_a_minibatch_never_spans_more_than_all_dimensions() -> None:
    batch = 2 * PIXELS
    expected = 2 * batch * (PIXELS * HIDDEN + HIDDEN * CLASSES)
    assert operations(problem(batch), gradient=False) == expected


@pytest.mark.parametrize(
    ("work", "count"), [(PAPER["sgld"], 999), (PAPER["is"], 1000), (PAPER["hr"], 900)]
)
def test_evaluations(work: Work, count: int) -> None:
    assert evaluations(work) == count


@pytest.mark.parametrize("algorithm", ["sgld", "is", "hr"])
def test_both_parts_are_measured(algorithm: str) -> None:
    found = floor(problem(), SMALL[algorithm])()
    assert set(found) == {"noise", "products"}
    assert min(found.values()) > 0.0
