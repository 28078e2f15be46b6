"""Online learning: stochastic subgradient descent (Pegasos) and the perceptron."""
