"""The race on networks that are not the paper's: wide layers, convolutions, attention.

This library is raced against the same algorithms written by hand in PyTorch and JAX, one process
per library, whose systems take turns of two updates. All begin at the same weights and minibatch,
and their losses and gradients there must agree.
"""
