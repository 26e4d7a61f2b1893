"""Checks of the optimizers' arguments."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from lerh_tf.kernels.base import Kernel
from lerh_tf.loss.objective import Objective, Variable

_VARIABLE = (keras.Variable, tf.Variable)


@dataclasses.dataclass(frozen=True)
class KernelArgument:
    """The argument by which an optimizer is given its kernel.

    Attributes:
        name: the argument's.
        named: what makes the kernels that have a name.
        example: a kernel as the user writes it.
        others: kernels that estimate what another optimizer moves to.
        owner: that optimizer's name.
    """

    name: str
    named: Mapping[str, Callable[[], Kernel]]
    example: str
    others: tuple[type[Kernel], ...]
    owner: str

    @property
    def advice(self) -> str:
        """Where a kernel's arguments go."""
        return (
            f"A {self.name}'s arguments, such as `samples`, are its own constructor's: "
            f"`{self.name}={self.example}`."
        )

    def chosen(self, choice: Any) -> Kernel:
        """Returns a kernel given as such or by name.

        Raises:
            ValueError: `choice` is no kernel and none of the names, or is one of `others`.
        """
        if isinstance(choice, str) and choice in self.named:
            return self.named[choice]()
        if isinstance(choice, Kernel) and not isinstance(choice, self.others):
            return choice
        names = ", ".join(f'"{name}"' for name in self.named)
        raise ValueError(
            f"`{self.name}` must be {names} or an instance of a `lerh_tf.Kernel` such as "
            f"`{self.example}`.{self._hint(choice)} Received: {self.name}={choice!r}"
        )

    def _hint(self, choice: Any) -> str:
        """Returns what can be told from a wrong choice alone."""
        for kernel in self.others:
            by_name = isinstance(choice, str) and _letters(choice) == _letters(kernel.__name__)
            if by_name or choice is kernel or isinstance(choice, kernel):
                return f" `{kernel.__name__}` belongs to `{self.owner}`."
        if isinstance(choice, type) and issubclass(choice, Kernel):
            return f" Make an instance: `{choice.__name__}()`."
        return ""


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def checked_subspace(subspace: Any) -> Any:
    """Returns "auto", which True is too, or False; raises `ValueError` for anything else."""
    if subspace is True or (isinstance(subspace, str) and subspace == "auto"):
        return "auto"
    if subspace is not False:
        rule = '`subspace` must be "auto", which True is too, or False'
        raise ValueError(f"{rule}. Received: subspace={subspace!r}")
    return False


def as_tensor(value: Any) -> Any:
    """Returns arrays and numbers as tensors, which are not traced anew for each value."""
    return value if value is None or tf.is_tensor(value) else tf.convert_to_tensor(value)


def check_closure(closure: Any) -> None:
    """Raises `TypeError` where `closure` can't be called."""
    if not callable(closure):
        raise TypeError(
            "`closure` must be a function that computes the minibatch loss from the variables as "
            f"they are. Received: closure={closure!r}"
        )


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Adds to the error of a closure that leaves TensorFlow how it may do so."""
    try:
        yield
    except (AttributeError, NotImplementedError) as error:
        if "numpy" in str(error).lower():
            error.add_note(
                "`closure` is traced into a TensorFlow graph, whose tensors have no values yet: "
                "call NumPy through `tf.numpy_function`, and set its result's shape by "
                "`set_shape([])` (docs/choosing.md)."
            )
        raise


def check_returned(loss: Any) -> None:
    """Raises `TypeError` where a closure returned no tensor and no `Objective`."""
    if not tf.is_tensor(loss) and not isinstance(loss, Objective):
        raise TypeError(
            "`closure` must return the scalar minibatch loss alone, a tensor, or an `Objective`. "
            f"Received: {loss!r}"
        )


def check_size(objective: Objective, variables: Sequence[Variable]) -> None:
    """Raises `ValueError` where an objective is a function of another number of weights."""
    if len(objective.is_used) != len(variables):
        raise ValueError(
            "`variables` must be those that the objective is a function of. Received: "
            f"{len(variables)} variables, where the objective has {len(objective.is_used)}"
        )


def checked_variables(variables: Any) -> list[Variable]:
    """Returns the weights to move as a list.

    Raises:
        TypeError: `variables` is no list of variables.
        ValueError: it is empty, or has a variable twice or one that is not trainable.
    """
    is_list = isinstance(variables, Iterable) and not isinstance(variables, _VARIABLE)
    found = list(variables) if is_list else []
    if not is_list or not all(isinstance(v, _VARIABLE) for v in found):
        raise TypeError(
            "`variables` must be a list of variables: pass `model.trainable_variables`. Received: "
            f"variables={_in_short(variables)}"
        )
    rules = (
        (bool(found), "must hold at least one variable"),
        (len(set(map(id, found))) == len(found), "must not hold a variable twice"),
        (all(v.trainable for v in found), "must be trainable: pass `model.trainable_variables`"),
    )
    for holds, rule in rules:
        if not holds:
            raise ValueError(f"`variables` {rule}. Received: variables={_names(found)}")
    return found


def check_dtypes(variables: Sequence[Variable]) -> None:
    """Raises `ValueError` where a weight can't be moved by a small step."""
    wrong = [v for v in variables if not tf.as_dtype(v.dtype).is_floating]
    if wrong:
        raise ValueError(
            "`variables` must be of a floating dtype: make others with `trainable=False`, or "
            f"leave them out. Received: variables={_names(wrong)}"
        )


def _in_short(value: Any) -> str:
    """Returns a text with shapes in the place of numbers, and no more than four items."""
    if isinstance(value, (list, tuple)):
        items = [*map(_in_short, value[:4]), *(["..."] if len(value) > 4 else [])]
        return f"[{', '.join(items)}]"
    is_array = hasattr(value, "shape") and hasattr(value, "dtype")
    return f"{type(value).__name__} of shape {value.shape}" if is_array else repr(value)


def _names(variables: Sequence[Variable]) -> list[str]:
    return [f"{v.name} ({tf.as_dtype(v.dtype).name})" for v in variables]
