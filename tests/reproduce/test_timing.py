from statistics import StatisticsError

import pytest

from reproduce.timing import Turn


def test_the_first_update_stands_apart_and_one_slow_one_does_not_count() -> None:
    turn = Turn([2.0, 0.3, 0.1, 9.0, 0.2, 0.4])
    assert turn.first == 2.0
    # The mean of the others is 2.0, the median with the first 0.35.
    assert turn.median == 0.3


def test_a_turn_of_one_update_has_no_median() -> None:
    with pytest.raises(StatisticsError):
        Turn([2.0]).median  # noqa: B018
