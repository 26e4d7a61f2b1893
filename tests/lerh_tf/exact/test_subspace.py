"""Which weights are reduced to the subspace that the minibatch sees, and the reductions."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from lerh_tf.exact.reductions import Reduction, Rows, RowSpace
from lerh_tf.exact.subspace import Subspace, _factorised
from lerh_tf.loss.replayed import ReplayedLoss
from lerh_tf.noise import working_dtype
from tests.lerh_tf._keras_steps import relative_error
from tests.lerh_tf._kernels import flat
from tests.lerh_tf._subspaces import FOUND, INDICES, ROWS, Array, examine, examine_case, normal

# Products of bfloat16 numbers carry 8 bits: its unit round-off is 2**-8.
TOLERANCES = {"float32": 1e-5, "float64": 1e-10, "mixed_bfloat16": 2**-6, "bfloat16": 2**-6}
COMPILED = ["dense", "repeated-rows", "all-zero", "all-zero-float64", "embedding"]


def look(objective: ReplayedLoss, subspace: Subspace | None, weights: list[tf.Tensor]) -> Any:
    """The loss, its gradient and the reductions at some weights, whole and in coordinates."""
    assert subspace is not None
    wide = [tf.cast(w, working_dtype(w.dtype)) for w in weights]
    pairs = list(zip(subspace.reductions, wide, strict=True))
    coordinates = [w if r is None else r.reduce(w) for r, w in pairs]
    gradient = objective.gradient(weights)
    return {
        "size": subspace.size,
        "loss": (objective(weights), subspace.objective(coordinates)),
        "gradient": gradient,
        "reduced_gradient": subspace.objective.gradient(coordinates),
        "gradient_in_coordinates": [
            tf.cast(g, w.dtype) if r is None else r.reduce(tf.cast(g, w.dtype))
            for (r, w), g in zip(pairs, gradient, strict=True)
        ],
        "lifted_gradient": [
            g if r is None else r.lift(g)
            for (r, _), g in zip(pairs, subspace.objective.gradient(coordinates), strict=True)
        ],
        "reductions": [
            _look_at(r, w, c) for (r, w), c in zip(pairs, coordinates, strict=True) if r is not None
        ],
    }


def _look_at(reduction: Reduction, weight: tf.Tensor, coordinates: tf.Tensor) -> Any:
    other = reduction.seen(tf.ones_like(coordinates) + coordinates)
    complement = reduction.complement(weight)
    return {
        "weight": weight,
        "coordinates": other,
        "reduced_lift": reduction.reduce(reduction.lift(other)),
        "lift": reduction.lift(coordinates),
        "lifted_other": reduction.lift(other),
        "complement": complement,
        "reduced_complement": reduction.reduce(complement),
        "rank": reduction.rank,
    }


@functools.cache
def _examined(name: str, jit_compile: bool) -> Any:
    return examine_case(FOUND[name], look, jit_compile)


def examined(name: str, jit_compile: bool = False) -> Any:
    return _examined(name, jit_compile)


def both() -> list[Any]:
    return [pytest.param(name, False, id=name) for name in FOUND] + [
        pytest.param(name, True, id=f"{name}-compiled") for name in COMPILED
    ]


def tolerance_of(name: str) -> float:
    return TOLERANCES[FOUND[name].policy]


def assert_close(actual: Array, expected: Array, tolerance: float) -> None:
    """Compares arrays whose entries are of order one."""
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", FOUND)
def test_input_layers_are_found(name: str) -> None:
    case = FOUND[name]
    variables = case.model().trainable_variables
    assert sum(int(np.prod(v.shape)) for v in variables) == case.dimensions
    assert examined(name)["size"] == case.sampled


@pytest.mark.parametrize(("name", "jit_compile"), both())
def test_reduction_is_an_isometry(name: str, jit_compile: bool) -> None:
    # The reductions themselves are in at least float32, whatever the model computes in.
    tolerance = 1e-12 if FOUND[name].policy == "float64" else 2e-6
    for r in examined(name, jit_compile)["reductions"]:
        assert_close(r["reduced_lift"], r["coordinates"], tolerance)
        norms = np.linalg.norm(r["lifted_other"]), np.linalg.norm(r["coordinates"])
        assert relative_error(*norms) < tolerance


@pytest.mark.parametrize(("name", "jit_compile"), both())
def test_weight_is_its_seen_part_and_an_orthogonal_complement(name: str, jit_compile: bool) -> None:
    tolerance = 1e-12 if FOUND[name].policy == "float64" else 2e-6
    for r in examined(name, jit_compile)["reductions"]:
        assert_close(r["lift"] + r["complement"], r["weight"], tolerance)
        assert_close(r["reduced_complement"], np.zeros_like(r["coordinates"]), tolerance)
        assert abs(np.sum(r["lifted_other"] * r["complement"])) < 30 * tolerance
        assert np.linalg.norm(r["complement"]) > 0.1


@pytest.mark.parametrize(("name", "jit_compile"), both())
def test_loss_in_coordinates_is_the_loss(name: str, jit_compile: bool) -> None:
    loss, reduced = examined(name, jit_compile)["loss"]
    assert relative_error(reduced, loss) < tolerance_of(name)


@pytest.mark.parametrize(("name", "jit_compile"), both())
def test_gradient_in_coordinates_is_the_gradient_s_coordinates(
    name: str, jit_compile: bool
) -> None:
    seen = examined(name, jit_compile)
    pairs = (("reduced_gradient", "gradient_in_coordinates"), ("lifted_gradient", "gradient"))
    for actual, expected in pairs:
        assert relative_error(flat(seen[actual]), flat(seen[expected])) < tolerance_of(name)


def test_rank_counts_the_dimensions_sampled() -> None:
    ranks = {name: [int(r["rank"]) for r in examined(name)["reductions"]] for name in FOUND}
    assert ranks["dense"] == ranks["repeated-rows"] == ranks["all-zero"] == [ROWS]
    assert ranks["dense-rank-3"] == [2 * ROWS]
    assert ranks["attention"] == [2 * ROWS] * 3
    assert ranks["two-branches"] == [ROWS] * 2
    assert ranks["embedding"] == [len(np.unique(INDICES))]


def test_coordinates_of_repeated_indices_stand_for_nothing() -> None:
    rows = Rows(tf.constant([[4, 2], [4, 4]]), tf.TensorShape([6, 3]))
    weight = tf.reshape(tf.range(18.0), [6, 3])
    coordinates = rows.reduce(weight)
    assert int(rows.rank) == 2
    np.testing.assert_array_equal(coordinates[:2], weight.numpy()[[2, 4]])
    np.testing.assert_array_equal(coordinates[2:], np.zeros((2, 3)))
    picked = weight.numpy()[np.array([[4, 2], [4, 4]])]
    np.testing.assert_array_equal(tf.gather(coordinates, rows.slots), picked)
    lifted = rows.lift(tf.ones([4, 3])).numpy()
    np.testing.assert_array_equal(lifted.any(1), [False, False, True, False, True, False])


def test_rows_of_every_integer_dtype() -> None:
    for dtype in (tf.int32, tf.int64):
        rows = Rows(tf.constant([5, 0, 5, 1], dtype), tf.TensorShape([6, 1]))
        assert int(rows.rank) == 3
        np.testing.assert_array_equal(rows.slots, [2, 0, 2, 1])


def test_row_space_of_a_weight_of_any_rank() -> None:
    basis = tf.linalg.qr(tf.constant(normal(5).T))[0]
    weight = tf.constant(normal(5, 2).transpose(1, 2, 0))
    space = RowSpace(basis, weight.shape)
    expected = np.einsum("dr,dhk->rhk", basis.numpy(), weight.numpy())
    np.testing.assert_allclose(space.reduce(weight), expected, rtol=1e-5, atol=1e-6)
    assert space.lift(space.reduce(weight)).shape == weight.shape


@pytest.mark.parametrize(("gpus", "tf32", "expected"), [(1, True, 8), (1, False, 4), (0, True, 4)])
def test_what_is_not_moved_comes_back_on_a_gpu_that_rounds_products(
    monkeypatch: pytest.MonkeyPatch, gpus: int, tf32: bool, expected: int
) -> None:
    config = tf.config.experimental
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [kind] * gpus)
    monkeypatch.setattr(config, "tensor_float_32_execution_enabled", lambda: tf32)
    space = RowSpace(tf.linalg.qr(tf.constant(normal(5).T))[0], tf.TensorShape([5, 2]))

    complement = tf.function(space.complement).get_concrete_function(tf.TensorSpec([5, 2]))

    products = [op for op in complement.graph.get_operations() if op.type == "MatMul"]
    assert [op.outputs[0].dtype.size for op in products] == [expected, expected]
    assert complement.outputs[0].dtype == tf.float32


W = 0.1 + normal(9).T
X = normal(9)
SQUARE = normal(ROWS)
COLUMNS = np.zeros((9, 1), "int32")
TABLE = np.random.default_rng(0).standard_normal((20, 2)).astype("float32")


def energy(y: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.cast(y, tf.float32) ** 2)


def sizes(
    loss: Callable[..., tf.Tensor],
    weight: Array,
    inputs: list[Array],
    spec: list[tf.TensorSpec] | None = None,
) -> tuple[Any, ...]:
    """The number of sampled dimensions, or None, and the loss whole and in coordinates."""
    variable = tf.Variable(weight)

    def look(objective: ReplayedLoss, subspace: Subspace | None, weights: list[tf.Tensor]) -> Any:
        if subspace is None:
            return [-1 + tf.zeros([], tf.int32), objective(weights), objective(weights)]
        (reduction,) = subspace.reductions
        assert reduction is not None
        coordinates = [reduction.reduce(weights[0])]
        return [subspace.size, objective(weights), subspace.objective(coordinates)]

    size, whole, reduced = examine(
        lambda *x: energy(loss(variable, *x)), [variable], inputs, look, spec
    )
    return None if size < 0 else int(size), whole, reduced


UNKNOWN_SHAPE = [tf.TensorSpec([None, None])]
UNKNOWN_RANK = [tf.TensorSpec(None)]

FOUND_IN_CLOSURES: dict[str, tuple[Any, ...]] = {
    "product": (lambda w, x: x @ w, W, [X], 9),
    "cast-down": (lambda w, x: tf.cast(x, tf.bfloat16) @ tf.cast(w, tf.bfloat16), W, [X], 9),
    "reshaped-to-a-matrix": (lambda w, x: x @ tf.reshape(w, [9, 3]), W[:, None], [X], 9),
    "vector": (lambda w, x: tf.tensordot(x, w, 1), W[:, 0], [X], 3),
    "broadcast": (lambda w, x: x @ w, W, [normal(2, 9)], 18),
    "constant": (lambda w: tf.constant(X) @ w, W, [], 9),
    "gather": (lambda w, i: tf.gather(w, i), TABLE, [INDICES], 10),
    "gather-one": (lambda w, i: tf.gather(w, i), TABLE, [np.array(3)], 2),
    "embedding-lookup": (lambda w, i: tf.nn.embedding_lookup(w, i), TABLE, [INDICES], 10),
    "constant-indices": (lambda w: tf.gather(w, INDICES), TABLE, [], 10),
}


@pytest.mark.parametrize("name", FOUND_IN_CLOSURES)
def test_uses_in_closures_are_found(name: str) -> None:
    loss, weight, inputs, expected = FOUND_IN_CLOSURES[name]
    size, whole, reduced = sizes(loss, weight, inputs)
    assert size == expected
    assert relative_error(reduced, whole) < (2**-6 if name == "cast-down" else 1e-5)


@pytest.mark.parametrize("spec", [UNKNOWN_SHAPE, UNKNOWN_RANK], ids=["shape", "rank"])
def test_left_operand_of_unknown_shape(spec: list[tf.TensorSpec]) -> None:
    size, whole, reduced = sizes(lambda w, x: x @ w, W, [X], spec)
    assert size == 9
    assert relative_error(reduced, whole) < 1e-5


def test_indices_of_unknown_rank() -> None:
    spec = [tf.TensorSpec(None, tf.int32)]
    assert sizes(lambda w, i: tf.gather(w, i), TABLE, [INDICES], spec)[0] == 10


def test_more_rows_than_dimensions_span_them_all() -> None:
    x = np.random.default_rng(0).standard_normal((12, 9)).astype("float32")
    size, whole, reduced = sizes(lambda w, x: x @ w, W, [x], [tf.TensorSpec([None, 9])])
    assert size == W.size
    assert relative_error(reduced, whole) < 1e-5


NOT_FOUND: dict[str, tuple[Any, ...]] = {
    "as-many-rows": (lambda w, x: x @ w, W[:ROWS], [X[:, :ROWS]]),
    "as-many-indices": (lambda w, i: tf.gather(w, i), TABLE[:12], [INDICES % 12]),
    "transposed": (lambda w, x: x @ tf.transpose(w), W, [SQUARE[:2]]),
    "transposing-product": (lambda w, x: tf.matmul(x, w, transpose_b=True), W, [SQUARE[:2]]),
    "transposed-inputs": (lambda w, x: tf.matmul(x, w, transpose_a=True), W, [X.T]),
    "left-operand": (lambda w, x: w @ x, W, [SQUARE]),
    "one-per-row": (lambda w, x: tf.matmul(x[:, None], w), normal(9, 2), [X]),
    "rows-mixed": (lambda w, x: x @ tf.reshape(w, [3, 9]), W, [SQUARE[:2]]),
    "twice": (lambda w, x: (x @ w) + (2.0 * x @ w), W, [X]),
    "twice-one-read": (lambda w, x: (lambda v: (x @ v) * tf.norm(v))(tf.identity(w)), W, [X]),
    "squared": (lambda w, x: x @ w**2, W, [X]),
    "bare": (lambda w, x: w, W, [X]),
    "one-entry": (lambda w, x: w[0, 0], W, [X]),
    "columns": (lambda w, i: tf.gather(w, i, axis=1), TABLE, [INDICES % 2]),
    "batched-gather": (lambda w, i: tf.gather(w, i, axis=1, batch_dims=1), W, [COLUMNS]),
    # Rounding does not commute with a rotation.
    "rounded": (lambda w, x: x @ tf.cast(tf.cast(9 * w, tf.int32), tf.float32), W, [X]),
    "rounded-at-once": (lambda w, x: x @ tf.cast(tf.cast(w, tf.int32), tf.float32), 9 * W, [X]),
    "integer-product": (
        lambda w, x: tf.cast(9 * x, tf.int32) @ tf.cast(w, tf.int32),
        9 * W,
        [X],
    ),
}


@pytest.mark.parametrize("name", NOT_FOUND)
def test_other_uses_are_not_found(name: str) -> None:
    assert sizes(*NOT_FOUND[name])[0] is None


def test_inputs_that_depend_on_weights_are_no_inputs() -> None:
    w, scale = tf.Variable(W), tf.Variable(1.0)

    def is_none(objective: ReplayedLoss, subspace: Subspace | None, _: Any) -> Any:
        return tf.constant(subspace is None)

    assert examine(lambda x: energy((scale * x) @ w), [w, scale], [X], is_none)
    assert not examine(lambda x: energy(scale * (x @ w)), [w, scale], [X], is_none)


# What the loss masks in one row of three.
UNUSUAL: dict[str, Array] = {
    "nan": np.full(9, np.nan, "float32"),
    "one-nan": np.eye(9, dtype="float32")[0] * np.nan,
    "infinite": np.full(9, np.inf, "float32"),
    "huge": 1e20 * X[1],
    "largest": np.full(9, 3e37, "float32"),
    "tiny": 1e-25 * X[1],
    "zero": np.zeros(9, "float32"),
}


def with_row(row: Array) -> Array:
    return np.stack([X[0], row, X[2]])


@pytest.mark.feature("numbers", "inputs that are NaN or beyond 1e15 in rows that the loss masks")
@pytest.mark.parametrize(
    ("name", "jit_compile"), [*((name, False) for name in UNUSUAL), ("nan", True), ("huge", True)]
)
def test_a_row_that_is_not_ordinary_leaves_the_others_alone(name: str, jit_compile: bool) -> None:
    rows = with_row(UNUSUAL[name])
    factorised = tf.function(_factorised, jit_compile=jit_compile, autograph=False)
    basis, coordinates = (t.numpy() for t in factorised(rows, 9))
    np.testing.assert_allclose(basis.T @ basis, np.eye(ROWS), atol=1e-6)
    with np.errstate(invalid="ignore"):
        seen, expected = coordinates @ (basis.T @ W), rows @ W
    assert_close(seen[[0, 2]], expected[[0, 2]], 1e-5)
    if np.isfinite(rows).all():
        np.testing.assert_allclose(seen[1], expected[1], rtol=1e-4)
    else:
        assert not np.isfinite(seen[1]).any()
        assert not np.isfinite(expected[1]).any()


@pytest.mark.feature(
    "numbers",
    "inputs that are NaN or beyond 1e15 in rows that the loss masks",
    "the other rows are sampled as without",
)
@pytest.mark.parametrize("name", ["nan", "huge"])
def test_a_masked_row_s_loss_is_the_loss(name: str) -> None:
    def masked(w: tf.Variable, x: tf.Tensor) -> tf.Tensor:
        per_row = tf.tanh(x @ w)
        return tf.where(tf.constant([[True], [False], [True]]), per_row, tf.zeros_like(per_row))

    size, whole, reduced = sizes(masked, W, [with_row(UNUSUAL[name])])
    assert size == 9
    assert relative_error(reduced, whole) < 1e-5
    # Factorised as it is, one such row spoils all.
    assert np.isnan(tf.linalg.qr(with_row(UNUSUAL[name]).T)[0]).any()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ordinary_rows_are_factorised_bit_for_bit_as_they_are(dtype: str) -> None:
    rows = (X * [[1e-9], [1.0], [1e9]]).astype(dtype)
    basis, coordinates = _factorised(tf.constant(rows), 9)
    expected = tf.linalg.qr(rows.T)
    np.testing.assert_array_equal(basis, expected[0])
    np.testing.assert_array_equal(coordinates, tf.transpose(expected[1]))
