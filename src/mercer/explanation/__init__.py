"""Explanations of single predictions: features, training rows, parts of objects, distances to the boundary."""
