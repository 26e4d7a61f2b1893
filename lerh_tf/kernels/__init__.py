"""Algorithms 3, 4 and 5: estimators of the mean of the nearest Gaussian."""
