from pathlib import Path
from typing import Any

import pytest

from reproduce import checks, cli, commands, readings
from reproduce.data import DataError
from reproduce.experiments.registry import TRAINING
from reproduce.protocols import TABLE1, Comparison
from reproduce.storage import StorageError

ROOT = Path(__file__).parents[2]
TINY = ["--updates", "4", "--samples", "3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "--methods adam",
            "`methods` must be one of sgd, is, sgld, hr, sgld-linear. Received: methods='adam'",
        ),
        ("--methods is is", "`methods` must be one or more distinct values. Received: is is"),
        ("--samples 0", "`samples` must be a positive integer. Received: samples=0"),
        ("--samples 1.5", "`samples` must be an integer. Received: 1.5"),
        ("--updates -3", "`updates` must be a positive integer. Received: updates=-3"),
        ("--seeds -1", "`seeds` must lie in [0, 4294967295]. Received: seeds=-1"),
        ("--seeds 0 1 0", "`seeds` must be one or more distinct values. Received: 0 1 0"),
        ("--seeds", "`seeds` must be one or more distinct values. Received: nothing"),
        ("--threads 0", "`threads` must be a positive integer. Received: threads=0"),
        ("--jobs 0", "`jobs` must be a positive integer. Received: jobs=0"),
        ("--jobs two", "`jobs` must be an integer. Received: two"),
        (
            "--scheduler 10.0.0.1:8786",
            "`scheduler` must be tcp://host:port. Received: scheduler='10.0.0.1:8786'",
        ),
        ("--subspace no", "`subspace` must be one of auto, false. Received: subspace='no'"),
        ("--reading noise", "`reading` must be NAME=VALUE. Received: noise"),
        ("--reading restart=no", "`restart` must be one of true, false. Received: restart='no'"),
        ("--colour red", "Unknown option: --colour."),
    ],
)
def test_bad_arguments_are_one_line_and_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["table1", *arguments.split()]) == 2
    assert capsys.readouterr().err == f"reproduce: error: {message}\n"


def test_scheduler_needs_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert cli.main(["table1", "--scheduler", "tcp://10.0.0.1:8786"]) == 2
    assert "with its extra `cluster`" in capsys.readouterr().err


def test_table1_hands_on_readings_and_subspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def train(
        experiment: object,
        protocol: Comparison,
        seeds: tuple[int, ...],
        subspace: str | bool,
        **options: object,
    ) -> int:
        asked.update(comparison=protocol, seeds=seeds, subspace=subspace)
        return 0

    monkeypatch.setattr(commands, "train", train)
    words = ["--reading", "noise=linear", "restart=false", "--reading", "loss_multiplier=20"]
    words += ["--subspace", "false", "--seeds", "4", "--output", str(tmp_path)]
    assert cli.main(["table1", *words]) == 0
    chosen = {"noise": "linear", "restart": False, "loss_multiplier": 20.0}
    assert asked["comparison"] == readings.choose(TABLE1, chosen)
    assert (asked["subspace"], asked["seeds"]) == (False, (4,))
    assert "other readings than by default" in capsys.readouterr().out


def test_every_training_experiment_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool]] = []

    def train(experiment: Any, protocol: object, *chosen: object, **options: object) -> int:
        asked.append((experiment.NAME, protocol == experiment.QUICK))
        return 0

    monkeypatch.setattr(commands, "train", train)
    monkeypatch.setattr(commands, "show", lambda *chosen, **options: "")
    names = [experiment.NAME for experiment in TRAINING]
    assert [cli.main([name, "--quick", "--seeds", "1"]) for name in names] == [0] * len(names)
    assert cli.main(["figure4"]) == 0
    assert asked == [*((name, True) for name in names), ("table1", False)]


def test_unknown_command_is_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["table9"]) == 2
    assert capsys.readouterr().err.startswith('reproduce: error: Unknown command "table9"')


def test_help_lists_options_and_readings(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["table1", "--help"]) == 0
    text = capsys.readouterr().out
    for words in ("R1 noise=langevin|linear", "R10 test_draw=", "R3, R4 and R7"):
        assert words in " ".join(text.replace("│", "").split())
    for option in ("--seeds", "--samples", "--updates", "--methods", "--reading", "--output"):
        assert option in text


@pytest.mark.parametrize(
    "error", [DataError("a file is damaged"), StorageError("no room"), OSError(28, "No space")]
)
def test_what_the_user_can_mend_is_one_line_and_code_1(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def train(*args: object, **kwargs: object) -> int:
        raise error

    monkeypatch.setattr(commands, "train", train)
    assert cli.main(["table1"]) == 1
    assert capsys.readouterr().err == f"reproduce: error: {error}\n"


def test_failed_runs_are_code_1_and_the_table_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "train", lambda *args, **kwargs: 1)
    assert cli.main(["table1", "--output", str(tmp_path), *TINY]) == 1
    assert "missing" in capsys.readouterr().out


def test_unusable_output_is_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert cli.main(["table1", *TINY, "--output", str(tmp_path / "taken")]) == 1
    assert "reproduce: error: cannot make" in capsys.readouterr().err
