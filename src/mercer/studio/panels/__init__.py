"""What the page shows of a state: the fitted machine, its points, its path over C, its kernel, and steps of solvers."""
