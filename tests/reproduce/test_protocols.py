import dataclasses
import math
from typing import Any

import pytest

from reproduce import checks
from reproduce.protocols import (
    QUICK_TABLE1,
    TABLE1,
    Comparison,
    GradientDescent,
    HeatRegularizationByRobbinsMonro,
    LocalEntropyByImportanceSampling,
    LocalEntropyBySGLD,
    Method,
    Training,
)
from reproduce.protocols.settings import added, settings


def test_table1_is_the_papers() -> None:
    training = TABLE1.training
    assert (training.batch_size, training.updates, training.test_images) == (20, 500, 1000)
    assert TABLE1.methods == {
        "sgd": GradientDescent(learning_rate=0.01),
        "is": LocalEntropyByImportanceSampling(tau=0.01, samples=1000, loss_multiplier=1),
        "sgld": LocalEntropyBySGLD(0.01, 1000, 1000.0, "langevin", persistent=True, restart=True),
        "hr": HeatRegularizationByRobbinsMonro(0.01, 30, 30, c=0.1, alpha=0.7, growing=False),
        "sgld-linear": LocalEntropyBySGLD(0.01, 1000, 1000.0, "linear"),
    }
    assert list(TABLE1.methods) == ["sgd", "is", "sgld", "hr", "sgld-linear"]
    assert {0, 100, 200, 300, 400, 500} <= set(training.evaluations)


def test_evaluations_keep_columns_off_the_grid() -> None:
    training = Training(updates=250, evaluate_every=70)
    assert training.columns == (100, 200, 250)
    assert training.evaluations == (0, 70, 100, 140, 200, 210, 250)


def test_evaluations_after_sgd_count_from_its_start() -> None:
    training = Training(sgd_updates=125, updates=75, evaluate_every=60)
    assert training.total_updates == 200
    assert training.columns == (100, 200)
    assert training.evaluations == (0, 60, 100, 120, 125, 180, 200)


def test_readings_newer_than_the_records_are_in_their_keys_only_where_not_the_default() -> None:
    usual = settings(Training())
    newer = {"activation": "tanh", "sampling": "replacement", "pixels": "standardised"}
    assert not newer.keys() & usual.keys()
    other = Training(activation="tanh", sampling="replacement", pixels="standardised")
    assert settings(other) == usual | newer


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sgd_updates": -1}, "`sgd_updates` must be an integer of at least 0"),
        ({"sgd_learning_rate": 0.0}, "`sgd_learning_rate` must be positive and finite"),
        ({"updates": 0}, "`updates` must be a positive integer. Received: updates=0"),
        ({"batch_size": 2.0}, "`batch_size` must be a positive integer. Received: batch_size=2.0"),
        ({"test_images": True}, "`test_images` must be a positive integer"),
        ({"network": "conv"}, "`network` must be one of small_dense, hidden_dense"),
        ({"initialization": "he"}, "`initialization` must be one of glorot_uniform, normal"),
        ({"activation": "elu"}, "`activation` must be one of relu, tanh, sigmoid"),
        ({"sampling": "all"}, "`sampling` must be one of epochs, replacement"),
        ({"pixels": "raw"}, "`pixels` must be one of unit, standardised"),
        ({"test_draw": "never"}, "`test_draw` must be one of per_seed, per_evaluation"),
        ({"tabulated": ()}, "`tabulated` must be one or more distinct values"),
    ],
)
def test_training_refuses(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**values)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), "1", True])
@pytest.mark.parametrize(
    ("method", "name"),
    [
        (GradientDescent, "learning_rate"),
        (LocalEntropyByImportanceSampling, "tau"),
        (LocalEntropyByImportanceSampling, "loss_multiplier"),
        (LocalEntropyBySGLD, "tau"),
        (LocalEntropyBySGLD, "offset"),
        (HeatRegularizationByRobbinsMonro, "tau"),
        (HeatRegularizationByRobbinsMonro, "c"),
    ],
)
def test_methods_refuse_numbers_that_are_not_positive(
    method: type[Method], name: str, bad: Any
) -> None:
    with pytest.raises(
        ValueError, match=f"`{name}` must be positive and finite. Received: {name}="
    ):
        method(**{name: bad})


