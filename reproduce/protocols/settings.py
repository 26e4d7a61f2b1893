"""The fields of a set-up as records keep them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

_ADDED = "added"


def added(default: Any) -> Any:
    """Returns a field that older records lack: at its default it stays out of the records' keys."""
    return dataclasses.field(default=default, metadata={_ADDED: True})


def settings(part: Any) -> dict[str, Any]:
    """Returns a dataclass's fields as JSON types, but for those `added` that have their default."""
    kept = [
        field.name
        for field in dataclasses.fields(part)
        if not (_ADDED in field.metadata and getattr(part, field.name) == field.default)
    ]
    return {name: _plain(getattr(part, name)) for name in kept}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return value
