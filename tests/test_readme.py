"""The README's example runs, and its table names what is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_trains(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    namespace: dict[str, object] = {}
    exec(compile(example, "README.md", "exec"), namespace)
    diagnostics = namespace["optimizer"].diagnostics  # type: ignore[attr-defined]
    assert diagnostics["step_norm"] > 0
    assert diagnostics["sampled_dimensions"] < diagnostics["dimensions"] == 159_010


def test_every_name_in_the_table_of_algorithms_is_exported() -> None:
    import lerh_tf

    names = re.findall(r"^\| Algorithm \d \| `(\w+)\(", README, flags=re.MULTILINE)
    assert len(names) == 5
    assert set(names) <= set(lerh_tf.__all__)
