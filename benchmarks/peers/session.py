"""Checks, races and curves of the chosen systems, each measured once and then kept."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.peers import agreement, curves, figure, table
from benchmarks.peers.curves import BATCH, HIDDEN, Point
from benchmarks.peers.problem import Array, Problem, mnist_minibatch, random_minibatch
from benchmarks.peers.race import Measure, race
from benchmarks.peers.results import Results
from benchmarks.peers.rows import RaceRow, fastest_peers, rows
from benchmarks.peers.systems import SYSTEMS
from benchmarks.peers.work import ALGORITHMS, PAPER, QUICK, Work

if TYPE_CHECKING:
    from reproduce.data import Mnist

_LONGEST_UPDATE = {True: 600.0, False: 60.0}
"""Seconds above which a curve stops, by whether the system is this library."""


@dataclass(frozen=True)
class RacePlan:
    """What to measure.

    Args:
        systems: keys of `SYSTEMS`.
        quick: whether to take a budget for a look whether all runs.
        synthetic: whether to take random images, not MNIST.
        threads: processors that a system may use.
        repeats: timed updates of each system in the race.
        gpu: the name of the GPU that they compute on; None: they see none.
    """

    systems: tuple[str, ...]
    quick: bool
    synthetic: bool
    threads: int
    repeats: int
    gpu: str | None = None

    @property
    def works(self) -> Mapping[str, Work]:
        """The update, by algorithm."""
        return QUICK if self.quick else PAPER

    @property
    def settings(self) -> dict[str, Any]:
        """What every measurement depends on."""
        images = "random" if self.synthetic else "MNIST"
        return {"images": images, "threads": self.threads, "gpu": self.gpu}

    @property
    def on_gpu(self) -> bool:
        """Whether the systems compute on a GPU."""
        return self.gpu is not None


class Session:
    """Makes the measurements of a plan that have not been made.

    Args:
        plan: what to measure.
        results: where measurements lie.
        mnist: loads MNIST; called only if it is needed.
        say: called with a line about each step.
    """

    def __init__(
        self,
        plan: RacePlan,
        results: Results,
        mnist: Callable[[], "Mnist"],
        say: Callable[[str], None],
    ):
        self._plan, self._results, self._mnist, self._say = plan, results, mnist, say
        self._made: set[str] = set()
        self._machines: set[str] = set()

    @cached_property
    def agreements(self) -> dict[str, dict[str, Any]]:
        """Whether each system computes what it should, by system."""
        return {system: self._agreement(system) for system in self._plan.systems}

    @cached_property
    def rows(self) -> list[RaceRow]:
        """The race of each algorithm, with what the checks found."""
        agreements, works = self.agreements, self._plan.works
        algorithms = {SYSTEMS[system].algorithm for system in self._plan.systems}
        races = {a: self._race(a) for a in ALGORITHMS if a in algorithms and a != "sgd"}
        sizes = {algorithm: work.size for algorithm, work in works.items()}
        return rows(races, sizes, agreements)

    @cached_property
    def points(self) -> list[dict[str, Any]]:
        """The curves of this library and of the race's fastest peers."""
        chosen = [
            system
            for system in curves.curve_systems(fastest_peers(self.rows))
            if system in self._plan.systems
        ]
        axes = curves.QUICK_AXES if self._plan.quick else curves.AXES
        return [
            point
            for axis, values in axes.items()
            for system in chosen
            for point in self._curve(system, axis, values)
        ]

    def show_race(self, folder: Path, figures: Path) -> tuple[str, list[Path]]:
        """Writes the race's table and figure; returns the table and what was written."""
        text = table.race_markdown(self.rows, self._caption())
        written = table.write_race(text, self.rows, folder)
        return text, [*written, *figure.draw_race(self.rows, self._caption(), figures / "peers")]

    def show_curves(self, folder: Path, figures: Path) -> tuple[str, list[Path]]:
        """Writes the curves' table and figure; returns the table and what was written."""
        text = table.curves_markdown(self.points, self._caption())
        written = table.write_curves(text, self.points, folder)
        stem = figures / "peers-curves"
        return text, [*written, *figure.draw_curves(self.points, self._caption(), stem)]

    def _agreement(self, system: str) -> dict[str, Any]:
        bounds = {"z": agreement.LARGEST_Z, "error": agreement.LARGEST_ERROR}
        return self._kept(
            f"checks/{system}", bounds, lambda: agreement.check(system, gpu=self._plan.on_gpu)
        )

    def _race(self, algorithm: str) -> dict[str, Any]:
        systems = [s for s in self._plan.systems if SYSTEMS[s].algorithm in (algorithm, "sgd")]
        works = {name: self._plan.works[name] for name in (algorithm, "sgd")}
        measure = Measure(self._plan.threads, self._plan.repeats, gpu=self._plan.on_gpu)
        settings = {
            "systems": systems,
            "works": {name: asdict(work) for name, work in works.items()},
            "measure": asdict(measure),
        }

        def run() -> dict[str, Any]:
            problem = Problem.of_minibatch(*self._minibatch(BATCH), HIDDEN)
            return race(systems, works, problem, measure, self._say)

        return self._kept(f"race/{algorithm}", settings, run)

    def _curve(self, system: str, axis: str, values: Sequence[int]) -> list[dict[str, Any]]:
        points: list[dict[str, Any]] = []
        for value in values:
            point = Point(system, axis, value)
            reason = self._reason_to_stop(point, points)
            result = {"left_out": reason} if reason else self._point(point)
            points.append({**asdict(point), **result})
        return points

    def _reason_to_stop(self, point: Point, before: Sequence[Mapping[str, Any]]) -> str | None:
        measured = [smaller for smaller in before if "left_out" not in smaller]
        if not measured:
            return None
        seconds = curves.predicted_seconds(measured[-1], point.value)
        longest = _LONGEST_UPDATE[SYSTEMS[point.system].is_ours]
        if seconds <= longest:
            return None
        return f"an update would take about {seconds:.0f} s, more than {longest:.0f} s"

    def _point(self, point: Point) -> dict[str, Any]:
        base = self._plan.works[SYSTEMS[point.system].algorithm]
        repeats = 2 if self._plan.quick else 5
        return self._kept(
            f"curves/{point.system}-{point.axis}-{point.value}",
            {"point": asdict(point), "work": asdict(base), "repeats": repeats},
            lambda: curves.measure(
                point,
                base,
                self._minibatch,
                threads=self._plan.threads,
                repeats=repeats,
                gpu=self._plan.on_gpu,
            ),
        )

    def _kept(
        self, name: str, settings: dict[str, Any], measure: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        record = self._results.of(name, {**self._plan.settings, **settings}, measure)
        machine = record["machine"]
        self._made.add(record["made"])
        self._machines.add(
            f"{machine['processor']}, {machine['processors']} processors, {machine['system']}, "
            f"Python {machine['python']}"
        )
        result: dict[str, Any] = record["result"]
        return result

    def _minibatch(self, batch: int) -> tuple[Array, Array]:
        if self._plan.synthetic:
            return random_minibatch(batch)
        mnist = self._mnist()
        return mnist_minibatch(batch, mnist.train_images, mnist.train_labels)

    def _caption(self) -> str:
        plan = self._plan
        budget = ["QUICK BUDGET, not the paper's"] if plan.quick else []
        made = sorted(self._made)
        when = made[0] if made[0] == made[-1] else f"{made[0]} to {made[-1]}"
        images = "random images" if plan.synthetic else "MNIST"
        network = f"784-{HIDDEN}-10, minibatch of {BATCH} ({images})"
        threads = f"{plan.threads} thread{'s' if plan.threads > 1 else ''} each"
        device = [f"{plan.gpu}, float32 without TF32; memory is the host's"] if plan.gpu else []
        return "; ".join([*budget, network, threads, *device, *sorted(self._machines), when])
