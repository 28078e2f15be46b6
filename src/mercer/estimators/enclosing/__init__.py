"""Machines that enclose the samples: the smallest ball in feature space."""
