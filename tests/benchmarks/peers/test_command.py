"""The command from its words to its files, and what it says to bad ones."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.peers import results, systems
from benchmarks.peers.__main__ import DONE, FAILED, USAGE, main
from benchmarks.peers.session import Session
from benchmarks.peers.systems import SYSTEMS

# It is there in every environment, and loads in seconds.
HERE = ("hr-tensorflow",)


def run(folder: Path, *words: str, chosen: Sequence[str] = HERE) -> int:
    arguments = ["--quick", "--synthetic", "--no-curves", "--threads", "1", "--output", str(folder)]
    return main([*arguments, "--systems", *chosen, *words])


def test_quick_race_checks_measures_and_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somebody may be editing the sources meanwhile.
    monkeypatch.setattr(results, "code_digest", lambda: "the same")
    assert run(tmp_path) == DONE
    out, err = capsys.readouterr()
    assert "QUICK BUDGET" in out
    assert out.count("| yes (") == 1
    assert "all 1 systems compute the same" in err
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")} == {
        *("checks/hr-tensorflow.json", "race/hr.json"),
        *("race.md", "race.csv", "figures/peers.png", "figures/peers.pdf"),
    }
    raced = json.loads((tmp_path / "race" / "hr.json").read_text())["result"]
    assert list(raced) == [*HERE]
    for found in raced.values():
        assert all(0 < seconds < found["first_seconds"] for seconds in found["seconds"])
        assert 50e6 < found["loaded_bytes"] <= found["peak_bytes"]
        assert {"tensorflow", "keras", "numpy"} == set(found["versions"])
    # Given again, all is there and no process starts.
    monkeypatch.setattr("subprocess.Popen", None)
    assert run(tmp_path) == DONE
    assert capsys.readouterr().out == out


def test_disagreement_fails_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {"sgd-keras": {"error": 0.5, "agrees": False}}
    monkeypatch.setattr(Session, "agreements", wrong)
    monkeypatch.setattr(Session, "show_race", lambda *_: ("the table", []))
    assert run(tmp_path, chosen=["sgd-keras"]) == FAILED
    assert "sgd-keras does NOT compute what it should" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--systems", "nix"], "`systems` must be one of sgd-keras, sgld-subspace"),
        (["--systems", "sgd-keras", "sgd-keras"], "`systems` must be one or more distinct"),
        (["--repeats", "0"], "`repeats` must be a positive integer. Received: repeats=0"),
        (["--threads", "1.5"], "`threads` must be an integer. Received: 1.5"),
        (["--threads", "0"], "`threads` must be a positive integer. Received: threads=0"),
        (["--nix"], "--nix"),
    ],
)
def test_bad_words_are_refused(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: True)
    assert main(words) == USAGE
    assert message in capsys.readouterr().err


def test_missing_libraries_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    assert main(["--systems", "is-evosax", "is-torch", "sgd-keras"]) == USAGE
    error = capsys.readouterr().err
    assert "Missing: evosax, jax, optax, torch. `make peers`" in error


def test_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == DONE
    text = capsys.readouterr().out
    assert "--no-curves" in text
    for option in ("systems", "quick", "synthetic", "threads", "repeats", "output", "data-dir"):
        assert f"--{option}" in text
    assert len(SYSTEMS) == 17
