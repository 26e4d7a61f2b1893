"""What Algorithms 3, 4 and 5 have in common: what they are given and what they return."""

import abc
import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import keras
import tensorflow as tf

from lerh_tf.loss.objective import Objective
from lerh_tf.noise import Noise, working_dtype
from lerh_tf.schedules import is_schedule

Settings = TypeVar("Settings")


class Complement(NamedTuple):
    """What a kernel does to dimensions that f does not depend on, given their start y^1.

    In each dimension, with independent standard normal n_1 and n_2,

    mean = mean_start y^1 + mean_noise n_1,
    last = last_start y^1 + last_noise[0] n_1 + last_noise[1] n_2.

    Attributes:
        mean_start: scalar tensor.
        mean_noise: scalar tensor, the standard deviation of the mean.
        last_start: scalar tensor; meaningless for kernels without a chain, as the next.
        last_noise: pair of scalar tensors.
    """

    mean_start: tf.Tensor
    mean_noise: tf.Tensor
    last_start: tf.Tensor
    last_noise: tuple[tf.Tensor, tf.Tensor]


class Samples(NamedTuple):
    """A weighted sample, all of it in memory at once.

    Attributes:
        positions: per variable, shape [samples, *shape], in the variable's dtype.
        weights: shape [samples], summing to 1; NaN where no sample has a finite loss.
    """

    positions: list[tf.Tensor]
    weights: tf.Tensor


class Estimate(NamedTuple):
    """What a kernel found.

    Attributes:
        displacement: m - x, one tensor per variable, in at least float32. Displacements, not
            positions: a float32 mean of positions loses the digits that the update lives on.
        chain: the last state of the Markov chain as a position, one tensor per variable in at
            least float32; empty for kernels without a chain.
        diagnostics: scalar float tensors by name.
        is_valid: scalar bool tensor; where it is False nothing finite was found and the
            displacement is zero.
        complement: what the kernel does to dimensions that f does not depend on; None where they
            keep their value.
    """

    displacement: list[tf.Tensor]
    chain: list[tf.Tensor]
    diagnostics: dict[str, tf.Tensor]
    is_valid: tf.Tensor
    complement: Complement | None = None

    def dropped_unless(self, condition: tf.Tensor, start: Sequence[tf.Tensor]) -> Self:
        """Returns the estimate with nothing moved where `condition` is False.

        Args:
            condition: scalar bool tensor.
            start: where the chain started, one position per variable.
        """
        return self._replace(
            displacement=[tf.where(condition, d, tf.zeros_like(d)) for d in self.displacement],
            chain=[
                tf.where(condition, state, tf.cast(old, state.dtype))
                for state, old in zip(self.chain, start, strict=False)
            ],
        )


@typing.dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def settings(cls: type[Settings]) -> type[Settings]:
    """Makes a class a frozen dataclass that says what to do instead of setting a field."""
    made = dataclasses.dataclass(frozen=True)(cls)
    made.__setattr__ = _refuse  # type: ignore[method-assign]
    return made


def _refuse(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(
        f"`{name}` of `{type(self).__name__}` can't be set: compiled train steps hold it. Make "
        f"another one, and another optimizer with it. Received: {name}={value!r}"
    )


@settings
class Kernel(abc.ABC):
    """An estimator of the Gaussian nearest to q_{x,tau}, as a pure function of its arguments.

    A kernel holds settings and no state: subclasses are frozen dataclasses
    (`@dataclasses.dataclass(frozen=True)`), saved by their fields.

    Attributes:
        diagnostic_names: the keys of `Estimate.diagnostics`, in the order they are stored in.
        splits: what of its work the replicas of a strategy can split, of "samples" and "batch"; a
            kernel that can takes `replicas` too (`lerh_tf/replicas.py`).
        reducible: whether `Estimate.complement` says what the kernel does to dimensions that f
            does not depend on, so that it may run on the others alone.
    """

    diagnostic_names: ClassVar[tuple[str, ...]] = ()
    splits: ClassVar[tuple[str, ...]] = ()
    reducible: ClassVar[bool] = False

    @property
    def draws_locally(self) -> bool:
        """Whether f is evaluated by `losses_around` or `gradients_around` alone.

        They may leave out directions of a weight that f does not depend on at a sample
        (`lerh_tf/exact/hidden.py`), which then have no part in the mean.
        """
        return False

    @property
    def differentiates(self) -> bool:
        """Whether gradients of f are taken."""
        return True

    @property
    def failure(self) -> str:
        """What to say where `Estimate.is_valid` is False."""
        return (
            f"{type(self).__name__}: the estimate is not valid. The weights were left as they were."
        )

    @property
    def has_chain(self) -> bool:
        """Whether a Markov chain goes on from one weight update to the next."""
        return False

    def as_one_of(self, replicas: int) -> "Kernel | None":
        """Returns the kernel to run on each of several replicas, and average, to split samples.

        None where the replicas make one estimate together.
        """
        return None

    @abc.abstractmethod
    def __call__(
        self,
        objective: Objective,
        anchor: Sequence[tf.Tensor],
        tau: tf.Tensor,
        noise: Noise,
        chain: Sequence[tf.Tensor] = (),
        update: tf.Tensor | int = 0,
    ) -> Estimate:
        """Estimates the mean m of the nearest Gaussian.

        Args:
            objective: f on the current minibatch.
            anchor: the current weights x, one tensor per variable.
            tau: variance of the Gaussian (paper's tau), scalar tensor.
            noise: source of standard normal noise.
            chain: where the Markov chain starts, one position per variable; empty for x. Ignored
                by kernels without one.
            update: the raw count of weight updates so far, for schedules that run on.

        Returns:
            The estimate of m, as a displacement from x.
        """

    def check_tau(self, tau: float) -> None:  # noqa: B027 - most kernels take any tau
        """Raises a ValueError where the kernel can't work with this variance of the Gaussian."""

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            field.name: _serialized(getattr(self, field.name)) for field in dataclasses.fields(self)
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Returns the kernel that `get_config` described."""
        return cls(**deserialized(config))


def widest_dtype(dtypes: Sequence[tf.DType]) -> tf.DType:
    """Returns the dtype for scalars that concern all weights: at least float32."""
    return tf.float64 if tf.float64 in map(working_dtype, dtypes) else tf.float32


def size_of(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the number of entries of all tensors."""
    return tf.add_n([tf.size(tensor) for tensor in tensors])


def dot(left: Sequence[tf.Tensor], right: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns the inner product over all entries of all tensors, in at least float32."""
    dtype = widest_dtype([t.dtype for t in left])
    products = [tf.reduce_sum(a * b) for a, b in zip(left, right, strict=True)]
    return tf.add_n([tf.cast(product, dtype) for product in products])


def all_finite(tensors: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns whether every entry of every tensor is finite, as a scalar bool tensor."""
    return tf.reduce_all(tf.stack([tf.reduce_all(tf.math.is_finite(t)) for t in tensors]))


def deserialized(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the configuration with the serialized Keras objects in it restored."""
    return {
        name: keras.saving.deserialize_keras_object(value, custom_objects=custom_objects)
        if isinstance(value, dict)
        else value
        for name, value in config.items()
    }


def _serialized(value: Any) -> Any:
    return keras.saving.serialize_keras_object(value) if is_schedule(value) else value
