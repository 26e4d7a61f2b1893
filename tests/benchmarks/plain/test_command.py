import pytest

from benchmarks.plain.__main__ import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--methods sgd", "`methods` must be one of sgld, is, hr. Received: methods='sgd'"),
        ("--methods hr hr", "`methods` must be one or more distinct values. Received: hr hr"),
        ("--samples 1", "`samples` must be an integer of at least 2. Received: samples=1"),
        ("--repetitions 0", "`repetitions` must be a positive integer. Received: repetitions=0"),
        ("--threads 0", "`threads` must be a positive integer. Received: threads=0"),
    ],
)
def test_bad_arguments_are_one_line_and_code_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments.split()) == 2
    assert capsys.readouterr().err == f"benchmarks.plain: error: {message}\n"
