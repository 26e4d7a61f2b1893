"""Whether a loss that is a Python function is the same one each time it is evaluated."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

# Operations that draw anew each time they run. TensorFlow has no public list of them.
_DRAWS = frozenset(
    {
        *("AllCandidateSampler", "FixedUnigramCandidateSampler", "LearnedUnigramCandidateSampler"),
        *("LogUniformCandidateSampler", "Multinomial", "NonDeterministicInts"),
        *("ParameterizedTruncatedNormal", "RandomCrop", "RandomGamma", "RandomPoisson"),
        *("RandomPoissonV2", "RandomShuffle", "RandomStandardNormal", "RandomUniform"),
        *("RandomUniformInt", "RngReadAndSkip", "RngSkip", "SampleDistortedBoundingBox"),
        *("SampleDistortedBoundingBoxV2", "StatefulRandomBinomial", "StatefulStandardNormal"),
        *("StatefulStandardNormalV2", "StatefulTruncatedNormal", "StatefulUniform"),
        *("StatefulUniformFullInt", "StatefulUniformInt", "ThreadUnsafeUnigramCandidateSampler"),
        *("TruncatedNormal", "UniformCandidateSampler"),
    }
)
TRAIN_STEP_ADVICE = (
    "Let the model subclass `lerh_tf.TrainStep`, named before `keras.Model`: it evaluates the loss "
    "as a function of the weights instead of replaying its graph. In a loop of your own let the "
    "closure return a `lerh_tf.LossFunction`."
)
SEED_ADVICE = (
    "Draw with the functions of `keras.random`, their seed a `keras.random.SeedGenerator` that is "
    "an attribute of the layer, as `keras.layers.GaussianNoise` does."
)


class ReplayError(ValueError):
    """The loss of this train step can't be evaluated at other weights."""

    # AutoGraph hands on exceptions of only those types that construct as `Exception` does.
    __init__ = Exception.__init__


def repeatable(function: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    """Returns a loss that refuses to be traced where each evaluation would be another one.

    The samples of one weight update are weighed against each other, so they must see one loss.

    Args:
        function: the loss.

    Returns:
        The same function. It raises a `ReplayError` if it draws random numbers that differ from
        run to run, or assigns to a variable, itself or in a function that it calls.
    """

    @functools.wraps(function)
    def checked(*arguments: Any) -> tf.Tensor:
        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        loss = function(*arguments)
        _check(graph, graph.get_operations()[before:])
        return loss

    return checked


def _check(graph: tf.Graph, operations: Sequence[tf.Operation]) -> None:
    nodes = [op.node_def for op in operations if op.type != "Const"]
    for node in _with_called(graph, nodes):
        if node.op in _DRAWS:
            raise ReplayError(
                f"Operation '{node.name}' ({node.op}) draws other random numbers in each "
                "evaluation of the loss, so the samples of one weight update would see different "
                f"losses. {SEED_ADVICE}"
            )
        if is_assignment(node):
            raise ReplayError(
                f"Operation '{node.name}' ({node.op}) would assign to a variable in each "
                "evaluation of the loss. Let the variable be a `keras.Variable` of the model, "
                "which is assigned to once per weight update, or assign to it elsewhere."
            )


def is_assignment(node: Any) -> bool:
    """Returns whether a node writes to the variable whose handle is its first input."""
    is_assign = node.op.startswith("Assign") and node.op.endswith("VariableOp")
    return is_assign or node.op.startswith("ResourceScatter")


def called_functions(node: Any) -> Iterator[str]:
    """Yields the names of the functions that a node calls, as control flow does."""
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (function.name for function in value.list.func)


def _with_called(graph: tf.Graph, nodes: Sequence[Any]) -> list[Any]:
    """Returns some nodes of a graph and those of the functions that they call."""
    found = list(nodes)
    if not any(any(called_functions(node)) for node in nodes):
        return found
    library = {f.signature.name: f.node_def for f in graph.as_graph_def().library.function}
    for node in found:
        for name in called_functions(node):
            found.extend(library.pop(name, ()))
    return found
