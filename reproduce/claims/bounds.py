"""Every bound of the claims' rules, stated once; set before the fresh seeds were run."""

CHANCE = 0.1
"""Accuracy of guessing among ten digits; the stated accuracy of a run after it diverged."""

LEVEL = 0.01
"""Accuracies no further apart are level; clearly better, or below, is more."""

NEAR = 0.03
"""Accuracies no further apart are near each other."""

COMPARABLE = 0.05
"""A method is held against SGD's stability only if it ends, and gains, within this of SGD."""

LEARNS = 0.2
"""A method that ends no higher has not learnt: twice chance."""

POOR = 0.5
"""A method that ends no higher has failed."""

WOBBLE = 0.02
"""Root mean square of second differences, 10 updates apart, of a curve that is stable."""

STRAIGHT = 0.9
"""The least R^2 of a straight line, to be exceeded, that counts as almost linear."""

CONSTANT = 0.125
"""At a nearly constant rate the first half of a gain is 1/2 of it, give or take this share."""

REPORTED = 0.005
"""How near an accuracy of Section 6.1 must be, which is printed to three digits."""

DEGENERATE = 0.1
"""Effective sample size over samples where importance sampling's weights have collapsed."""

NOISY = 0.5
"""An estimate whose standard error is a larger share of the step is more noise than signal."""

FACTOR = 3.0
"""How many times larger or smaller a ratio of seconds may be than the paper's."""

REPEATS = 1.5
"""Seconds agree that are no further apart than this factor; about a half is within it of 1/2."""

STATED = {
    "chance": CHANCE,
    "level, clearly": LEVEL,
    "near": NEAR,
    "comparable with SGD": COMPARABLE,
    "learns": LEARNS,
    "poor": POOR,
    "stable: second differences": WOBBLE,
    "almost linear: R²": STRAIGHT,
    "nearly constant rate: share of the gain": CONSTANT,
    "as reported in Section 6.1": REPORTED,
    "collapsed weights: effective share": DEGENERATE,
    "noisy: standard error over step": NOISY,
    "a ratio of seconds is the paper's: factor": FACTOR,
    "seconds agree: factor": REPEATS,
}
"""All of them, as the report lists them."""
