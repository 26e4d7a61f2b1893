"""What the library costs, beside other libraries and beside loops written by hand."""
