"""The README's example runs, and its commands exist."""

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


def test_every_command_named_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z0-9-]+):", makefile, flags=re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z0-9-]+)", README))
    assert named
    assert named <= targets


def test_every_name_in_the_table_of_algorithms_is_exported() -> None:
    import lerh_tf

    names = re.findall(r"^\| Algorithm \d \| `(\w+)\(", README, flags=re.MULTILINE)
    assert len(names) == 5
    assert set(names) <= set(lerh_tf.__all__)
