"""Keras on another backend is refused in one line, however it was chosen."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RULE = "lerh_tf needs Keras on TensorFlow: set KERAS_BACKEND=tensorflow before importing keras."


def last_line(script: str, **variables: str) -> str:
    """What the script, which must fail, says at last."""
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"} | variables
    command = [sys.executable, "-c", script]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 1
    # Nothing of Keras's own traceback.
    assert "keras/src" not in run.stderr
    return run.stderr.splitlines()[-1]


@pytest.mark.feature(
    "training",
    "`KERAS_BACKEND` other than TensorFlow",
    'refused: "set KERAS_BACKEND=tensorflow before importing keras"',
)
@pytest.mark.parametrize("name", ["torch", "jax", "nonsense"])
def test_environment_names_another_backend(name: str) -> None:
    line = last_line("import lerh_tf.noise", KERAS_BACKEND=name)
    assert line == f"ImportError: {RULE} Received: KERAS_BACKEND={name}"


def test_configuration_names_another_backend(tmp_path: Path) -> None:
    (tmp_path / "keras.json").write_text(json.dumps({"backend": "nonsense"}))
    line = last_line("import lerh_tf", KERAS_HOME=str(tmp_path))
    assert line.startswith(f"ImportError: {RULE} Received: ")
    assert "nonsense" in line


@pytest.mark.feature("training", "`KERAS_BACKEND` other than TensorFlow")
def test_keras_was_imported_on_another_backend() -> None:
    # The others are not installed here: their place is taken by a module that says so.
    script = (
        "import sys, types; keras = sys.modules['keras'] = types.ModuleType('keras')\n"
        "keras.config = types.SimpleNamespace(backend=lambda: 'torch')\n"
        "import lerh_tf"
    )
    assert last_line(script) == f"ImportError: {RULE} Received: backend=torch"
