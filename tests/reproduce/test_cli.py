import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from reproduce import checks, cli, readings
from reproduce.cli import commands
from reproduce.cli.options import TrainingOptions
from reproduce.data import DataError
from reproduce.experiments import readings as experiment
from reproduce.experiments.registry import TRAINING
from reproduce.protocols import TABLE1, Comparison
from reproduce.records import Store
from reproduce.storage import StorageError
from tests.reproduce._examples import record

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
        ("--quick False", "unknown words, as switches take no value: False"),
        ("--updates 200000000", "`updates` must be at most 1,000,000. Received: updates=200000000"),
    ],
)
def test_bad_arguments_are_one_line_and_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["table1", *arguments.split()]) == 2
    assert capsys.readouterr().err == f"reproduce: error: {message}\n"


def test_unknown_option_is_one_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["table1", "--colour", "red"]) == 2
    # The words are cyclopts's, which quotes the option in some versions.
    assert re.fullmatch(
        r'reproduce: error: Unknown option: "?--colour"?\.\n', capsys.readouterr().err
    )


def test_scheduler_needs_the_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    assert cli.main(["table1", "--scheduler", "tcp://10.0.0.1:8786"]) == 2
    assert "with its extra `cluster`" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"{version('lerh-tf')}\n"


def test_part_of_a_table_leaves_the_other_rows_and_seeds_in_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "train", lambda *arguments: 0)
    monkeypatch.setattr(Figure, "savefig", lambda *arguments, **options: None)
    store = Store(tmp_path, warn=pytest.fail)
    for row, seed, accuracy in (("sgd", 0, 0.9), ("is", 0, 0.5), ("is", 1, 0.7)):
        curve = dict.fromkeys(TABLE1.training.evaluations, accuracy)
        store.save(record(TABLE1, row, seed, curve))
    assert cli.main(f"table1 --methods is hr --seeds 1 --output {tmp_path}".split()) == 0
    shown = capsys.readouterr().out
    assert shown == (tmp_path / "table1.md").read_text(encoding="utf-8")
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    named = [cell for line in rows[2:] if (cell := line.split("|")[1].strip())]
    assert named == ["IS", "HR", "SGD"]
    assert "0.600 ± 0.141" in shown
    assert "over seeds 0 1" in shown


def test_readings_are_run_by_the_settings_names_and_shown_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(commands, "train", lambda *arguments: asked.append(arguments))
    other = experiment.PROTOCOL.panels["R13 tanh"]
    curve = dict.fromkeys(other.training.evaluations, 0.5)
    Store(tmp_path, warn=pytest.fail).save(record(other, "sgd", 0, curve))
    words = ["readings", "--settings", "R2 sum", "R8 normal", "--output", str(tmp_path)]
    cli.main(words)
    ((_, protocol, *_),) = asked
    assert list(protocol.panels) == ["R2 sum", "R8 normal"]
    shown = capsys.readouterr().out
    assert "| R13 tanh " in shown
    assert "| R8 normal" not in shown
    assert cli.main(["readings", "--settings", "R99"]) == 2
    assert "`settings` must be one of Table 1's, R2 sum, " in capsys.readouterr().err


def test_output_that_has_no_such_letter_is_no_error(tmp_path: Path) -> None:
    # A terminal that takes ASCII alone, at a command that prints ±.
    store = Store(tmp_path, warn=pytest.fail)
    for seed in (0, 1):
        curve = dict.fromkeys(TABLE1.training.evaluations, 0.5 + seed / 10)
        store.save(record(TABLE1, "sgd", seed, curve))
    script = (
        "import sys\n"
        "from matplotlib.figure import Figure\n"
        "from reproduce import cli\n"
        "from reproduce.cli import commands\n"
        "commands.train = lambda *arguments: 0\n"
        "Figure.savefig = lambda *arguments, **options: None\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    words = ["table1", "--methods", "sgd", "--seeds", "0", "1", "--output", str(tmp_path)]
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0", "MPLBACKEND": "module://of.a.notebook"}
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        env=os.environ | settings,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert rb"0.550 \xb1 0.071" in done.stdout
    assert "0.550 ± 0.071" in (tmp_path / "table1.md").read_text(encoding="utf-8")


def test_table1_hands_on_readings_and_subspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, Any] = {}

    def train(experiment: object, protocol: Comparison, options: TrainingOptions) -> int:
        asked.update(comparison=protocol, seeds=options.chosen, subspace=options.sampled)
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

    def train(experiment: Any, protocol: object, options: object) -> int:
        asked.append((experiment.NAME, protocol == experiment.QUICK))
        return 0

    monkeypatch.setattr(commands, "train", train)
    monkeypatch.setattr(commands, "show", lambda *chosen: None)
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
    def train(*arguments: object) -> int:
        raise error

    monkeypatch.setattr(commands, "train", train)
    assert cli.main(["table1"]) == 1
    assert capsys.readouterr().err == f"reproduce: error: {error}\n"


def test_failed_runs_are_code_1_and_the_table_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(commands, "train", lambda *arguments: 1)
    assert cli.main(["table1", "--output", str(tmp_path), *TINY]) == 1
    assert "missing" in capsys.readouterr().out


def test_unusable_output_is_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "taken").write_text("")
    assert cli.main(["table1", *TINY, "--output", str(tmp_path / "taken")]) == 1
    assert "reproduce: error: cannot make" in capsys.readouterr().err
