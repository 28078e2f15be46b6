"""Several quantiles of y given x at once."""
