"""Machines that order samples: ordered thresholds, and losses over pairs."""
