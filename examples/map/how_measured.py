"""The page's section on how it was measured, from the protocol and the spaces of the search."""

import pandas as pd

from examples.map import entropy_sgd, findings, jobs
from examples.map.jobs import Plan
from examples.map.methods import ADAM_PER_SGD, GRADIENTS, SIGN_SAMPLES
from examples.map.protocol import DEAR_LENGTHS, DEAR_UPDATES, RATES, Task

_COSTS = (
    "Costs are seconds of the processor for a weight update, the least of three turns, without "
    "compilation. Keras's `jit_compile` is off for all; what loops within an update of this "
    "library, and of SAM and Entropy-SGD, is compiled by XLA. SAM, weight noise and Entropy-SGD "
    "run through this library's wrapper, which adds to their cost, and draw their noise where the "
    "minibatch sees the weights, as ours do. It leaves out an update that is not finite, so that "
    "what runs through it seldom diverges, and evaluates weight noise's one sample twice, as "
    "TensorFlow's vectorised form wants two. All methods were timed, and the convolutional network "
    "was run, before this library's noise took less time and its convolutions came in smaller "
    "blocks: today whatever draws through it would get more updates, ours, weight noise and "
    "Entropy-SGD. Compilation is not counted: runs of ours on the inventory and the network of "
    "signs took longer than their rivals'."
)
_TESTS = (
    "Intervals are conditional on the settings that one seed's trials chose, and on the one test "
    "set that all seeds share (of the inventory's scenarios each seed has its own), on MNIST-1D on "
    "the one pool of signals too. That "
    "validation on the same seeds chose who is compared, of more rivals than of ours, favours the "
    "rival a little. Holm's 5 % is "
    "for each of two families, the differences and the equalities. Intervals are not corrected "
    "for their number; those beside the primary contrasts are descriptions."
)


def section(plan: Plan) -> str:
    """Returns the section as Markdown."""
    return "\n\n".join(
        [
            "## How it was measured",
            _tasks(plan),
            _protocol(plan),
            _methods(plan),
            _tuning(plan),
            _COSTS,
            _TESTS,
            _measures(plan),
        ]
    )


def _tasks(plan: Plan) -> str:
    lines = [
        {
            "task": task.title,
            "network": task.network,
            "data": task.data,
            "training": task.training,
            "batch": task.batch,
            "seconds": f"{task.seconds:g}",
            "bound": f"{task.bound:g}",
            "primary": "yes" if task.primary else "no",
            "methods": len(task.methods),
        }
        for task in plan.protocol.tasks
    ]
    return str(pd.DataFrame(lines).to_markdown(index=False, disable_numparse=True))


def _protocol(plan: Plan) -> str:
    protocol = plan.protocol
    return (
        "The protocol, `examples/map/protocol.py`, was committed before any result, but for the "
        "amendments and additions that it names: tasks, "
        f"budgets, bounds, seeds {protocol.seeds[0]} to {protocol.seeds[-1]}, tuning on seed "
        f"{protocol.tuning_seed}. A method gets at most as many updates as fit into the task's "
        "seconds at its measured cost, to within seven per cent, and how many of them it makes is "
        "searched, where its learning rate has a schedule (from "
        f"{DEAR_LENGTHS.low:g} of them on if fewer than {DEAR_UPDATES:,} fit); at constant rates "
        "it makes all of them, since a shorter run would be the beginning of the longer one, whose "
        "best checkpoint is kept. On the learning rates' task one score is the mean over "
        f"{len(RATES)} runs, one per rate, which share its seconds. Beside its training examples "
        "every task with labels, also one of 1,000 images, uses "
        f"{protocol.validation:,} further labels for validation (the inventory "
        f"{max(1, protocol.validation // 10)} scenarios), which choose settings, weights and who "
        "is compared. With wrong labels they are as wrong as the training labels. Of MNIST-1D "
        "there are no more labels than one run of the wrong labels' task trains and validates on: "
        "the seeds, that of the trials among them, draw from the same 6,000 signals."
    )


def _methods(plan: Plan) -> str:
    """What is compared, tasks with the same methods and searches together."""
    groups: dict[str, list[str]] = {}
    for task in plan.protocol.tasks:
        titles = "; ".join(_searched(name, task) for name in task.methods)
        groups.setdefault(titles, []).append(task.title)
    compared = " ".join(
        f"Compared on {', '.join(tasks)}: {titles}." for titles, tasks in groups.items()
    )
    return (
        f"{compared} In brackets how many hyper-parameters are searched; their ranges stand in "
        "`examples/map/methods.py` and `strategies.py`. Averaged weights, SAM, weight noise, "
        "Entropy-SGD and ours as compared have momentum SGD inside (Nesterov's); ours with Adam "
        "inside were tried where the tables show them and nowhere else. By gradients ours take "
        f"{GRADIENTS} of them for an update, heat regularization {GRADIENTS // 2} moves of 2, "
        "which is not tuned. On the network of signs the straight-through estimator descends on "
        "the cross-entropy, the others on the 0-1 loss that the title names.\n\n"
        "Learning rates are those of the long run: with momentum p Keras gets 1 - p times the rate "
        "and 1 / (1 - p) times the decay that are written. Of Adam's, the rates of three decades "
        f"among them, it gets {ADAM_PER_SGD:g} times the rate and {1 / ADAM_PER_SGD:g} times the "
        "decay, of ours without gradients (1 - p) sigma^2 times the rate, of OpenAI's strategy "
        "what is written.\n\n"
        "Not compared are losses that are robust to wrong labels, label smoothing, dropout, the "
        "straight-through estimator with Adam and, for the inventory, a policy of the textbook "
        "with its numbers tuned; its base-stock rule knows nothing of what an order costs, so that "
        "all come out above it."
    )


def _searched(method: str, task: Task) -> str:
    return f"{findings.title_of(method, task)} ({len(jobs.space_of(task, method))})"


def _tuning(plan: Plan) -> str:
    return (
        f"All have {plan.protocol.trials} trials, so that one with more hyper-parameters is "
        "searched more thinly, Entropy-SGD and ours on the network of signs the most. The "
        f"{entropy_sgd.STEPS} inner moves of Entropy-SGD see one minibatch, where its authors draw "
        "one each, and its gamma grows no further than one over the long-run step size of these "
        f"moves. How many candidates an update has is not tuned: {plan.protocol.population} for "
        f"strategies, {SIGN_SAMPLES:,} for ours on the network of signs. Two of the trials of "
        "averaged weights forget so slowly that the first weights stay in the average. The draws "
        "are the same on all tasks, and one draw has holes: a learning rate above 0.2 goes with "
        "less than half of the budget, but for methods so dear that their lengths begin at "
        f"{DEAR_LENGTHS.low:g}. Ranges may end too soon: the inventory's sigma, up to 0.3, for "
        "SNES and for ours, and its learning rate for OpenAI's strategy; elsewhere the largest "
        "learning rate drawn, 0.9437, was chosen for Adam on three tasks, for Entropy-SGD on two, "
        "with the largest step size, and for SAM, SGD and heat regularization on one each. Two "
        "trials of Entropy-SGD were made again later; neither is chosen."
    )


def _measures(plan: Plan) -> str:
    protocol = plan.protocol
    return (
        f"Flatness is measured on {protocol.flatness_examples:,} training examples with the labels "
        f"trained on: *gap*, F_tau - f at tau = {protocol.flatness_tau:g}, and *trace*, the "
        "Hessian's. *nll* and *ece*: negative log-likelihood and expected calibration error on the "
        "test set, nan where a run's logits are not finite."
    )
