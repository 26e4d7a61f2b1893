"""Strict JSON: numbers that are not finite are spelled out, and equal values are equal bytes."""

import json
import math
from typing import Any, NoReturn

_NON_FINITE = "non_finite"


def dumps(value: Any) -> str:
    """Returns JSON text with sorted keys, ending in a line break.

    A float that is not finite becomes `{"non_finite": "nan"}`, `"inf"` or `"-inf"`.

    Raises:
        TypeError: `value` holds something JSON has no type for.
    """
    encoded = _encode(value)
    return json.dumps(encoded, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def loads(text: str | bytes) -> Any:
    """Returns the value that `dumps` wrote.

    Raises:
        ValueError: The text is no strict JSON.
    """
    return json.loads(text, parse_constant=_refuse, object_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {_NON_FINITE: str(value)}
    if isinstance(value, dict):
        return {name: _encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value


def _decode(value: dict[str, Any]) -> Any:
    return float(value[_NON_FINITE]) if set(value) == {_NON_FINITE} else value


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"not strict JSON: {token}")
