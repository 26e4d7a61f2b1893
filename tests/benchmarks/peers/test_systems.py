"""Every entry leads to a file with its functions, whether or not its libraries are installed."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import reference, systems
from benchmarks.peers.agreement import LARGEST_ERROR, relative_error, small_problem
from benchmarks.peers.problem import flat
from benchmarks.peers.reference import Outcome
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import SMALL

FOLDER = Path(systems.__file__).parent
ROOT = FOLDER.parents[2]


@pytest.mark.parametrize("name", SYSTEMS)
def test_entry_leads_to_its_functions(name: str) -> None:
    entry = SYSTEMS[name]
    tree = ast.parse((FOLDER / f"{entry.module}.py").read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    wanted = {entry.factory}
    if entry.algorithm != "is":  # without noise it does not move
        wanted.add(f"noiseless_{entry.factory}")
    assert wanted <= functions


def test_every_need_is_in_the_extra_peers() -> None:
    text = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    (extra,) = re.findall(r"^peers =\n((?:    .*\n)+)", text, re.MULTILINE)
    installed = set(re.findall(r"^    (\w+)>=", extra, re.MULTILINE))
    assert {need for entry in SYSTEMS.values() for need in entry.needs} == installed


def test_ours_are_in_every_algorithm_but_sgd() -> None:
    ours = {name for name, entry in SYSTEMS.items() if entry.is_ours}
    assert ours == {f"{a}-{kind}" for a in ("sgld", "is", "hr") for kind in ("subspace", "plain")}


@pytest.mark.parametrize("name", [n for n, e in SYSTEMS.items() if e.algorithm != "is"])
def test_without_noise_it_ends_where_the_reference_does(name: str) -> None:
    entry = SYSTEMS[name]
    for need in entry.needs:
        pytest.importorskip(need, reason=f"{need} comes with `make peers`")
    problem, work = small_problem(), SMALL[entry.algorithm]
    system = entry.noiseless(problem, work)
    system.update()
    system.update()
    chain = [flat(system.chain()) - flat(problem.weights)] if system.chain() else []
    ended = Outcome((flat(system.weights()) - flat(problem.weights))[None], np.array(chain))
    assert relative_error(ended, reference.run(problem, work, 1, 2, np.zeros)) < LARGEST_ERROR


def test_plain_kernel_on_recorded_noise_is_the_reference_on_it() -> None:
    from benchmarks.peers.systems.library import displacement_on

    problem, work = small_problem(), SMALL["is"]
    sizes = [w.size for w in problem.weights]
    z = np.random.default_rng(4).standard_normal((work.samples, sum(sizes)))
    parts = iter([part for row in z for part in np.split(row, np.cumsum(sizes)[:-1])])
    expected = reference.run(problem, work, 1, 1, lambda shape: next(parts).reshape(shape))
    ours = flat(displacement_on(problem, work, z))
    np.testing.assert_allclose(ours, expected.weights[0], atol=1e-6)


def test_restart_goes_back_to_the_first_weights_without_a_chain() -> None:
    problem, work = small_problem(), SMALL["sgld"]
    system = SYSTEMS["sgld-tensorflow"].noiseless(problem, work)
    system.update()
    once = flat(system.weights())
    system.update()
    system.restart()
    np.testing.assert_array_equal(flat(system.weights()), flat(problem.weights))
    system.update()
    np.testing.assert_array_equal(flat(system.weights()), once)
