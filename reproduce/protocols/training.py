"""What the methods of a comparison share: network, data, budget."""

from dataclasses import dataclass

from reproduce import checks
from reproduce.protocols.settings import added

NETWORKS = ("small_dense", "hidden_dense")
INITIALIZATIONS = ("glorot_uniform", "normal", "uniform")
TEST_DRAWS = ("per_seed", "per_evaluation")
ACTIVATIONS = ("relu", "tanh", "sigmoid")
SAMPLINGS = ("epochs", "replacement")
PIXELS = ("unit", "standardised")

MOST_UPDATES = 1_000_000
"""Which images each update sees is laid out beforehand: more would take gigabytes."""


@dataclass(frozen=True)
class Training:
    """What every method of a comparison shares.

    Args:
        network: `"small_dense"` (784-10) or `"hidden_dense"` (784-200-10).
        initialization: R8. `"glorot_uniform"`, Keras's default, `"normal"`, standard deviation
            0.1, or `"uniform"`, from -0.05 to 0.05; biases start at zero in all.
        batch_size: Images per weight update.
        updates: Weight updates by the method.
        sgd_updates: Weight updates by SGD before those; their minibatches come first.
        sgd_learning_rate: Step size of those.
        test_images: Held-out images per evaluation, drawn without replacement.
        test_draw: R10. `"per_seed"`: drawn once; `"per_evaluation"`: anew each time.
        evaluate_every: Weight updates between two points of the training curve.
        tabulated: Updates evaluated in any case, for the table's columns.
        activation: R13. Of the hidden layer: `"relu"`, `"tanh"` or `"sigmoid"`.
        sampling: R14. `"epochs"`: minibatches run through permutations of the training images;
            `"replacement"`: every image is drawn anew.
        pixels: R15. `"unit"`: from 0 to 1; `"standardised"`: of mean 0 and variance 1 over all
            pixels of the training images.

    Raises:
        ValueError: A value breaks its rule.
    """

    network: str = "hidden_dense"  # Section 6.1, item 2; Section 6.2
    initialization: str = "glorot_uniform"  # not stated (R8)
    batch_size: int = 20  # Section 6.2
    updates: int = 500  # Section 6.2; Table 1
    sgd_updates: int = 0  # Section 6.2: from random initialization
    sgd_learning_rate: float = 0.01  # caption of Figure 5
    test_images: int = 1000  # Section 6.2
    test_draw: str = "per_seed"  # ambiguous (R10)
    evaluate_every: int = 10  # not stated
    tabulated: tuple[int, ...] = (100, 200, 300, 400, 500)  # Table 1
    activation: str = added("relu")  # not stated (R13)
    sampling: str = added("epochs")  # not stated (R14)
    pixels: str = added("unit")  # not stated (R15)

    def __post_init__(self) -> None:
        checks.one_of("network", self.network, NETWORKS)
        checks.one_of("initialization", self.initialization, INITIALIZATIONS)
        checks.one_of("test_draw", self.test_draw, TEST_DRAWS)
        checks.one_of("activation", self.activation, ACTIVATIONS)
        checks.one_of("sampling", self.sampling, SAMPLINGS)
        checks.one_of("pixels", self.pixels, PIXELS)
        checks.numbers(self, but=("sgd_updates",))
        checks.integer_of_at_least("sgd_updates", self.sgd_updates, 0)
        total = self.total_updates
        checks.must(total <= MOST_UPDATES, "updates", total, f"at most {MOST_UPDATES:,}")
        checks.distinct("tabulated", self.tabulated)
        for update in self.tabulated:
            checks.positive_integer("tabulated", update)

    @property
    def total_updates(self) -> int:
        """All weight updates, those by SGD before the method included."""
        return self.sgd_updates + self.updates

    @property
    def evaluations(self) -> tuple[int, ...]:
        """The updates after which accuracy is measured, from 0 (the initial weights) on."""
        curve = range(0, self.total_updates + 1, self.evaluate_every)
        return tuple(sorted({*curve, self.sgd_updates, *self.columns}))

    @property
    def columns(self) -> tuple[int, ...]:
        """The table's columns: those of `tabulated` within reach, and the last update."""
        reached = {update for update in self.tabulated if update <= self.total_updates}
        return tuple(sorted({*reached, self.total_updates}))
