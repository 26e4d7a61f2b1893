"""MNIST for the experiments: prepared once in TFDS's own form, checked at every load."""

from reproduce.data.loading import Mnist, load_mnist, resolve_data_dir
from reproduce.data.source import DataError

__all__ = ["DataError", "Mnist", "load_mnist", "resolve_data_dir"]
