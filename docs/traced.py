"""The measured numbers in the pages' sentences: of which cells of which record each is made."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, starmap
from typing import NamedTuple

from docs.records import VALUE, Record
from reproduce.making import reference_jobs

RACE = "docs/measured/race.md"
NETWORKS = "docs/measured/networks.md"
ESTIMATORS = "docs/measured/estimators.md"
ADAPT_TAU = "docs/measured/adapt-tau.md"
SIGN_NETWORK = "docs/measured/sign-network.md"
SIGN_SETTINGS = "docs/measured/sign-network-settings.md"
TIMINGS = "reproduce/reference/timings.csv"
EXECUTION = {"threads": 1, "device": "cpu", "jit_compile": False}

# Rows and headings of the records.
BY_HAND = "PyTorch, hand-written"
WIDE, CONVOLUTIONAL, ATTENTION = "784-1024-1024-10", "28 x 28 images", "16 tokens"
SGLD, IS, HR = "SGLD (Algorithm 3)", "importance sampling (Algorithm 4)", "heat regularization"
TORCH = ("PyTorch, loop", "PyTorch, vmap")
PRINTED, CONTROLLED = "importance sampling", "importance sampling, control variate"
GRADIENTS = "importance sampling, gradients"
CHAIN, CONTROLLED_CHAIN = "SGLD as printed, from x", "SGLD as printed, control variate"
RELATIVE_CHAIN = "SGLD, step sizes tau / 5, control variate"
DEFAULT = "30 gradients, the default"
HUNDRED, LOSSES = "100 gradients", "importance sampling, 1000 losses"
PAIRS, SOBOL = "antithetic pairs", "scrambled Sobol points"
AVERAGING = "Robbins-Monro, averaging"
AT_LARGE_TAU = tuple(f"Algorithm 2, tau {tau}, 900 gradients" for tau in ("0.1", "1.5"))
BOTH = ("Algorithm 1, tau 0.01, 1000 gradients", "Algorithm 2, tau 0.01, relative error 0.1")


class Source(NamedTuple):
    """Where the numbers of a piece of a sentence are from.

    Attributes:
        record: The file.
        values: All numbers of the piece, in its order, by the record.
    """

    record: str
    values: Callable[[Record], Iterable[float]]


def span(values: Iterable[float]) -> tuple[float, float]:
    """Returns the least and the most."""
    found = list(values)
    return min(found), max(found)


def raced(record: Record, *systems: str, column: str = "x lerh_tf") -> list[float]:
    """Returns what systems took in the race, for each algorithm that they were in."""
    return [row.number(column) for system in systems for row in record.chosen(system)]


def floors(record: Record) -> list[list[float]]:
    """Returns seconds for noise and for products, and the update over their sum, by algorithm."""
    notes = record.notes("- Floor of ")
    return [[float(number[0]) for number in VALUE.finditer(note)] for note in notes]


def shares(record: Record, part: int) -> list[float]:
    """Returns per cent of an update that are noise (0), or products (1), by algorithm."""
    updates = raced(record, "lerh_tf", column="median s")
    return [100.0 * own[part] / whole for own, whole in zip(floors(record), updates, strict=True)]


def fastest(
    record: Record, network: str, algorithm: str, *systems: str, column: str = "x lerh_tf"
) -> float:
    """Returns what the fastest of some systems takes on another network, over this library's."""
    found = [row for name in systems for row in record.chosen(name, under=network)]
    return min(row.number(column) for row in found if algorithm in row.place)


def errors(record: Record, estimator: str, evaluations: str = "", tau: str = "0.01") -> list[float]:
    """Returns errors of an estimator, at one budget or all, at one tau or, where empty, all."""
    names = (estimator, evaluations) if evaluations else (estimator,)
    return [
        row.number(place)
        for row in record.chosen(*names, under="## Error of m")
        for place in row.cells
        if place.endswith(f", {tau}" if tau else place) and ", " in place
    ]


def ratios(over: Iterable[float], under: Iterable[float]) -> tuple[float, float]:
    """Returns the least and the most of quotients, made one by one."""
    return span(one / other for one, other in zip(over, under, strict=True))


def at_budgets(record: Record) -> Iterator[tuple[list[float], list[float]]]:
    """Yields the errors of importance sampling as printed and controlled, budget by budget."""
    for evaluations in ("10", "100", "1000"):
        yield errors(record, PRINTED, evaluations), errors(record, CONTROLLED, evaluations)


def thousandths(record: Record) -> tuple[float, float]:
    """Returns the error of 100 gradients over that of 1000 losses as printed."""
    return ratios(errors(record, GRADIENTS, "100"), errors(record, PRINTED, "1000"))


def chains_apart(record: Record) -> tuple[float, float]:
    """Returns how far apart two chains end at tau = 1.5."""
    found = record.chosen(under="## How converged")
    return span(row.number("chains apart") for row in found if row.cells["tau"] == "1.5")


def costs(threads: int, *names: str) -> Callable[[Record], list[float]]:
    """Returns what reads the costs of weight updates, over SGD's."""
    column = f"over SGD's, {threads} threads"
    return lambda record: [record.number(name, column=column) for name in names]


