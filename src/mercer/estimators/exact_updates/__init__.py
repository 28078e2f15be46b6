"""Add, remove and replace training samples of fitted models."""
