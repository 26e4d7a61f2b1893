"""Records as tidy tables: how the reference run is committed, shipped and read by others.

`runs.csv` has a line for each run: what was run, under which configuration, on what, how it ended.
`curves.csv` and `diagnostics.csv` have one for each run and measured weight update, `values.csv`
one for each number of runs that do not train, `timings.csv` one for each run again. The column
`run`, the first letters of the record's key, joins them. `manifest.csv` counts and checks them.

A cell is JSON, but that strings stand without quotes where that is clear; an empty one says that
the run has no such thing. Floats are the shortest that read back as they were, as pandas does from
3.1 on; an older one is to be told, by `float_precision="round_trip"`.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from reproduce import storage
from reproduce.records import Record, Run, place

TABLES = ("runs", "curves", "diagnostics", "values", "timings")

_MANIFEST = "manifest.csv"
_IDENTITY = ["run", "experiment", "case"]
_INDICES = ["row", "column"]
_RESULT = "result"
_STEP = re.compile(r"\[(\d+)\]|([^.\[]+)")

Frames = Mapping[str, pd.DataFrame]
Number = tuple[str, tuple[int, ...], Any]
"""A name, the indices within nested lists, and what is there."""


class Tables:
    """A folder of tidy tables; reads as a `Store` does.

    Args:
        folder: Need not be there: it then has no records.

    Raises:
        StorageError: When read: a table is not the manifest's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scan(self, experiment: str = "*") -> list[Record]:
        """Returns every record of an experiment, or of all, in the order of a `Store`."""
        return [one for one in self._records if experiment in ("*", one.run.experiment)]

    @cached_property
    def _records(self) -> list[Record]:
        """Every record; those of another numerics revision are left out."""
        return _records(_checked(self.folder)) if (self.folder / _MANIFEST).exists() else []


def add(folder: Path, records: Iterable[Record]) -> None:
    """Writes tables of the records that are there and of these; arguments as `write`'s.

    A record takes the place of that of the same run.
    """
    together = [*Tables(folder).scan(), *records]
    write(folder, {record.run.key: record for record in together}.values())


def write(folder: Path, records: Iterable[Record]) -> None:
    """Writes tables of records, in place of those that are there.

    Args:
        folder: Made when missing.
        records: Each run once.

    Raises:
        ValueError: A record does not read back as it is; nothing was written.
        StorageError: The disk is full or not writable.
    """
    ordered = sorted(records, key=lambda record: place(record.run).parts)
    frames = _frames(ordered)
    for record, back in zip(ordered, _records(frames), strict=True):
        if record.text() != back.text():
            raise ValueError(f"{record.run.label} must fit the tables. Received: {record.result}")
    manifest = []
    for name, frame in frames.items():
        digest = _write(folder / f"{name}.csv", frame)
        manifest.append({"table": name, "rows": len(frame), "sha256": digest})
    _write(folder / _MANIFEST, pd.DataFrame(manifest))


def _frames(records: Sequence[Record]) -> Frames:
    tables: dict[str, list[dict[str, str]]] = {name: [] for name in TABLES}
    for record in records:
        run, result = {"run": record.run.key[:16]}, dict(record.result)
        curve, reported = result.pop("curve", {}), result.pop("diagnostics", {})
        # SGD's part of a run comes first and reports nothing.
        count = len(next(iter(reported.values()), ()))
        updates = {"update": curve["update"][-count:]} if reported else {}
        numbers = list(_numbers(_RESULT, result))
        settings = {"configuration": record.run.configuration, "environment": record.environment}
        tables["curves"] += [run | line for line in _lines(curve)]
        tables["diagnostics"] += [run | line for line in _lines(updates | reported)]
        tables["values"] += [run | _value(*number) for number in numbers if number[1]]
        tables["timings"].append(run | _cells(record.timings.items()))
        tables["runs"].append(
            run
            | {"experiment": record.run.experiment, "case": record.run.case}
            | {"seed": str(record.run.seed)}
            | _cells(_settings(settings))
            | _cells((name, value) for name, at, value in numbers if not at)
        )
    return {
        name: pd.DataFrame(lines).fillna("") if lines else pd.DataFrame(columns=["run"])
        for name, lines in tables.items()
    }