@pytest.mark.parametrize(
    ("method", "values", "message"),
    [
        (LocalEntropyByImportanceSampling, {"samples": 0}, "`samples` must be a positive integer"),
        (
            LocalEntropyBySGLD,
            {"samples": 1},
            "`samples` must be an integer of at least 2. Received: samples=1",
        ),
        (LocalEntropyBySGLD, {"noise": "white"}, "`noise` must be one of langevin, linear"),
        (LocalEntropyBySGLD, {"tau1": -1.0}, "`tau1` must be finite and above -1"),
        (LocalEntropyBySGLD, {"tau1": math.nan}, "`tau1` must be finite and above -1"),
        (LocalEntropyBySGLD, {"persistent": 1}, "`persistent` must be True or False"),
        (LocalEntropyBySGLD, {"restart": "no"}, "`restart` must be True or False"),
        (HeatRegularizationByRobbinsMonro, {"steps": 0}, "`steps` must be a positive integer"),
        (HeatRegularizationByRobbinsMonro, {"samples": 0}, "`samples` must be a positive integer"),
        (HeatRegularizationByRobbinsMonro, {"growing": 1}, "`growing` must be True or False"),
        (HeatRegularizationByRobbinsMonro, {"alpha": 0.5}, r"`alpha` must be in \(1/2, 1\]"),
    ],
)
def test_methods_refuse(method: type[Method], values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        method(**values)


def test_with_budget_keeps_the_methods_gradients_equivalent() -> None:
    small = TABLE1.with_budget(updates=10, samples=40)
    assert small.training.updates == 10
    assert small.methods == {
        "sgd": GradientDescent(),
        "is": LocalEntropyByImportanceSampling(samples=40),
        "sgld": LocalEntropyBySGLD(samples=40),
        "hr": HeatRegularizationByRobbinsMonro(steps=6, samples=6),
        "sgld-linear": LocalEntropyBySGLD(samples=40, noise="linear"),
    }
    assert TABLE1.with_budget() == TABLE1
    assert TABLE1.with_budget(samples=1000) == TABLE1
    assert HeatRegularizationByRobbinsMonro().with_samples(1).steps == 1


def test_with_methods_keeps_the_order_asked_for() -> None:
    assert list(TABLE1.with_methods(("is", "sgd")).methods) == ["is", "sgd"]
    with pytest.raises(ValueError, match=r"`methods` must be one of .* Received: methods='adam'"):
        TABLE1.with_methods(("adam",))
    with pytest.raises(ValueError, match="`methods` must be one or more distinct values"):
        TABLE1.with_methods(("is", "is"))


def test_differences_name_every_departure_once() -> None:
    assert TABLE1.differences(TABLE1) == []
    assert list(map(str, QUICK_TABLE1.differences(TABLE1))) == [
        "updates=100",
        "samples=50 (is sgld sgld-linear)",
        "steps=7 (hr)",
        "samples=7 (hr)",
    ]
    other = Comparison(
        Training(initialization="normal"), {"sgld": LocalEntropyBySGLD(persistent=False)}
    )
    differences = list(map(str, other.differences(TABLE1)))
    assert differences == ["initialization=normal", "persistent=false (sgld)"]


@pytest.mark.parametrize("name", TABLE1.methods)
def test_configuration_holds_every_field(name: str) -> None:
    configuration = TABLE1.cases()[name].configuration()
    method = {field.name for field in dataclasses.fields(TABLE1.methods[name])}
    training = {field.name for field in dataclasses.fields(Training)}
    assert set(configuration["training"]) == training - {"activation", "sampling", "pixels"}
    assert set(configuration["method"]) == {"name", *method}


@dataclasses.dataclass(frozen=True)
class _Later(GradientDescent):
    """As if SGD had come to know momentum and Nesterov's, after records had been made."""

    momentum: float = added(0.0)
    nesterov: bool = added(False)

    def __post_init__(self) -> None:
        checks.numbers(self, but=("momentum",))


def test_added_field_stays_out_of_the_configuration_at_its_default() -> None:
    first = {"learning_rate": 0.01}
    assert settings(_Later()) == settings(GradientDescent()) == first
    assert settings(_Later(momentum=0.9)) == first | {"momentum": 0.9}
    assert settings(Training())["tabulated"] == [100, 200, 300, 400, 500]


@pytest.mark.parametrize("name", TABLE1.methods)
def test_row_of_a_method_is_table_1s(name: str) -> None:
    assert TABLE1.methods[name].row == name
    assert TABLE1.methods[name].with_samples(7).row == name
