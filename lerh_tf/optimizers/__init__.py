"""Algorithms 1 and 2: the outer loops."""
