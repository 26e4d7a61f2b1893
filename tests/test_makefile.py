"""The Makefile's promises, with stand-ins for interpreter and pip, in a path with spaces."""

import configparser
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")

# Logs its call; makes an environment whose python is itself; pip does what $PIP says.
PYTHON = """#!/bin/sh
echo "$@" >> "$LOG"
case "$*" in
  "-m venv --clear "*) rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
  "-m pip"*) eval "$PIP" ;;
  "-I -c"*) {answer} ;;
esac
"""


class Checkout:
    """A folder with the Makefile in it, and a record of what it called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "a path with spaces"
        self.folder.mkdir()
        for name in ("Makefile", "setup.cfg", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        self.log = folder / "log"
        self.python = self.interpreter("python", f'exec "{sys.executable}" "$@"')

    def interpreter(self, name: str, answer: str) -> Path:
        path = self.folder.parent / name
        path.write_text(PYTHON.format(answer=answer))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def make(self, *words: str, pip: str = "true", **environment: str) -> tuple[int, list[str]]:
        """The exit status of `make`, and the calls of venv, pip and the project's modules."""
        self.log.write_text("")
        process = self.start(*words, pip=pip, **environment)
        self.output, _ = process.communicate()
        return process.returncode, self.calls()

    def start(self, *words: str, pip: str, **environment: str) -> "subprocess.Popen[str]":
        """`make`, under way."""
        return subprocess.Popen(
            ["make", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LOG": str(self.log), "PIP": pip} | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def calls(self) -> list[str]:
        """The calls of venv, pip and the project's modules so far."""
        return [line for line in self.log.read_text().splitlines() if line.startswith("-m ")]


CREATE = "-m venv --clear .venv"
INSTALL = "-m pip install -qq --disable-pip-version-check --editable .[test]"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    folder = tmp_path / "another path with spaces"
    folder.mkdir()
    return Checkout(folder)


def targets() -> list[str]:
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", "")
    phony = re.search(r"^\.PHONY: (.*) stale$", makefile, re.MULTILINE)
    assert phony is not None
    return phony[1].split()


def test_bare_make_lists_each_target(checkout: Checkout) -> None:
    status, calls = checkout.make()
    assert (status, calls) == (0, [])
    listed = re.findall(r"^  ([\w-]+) ", checkout.output, flags=re.MULTILINE)
    assert sorted(listed) == sorted(targets())


def test_every_target_that_a_page_names_is_there() -> None:
    folders = [ROOT / "docs", ROOT / "reproduce", ROOT / "examples"]
    pages = [*ROOT.glob("*.md"), *(page for folder in folders for page in folder.rglob("*.md"))]
    named = {
        target
        for page in pages
        for target in re.findall(
            r"(?:^|`)make ([a-z][\w-]*)", page.read_text(encoding="utf-8"), re.M
        )
    }
    assert len(named) > 20
    assert named <= set(targets())


def test_environment_is_made_once(checkout: Checkout) -> None:
    python = f"PYTHON={checkout.python}"
    assert checkout.make("venv", python) == (0, [CREATE, INSTALL])
    assert checkout.make("venv", python) == (0, [])
    assert checkout.make("venv") == (0, [])


def test_second_make_waits_for_the_installation_of_the_first(checkout: Checkout) -> None:
    python = f"PYTHON={checkout.python}"
    both = [checkout.start(target, python, pip="sleep 1") for target in ("venv", "table1")]
    outputs = [process.communicate()[0] for process in both]
    assert [output.count("Getting .venv ready") for output in outputs] == [1, 1]
    assert [output.count(".venv/bin/python is ready") for output in outputs] == [1, 0]
    assert [process.returncode for process in both] == [0, 0]
    assert checkout.calls() == [CREATE, INSTALL, "-m reproduce table1 --jobs 2"]


@pytest.mark.parametrize("name", ["setup.cfg", "pyproject.toml"])
def test_changed_metadata_are_installed_again(checkout: Checkout, name: str) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    (checkout.folder / name).touch()
    assert checkout.make("venv", f"PYTHON={checkout.python}") == (0, [INSTALL])


@pytest.mark.parametrize("pip", ["exit 1", "kill -9 $PPID; exit 0"])
def test_broken_off_installation_starts_anew(checkout: Checkout, pip: str) -> None:
    python = f"PYTHON={checkout.python}"
    status, calls = checkout.make("table1", python, pip=pip)
    assert status != 0
    assert calls == [CREATE, INSTALL]
    assert checkout.make("venv", python) == (0, [CREATE, INSTALL])
    (checkout.folder / "setup.cfg").touch()
    assert checkout.make("venv", python, pip=pip)[0] != 0
    assert checkout.make("venv", python) == (0, [CREATE, INSTALL])


def test_moved_checkout_gets_its_own_environment(checkout: Checkout) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    checkout.folder = checkout.folder.rename(checkout.folder.with_name("moved here"))
    assert checkout.make("venv", f"PYTHON={checkout.python}") == (0, [CREATE, INSTALL])


def test_other_interpreter_gets_its_own_environment(checkout: Checkout) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    answer = f'case "$*" in *flock*) exec "{sys.executable}" "$@";; *print*) echo 3.13.0;; esac'
    other = checkout.interpreter("other", answer)
    assert checkout.make("venv", f"PYTHON={other}") == (0, [CREATE, INSTALL])
    assert checkout.make("venv", f"PYTHON={other}") == (0, [])


def test_unfit_interpreter_is_refused_and_named(checkout: Checkout) -> None:
    for unfit in (checkout.interpreter("old", "exit 1"), "/no/such/python"):
        status, calls = checkout.make("table1", f"PYTHON={unfit}")
        assert status != 0
        assert calls == []
        assert f"PYTHON={unfit} is not Python 3.11, 3.12 or 3.13" in checkout.output
        assert not (checkout.folder / ".venv").exists()


def test_experiments_get_their_arguments(checkout: Checkout) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    assert checkout.make("table1") == (0, ["-m reproduce table1 --jobs 2"])
    words = ("SEEDS=5 6", "JOBS=3", "QUICK=1", "ARGS=--methods sgd")
    expected = "-m reproduce table1 --seeds 5 6 --jobs 3 --quick --methods sgd"
    assert checkout.make("table1", *words) == (0, [expected])
    assert checkout.make("figures") == (0, ["-m reproduce figures"])
    assert checkout.make("all", "SEEDS=0") == (0, ["-m reproduce all --seeds 0 --jobs 2"])
    assert checkout.make("figure7", "JOBS=1") == (0, ["-m reproduce figure7 --jobs 1"])
    assert checkout.make("verify") == (0, ["-m reproduce verify --jobs 2"])
    assert checkout.make("table2", "QUICK=1") == (0, ["-m reproduce table2 --quick"])


def test_check_runs_a_core_of_the_tests_and_test_all_of_them(checkout: Checkout) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    (_, tests), (_, checks) = checkout.make("test", "ARGS=-x"), checkout.make("check", "ARGS=-x")
    assert [one.split()[1] for one in checks] == ["ruff", "ruff", "mypy", "pytest"]
    assert tests[:-1] == checks[:-1]
    (core,) = re.findall(r" loadfile (.*) -x$", checks[-1])
    assert tests[-1] == checks[-1].replace(f"{core} ", "")
    assert all((ROOT / name.partition("::")[0]).exists() for name in core.split())


def test_oldest_installs_each_requirement_at_its_lower_bound(checkout: Checkout) -> None:
    status, calls = checkout.make(
        "oldest", f"PYTHON={checkout.python}", "ARGS=-x", pip='cat "$PIP_CONSTRAINT"'
    )
    assert status == 0, checkout.output
    assert [call.split()[1] for call in calls] == ["venv", "pip", "pytest"]
    assert calls[0].endswith(" .venv-oldest")
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    required = setup["options"]["install_requires"].split()
    held = [line for line in checkout.output.splitlines() if "==" in line]
    assert held == [re.sub(">=(.*),<.*", r"==\1", requirement) for requirement in required]


def test_nothing_of_the_calling_environment_is_used(checkout: Checkout) -> None:
    script = 'echo "seen:$PYTHONPATH$VIRTUAL_ENV$PIP_TARGET:$KERAS_BACKEND"'
    leftovers = {"PYTHONPATH": "x", "VIRTUAL_ENV": "y", "PIP_TARGET": "z", "KERAS_BACKEND": "jax"}
    checkout.make("venv", f"PYTHON={checkout.python}", pip=script, **leftovers)
    assert "seen::tensorflow\n" in checkout.output


def test_clean_keeps_results(checkout: Checkout) -> None:
    checkout.make("venv", f"PYTHON={checkout.python}")
    record = checkout.folder / "results" / "record.json"
    record.parent.mkdir()
    record.write_text("{}")
    assert checkout.make("clean")[0] == 0
    assert record.exists()
    assert not (checkout.folder / ".venv").exists()
