"""Regularised loss minimisation with any convex loss and any non-decreasing convex penalty of the norm."""
