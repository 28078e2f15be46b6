"""The panels of the page: the fitted machine, its points, its path over C, its kernel, and steps of solvers."""
