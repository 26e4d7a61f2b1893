from examples import adapt_tau
from reproduce.data import Mnist


def test_report_is_a_table(data: Mnist) -> None:
    lines = adapt_tau.report(data, 0, (0.5,), 2).splitlines()[2:]
    assert lines[0] == "| tau | | 2 |"
    assert [line.split(" | ")[1] for line in lines[2:]] == ["accuracy", "tau", "ESS / J"] * 2
    assert lines[3].endswith("| 0.01 |")
