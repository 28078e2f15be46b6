"""Stochastic subgradient descent (Pegasos) and the perceptron."""
