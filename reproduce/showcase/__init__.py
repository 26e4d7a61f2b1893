"""What the library can do beyond the paper, measured on MNIST."""
