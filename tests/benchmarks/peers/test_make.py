"""`make peers` runs in an environment of its own."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")


def test_peers_have_their_own_environment() -> None:
    words = ["make", "--dry-run", "--always-make", "peers", "QUICK=1", "ARGS=--synthetic"]
    text = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert ".venv-peers/bin/python -m pip install" in text
    assert "--editable '.[peers]'" in text
    assert ".venv-peers/bin/python -m benchmarks.peers --quick --synthetic\n" in text
    assert " .venv/" not in text
    assert "\n.venv-peers/\n" in (ROOT / ".gitignore").read_text()
