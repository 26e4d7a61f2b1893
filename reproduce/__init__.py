"""The paper's tables and figures on the real MNIST: data, protocols, runner, rendering."""
