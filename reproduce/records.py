"""Records on disk: one file per (experiment, case, seed), whole or not at all.

A record's key is the hash of everything that decides its numbers: experiment, case, seed, the
resolved configuration and the numerics revision. Equal runs differ in their timings alone.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from reproduce import storage, strict_json

NUMERICS_REVISION = 3
"""Raised by one whenever a change alters any run's numbers; older records then count no more."""

_RESERVED_BYTES = 1 << 19


class DamagedRecordError(Exception):
    """A file is no whole record."""


@dataclass(frozen=True)
class Run:
    """What a record is the result of.

    Args:
        experiment: The experiment's name.
        case: The row or panel within it.
        seed: The seed.
        configuration: Every resolved setting that decides the numbers, as JSON types.
    """

    experiment: str
    case: str
    seed: int
    configuration: Mapping[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration but for how it was executed."""
        return {name: value for name, value in self.configuration.items() if name != "execution"}

    @cached_property
    def settings_text(self) -> str:
        """Those in one spelling: equal settings are equal texts."""
        return strict_json.dumps(self.settings)

    @property
    def identity(self) -> dict[str, Any]:
        """Everything the key is the hash of."""
        return {
            "experiment": self.experiment,
            "case": self.case,
            "seed": self.seed,
            "configuration": dict(self.configuration),
            "numerics_revision": NUMERICS_REVISION,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the identity."""
        return _digest(self.identity)

    @property
    def label(self) -> str:
        """How messages name the run."""
        return f"{self.experiment} {self.case} seed {self.seed}"


@dataclass(frozen=True)
class Record:
    """The outcome of a run.

    Args:
        run: What was run.
        environment: Versions of what ran it.
        result: What came out, as JSON types.
        timings: How long it took, and what else no second run repeats, likewise.
    """

    run: Run
    environment: Mapping[str, Any]
    result: Mapping[str, Any]
    timings: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """Returns the record's file, checksum included."""
        body = {
            "run": self.run.identity,
            "key": self.run.key,
            "environment": dict(self.environment),
            "result": dict(self.result),
            "timings": dict(self.timings),
        }
        return strict_json.dumps(body | {"checksum": _digest(body)})

    def numbers(self) -> str:
        """Returns what equal runs have in common: all but the timings, in one spelling."""
        return replace(self, timings={}).text()

    @classmethod
    def parse(cls, content: bytes) -> "Record":
        """Returns the record whose file this is.

        Raises:
            DamagedRecordError: Truncated, altered, or of another numerics revision.
        """
        try:
            body = strict_json.loads(content)
            checksum = body.pop("checksum")
            identity = {name: body["run"][name] for name in Run.__dataclass_fields__}
            timings = body.get("timings", {})  # older files have none
            record = cls(Run(**identity), body["environment"], body["result"], timings)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedRecordError(f"not a whole record ({error})") from error
        if checksum != _digest(body):
            raise DamagedRecordError("its checksum does not match its content")
        if body["run"] != record.run.identity:
            raise DamagedRecordError("it is of another numerics revision")
        return record


class Archive(Protocol):
    """Records that can be read: a `Store`, or the tables of the reference run."""

    def scan(self, experiment: str = "*", /) -> list[Record]:
        """Returns every whole record of an experiment, or of all, in the order of their places."""


class Store:
    """A folder whose `records/` has a file for each.

    Args:
        folder: Made when first written to.
        warn: Called with a line about every damaged record, once.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self.folder = folder
        self._warn = warn
        self._told: set[Path] = set()

    def path(self, run: Run) -> Path:
        """Returns where the run's record lies."""
        return self.folder / "records" / place(run)

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """Holds the run for this process while the context lasts; yields False if another has it.

        The operating system lets go of a claim when its process ends, however it ends.
        """
        path = storage.prepared(self.folder / ".locks") / f"{run.key}.lock"
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        except OSError as error:
            raise storage.failure("write to", path, error) from error
        try:
            yield True
        finally:
            lock.release()

    def prepare(self) -> None:
        """Makes the folder, so that one which cannot be used shows before anything else is done.

        Raises:
            StorageError: It cannot be made.
        """
        storage.prepared(self.folder / "records")

    def load(self, run: Run) -> Record | None:
        """Returns the run's record, or None if there is none; a damaged one is set aside.

        Only to be called by who holds the claim.
        """
        path = self.path(run)
        try:
            record = Record.parse(_read(path))
            if record.run.identity != run.identity:
                raise DamagedRecordError("it is of another run than its name says")
        except FileNotFoundError:
            return None
        except DamagedRecordError as error:
            self._warn(f"{path}: {error}; set aside as {_set_aside(path).name}, run again")
            return None
        return record

    @contextmanager
    def reserved(self, run: Run) -> Iterator[None]:
        """Holds the disk space of the record, so that a full disk shows before the run.

        Raises:
            StorageError: There is no room, or no permission.
        """
        temporary = _temporary(self.path(run))
        storage.prepared(temporary.parent)
        storage.fill(temporary, b"\0" * _RESERVED_BYTES)
        try:
            yield
        finally:
            temporary.unlink(missing_ok=True)

    def save(self, record: Record) -> None:
        """Writes a record.

        Raises:
            StorageError: The disk is full or not writable; what was there is as it was.
        """
        path = self.path(record.run)
        storage.write(path, record.text().encode(), _temporary(path))

    def scan(self, experiment: str = "*") -> list[Record]:
        """Returns every whole record of an experiment, in the order of their paths; reads only.

        Args:
            experiment: Its name; all of them by default.
        """
        return [
            record
            for path in sorted((self.folder / "records").glob(f"{experiment}/*/seed-*.json"))
            if (record := self._scanned(path)) is not None
        ]

    def _scanned(self, path: Path) -> Record | None:
        try:
            return Record.parse(_read(path))
        except FileNotFoundError:  # set aside by a run at this moment
            return None
        except DamagedRecordError as error:
            if path not in self._told:
                self._told.add(path)
                self._warn(f"{path}: {error}; left out")
            return None


def place(run: Run) -> Path:
    """Returns where a run's record lies within the records' folder."""
    return Path(run.experiment, run.case, f"seed-{run.seed}-{run.key[:16]}.json")


def _digest(value: Any) -> str:
    return hashlib.sha256(strict_json.dumps(value).encode()).hexdigest()


def _temporary(path: Path) -> Path:
    # One name per record: its writer holds the claim, and a killed one's leftover is overwritten.
    return path.with_name(f".{path.name}.part")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage.failure("read", path, error) from error


def _set_aside(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in range(1, 1_000_000))
    target = next(name for name in names if not name.exists())
    with storage.explained("rename", path):
        os.replace(path, target)
    return target
