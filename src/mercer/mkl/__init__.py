"""Multiple kernel learning: the weights of a sum of kernels."""
