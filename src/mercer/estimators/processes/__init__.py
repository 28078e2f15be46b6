"""Gaussian processes: classification, and regression with inducing points."""
