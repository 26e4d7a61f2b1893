"""The one table of what is left out of Keras's own tests, and why.

What is no test of SGD on TensorFlow at all.
"""

import unittest
from fnmatch import fnmatch

OTHER = "a case of another of Keras's optimizers; SGD's is run by its name"
BACKEND = "Keras skips it on TensorFlow: `stateless_apply` belongs to JAX"
ABSENT = "Keras skips it where tf_keras is not installed"

# By Keras's test class, patterns of names.
EXCLUDED: dict[str, dict[str, str]] = {
    "OptimizerTest": {
        "test_gradient_accumulation_with_weigth_decay*": OTHER,
        "test_pickleable_optimizers*": OTHER,
    },
    "SGDTest": {},
    "LossScaleOptimizerTest": {"*_stateless": BACKEND},
    "OptimizerSparseTest": {
        **{
            f"test_sparse_*_{name}*": OTHER
            for name in (
                *("ada", "ftrl", "lion", "nadam", "rmsprop", "scatter_update"),
                # Bound to Keras's SGD as the module is imported.
                *("sgd", "loss_scale_optimizer_sgd"),
            )
        },
    },
    "OptimizerDistributeTest": {"test_single_step1": ABSENT},
}


def names_of(suite: type[unittest.TestCase]) -> list[str]:
    """Every test of one of Keras's classes."""
    return list(unittest.TestLoader().getTestCaseNames(suite))


def excluded(suite: type[unittest.TestCase]) -> dict[str, None]:
    """Attributes with which a subclass leaves the excluded tests out."""
    patterns = EXCLUDED[suite.__name__]
    names = (n for n in names_of(suite) if any(fnmatch(n, pattern) for pattern in patterns))
    return dict.fromkeys(names)
