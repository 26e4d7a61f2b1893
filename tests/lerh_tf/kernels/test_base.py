"""What a kernel of one's own inherits."""

from typing import Any

import pytest
import tensorflow as tf

from lerh_tf.kernels.base import Estimate, Kernel


class Still(Kernel):
    """Stays where it is."""

    def __call__(self, objective: Any, anchor: Any, tau: Any, noise: Any, *_: Any) -> Estimate:
        return Estimate([tf.zeros_like(x) for x in anchor], [], {}, tf.constant(True))


def test_a_kernel_needs_no_more_than_a_call() -> None:
    kernel = Still()
    assert (kernel.diagnostic_names, kernel.has_chain, kernel.get_config()) == ((), False, {})
    assert kernel.failure.startswith("Still: the estimate is not valid.")
    assert Still.from_config({}) == kernel
    kernel.check_tau(1e-30)


def test_a_kernel_needs_a_call() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Kernel()  # type: ignore[abstract]
