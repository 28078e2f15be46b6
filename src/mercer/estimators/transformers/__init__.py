"""Approximate feature maps: features whose inner products are nearly kernel values."""
