"""A loss that goes through every operation of the list of those that XLA compiles."""

from typing import Any

import tensorflow as tf

raw = tf.raw_ops

# Names of `tf.raw_ops` that map one tensor to one of its shape, smooth at the weights used here.
UNARY = (
    *("Abs", "Cos", "Elu", "Erf", "Erfc", "Exp", "Expm1", "Floor", "Identity", "LeakyRelu"),
    *("Log", "Log1p", "LogSoftmax", "Neg", "OnesLike", "Reciprocal", "Relu", "Relu6", "Round"),
    *("Rsqrt", "Selu", "Sigmoid", "Sign", "Sin", "Softmax", "Softplus", "Softsign", "Sqrt"),
    *("Square", "StopGradient", "Tanh", "ZerosLike"),
)
FEATURES = {"Elu", "LeakyRelu", "Relu", "Relu6", "Selu", "Softplus", "Softsign"}
INPUT = {"Identity", "StopGradient"}
LOGITS = {"LogSoftmax", "Softmax"}
BINARY = (
    *("Add", "AddV2", "Div", "DivNoNan", "FloorDiv", "Maximum", "Minimum", "Mul", "MulNoNan"),
    *("Pow", "RealDiv", "SquaredDifference", "Sub", "Xdivy", "Xlog1py", "Xlogy"),
)
COMPARISONS = ("Equal", "Greater", "GreaterEqual", "Less", "LessEqual", "NotEqual")
REDUCTIONS = ("Max", "Mean", "Min", "Prod", "Sum")


def every_operation(w: tf.Tensor, other: tf.Tensor, pads: bool = True) -> tf.Tensor:
    """A scalar loss of a positive weight [4, 4].

    Args:
        w: the weight.
        other: positive numbers that do not depend on it, [4, 4].
        pads: whether it pads by a value too, which has no vectorised form.
    """
    terms = [*_unary(w), *_binary(w, other), *_logic(w, other), *_products(w, other)]
    terms += [*_layout(w), *_images(w), *_losses(w, other)]
    if pads:
        terms.append(raw.PadV2(input=w, paddings=[[1, 0], [0, 1]], constant_values=2.0))
    return raw.AddN(inputs=[raw.Sum(input=t, axis=_axes(t)) for t in terms])


def _axes(t: tf.Tensor) -> list[int]:
    return list(range(t.shape.rank))


def _unary(w: tf.Tensor) -> list[tf.Tensor]:
    def argument(name: str) -> str:
        for key, names in (("features", FEATURES), ("input", INPUT), ("logits", LOGITS)):
            if name in names:
                return key
        return "x"

    return [getattr(raw, name)(**{argument(name): w}) for name in UNARY]


def _binary(w: tf.Tensor, other: tf.Tensor) -> list[tf.Tensor]:
    return [getattr(raw, name)(x=w, y=other) for name in BINARY]


def _logic(w: tf.Tensor, other: tf.Tensor) -> list[tf.Tensor]:
    masks = [getattr(raw, name)(x=w, y=other) for name in COMPARISONS]
    masks += [raw.IsFinite(x=w), raw.IsInf(x=w), raw.IsNan(x=w)]
    masks.append(raw.LogicalAnd(x=masks[1], y=raw.LogicalNot(x=masks[0])))
    masks.append(raw.LogicalOr(x=masks[1], y=masks[3]))
    masks.append(raw.Fill(dims=[4, 4], value=raw.All(input=masks[1], axis=[0, 1])))
    masks.append(raw.BroadcastTo(input=raw.Any(input=masks[1], axis=[0, 1]), shape=[4, 4]))
    selected = raw.SelectV2(condition=masks[1], t=w, e=other)
    indicator = raw.Cast(x=masks[1], DstT=tf.float32)
    return [
        *[raw.Cast(x=mask, DstT=tf.float32) * w for mask in masks],
        selected,
        raw.Select(condition=masks[2], x=w, y=2.0 * w),
        raw.ClipByValue(t=w, clip_value_min=0.5, clip_value_max=1.5) * indicator,
    ]


def _products(w: tf.Tensor, other: tf.Tensor) -> list[tf.Tensor]:
    stacked = raw.ExpandDims(input=w, axis=0)
    others = raw.ExpandDims(input=other, axis=0)
    return [
        raw.MatMul(a=w, b=other),
        raw.BatchMatMul(x=stacked, y=others),
        raw.BatchMatMulV2(x=stacked, y=others),
        raw.BatchMatMulV3(x=stacked, y=others, Tout=tf.float32),
        raw.Einsum(inputs=[w, other], equation="ij,kj->ik"),
        raw.BiasAdd(value=w, bias=w[0]),
    ]


def _layout(w: tf.Tensor) -> list[tf.Tensor]:
    parts: list[Any] = [
        *raw.Split(axis=0, value=w, num_split=2),
        *raw.SplitV(value=w, size_splits=[1, 3], axis=1, num_split=2),
        *raw.Unpack(value=w, num=4, axis=1),
    ]
    weights = tf.reshape(tf.range(1.0, 65.0), [4, 16])
    shaped = [
        raw.Concat(concat_dim=0, values=[w, w]),
        raw.ConcatV2(values=[w, w], axis=1),
        raw.Pack(values=[w, w], axis=1),
        raw.Pad(input=w, paddings=[[1, 0], [0, 1]]),
        raw.Reshape(tensor=w, shape=[2, 8]),
        raw.Slice(input=w, begin=[1, 0], size=[2, 3]),
        raw.Squeeze(input=raw.ExpandDims(input=w, axis=1), axis=[1]),
        w[1:3, ::2],
        raw.Tile(input=w, multiples=[1, 2]),
        raw.Transpose(x=w, perm=[1, 0]),
        raw.GatherV2(params=w, indices=[3, 0, 3], axis=0),
    ]
    reduced = [getattr(raw, name)(input=w, axis=[1]) for name in REDUCTIONS]
    return [p * weights[0, 0] for p in parts] + [s**2 for s in shaped] + reduced


def _images(w: tf.Tensor) -> list[tf.Tensor]:
    image = raw.Reshape(tensor=w, shape=[1, 4, 4, 1])
    window = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    blocks = raw.SpaceToBatchND(input=image, block_shape=[2, 2], paddings=[[0, 0], [0, 0]])
    return [
        raw.BatchToSpaceND(input=blocks**2, block_shape=[2, 2], crops=[[0, 0], [0, 0]]),
        raw.AvgPool(value=image, **window),
        raw.MaxPool(input=image, **window),
        *raw.IdentityN(input=[image, blocks]),
    ]


def _losses(w: tf.Tensor, other: tf.Tensor) -> list[tf.Tensor]:
    mask = raw.Greater(x=w, y=other)
    one_hot = raw.OneHot(
        indices=tf.constant([0, 1, 3]), depth=4, on_value=w[0, 0], off_value=w[0, 1]
    )
    return [
        raw.SoftmaxCrossEntropyWithLogits(features=w, labels=other / 9.0)[0],
        raw.SparseSoftmaxCrossEntropyWithLogits(features=w, labels=[0, 1, 3, 2])[0],
        one_hot,
        raw.Cast(x=raw.Any(input=mask, axis=[1]), DstT=tf.float32),
    ]