def _records(frames: Frames) -> list[Record]:
    records: list[Record] = []
    values = _values(frames["values"])
    curves, diagnostics, timings = (
        dict(list(frames[name].groupby("run", sort=False)))
        for name in ("curves", "diagnostics", "timings")
    )
    for line in frames["runs"].to_dict("records"):
        key, experiment, case = (line.pop(name) for name in _IDENTITY)
        scalars = [(str(name), (), _parsed(cell)) for name, cell in line.items() if cell]
        body = _nested([*scalars, *values.get(key, [])])
        run, result = Run(experiment, case, body["seed"], body["configuration"]), body[_RESULT]
        if not run.key.startswith(key):
            continue
        if key in curves:
            result["curve"] = _columns(curves[key])
            result["diagnostics"] = _columns(diagnostics.get(key))
            result["diagnostics"].pop("update", None)
        timed = {name: value for name, (value,) in _columns(timings[key]).items()}
        records.append(Record(run, body["environment"], result, timed))
    return records


def _numbers(name: str, value: Any, at: tuple[int, ...] = ()) -> Iterator[Number]:
    """What a result holds, lists element by element."""
    if isinstance(value, Mapping) and value:
        within = name + "".join(f"[{index}]" for index in at)
        for key, inner in value.items():
            yield from _numbers(f"{within}.{key}", inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _numbers(name, inner, (*at, index))
    else:
        yield name, at, value


def _settings(value: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """What a configuration holds, lists whole."""
    for key, inner in value.items():
        if isinstance(inner, Mapping) and inner:
            yield from _settings(inner, f"{within}{key}.")
        else:
            yield f"{within}{key}", inner


def _nested(numbers: Iterable[Number]) -> dict[str, Any]:
    """The mappings and lists that `_numbers` and `_settings` took apart."""
    root: dict[Any, Any] = {}
    for name, at, value in numbers:
        steps = (*_steps(name), *at)
        inner = root
        for step in steps[:-1]:
            inner = inner.setdefault(step, {})
        inner[steps[-1]] = value
    return {name: _listed(value) for name, value in root.items()}


@cache
def _steps(name: str) -> tuple[int | str, ...]:
    return tuple(int(index) if index else word for index, word in _STEP.findall(name))


def _listed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(one) for key, one in value.items()}
    return [inner[index] for index in range(len(inner))] if 0 in inner else inner


def _value(name: str, at: tuple[int, ...], value: Any) -> dict[str, str]:
    row, column, *_ = (*map(str, at), "")
    quantity = name.removeprefix(f"{_RESULT}.")
    return {"quantity": quantity, "row": row, "column": column, "value": json.dumps(value)}


def _values(frame: pd.DataFrame) -> dict[str, list[Number]]:
    found: dict[str, list[Number]] = {}
    if not frame.empty:
        lines = frame[["run", "quantity", *_INDICES]].itertuples(index=False, name=None)
        for (run, quantity, *at), value in zip(lines, _loads(frame["value"]), strict=True):
            indices = tuple(int(index) for index in at if index)
            found.setdefault(run, []).append((f"{_RESULT}.{quantity}", indices, value))
    return found


def _lines(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, str]]:
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, map(json.dumps, row), strict=True)) for row in rows]


def _columns(frame: pd.DataFrame | None) -> dict[str, list[Any]]:
    if frame is None:
        return {}
    there = [name for name in frame.columns[1:] if frame[name].iloc[0]]
    return {name: _loads(frame[name]) for name in there}


def _loads(cells: Iterable[str]) -> list[Any]:
    loaded: list[Any] = json.loads(f"[{','.join(cells)}]")
    return loaded


def _cells(values: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return {name: _cell(value) for name, value in values}


def _cell(value: Any) -> str:
    clear = isinstance(value, str) and value and isinstance(_parsed(value), str)
    return value if clear else json.dumps(value, ensure_ascii=False)


def _parsed(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def _checked(folder: Path) -> Frames:
    with storage.explained("read", folder):
        contents = {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}
        manifest = _frame((folder / _MANIFEST).read_bytes()).set_index("table")
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != manifest.loc[name, "sha256"]:
            raise storage.StorageError(f"{folder / name}.csv is not what {_MANIFEST} says")
    return {name: _frame(content) for name, content in contents.items()}


def _frame(content: bytes) -> pd.DataFrame:
    return pd.read_csv(BytesIO(content), dtype=object, keep_default_na=False)


def _write(path: Path, frame: pd.DataFrame) -> str:
    content = frame.to_csv(index=False, lineterminator="\n").encode()
    storage.write(path, content)
    return hashlib.sha256(content).hexdigest()
