"""Who may import whom: `benchmarks`, `examples` -> `reproduce` -> `lerh_tf`, and the layers."""

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("lerh_tf", "reproduce", "benchmarks", "examples")
Graph = Mapping[str, frozenset[str]]

# The library from the bottom up; a module that is named in no layer belongs to the lowest.
LAYERS = (
    ("lerh_tf.loss",),
    ("lerh_tf.exact",),
    ("lerh_tf.kernels",),
    ("lerh_tf.optimizers",),
    ("lerh_tf.callbacks", "lerh_tf.measures"),
)


class Rule(NamedTuple):
    """No module of `whose` (but those of `but`) reaches a module of `never`, directly or not."""

    name: str
    whose: tuple[str, ...]
    never: tuple[str, ...]
    but: tuple[str, ...] = ()


def above(layer: int) -> tuple[str, ...]:
    """The modules of the layers above one, all of them above layer -1."""
    return tuple(name for names in LAYERS[layer + 1 :] for name in names)


RULES = (
    Rule(
        "the library knows nothing of the experiments, of plots and of data sets",
        whose=("lerh_tf",),
        never=(
            "reproduce",
            "benchmarks",
            "examples",
            "matplotlib",
            "tensorflow_datasets",
            "pandas",
        ),
    ),
    Rule(
        "what is in no layer uses none",
        whose=("lerh_tf",),
        never=above(-1),
        but=("lerh_tf.__init__", *above(-1)),
    ),
    Rule("the loss is no one's", whose=LAYERS[0], never=above(0)),
    Rule("the reductions are below the kernels", whose=LAYERS[1], never=above(1)),
    Rule("kernels use no optimizer", whose=LAYERS[2], never=above(2)),
    Rule("optimizers use no callback", whose=LAYERS[3], never=above(3)),
    Rule(
        "no part of the library imports the public package",
        whose=("lerh_tf",),
        never=("lerh_tf.__init__",),
        but=("lerh_tf.__init__",),
    ),
    Rule(
        "the oracles are an independent witness",
        whose=("lerh_tf.oracles",),
        never=(*above(-1), "tensorflow", "keras"),
    ),
    Rule(
        "rendering reads records and never trains",
        whose=("reproduce.figures", "reproduce.tables", "reproduce.summary"),
        never=("reproduce.training", "reproduce.methods", "lerh_tf", "tensorflow", "keras"),
    ),
    Rule(
        "what the commands do knows nothing of the command line",
        whose=("reproduce",),
        never=("reproduce.cli",),
        but=("reproduce.cli", "reproduce.__main__"),
    ),
    Rule(
        "the experiments know nothing of benchmarks and examples",
        whose=("reproduce",),
        never=("benchmarks", "examples"),
    ),
    Rule(
        "benchmarks know nothing of examples",
        whose=("benchmarks",),
        never=("examples",),
    ),
    Rule("examples know nothing of benchmarks", whose=("examples",), never=("benchmarks",)),
)


def within(module: str, names: Collection[str]) -> bool:
    """Whether `module` is one of `names` or lies below one."""
    return any(module == name or module.startswith(f"{name}.") for name in names)


def modules(root: Path) -> dict[str, Path]:
    """Every module of the packages below `root` by its dotted name, `__init__` spelled out."""
    paths = (path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts): path for path in paths}


