"""The library's plain kernels beside loops written by hand."""
