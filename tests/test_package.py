"""What a user gets: the wheel's contents and metadata, and that it works away from the checkout."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("lerh_tf", "reproduce", "setup.cfg", "pyproject.toml", "README.md", "LICENSE", "tests")
MNIST = (
    "train-images-idx3-ubyte.xz",
    "train-labels-idx1-ubyte.xz",
    "t10k-images-idx3-ubyte.xz",
    "t10k-labels-idx1-ubyte.xz",
)


@pytest.fixture(scope="module")
def setup() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    return parser


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without network from a copy, so that the checkout stays clean."""
    copy, out = tmp_path_factory.mktemp("checkout"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    script = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    run([sys.executable, "-W", "error", "-c", script, str(out)], cwd=copy)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return BytesParser().parsebytes(archive.read(name))


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the wheel's files, as an installation would."""
    folder = tmp_path_factory.mktemp("site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(command: list[str], cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_wheel_holds_every_module(names: set[str]) -> None:
    modules = {
        path.relative_to(ROOT).as_posix()
        for package in ("lerh_tf", "reproduce")
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules <= names


def test_wheel_holds_types_licence_and_data(names: set[str]) -> None:
    assert {"lerh_tf/py.typed", "reproduce/py.typed"} <= names
    assert {f"reproduce/data/mnist/{name}" for name in MNIST} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    # The data are not ours: their licence and source travel with them.
    assert {"reproduce/data/mnist/LICENSE", "reproduce/data/mnist/README.md"} <= names


def test_wheel_holds_nothing_else(names: set[str]) -> None:
    top = {name.split("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"lerh_tf", "reproduce"}


def test_metadata(metadata: Message, setup: configparser.ConfigParser) -> None:
    assert metadata["Name"] == "lerh-tf"
    assert metadata["Version"] == setup["metadata"]["version"]
    assert metadata["License-Expression"] == "Apache-2.0 AND CC-BY-SA-3.0"
    assert metadata.get_all("License-File") == ["LICENSE", "reproduce/data/mnist/LICENSE"]
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).lstrip().startswith("#")


def test_every_requirement_is_bounded_on_both_sides(metadata: Message) -> None:
    requirements = metadata.get_all("Requires-Dist", [])
    assert any(requirement.startswith("tensorflow<") for requirement in requirements)
    bounded = re.compile(r"[\w-]+<[\d.]+,>=[\d.]+(post\d+)?(; extra == .*)?")
    assert [each for each in requirements if not bounded.fullmatch(each)] == []


def test_unpacked_wheel_runs_and_finds_its_data(unpacked: Path, tmp_path: Path) -> None:
    # Keras itself imports pandas and matplotlib where they are installed.
    script = (
        "import sys, keras, tensorflow; before = set(sys.modules)\n"
        "import lerh_tf; loaded = set(sys.modules) - before\n"
        "import reproduce; from importlib import resources\n"
        "print(lerh_tf.__file__); print(reproduce.__file__)\n"
        "folder = resources.files('reproduce.data').joinpath('mnist')\n"
        "print(*sorted(item.name for item in folder.iterdir())); print(*loaded)\n"
        "from reproduce import drawing; from pathlib import Path\n"
        "own, reference = drawing.sources(Path('none'), print)\n"
        "print(len(reference.records('training')))"
    )
    output = run([sys.executable, "-P", "-c", script], tmp_path, PYTHONPATH=str(unpacked))
    library, experiments, data, loaded, records = output.splitlines()
    assert Path(library).is_relative_to(unpacked)
    assert Path(experiments).is_relative_to(unpacked)
    assert set(MNIST) <= set(data.split())
    # What `reproduce figures` draws from.
    assert int(records) >= 270
    packages = {name.partition(".")[0] for name in loaded.split()}
    assert "lerh_tf" in packages
    assert not packages & {"reproduce", "matplotlib", "tensorflow_datasets", "pandas"}


def test_console_script_is_the_modules_main_and_its_help_needs_no_tensorflow(
    unpacked: Path, tmp_path: Path
) -> None:
    (entry_points,) = unpacked.glob("*.dist-info/entry_points.txt")
    parser = configparser.ConfigParser()
    parser.read(entry_points)
    module, function = parser["console_scripts"]["reproduce"].split(":")
    script = (
        f"import sys, reproduce.__main__; from {module} import {function} as main\n"
        "assert main is reproduce.__main__.main\n"
        "assert not main(['--help']) and 'tensorflow' not in sys.modules"
    )
    command = [sys.executable, "-P", "-c", script]
    assert "table1" in run(command, tmp_path, PYTHONPATH=str(unpacked), COLUMNS="100")


def test_versions_agree(setup: configparser.ConfigParser) -> None:
    version = setup["metadata"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
