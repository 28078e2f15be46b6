"""Uncertainty from held-out decision values: calibrated probabilities, Venn–Abers intervals, conformal prediction."""
