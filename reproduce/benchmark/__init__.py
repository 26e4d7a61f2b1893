"""What the library costs: its plain kernels beside loops written by hand."""
