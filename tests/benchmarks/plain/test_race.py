import pytest

from benchmarks.plain import race as racing
from benchmarks.plain.race import Race
from reproduce.protocols import TABLE1
from tests.reproduce._examples import ENVIRONMENT, stripes


def test_races_time_both_in_turns() -> None:
    said: list[str] = []
    (race,) = racing.races(("hr",), 2, 3, stripes(), said.append)
    assert race.kernel == "Robbins-Monro, J = 1, M = 1"
    assert len(race.ours) == len(race.bare) == 3
    assert min(race.ours + race.bare) > 0
    assert said == ["Robbins-Monro, J = 1, M = 1: 3 turns each"]


@pytest.mark.parametrize("name", ["sgld", "is", "hr"])
def test_bare_update_of_each_kernel_can_be_made_again(name: str) -> None:
    method = TABLE1.with_budget(samples=3).methods[name]
    update = racing._bare(method, racing._minibatch(stripes()))
    assert [update(), update()] == [1, 2]


def test_frame_has_medians_and_ratios_of_the_turns() -> None:
    table = racing.frame([Race("SGLD, J = 3", ours=(2.0, 3.0, 9.0), bare=(1.0, 2.0, 9.0))])
    assert table.to_dict("records") == [
        {
            "kernel": "SGLD, J = 3",
            "ours": 3.0,
            "bare": 2.0,
            "ratio": 1.5,
            "smallest": 1.0,
            "largest": 2.0,
        }
    ]


def test_markdown_names_machine_and_versions() -> None:
    table = racing.frame([Race("SGLD, J = 3", ours=(1.0,), bare=(2.0,))])
    text = racing.markdown(table, 1, 2, ENVIRONMENT | {"numpy": "2.4.0", "python": "3.11.9"})
    assert "| SGLD, J = 3 |" in text
    assert "0.500" in text
    for words in ("2 threads on a processor", "TensorFlow 2.21.0", "at most 1.3"):
        assert words in text
