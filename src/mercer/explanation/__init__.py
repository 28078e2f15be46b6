"""Shapley values of decision functions: how much each feature adds to a value."""
