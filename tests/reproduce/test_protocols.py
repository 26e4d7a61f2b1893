import dataclasses
from typing import Any

import pytest

from reproduce.protocols import (
    QUICK_TABLE1,
    TABLE1,
    Comparison,
    GradientDescent,
    LocalEntropyByImportanceSampling,
    Training,
)


def test_table1_is_the_papers() -> None:
    training, importance = TABLE1.training, TABLE1.methods["is"]
    assert (training.batch_size, training.updates, training.test_images) == (20, 500, 1000)
    assert TABLE1.methods["sgd"] == GradientDescent(learning_rate=0.01)
    assert importance == LocalEntropyByImportanceSampling(tau=0.01, samples=1000)
    assert {0, 100, 200, 300, 400, 500} <= set(training.evaluations)


def test_evaluations_keep_columns_off_the_grid() -> None:
    training = Training(updates=250, evaluate_every=70)
    assert training.columns == (100, 200, 250)
    assert training.evaluations == (0, 70, 100, 140, 200, 210, 250)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"updates": 0}, "`updates` must be a positive integer. Received: updates=0"),
        ({"batch_size": 2.0}, "`batch_size` must be a positive integer. Received: batch_size=2.0"),
        ({"test_images": True}, "`test_images` must be a positive integer"),
        ({"network": "conv"}, "`network` must be one of small_dense, hidden_dense"),
        ({"initialization": "he"}, "`initialization` must be one of glorot_uniform, normal"),
        ({"test_draw": "never"}, "`test_draw` must be one of per_seed, per_evaluation"),
        ({"tabulated": ()}, "`tabulated` must be one or more distinct values"),
    ],
)
def test_training_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**values)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), "1", True])
@pytest.mark.parametrize("name", ["tau", "loss_multiplier"])
def test_importance_sampling_refuses(name: str, bad: Any) -> None:
    with pytest.raises(
        ValueError, match=f"`{name}` must be positive and finite. Received: {name}="
    ):
        LocalEntropyByImportanceSampling(**{name: bad})


def test_with_budget_leaves_methods_without_samples_alone() -> None:
    small = TABLE1.with_budget(updates=10, samples=5)
    assert small.training.updates == 10
    assert small.methods == {
        "sgd": GradientDescent(),
        "is": LocalEntropyByImportanceSampling(samples=5),
    }
    assert TABLE1.with_budget() == TABLE1


def test_with_methods_keeps_the_order_asked_for() -> None:
    assert list(TABLE1.with_methods(("is", "sgd")).methods) == ["is", "sgd"]
    with pytest.raises(ValueError, match=r"`methods` must be one of .* Received: methods='adam'"):
        TABLE1.with_methods(("adam",))
    with pytest.raises(ValueError, match="`methods` must be one or more distinct values"):
        TABLE1.with_methods(("is", "is"))


def test_differences_name_every_departure_once() -> None:
    assert TABLE1.differences(TABLE1) == []
    assert QUICK_TABLE1.differences(TABLE1)[0] == "updates=100"
    other = Comparison(
        Training(initialization="normal"), {"is": LocalEntropyByImportanceSampling(samples=7)}
    )
    assert other.differences(TABLE1) == ["initialization=normal", "samples=7 (is)"]


def test_configuration_holds_every_field() -> None:
    configuration = TABLE1.cases()["is"].configuration()
    method = {field.name for field in dataclasses.fields(LocalEntropyByImportanceSampling)}
    assert set(configuration["training"]) == {field.name for field in dataclasses.fields(Training)}
    assert set(configuration["method"]) == {"name", *method}
