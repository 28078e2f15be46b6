"""Kernel machines: the quadratic program of a support vector machine, planned, solved and verified."""
