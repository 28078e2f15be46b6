"""Samples that stay on disk: read block by block, as often as a fit needs them."""