def with_noise(record: Record, estimator: str, *noises: str) -> list[float]:
    """Returns errors under other noise over those under independent noise, at tau = 0.01."""
    return [
        record.number(f"{estimator}, {noise}", column="0.01", under="## Other noise")
        for noise in noises
    ]


def trained(record: Record, column: str, *names: str) -> list[float]:
    """Returns numbers of trainings with accurate means."""
    return [record.number(name, column=column, under="## Training") for name in names]


def seeds(record: Record) -> set[float]:
    """Returns how many seeds the trainings with accurate means had: one number, if all agree."""
    return {row.number("seeds") for row in record.chosen(under="## Training")}


def computing(record: Record) -> list[float]:
    """Returns the hours of `make all SEEDS=0`'s runs: each case's that was made last, by any seed.

    Of Table 2 all repetitions, since each `make all` makes them.
    """
    runs = {row.cells["run"]: row.cells for row in record.beside("runs.csv").rows}
    made = {int(run["seed"]) for run in runs.values()}
    wanted = {job.run.key[:16] for job in reference_jobs(sorted(made), EXECUTION)}
    last: dict[tuple[str, ...], float] = {}
    for row in sorted(record.rows, key=lambda row: row.number("started")):
        run = runs[row.cells["run"]]
        if row.cells["run"] not in wanted:  # beyond the paper
            continue
        repetition = run["seed"] if run["experiment"] == "table2" else ""
        last[run["experiment"], run["case"], repetition] = row.number("seconds")
    return [sum(last.values()) / 3600.0]


def adapted(record: Record, row: str, column: str) -> list[float]:
    """Returns what `AdaptTau(0.5)` gave, and tau fixed."""
    return [record.number(name, row, column=column) for name in ("`AdaptTau(0.5)`", "fixed")]


