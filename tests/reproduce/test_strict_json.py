import json
import math

import pytest

from reproduce import strict_json


def test_dumps_is_strict_and_spells_out_what_is_not_finite() -> None:
    values = {"b": [math.nan, math.inf, (-math.inf, 0.1)], "a": None}
    text = strict_json.dumps(values)
    plain = json.loads(text, parse_constant=pytest.fail)
    assert plain["b"][0] == {"non_finite": "nan"}
    back = strict_json.loads(text)
    assert math.isnan(back["b"][0])
    assert back["b"][1:] == [math.inf, [-math.inf, 0.1]]


def test_dumps_equal_values_are_equal_text() -> None:
    assert strict_json.dumps({"a": 1, "b": 2}) == strict_json.dumps({"b": 2, "a": 1})


@pytest.mark.parametrize("text", ["NaN", '{"a": Infinity}', "{", ""])
def test_loads_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"not strict JSON|Expecting"):
        strict_json.loads(text)
