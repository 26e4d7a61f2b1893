"""The weight updates that replicas share, and what each of them costs one replica alone."""

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple


class Case(NamedTuple):
    """One weight update by importance sampling.

    Attributes:
        network: a key of `TITLES`.
        parallel: how replicas share it: "samples" or "batch".
        samples: J.
        rows: of the minibatch.
        stands_in: whether a replica of two is meant that takes its own part for the other one's.
    """

    network: str
    parallel: str
    samples: int
    rows: int
    stands_in: bool = False

    @property
    def part(self) -> "Case":
        """What one of two replicas computes of the update, alone."""
        if self.parallel == "samples":
            return self._replace(samples=self.samples // 2)
        return self._replace(rows=self.rows // 2, stands_in=True)

    @property
    def title(self) -> str:
        """What it is, for reading."""
        return f"{TITLES[self.network]}, {self.rows} rows, J = {self.samples}, {self.parallel}"


TITLES: Mapping[str, str] = {"dense": "784-200-10", "convolutional": "two convolutions"}
"""What the networks are, for reading; the second as in `make networks`."""

CASES = (
    Case("dense", "samples", 100_000, 20),
    Case("convolutional", "samples", 1000, 20),
    Case("dense", "batch", 1000, 128),
    Case("convolutional", "batch", 100, 512),
)
QUICK = (Case("dense", "samples", 200, 4), Case("dense", "batch", 20, 8))


@dataclasses.dataclass(frozen=True)
class Costs:
    """What makes up the seconds of a weight update.

    Args:
        alone: seconds of one replica that shares nothing.
        shared: those of them that replicas divide among them.
        repeated: what each replica does besides, where there are several.
        bytes: what a replica sends, and gets, per update.
        exchanges: how often it does so.
    """

    alone: float
    shared: float
    repeated: float
    bytes: int
    exchanges: int

    def seconds(self, replicas: int, bandwidth: float, latency: float) -> float:
        """Returns the seconds of an update on so many replicas.

        Exchanges are taken for reductions along a ring: each replica sends all it has but one part
        of `replicas`, twice, in so many steps.

        Args:
            replicas: L.
            bandwidth: bytes per second between two replicas.
            latency: seconds per step.
        """
        if replicas == 1:
            return self.alone
        computed = self.alone - self.shared + self.shared / replicas + self.repeated
        return computed + self.exchange(replicas, bandwidth, latency)

    def exchange(self, replicas: int, bandwidth: float, latency: float) -> float:
        """Returns the seconds of them in which replicas exchange; arguments as above."""
        steps = 2 * (replicas - 1)
        return self.bytes * steps / replicas / bandwidth + self.exchanges * steps * latency
