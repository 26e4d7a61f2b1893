from pathlib import Path

import numpy as np
import pytest

from benchmarks import profile
from benchmarks.peers.problem import Problem, random_minibatch
from benchmarks.peers.systems import library
from benchmarks.peers.work import QUICK


def test_shares_are_what_an_update_takes_less_without_a_part() -> None:
    seconds = {"whole": 0.5, "train step": 0.4, "noise": 0.2, "evaluations": 0.05}
    assert profile.line("SGLD", seconds) == {
        "algorithm": "SGLD",
        "whole s": "0.5000",
        "train step": "20 %",
        "noise": "40 %",
        "evaluations": "30 %",
        "the rest": "10 %",
    }


@pytest.mark.parametrize("algorithm", ["sgld", "is", "hr"])
def test_without_noise_and_evaluations_nothing_moves(algorithm: str) -> None:
    problem = Problem.of_minibatch(*random_minibatch(3, 5), 4)

    def moved(**arguments: object) -> float:
        system = library.Kernelled(
            problem,
            QUICK[algorithm],
            reduce=True,
            noise=library.silence,
            **arguments,  # type: ignore[arg-type]
        )
        system.update()
        pairs = zip(system.weights(), problem.weights, strict=True)
        return float(sum(np.abs(new - old).sum() for new, old in pairs))

    assert moved(evaluated=profile.Nothing) == pytest.approx(0.0, abs=1e-5)
    # Without noise importance sampling does not move, whatever the loss.
    assert (moved() > 1e-4) == (algorithm != "is")


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reproduce.environment.prepare", lambda threads: None)
    output = tmp_path / "profile.md"
    assert profile.main(["--quick", "--repeats", "1", "--output", str(output)]) == 0
    text = output.read_text()
    assert "SGLD (Algorithm 3), J = 20" in text
    assert "A quick look." in text
    assert capsys.readouterr().out.strip() == text.strip()


def test_a_bad_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert profile.main(["--repeats", "0"]) == 2
    message = "`repeats` must be a positive integer. Received: repeats=0"
    assert capsys.readouterr().err == f"benchmarks.profile: error: {message}\n"
