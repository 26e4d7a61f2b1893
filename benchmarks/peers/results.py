"""What was measured, a JSON file for each measurement, so that a command goes on where it was."""

import hashlib
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reproduce import strict_json, tables
from reproduce.environment import describe

_CODE = (
    "lerh_tf/**/*.py",
    "benchmarks/peers/systems/*.py",
    *(f"benchmarks/peers/{name}.py" for name in ("gpu", "problem", "work", "worker")),
)


class Results:
    """A folder of measurements.

    Args:
        folder: made when first written to.
        say: called with a line about each measurement.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]):
        self.folder = folder
        self._say = say
        self._code = code_digest()

    def of(
        self, name: str, settings: Mapping[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Returns a measurement, from its file if that is of these settings, code and machine.

        Args:
            name: of the file, without its ending; may name folders.
            settings: all that the measurement depends on, as JSON types.
            measure: makes it.

        Returns:
            `settings`, `machine`, `made` (when, UTC) and `result`.
        """
        path = self.folder / f"{name}.json"
        key = {"settings": dict(settings), "code": self._code, "machine": machine()}
        found = _read(path)
        if found is not None and all(found.get(part) == key[part] for part in key):
            self._say(f"{name}: measured already")
            return found
        self._say(f"{name}: begins")
        made = datetime.now(UTC).isoformat(timespec="seconds")
        record = {**key, "made": made, "result": measure()}
        tables.write_text(path, strict_json.dumps(record))
        return record


def machine() -> dict[str, Any]:
    """Returns the machine and the versions of what this command runs with."""
    return {**describe(), "processors": os.cpu_count()}


def code_digest() -> str:
    """Returns a hash of the sources that are measured: the library's and this package's."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(path for pattern in _CODE for path in root.glob(pattern)):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = strict_json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):  # never made, or no whole record: measured anew
        return None
    return found if isinstance(found, dict) else None
