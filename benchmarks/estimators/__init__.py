"""How well every estimator finds the mean, and what the algorithms do when it is found well."""
