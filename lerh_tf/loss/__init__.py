"""The minibatch loss as a function of the weights: captured, cut out of its graph, compiled."""
