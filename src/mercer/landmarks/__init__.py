"""Landmark machines: kernel machines restricted to the span of some samples, certified for the exact problem."""
