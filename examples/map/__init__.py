"""What local entropy and heat regularization are good for, beside what one would use otherwise."""