TRACED: Mapping[str, Mapping[str, Source]] = {
    "README.md": {
        "0.028 to 0.042 s": Source(RACE, lambda r: span(raced(r, "lerh_tf", column="median s"))),
        "18.1 to 23.8 times": Source(RACE, lambda r: span(raced(r, BY_HAND))),
        "0.33 to 0.37 of": Source(ESTIMATORS, lambda r: span(errors(r, GRADIENTS, "30"))),
        "50 to 94 steps": Source(ESTIMATORS, lambda r: span(errors(r, PRINTED, "1000"))),
    },
    "docs/speed.md": {
        "gradients take 5.3": Source(ESTIMATORS, costs(1, DEFAULT)),
        "4.2 with two": Source(ESTIMATORS, costs(2, DEFAULT)),
        "0.0418 s by SGLD, 0.0275 s by importance sampling and 0.0325 s": Source(
            RACE, lambda r: raced(r, "lerh_tf", column="median s")
        ),
        "22.7, 23.8 and 18.1 times": Source(RACE, lambda r: raced(r, BY_HAND)),
        "12.2, 18.9 and 15.1 times": Source(RACE, lambda r: raced(r, "lerh_tf, subspace=False")),
        "27.2, 43.7 and 102.8 times": Source(
            RACE, lambda r: raced(r, "BlackJAX sgld", "posteriors sgld", "evosax SimpleES")
        ),
        "33 % (SGLD) to 48 %": Source(RACE, lambda r: span(shares(r, 0))),
        "9 to 10 %": Source(RACE, lambda r: span(shares(r, 1))),
        "within 2.4 times": Source(RACE, lambda r: [max(floor[2] for floor in floors(r))]),
        "2.07 (JAX, SGLD), 2.28 (PyTorch, importance sampling) and 6.15 times": Source(
            NETWORKS,
            lambda r: [
                fastest(r, WIDE, SGLD, "JAX", "PyTorch"),
                fastest(r, WIDE, IS, "JAX", *TORCH),
                fastest(r, WIDE, HR, "JAX", *TORCH),
            ],
        ),
        "PyTorch 2.01, 1.72 and 1.82 times": Source(
            NETWORKS,
            lambda r: [
                fastest(r, CONVOLUTIONAL, SGLD, "PyTorch"),
                fastest(r, CONVOLUTIONAL, IS, *TORCH),
                fastest(r, CONVOLUTIONAL, HR, *TORCH),
            ],
        ),
        "takes 6.19 times as long as": Source(
            NETWORKS,
            lambda r: [
                fastest(r, WIDE, IS, "JAX", *TORCH, column="median s")
                / fastest(r, WIDE, IS, "lerh_tf, control variate", column="median s")
            ],
        ),
        "1.14 (JAX, SGLD), 1.18 (PyTorch, importance sampling) and 1.66 times": Source(
            NETWORKS,
            lambda r: [
                fastest(r, ATTENTION, SGLD, "JAX", "PyTorch"),
                fastest(r, ATTENTION, IS, "JAX", *TORCH),
                fastest(r, ATTENTION, HR, "JAX", *TORCH),
            ],
        ),
        "0.37 and 0.53 times": Source(
            NETWORKS,
            lambda r: [
                fastest(r, WIDE, IS, "lerh_tf, control variate"),
                fastest(r, WIDE, IS, "lerh_tf, gradients"),
            ],
        ),
    },
    "docs/estimators.md": {
        "trainings of 5 seeds": Source(ESTIMATORS, seeds),
        "0.05 times": Source(
            ESTIMATORS,
            lambda r: ratios(errors(r, GRADIENTS, "100"), errors(r, CONTROLLED, "1000"))[1:],
        ),
        "0.002 to 0.004 times": Source(ESTIMATORS, thousandths),
        "14 to 25 times": Source(
            ESTIMATORS, lambda r: span(chain.from_iterable(starmap(ratios, at_budgets(r))))
        ),
        "is 340 to 1600 steps": Source(ESTIMATORS, lambda r: span(errors(r, CHAIN))),
        "is 0.33 to 0.78 of": Source(ESTIMATORS, lambda r: span(errors(r, CONTROLLED_CHAIN))),
        "to 0.43 to 0.50 of": Source(
            ESTIMATORS, lambda r: span(errors(r, RELATIVE_CHAIN, "1000", "0.1"))
        ),
        "0.41 to 0.51 of": Source(
            ESTIMATORS, lambda r: span(errors(r, "Robbins-Monro as in the paper", "900", ""))
        ),
        "end 0.46 to 0.53 of": Source(ESTIMATORS, chains_apart),
        "to 0.17 to 0.22 of": Source(
            ESTIMATORS, lambda r: span(errors(r, AVERAGING, "3600", "1.5"))
        ),
        "5.3 of SGD's updates, 100 gradients 10.2 and 1000 losses 51.8; with 2 threads": Source(
            ESTIMATORS,
            lambda r: [
                *costs(1, DEFAULT)(r),
                100,
                *costs(1, HUNDRED)(r),
                1000,
                *costs(1, LOSSES)(r),
                2,
            ],
        ),
        "4.2, 6.2 and 24.1": Source(ESTIMATORS, costs(2, DEFAULT, HUNDRED, LOSSES)),
        "leave 0.90 of": Source(ESTIMATORS, lambda r: with_noise(r, GRADIENTS, PAIRS)),
        "0.84 of": Source(ESTIMATORS, lambda r: with_noise(r, AVERAGING, PAIRS)),
        "points 0.83 of": Source(ESTIMATORS, lambda r: with_noise(r, GRADIENTS, SOBOL)),
        "by 1.10 and 1.05": Source(ESTIMATORS, lambda r: with_noise(r, CONTROLLED, PAIRS, SOBOL)),
        "error 5.24 times": Source(
            ESTIMATORS, lambda r: with_noise(r, AVERAGING, "common random numbers")
        ),
        "to 0.07 and 0.09 of": Source(ESTIMATORS, lambda r: trained(r, "error / step", *BOTH)),
        "to 0.20 and 0.21 of": Source(
            ESTIMATORS, lambda r: trained(r, "error / step", *AT_LARGE_TAU)
        ),
        "of 0.786 and 0.778": Source(ESTIMATORS, lambda r: trained(r, "500", *BOTH)),
        "to 0.855": Source(ESTIMATORS, lambda r: trained(r, "500", "SGD, learning rate 0.01")),
        "that 5 seeds": Source(ESTIMATORS, seeds),
    },
    "docs/choosing.md": {
        "cost 5.3 of": Source(ESTIMATORS, costs(1, DEFAULT)),
        "that 5 seeds": Source(ESTIMATORS, seeds),
    },
    "docs/limits.md": {
        "from 5.3": Source(ESTIMATORS, costs(1, DEFAULT)),
        "to 51.8": Source(ESTIMATORS, costs(1, LOSSES)),
        "end 0.46 to 0.53 of": Source(ESTIMATORS, chains_apart),
        "0.002 to 0.004 of": Source(ESTIMATORS, thousandths),
    },
    "docs/paper.md": {"in 0.6 hours": Source(TIMINGS, computing)},
    "docs/callbacks.md": {
        "a tau of 0.099, where the paper's is 0.01.": Source(
            ADAPT_TAU, lambda r: adapted(r, "tau", "500")
        ),
        "of 0.581 against 0.462": Source(ADAPT_TAU, lambda r: adapted(r, "accuracy", "100")),
        "with 0.769 against 0.779": Source(ADAPT_TAU, lambda r: adapted(r, "accuracy", "500")),
        "of 0.127 to 0.897": Source(
            SIGN_NETWORK,
            lambda r: [r.number("`ImportanceSampling`", column=column) for column in ("1", "500")],
        ),
        "at 0.103": Source(SIGN_NETWORK, lambda r: [r.number("SGD", column="500")]),
        "0.829 against 0.543 to 0.610": Source(
            SIGN_SETTINGS,
            lambda r: [
                r.number("50", "0.01", column="accuracy"),
                *span(row.number("accuracy") for row in r.chosen("200")),
            ],
        ),
    },
}
