"""Compilation of the inner loops by XLA, where the loss allows it."""

from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from lerh_tf.loss.objective import Objective

Function = TypeVar("Function", bound=Callable[..., Any])

# Operations that XLA compiles on every device, as do their gradients. TensorFlow has no public
# list of them, and one operation too many would make a model fail that trains without. Left out
# are convolutions, whose gradients XLA makes ten times slower on CPUs than TensorFlow's own: those
# that a weight update can write as products it does (`lerh_tf/exact/convolutions.py`).
_COMPILABLE = frozenset(
    {
        *("Abs", "Add", "AddN", "AddV2", "All", "Any", "AvgPool"),
        *("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BatchToSpaceND", "BiasAdd"),
        *("BroadcastTo", "Cast"),
        *("ClipByValue", "Concat", "ConcatV2", "Const", "Cos", "Div", "DivNoNan"),
        *("Einsum", "Elu", "Equal", "Erf", "Erfc", "Exp", "ExpandDims", "Expm1", "Fill"),
        *("Floor", "FloorDiv", "GatherV2", "Greater", "GreaterEqual", "Identity"),
        *("IdentityN", "IsFinite", "IsInf", "IsNan", "LeakyRelu", "Less", "LessEqual", "Log"),
        *("Log1p", "LogSoftmax"),
        *("LogicalAnd", "LogicalNot", "LogicalOr", "MatMul", "Max", "MaxPool", "Maximum"),
        *("Mean", "Min", "Minimum", "Mul", "MulNoNan", "Neg", "NotEqual", "OneHot", "OnesLike"),
        *("Pack", "Pad", "PadV2", "Pow", "Prod", "RealDiv", "Reciprocal", "Relu", "Relu6"),
        *("Reshape", "Round", "Rsqrt", "Select", "SelectV2", "Selu", "Sigmoid", "Sign", "Sin"),
        *("Slice", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "Softsign"),
        *("SpaceToBatchND",),
        *("SparseSoftmaxCrossEntropyWithLogits", "Split", "SplitV", "Sqrt", "Square"),
        *("SquaredDifference", "Squeeze", "StopGradient", "StridedSlice", "Sub", "Sum", "Tanh"),
        *("Tile", "Transpose", "Unpack", "Xdivy", "Xlog1py", "Xlogy", "ZerosLike"),
    }
)


def is_compilable(objective: Objective) -> bool:
    """Returns whether XLA is to compile the inner loops that evaluate the loss.

    Args:
        objective: the minibatch loss.
    """
    if isinstance(objective.jit_compile, bool):
        return objective.jit_compile
    return objective.operations is not None and all(
        node.op in _COMPILABLE and not _makes_integers(node) for node in objective.operations
    )


def _makes_integers(node: Any) -> bool:
    """Returns whether a node turns weights into what may be a size or an index.

    XLA has neither shapes that depend on data nor a check of the bounds of an index.
    """
    return node.op == "Cast" and tf.as_dtype(node.attr["DstT"].type).is_integer


def compiled(function: Function, objective: Objective) -> Function:
    """Returns `function` compiled by XLA where the loss says so, else as it is.

    Random bits stay outside, in a function of their own (`lerh_tf/philox.py`).

    Args:
        function: takes and returns nests of tensors; evaluates the loss.
        objective: the minibatch loss.
    """
    if not is_compilable(objective):
        return function
    return tf.function(function, jit_compile=True, autograph=False)
