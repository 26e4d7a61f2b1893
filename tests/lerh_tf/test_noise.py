"""The noise: a pure function of its position, standard normal, without correlations."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from scipy import special, stats

from lerh_tf.noise import PhiloxNoise, _quantile_32, _quantile_64, block_size
from tests.lerh_tf._kernels import Array

SHAPES = ((3,), (2, 2), ())
# Five standard errors of the mean of n standard normal numbers: no draw here is that unlikely.
BOUND = 5.0


def draw(
    seed: int = 0,
    update: int = 0,
    block: int = 0,
    samples: int = 4,
    shapes: Sequence[tuple[int, ...]] = SHAPES,
    dtype: tf.DType = tf.float32,
    jit_compile: bool = False,
) -> list[Array]:
    run = drawing(seed, samples, tuple(shapes), dtype, jit_compile)
    return [z.numpy() for z in run(tf.constant(update, tf.int64), tf.constant(block, tf.int64))]


@cache
def drawing(
    seed: int, samples: int, shapes: Sequence[tuple[int, ...]], dtype: tf.DType, jit_compile: bool
) -> Callable[[tf.Tensor, tf.Tensor], list[tf.Tensor]]:
    def run(update: tf.Tensor, block: tf.Tensor) -> list[tf.Tensor]:
        return PhiloxNoise(seed, update, [tf.zeros(s, dtype) for s in shapes])(block, samples)

    return tf.function(run, autograph=False, jit_compile=jit_compile)


def one(samples: int = 50_000, **position: Any) -> Array:
    """The noise of a single scalar variable."""
    return draw(samples=samples, shapes=[()], **position)[0]


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_shapes_and_dtypes(dtype: tf.DType) -> None:
    drawn = draw(samples=5, dtype=dtype)
    assert [z.shape for z in drawn] == [(5, *shape) for shape in SHAPES]
    assert all(z.dtype == dtype.as_numpy_dtype for z in drawn)


@pytest.mark.parametrize("seed", [-1, 2**32, 0.5, True])
def test_a_seed_that_is_no_key_is_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match=rf"^`seed` must be .*\. Received: seed={seed}$"):
        PhiloxNoise(seed, tf.constant(0, tf.int64), [tf.zeros([])])


@pytest.mark.parametrize("shape", [None, [None, None]])
@pytest.mark.parametrize("first", [0, 70])
def test_shapes_may_be_known_only_in_the_graph(shape: Any, first: int) -> None:
    @tf.function(input_signature=[tf.TensorSpec(shape)], autograph=False)
    def run(like: tf.Tensor) -> list[tf.Tensor]:
        zero = tf.constant(0, tf.int64)
        return PhiloxNoise(0, zero, [like])(zero, tf.constant(100), first)

    # More numbers than a row of counters has.
    whole = draw(samples=first + 100, shapes=[(2, 3)])[0]
    np.testing.assert_array_equal(run(tf.zeros((2, 3)))[0].numpy(), whole[first:])


@pytest.mark.parametrize("dtype", [tf.bfloat16, tf.float16])
def test_narrow_weights_get_float32_noise(dtype: tf.DType) -> None:
    for a, b in zip(draw(dtype=dtype), draw(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_same_position_draws_the_same(jit_compile: bool) -> None:
    position: dict[str, Any] = {"seed": 3, "update": 5, "block": 7, "jit_compile": jit_compile}
    for a, b in zip(draw(**position), draw(**position), strict=True):
        np.testing.assert_array_equal(a, b)


def test_it_ignores_the_global_seed() -> None:
    tf.random.set_seed(1)
    before = one(samples=10)
    tf.random.set_seed(2)
    np.testing.assert_array_equal(one(samples=10), before)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("samples", [1, 2, 5, 63])
def test_fewer_samples_are_the_first_ones(samples: int, dtype: tf.DType, jit_compile: bool) -> None:
    position: dict[str, Any] = {"block": 2, "dtype": dtype, "jit_compile": jit_compile}
    pairs = zip(draw(samples=samples, **position), draw(samples=64, **position), strict=True)
    for few, many in pairs:
        np.testing.assert_array_equal(few, many[:samples])


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("first", [0, 1, 2, 5])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_part_of_a_block_is_that_part_of_it(
    dtype: tf.DType, first: int, jit_compile: bool
) -> None:
    # Of 3 and of 4 numbers a sample: counters of 4, or of 2, numbers lie across samples too.
    whole = draw(samples=7, block=3, dtype=dtype)
    noise = PhiloxNoise(0, tf.constant(0, tf.int64), [tf.zeros(s, dtype) for s in SHAPES])

    @tf.function(autograph=False, jit_compile=jit_compile)
    def run(first: tf.Tensor) -> list[tf.Tensor]:
        return noise(tf.constant(3, tf.int64), 2, first)

    for z, all_of_it in zip(run(tf.constant(first)), whole, strict=True):
        np.testing.assert_array_equal(z, all_of_it[first : first + 2])


def test_noise_of_several_dtypes_is_that_of_each() -> None:
    zero = tf.constant(0, tf.int64)
    mixed = PhiloxNoise(0, zero, [tf.zeros((2, 2), d) for d in (tf.float64, tf.float32)])(zero, 3)
    wide, narrow = (draw(samples=3, shapes=[(2, 2)] * 2, dtype=d) for d in (tf.float64, tf.float32))
    np.testing.assert_array_equal(mixed[0], wide[0])
    np.testing.assert_array_equal(mixed[1], narrow[1])


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("first", [0, 1, 126, 254])
def test_bits_are_those_of_the_position(dtype: tf.DType, size: int, first: int) -> None:
    # By TensorFlow's own generator. Rows of 256, or 128, numbers are not in the way.
    seed, update, block, samples = 7, 2**33 + 5, 11, 131
    noise = PhiloxNoise(seed, tf.constant(update, tf.int64), [tf.zeros([size], dtype)] * 2)
    found = noise(tf.constant(block, tf.int64), samples, first)
    for stream, z in enumerate(found):
        bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[first + samples, size],
            key=tf.constant([seed << 32 | stream], tf.uint64),
            counter=tf.constant([block << 32, update], tf.uint64),
            alg=1,
            dtype=tf.int64 if dtype == tf.float64 else tf.int32,
        )
        np.testing.assert_array_equal(z, quantiles(bits.numpy())[first:])


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_step_compiled_as_a_whole_draws_the_same(dtype: tf.DType) -> None:
    position: dict[str, Any] = {"seed": 3, "update": 5, "block": 7, "dtype": dtype}
    for a, b in zip(draw(**position), draw(jit_compile=True, **position), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


POSITIONS: list[dict[str, int]] = [
    {},
    {"seed": 1},
    {"seed": 2**32 - 1},
    {"update": 1},
    {"update": 2**40},
    {"block": 1},
    {"block": 2},
    {"block": 2**20},
    {"block": 2**31},
    {"update": 1, "block": 1},
    {"seed": 1, "block": 1},
]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_no_number_is_drawn_at_two_positions(jit_compile: bool) -> None:
    shapes = [(50,), (50,)]
    drawn = [
        np.ravel(z)
        for position in POSITIONS
        for z in draw(**position, samples=40, shapes=shapes, jit_compile=jit_compile)
    ]
    for a, b in combinations(drawn, 2):
        # 2000 float32 numbers each: a chance meeting of three is out of the question.
        assert len(np.intersect1d(a, b)) < 3


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_long_block_does_not_run_into_the_next(jit_compile: bool) -> None:
    shapes = [(2**18,)]
    (first,), (second,) = (
        draw(block=block, samples=4, shapes=shapes, jit_compile=jit_compile) for block in (0, 1)
    )
    whole = np.concatenate([first.ravel(), second.ravel()])
    # Of n draws from the 2**32 or fewer values of the generator few repeat; overlap repeats many.
    assert len(np.unique(whole)) > 0.95 * len(whole)
    assert not np.isin(second[0, :8], first).all()


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_moments_are_standard_normal(dtype: tf.DType, jit_compile: bool) -> None:
    z = one(samples=200_000, dtype=dtype, jit_compile=jit_compile).astype("float64")
    # Mean and variance of z^p under N(0, 1).
    for power, mean, variance in [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)]:
        assert abs(np.mean(z**power) - mean) < BOUND * np.sqrt(variance / len(z))
    assert abs(np.mean(np.abs(z) > 3.0) - 0.0026998) < BOUND * np.sqrt(0.0027 / len(z))


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_the_distribution_is_normal(dtype: tf.DType, jit_compile: bool) -> None:
    z = one(samples=200_000, dtype=dtype, jit_compile=jit_compile).astype("float64")
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert stats.kstest(1.02 * z, "norm").pvalue < 1e-4


def quantiles(bits: Array) -> Array:
    quantile = _quantile_64 if bits.dtype == np.int64 else _quantile_32
    found: Array = tf.function(quantile, jit_compile=True)(tf.constant(bits)).numpy()
    return found


def test_32_bits_give_the_normal_quantile() -> None:
    rare = np.geomspace(1, 2**31 - 1, 100_000).astype("int32")
    t = (rare + 0.5) / 2**31
    expected = -special.ndtri(t / 2)
    found = quantiles(rare).astype("float64")
    body = expected < 5.0
    np.testing.assert_allclose(found[body], expected[body], rtol=5e-7, atol=1e-7)
    np.testing.assert_allclose(found[~body], expected[~body], rtol=4e-4)


def test_64_bits_give_the_normal_quantile() -> None:
    rare = np.geomspace(2**11, 2**62, 10_000).astype("int64") >> 11
    expected = -special.ndtri((rare + 0.5) / 2**53)
    np.testing.assert_allclose(quantiles(rare << 11), expected, rtol=2e-10, atol=1e-15)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_every_pattern_of_bits_is_a_finite_number_and_signs_mirror_it(dtype: str) -> None:
    limits = np.iinfo(dtype)
    bits = np.array([0, 1, 2, limits.max // 2, limits.max - 1, limits.max], dtype)
    positive, negative = quantiles(bits), quantiles(bits | limits.min)
    assert np.isfinite(positive).all()
    assert (np.diff(positive) <= 0).all()
    assert positive[0] > 6.0
    assert positive[-1] < 1e-6
    np.testing.assert_array_equal(negative, -positive)


def test_a_wrong_scale_would_show() -> None:
    z = 1.02 * one(samples=200_000).astype("float64")
    assert abs(np.mean(z**2) - 1) > BOUND * np.sqrt(2 / len(z))


def correlation(a: Array, b: Array) -> float:
    """Correlation in standard errors of independent numbers."""
    return float(abs(np.mean(np.float64(a) * b)) * np.sqrt(len(a)))


OTHERS: dict[str, Callable[[], Array]] = {
    "seed": lambda: one(seed=1),
    "update": lambda: one(update=1),
    "block": lambda: one(block=1),
    "variable": lambda: draw(samples=50_000, shapes=[(), ()])[1],
    "lag": lambda: np.roll(one(), 1),
    "lag-4": lambda: np.roll(one(), 4),
}


@pytest.mark.parametrize("other", OTHERS)
def test_no_correlation(other: str) -> None:
    mine, others = one(), OTHERS[other]()
    assert correlation(mine, others) < BOUND
    # Squares are uncorrelated too: (z^2 - 1) / sqrt(2) has mean 0 and variance 1.
    assert correlation((mine**2 - 1) / np.sqrt(2), (others**2 - 1) / np.sqrt(2)) < BOUND
    assert correlation(mine, 0.05 * mine + others) > BOUND


@pytest.mark.parametrize(
    ("shapes", "size"),
    [
        ([(3,), (2, 2)], 1024),
        ([(1024,)], 1024),
        ([(1025,)], 1023),
        ([(784, 200), (200,), (200, 10), (10,)], 6),
        ([(2**20,)], 1),
        ([(2**22,)], 1),
        ([()], 1024),
    ],
)
def test_block_size(shapes: list[tuple[int, ...]], size: int) -> None:
    assert int(block_size([tf.zeros(shape) for shape in shapes])) == size


@pytest.mark.parametrize(
    ("shape", "footprint", "size"),
    [((2**20,), 1, 2), ((2**10,), 2**24, 2), ((2**10,), 2**21, 8), ((2**12,), 2**10, 256)],
)
def test_samples_that_are_evaluated_at_once_are_two_at_least(
    shape: tuple[int, ...], footprint: int, size: int
) -> None:
    assert block_size([tf.zeros(shape)], footprint) == size
    assert int(block_size([tf.zeros(shape)], tf.constant(footprint))) == size


def test_block_size_of_shapes_known_only_in_the_graph_is_the_same() -> None:
    @tf.function(input_signature=[tf.TensorSpec([None, None])], autograph=False)
    def size(x: tf.Tensor) -> Any:
        return block_size([x, tf.zeros(3)])

    assert size(tf.zeros((784, 200))).numpy() == block_size([tf.zeros((784, 200)), tf.zeros(3)])
    assert size(tf.zeros((1, 2))).numpy() == 1024