def imported(tree: ast.AST, module: str) -> Iterator[tuple[str, str | None]]:
    """The (module, name) of every import in `tree`, lazy and type-checking ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from ((base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__")
        ):
            values = (arg.value for arg in node.args if isinstance(arg, ast.Constant))
            yield from ((value, None) for value in values if isinstance(value, str))


def resolve(base: str, name: str | None, known: Collection[str]) -> str:
    """The module that `from base import name` loads, as `modules` spells it."""
    candidates = [f"{base}.{name}.__init__", f"{base}.{name}", f"{base}.__init__"]
    return next((found for found in candidates if found in known), base)


def read(root: Path) -> Graph:
    """What each module below `root` imports."""
    known = modules(root)
    return {
        module: frozenset(
            resolve(base, name, known)
            for base, name in imported(ast.parse(path.read_text(encoding="utf-8")), module)
        )
        for module, path in known.items()
    }


def reached(graph: Graph, start: str) -> dict[str, tuple[str, ...]]:
    """Every module that `start` imports, directly or not, with the way there."""
    ways: dict[str, tuple[str, ...]] = {start: (start,)}
    queue = [start]
    for module in queue:
        for target in sorted(graph.get(module, frozenset()) - ways.keys()):
            ways[target] = (*ways[module], target)
            queue.append(target)
    return ways


def violations(graph: Graph, rule: Rule) -> list[str]:
    """Each way along which `rule` is broken."""
    sources = [module for module in graph if within(module, rule.whose)]
    return [
        " -> ".join(way)
        for source in sources
        if not within(source, rule.but)
        for target, way in reached(graph, source).items()
        if target != source and within(target, rule.never)
    ]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return read(ROOT)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_arrow_holds(graph: Graph, rule: Rule) -> None:
    assert all(any(within(module, [part]) for module in graph) for part in rule.whose)
    assert violations(graph, rule) == []


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_graph_holds_the_packages(graph: Graph, package: str) -> None:
    ours = (targets for module, targets in graph.items() if within(module, [package]))
    assert any(within(target, ["lerh_tf"]) for targets in ours for target in targets)


@pytest.mark.parametrize(
    ("module", "source", "rule"),
    [
        ("lerh_tf.loss.objective", "import matplotlib.pyplot as plt", 0),
        ("lerh_tf.kernels.sgld", "def f():\n    from reproduce import data", 0),
        ("lerh_tf.schedules", "import importlib\nimportlib.import_module('pandas')", 0),
        ("lerh_tf.schedules", "from .kernels import importance", 1),
        ("lerh_tf.brand_new", "from lerh_tf.optimizers.heat import HeatRegularization", 1),
        ("lerh_tf.loss.cut", "from lerh_tf.kernels import importance", 2),
        ("lerh_tf.exact.rows", "from lerh_tf.kernels import importance", 3),
        ("lerh_tf.kernels.sgld", "from lerh_tf.optimizers import base", 4),
        ("lerh_tf.kernels.sgld", "from ..optimizers import base", 4),
        ("lerh_tf.optimizers.heat", "from lerh_tf import callbacks", 5),
        ("lerh_tf.kernels.sgld", "from lerh_tf import LocalEntropy", 6),
        ("lerh_tf.oracles.exact", "import tensorflow as tf", 7),
        ("lerh_tf.oracles.exact", "from lerh_tf.middle import f", 7),
        ("reproduce.figures.curves", "from reproduce.training import train", 8),
        ("reproduce.figures.curves", "from reproduce import training", 8),
        ("reproduce.figures.curves", "from lerh_tf import LocalEntropy", 8),
        ("reproduce.making", "from reproduce.cli.options import Making", 9),
        ("reproduce.making", "from reproduce import cli", 9),
        ("reproduce.making", "def f():\n    from benchmarks.plain import race", 10),
        ("benchmarks.plain.race", "from examples import measured", 11),
        ("examples.measured", "from benchmarks import plain", 12),
    ],
)
def test_violation_is_found(tmp_path: Path, module: str, source: str, rule: int) -> None:
    files = {
        "lerh_tf.__init__": "from lerh_tf.optimizers.base import LocalEntropy",
        "lerh_tf.middle": "import keras",
        "lerh_tf.callbacks": "",
        "lerh_tf.loss.__init__": "",
        "lerh_tf.exact.__init__": "",
        "lerh_tf.kernels.__init__": "",
        "lerh_tf.kernels.importance": "from lerh_tf.middle import f",
        "lerh_tf.optimizers.__init__": "",
        "lerh_tf.optimizers.base": "from lerh_tf.kernels.importance import ImportanceSampling",
        "reproduce.__init__": "",
        "reproduce.training": "import lerh_tf",
        "reproduce.__main__": "from reproduce.cli import main",
        "reproduce.cli.__init__": "from reproduce.cli.app import main",
        "reproduce.cli.app": "from reproduce import training",
        "benchmarks.plain.__init__": "",
        "benchmarks.plain.race": "from reproduce import training",
        "examples.measured": "from reproduce import training",
    }
    for name, text in files.items():
        write(tmp_path, name, text)
    assert [violations(read(tmp_path), each) for each in RULES] == [[]] * len(RULES)
    write(tmp_path, module, source)
    assert violations(read(tmp_path), RULES[rule]) != []


def write(root: Path, module: str, source: str) -> None:
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source, encoding="utf-8")
