"""Kernel ridge regression: linear systems with the kernel matrix."""
