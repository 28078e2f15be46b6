"""Solvers for machines that are linear in the features: P(w) + Σ weight ℓ(y, Xw + b)."""
