"""Multiple kernel learning: machines that learn the weights of a sum of kernels."""
